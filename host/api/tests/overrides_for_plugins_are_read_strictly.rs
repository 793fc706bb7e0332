//! The annotations by which a TrainJob overrides plugins, and the parameters that a runtime lists for it, are read strictly and within limits.

use serde_json::{Value, json};
use trainyard_api::{Object, Runtime, Source, TrainJob};

const DISABLED: &str = "trainyard.dev/disabled-plugins";
const PARAMETERS: &str = "trainyard.dev/plugin-parameters";

fn object(kind: &str, annotations: Value, spec: Value) -> Object {
    let object = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": kind,
        "metadata": {"name": "a", "annotations": annotations}, "spec": spec,
    });
    Object::read(Source::new("a.yaml", 1), object).unwrap()
}

/// Reads a TrainJob with an annotation.
fn train_job(annotation: &str, text: &str) -> Result<TrainJob, Vec<String>> {
    let spec = json!({"runtimeRef": {"name": "a"}});
    let read = TrainJob::read(&object("TrainJob", json!({ annotation: text }), spec));
    read.map_err(|errors| errors.0.iter().map(ToString::to_string).collect())
}

#[test]
fn names_are_separated_by_commas() {
    let disabled = |text: &str| {
        let job = train_job(DISABLED, text).unwrap();
        job.plugins.disabled.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(disabled("b, a,,b ,"), ["a", "b"]);
    assert_eq!(disabled(" "), [""; 0]);
}

#[test]
fn values_are_an_object_for_each_plugin() {
    let job = train_job(PARAMETERS, r#"{"a": {"x": {"y": [1]}}, "b": {}}"#).unwrap();
    let wanted = json!({"a": {"x": {"y": [1]}}, "b": {}});
    assert_eq!(Value::Object(job.plugins.parameters), wanted);
    let path = format!("metadata.annotations[{PARAMETERS}]");
    for (text, wanted) in [
        ("[1]", format!("{path}: must be an object; found a list")),
        (
            r#"{"a": {}, "b": 5}"#,
            format!("{path}.b: must be an object; found the integer 5"),
        ),
        (
            "{a: {x: 1}}",
            format!("{path}: must be JSON; line 1, column 2: "),
        ),
        (
            r#"{"a": {"x": 1, "x": 2}}"#,
            format!("{path}: must be JSON; line 1, column "),
        ),
    ] {
        let errors = train_job(PARAMETERS, text).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(
            errors.iter().all(|it| it.starts_with(&wanted)),
            "{errors:?}"
        );
    }
}

#[test]
fn lengths_are_limited() {
    for (annotation, limit) in [(DISABLED, 4 << 10), (PARAMETERS, 32 << 10)] {
        let errors = train_job(annotation, &"[".repeat(limit + 1)).unwrap_err();
        let wanted = format!(
            "metadata.annotations[{annotation}]: has {} bytes, but at most {limit} are allowed; shorten it",
            limit + 1
        );
        assert_eq!(errors, [wanted]);
    }
    // Values that are nested too deeply for the parser are refused, too.
    let nested = format!(r#"{{"a": {}"#, "[".repeat(1000));
    assert_eq!(train_job(PARAMETERS, &nested).unwrap_err().len(), 1);
    let full = format!("{{\"a\": {{\"x\": \"{}\"}}}}", "x".repeat((32 << 10) - 20));
    train_job(PARAMETERS, &full).unwrap();
}

/// On a cluster with the reference's CRDs, no schema has validated the list.
#[test]
fn parameters_in_the_annotation_of_a_runtime_are_pointers() {
    let read = |parameters: Value| {
        let plugins = json!([{"name": "a", "parameters": parameters}]).to_string();
        let annotations = json!({"trainyard.dev/plugins": plugins});
        let spec = json!({"template": {"spec": {}}});
        let read = Runtime::read(&object("TrainingRuntime", annotations, spec));
        let texts = |errors: trainyard_api::FieldErrors| -> Vec<String> {
            errors.0.iter().map(ToString::to_string).collect()
        };
        let of_first = |runtime: Runtime| runtime.plugins.into_iter().next().unwrap().parameters;
        read.map(of_first).map_err(texts)
    };
    let path = "metadata.annotations[trainyard.dev/plugins][0].parameters";
    let good = ["/a", "/a/b-c/0", "/a~1b/~0"];
    assert_eq!(read(json!(good)).unwrap(), good);
    for bad in ["", "a", "/", "/a/", "//a", "/a~", "/a~2"] {
        let errors = read(json!(["/good", bad])).unwrap_err();
        let wanted = format!("{path}[1]: must be a JSON pointer to a member");
        assert_eq!(errors.len(), 1, "{bad}: {errors:?}");
        assert!(
            errors.iter().all(|it| it.starts_with(&wanted)),
            "{errors:?}"
        );
    }
    let long = format!("/{}", "a".repeat(256));
    assert_eq!(read(json!([long])).unwrap_err().len(), 1);
    let many: Vec<_> = (0..65).map(|at| format!("/{at}")).collect();
    let wanted = format!("{path}: has 65 items, but at most 64 are allowed; remove some");
    assert_eq!(read(json!(many)).unwrap_err(), [wanted]);
    for (wrong, wanted) in [
        (json!("/a"), ": must be a list; found the string \"/a\""),
        (
            json!([5]),
            "[0]: must be a string; found the integer 5; quote it",
        ),
    ] {
        assert_eq!(read(wrong).unwrap_err(), [format!("{path}{wanted}")]);
    }
}

#[test]
fn the_same_plugins_in_both_places_have_the_same_parameters() {
    let read = |parameters: Value| {
        let annotations =
            json!({"trainyard.dev/plugins": r#"[{"name": "a", "parameters": ["/x"]}]"#});
        let plugins = json!([{"name": "a", "parameters": parameters}]);
        let spec = json!({"plugins": plugins, "template": {"spec": {}}});
        Runtime::read(&object("TrainingRuntime", annotations, spec)).is_ok()
    };
    assert!(read(json!(["/x"])));
    assert!(!read(json!(["/y"])) && !read(json!([])));
}
