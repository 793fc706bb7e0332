//! Old forms that would expand beyond what a cluster stores are refused before anything is copied, and accepted ones never expand beyond
//! it.

use serde_json::{Value, json};
use trainyard_api::{
    Admitted, FieldPath, Object, Source,
    dialect::{Conversion, convert},
    fields::FieldProblem,
    size::{STORED_LIMIT, check_size},
};

fn job(spec: Value) -> Value {
    let mut spec = spec;
    spec["runtimeRef"] = json!({"name": "torch"});
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "a"},
        "spec": spec,
    })
}

fn targets(count: usize) -> Value {
    (0..count)
        .map(|at| json!({"name": format!("job-{at}")}))
        .collect()
}

fn overrides(targets: &Value, count: usize, spec: &Value) -> Value {
    let one = json!({"targetJobs": targets, "spec": spec});
    job(json!({"podTemplateOverrides": vec![one; count]}))
}

/// The only error of an object that exceeds a limit, and the unchanged object.
fn refused(mut value: Value) -> (FieldPath, usize, usize) {
    let Conversion { errors, .. } = convert(&mut value);
    assert_eq!(value.pointer("/spec/runtimePatches"), None);
    let [error] = &errors[..] else {
        unreachable!("{} errors", errors.len())
    };
    let text = error.to_string();
    assert!(text.len() < 300 && text.contains("; "), "{text}");
    match error.problem {
        FieldProblem::TooMany { found, limit, .. } => (error.path.clone(), found, limit),
        ref other => unreachable!("{other}"),
    }
}

fn path(text: &str) -> FieldPath {
    text.parse().unwrap()
}

#[test]
fn too_many_targets_overrides_or_keys_are_refused() {
    let spec = json!({});
    let list = "spec.podTemplateOverrides";
    let names = path("spec.podTemplateOverrides[0].targetJobs");
    assert_eq!(
        refused(overrides(&targets(70_000), 1, &spec)),
        (names, 70_000, 100)
    );
    let many = overrides(&targets(1), 18_000, &spec);
    assert_eq!(refused(many), (path(list), 18_000, 256));
    let all = overrides(&targets(100), 17, &spec);
    assert_eq!(refused(all), (path(list), 1700, 1600));
    let flat = vec![json!({"targetJobs": targets(1)}); 257];
    let flat = job(json!({"podSpecOverrides": flat}));
    assert_eq!(refused(flat), (path("spec.podSpecOverrides"), 257, 256));
    for field in ["labels", "annotations"] {
        let map: Value = (0..1025).map(|at| (format!("k{at}"), json!("v"))).collect();
        let wanted = (path("spec").field(field), 1025, 1024);
        assert_eq!(refused(job(json!({ field: map }))), wanted);
    }
}

/// 30,000 replicated jobs with an annotation of 700 KB became 3.1 GB.
#[test]
fn copies_are_counted_before_they_are_allocated() {
    let big = "x".repeat(700_000);
    let one = |count| {
        let metadata = json!({"annotations": {"a": big}});
        json!({"targetJobs": targets(count), "metadata": metadata})
    };
    let job = |count| job(json!({"podTemplateOverrides": [one(count)]}));
    let (at, found, _) = refused(job(30_000));
    let names = path("spec.podTemplateOverrides[0].targetJobs");
    assert_eq!((at, found), (names, 30_000));
    let (at, found, limit) = refused(job(3));
    assert_eq!(
        (at, limit),
        (path("spec.podTemplateOverrides"), STORED_LIMIT)
    );
    assert!(found > 2_100_000, "{found}");
    let mut two = job(2);
    assert_eq!(convert(&mut two).errors, []);
    check_size(&two).unwrap();
}

#[test]
fn oversized_objects_are_not_converted() {
    let big = "x".repeat(STORED_LIMIT);
    let value = job(json!({"labels": {"a": "b"}, "annotations": {"a": big}}));
    let object = Object::read(Source::new("a.yaml", 1), value.clone()).unwrap();
    let admitted = Admitted::new(object, "default");
    assert!(admitted.too_large);
    assert_eq!(admitted.object.value, value, "nothing was converted");
    assert_eq!(admitted.warnings, []);
    let errors: Vec<_> = admitted.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 1);
    let wanted = "a.yaml: document 1: TrainJob default/a: the object has 15";
    assert!(errors[0].starts_with(wanted), "{}", errors[0]);
}

/// Consecutive overrides of one replicated job become one entry each, of which 16 are allowed.
#[test]
fn converted_entries_share_the_limit_with_others() {
    let spec = json!({"nodeSelector": {"a": "b"}});
    let with = |others: usize, count| {
        let mut value = overrides(&targets(1), count, &spec);
        let entry = |at| json!({"manager": format!("m{at}.example.com/x")});
        value["spec"]["runtimePatches"] = (0..others).map(entry).collect();
        value
    };
    let mut fits = with(6, 10);
    assert_eq!(convert(&mut fits).errors, []);
    assert_eq!(fits["spec"]["runtimePatches"].as_array().unwrap().len(), 16);
    let mut beyond = with(6, 11);
    let kept = beyond["spec"]["runtimePatches"].clone();
    let errors = convert(&mut beyond).errors;
    let wanted = "spec.runtimePatches: has 17 entries after the conversion of the old fields, but at most 16 are allowed; merge overrides of the same replicated jobs";
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [wanted]
    );
    assert_eq!(beyond["spec"]["runtimePatches"], kept);
    let mut crowd = with(70_000, 1);
    assert_eq!(convert(&mut crowd).errors.len(), 1);
}

#[test]
fn number_of_listed_differences_is_limited() {
    let labels = |value: &str| -> Value {
        (0..1000)
            .map(|at| (format!("k{at}"), json!(value)))
            .collect()
    };
    let theirs = json!({"template": {"metadata": {"labels": labels("theirs")}}});
    let mut value = job(json!({
        "labels": labels("ours"),
        "runtimePatches": [{"manager": "a.example.com/x", "trainingRuntimeSpec": theirs}],
    }));
    assert_eq!(convert(&mut value).errors.len(), 64);
}
