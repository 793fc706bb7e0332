//! Settings with which Volcano would never start the pods are refused with their field.

use serde_json::json;
use trainyard_plugin_volcano::PLUGIN;

use crate::common::job;

const QUEUE: &str = "scheduling.volcano.sh/queue-name";

#[test]
fn queue_must_have_a_name() {
    let errors = |queue: &str| {
        let job = job().job_set_annotation(QUEUE, queue);
        job.all_phases(&PLUGIN).unwrap().errors().join("\n")
    };
    let field = format!("spec.template.metadata.annotations[{QUEUE}]: ");
    assert!(
        errors("").starts_with(&(field.clone() + "must not be empty; ")),
        "{}",
        errors("")
    );
    for queue in ["Research", "a b", "-a", "a_b"] {
        let error = errors(queue);
        let found = format!("found `{queue}`");
        assert!(
            error.starts_with(&field) && error.contains(&found),
            "{error}"
        );
    }
    assert_eq!(errors("research.team-a"), "");
}

#[test]
fn priority_class_must_exist() {
    let job = job().pod_set("observer", |set| {
        set.priority_class("missing").container("observer", |c| c)
    });
    let error = job.all_phases(&PLUGIN).unwrap_err().to_string();
    assert!(error.contains("missing"), "{error}");
}

#[test]
fn topology_must_be_valid() {
    for (topology, named) in [
        (json!({"mode": "strict"}), "networkTopology.mode: "),
        (
            json!({"highestTierAllowed": -1}),
            "networkTopology.highestTierAllowed: ",
        ),
    ] {
        let config = json!({ "networkTopology": topology });
        let error = job().config(config).all_phases(&PLUGIN).unwrap_err();
        assert!(error.to_string().contains(named), "{error}");
    }
}
