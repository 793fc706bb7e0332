//! An error for a missing runtime lists only a few existing ones, so the size of all errors is linear in the number of TrainJobs.

use serde_json::json;
use trainyard_api::{Admitted, Object, Source};
use trainyard_render::Catalog;

fn admitted(kind: &str, name: &str, spec: &serde_json::Value) -> Admitted {
    let value = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
    });
    Admitted::new(Object::read(Source::new("a.yaml", 1), value).unwrap(), "ml")
}

#[test]
fn errors_stay_small_with_as_many_runtimes_in_the_input() {
    const MANY: usize = 1000;
    let node =
        json!({"name": "node", "template": {"spec": {"template": {"spec": {"containers": []}}}}});
    let runtime = json!({"template": {"spec": {"replicatedJobs": [node]}}});
    let runtime = |at| {
        admitted(
            "ClusterTrainingRuntime",
            &format!("given-{at:04}"),
            &runtime,
        )
    };
    let job = |at| {
        let reference = json!({"runtimeRef": {"name": format!("missing-{at:04}")}});
        admitted("TrainJob", &format!("job-{at:04}"), &reference)
    };
    let (catalog, errors) = Catalog::new((0..MANY).map(runtime).chain((0..MANY).map(job)));
    assert!(catalog.jobs.is_empty() && errors.is_empty());
    let errors = catalog.without_runtime;
    assert_eq!(errors.len(), MANY, "{}", errors[0]);
    let all: usize = errors.iter().map(|error| error.to_string().len()).sum();
    assert!(all < MANY * 600, "{all} bytes");
    let message = &errors[7].message;
    assert!(
        message.starts_with("ClusterTrainingRuntime `missing-0007` is not in the input, which has ClusterTrainingRuntime given-0000,"),
        "{message}"
    );
    assert!(
        message.ends_with("ClusterTrainingRuntime given-0007, and 992 more; add it to the input"),
        "{message}"
    );
}
