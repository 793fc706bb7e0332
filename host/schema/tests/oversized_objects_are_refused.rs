//! An object that is too large for a cluster with default settings is refused, with its size.

use serde_json::{Value, json};
use trainyard_api::{
    Object, Source,
    size::{REQUEST_LIMIT, STORED_LIMIT, TooLarge, check_size},
};
use trainyard_schema::{Admission, documents::Kind};
use trainyard_structural::{Options, Schema};

#[test]
fn limits_are_exact() {
    let frame = json!({"a": ""}).to_string().len();
    let sized = |size: usize| json!({"a": "x".repeat(size - frame)});
    assert_eq!(check_size(&sized(STORED_LIMIT)), Ok(STORED_LIMIT));
    let size = STORED_LIMIT + 1;
    assert_eq!(check_size(&sized(size)), Err(TooLarge::Stored { size }));
    let size = REQUEST_LIMIT + 1;
    assert_eq!(check_size(&sized(size)), Err(TooLarge::Request { size }));
    assert!(
        check_size(&sized(size))
            .unwrap_err()
            .to_string()
            .contains(&size.to_string())
    );
}

#[test]
fn annotations_have_their_own_limit() {
    let schema = Schema::compile(&json!({"type": "object"})).unwrap();
    let admit = |size: usize| {
        let annotations = json!({"abc": "x".repeat(size - 3)});
        let mut value = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x", "annotations": annotations}});
        schema.admit(&mut value, None, &Options::default()).errors
    };
    assert!(admit(256 * 1024).is_empty());
    let errors = admit(256 * 1024 + 1);
    let expected = "metadata.annotations: Too long: may not be more than 262144 bytes";
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [expected]
    );
}

fn errors(spec: &Value) -> Vec<String> {
    let value = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "a"}, "spec": spec,
    });
    let object = Object::read(Source::new("a.yaml", 1), value).unwrap();
    let admitted = Admission::default().admit(object, None, "default").unwrap();
    let errors = admitted.errors.into_iter();
    errors.map(|error| error.message).collect()
}

/// The limits of old forms are those of the CRD: exactly the objects that a cluster accepts are converted.
#[test]
fn old_forms_have_the_limits_of_their_own_crd() {
    let schema = Kind::TrainJob.schema().unwrap();
    let limit = |pointer: &str| {
        let pointer = format!("/properties/spec/properties/{pointer}");
        let limit = schema.pointer(&pointer).and_then(Value::as_u64);
        usize::try_from(limit.unwrap()).unwrap()
    };
    let job = |at: usize| json!({"name": format!("job-{at}")});
    // Overrides of different replicated jobs share an entry of runtimePatches.
    let overrides = |count: usize| -> Value {
        let one = |at| json!({"targetJobs": [job(at % 100)]});
        (0..count).map(one).collect()
    };
    let targets = |count: usize| json!([{"targetJobs": (0..count).map(job).collect::<Vec<_>>()}]);
    let labels = |count: usize| -> Value {
        (0..count)
            .map(|at| (format!("k{at}"), json!("v")))
            .collect()
    };
    type Make<'m> = &'m dyn Fn(usize) -> Value;
    let tries: [(&str, String, Make<'_>); 6] = [
        ("podTemplateOverrides", "maxItems".into(), &overrides),
        ("podSpecOverrides", "maxItems".into(), &overrides),
        (
            "podTemplateOverrides",
            "items/properties/targetJobs/maxItems".into(),
            &targets,
        ),
        (
            "podSpecOverrides",
            "items/properties/targetJobs/maxItems".into(),
            &targets,
        ),
        ("labels", "maxProperties".into(), &labels),
        ("annotations", "maxProperties".into(), &labels),
    ];
    for (field, keyword, make) in tries {
        let most = limit(&format!("{field}/{keyword}"));
        let spec = |count| json!({"runtimeRef": {"name": "x"}, field: make(count)});
        assert_eq!(
            errors(&spec(most)),
            Vec::<String>::new(),
            "{field} {keyword}"
        );
        let above = errors(&spec(most + 1));
        let wanted = format!("has {} ", most + 1);
        assert!(
            above.len() == 1 && above[0].starts_with(&wanted),
            "{above:?}"
        );
    }
}
