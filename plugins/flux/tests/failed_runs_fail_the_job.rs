//! A failed run fails the Job, unless the runtime sets another failure policy, which leads to a warning.

use serde_json::{Value, json};
use trainyard_plugin_flux::PLUGIN;
use trainyard_sdk::mock::{MockPodSet, Outcome};

use crate::common::job;

fn outcome(set: impl FnOnce(MockPodSet) -> MockPodSet) -> Outcome {
    job(set, |c| c).transform(&PLUGIN).unwrap()
}

/// What the plugin wrote: how many pods may fail, and whether containers start again.
fn written(outcome: &Outcome) -> [Option<Value>; 2] {
    let writes = outcome.writes();
    ["backoff-limit", "raw[restartPolicy]"].map(|field| {
        let path = format!("pod-sets[node].{field}");
        let write = writes.iter().find(|(written, _)| *written == path);
        write.and_then(|(_, value)| value.clone())
    })
}

#[test]
fn first_failed_pod_fails_the_job() {
    let outcome = outcome(|set| set);
    assert_eq!(written(&outcome), [Some(json!(0)), Some(json!("Never"))]);
    assert!(outcome.warnings().is_empty());
    let reason = outcome.reason("pod-sets[node].backoff-limit").unwrap();
    assert!(reason.contains("wait for the others"), "{reason}");
}

#[test]
fn runtime_settings_are_kept() {
    let policy = |set: MockPodSet| set.raw("restartPolicy", json!("OnFailure"));
    // With no pod that may fail, the Job ends when a container starts again.
    assert_eq!(written(&outcome(policy)), [Some(json!(0)), None]);
    let right = outcome(|set| set.backoff_limit(0).raw("restartPolicy", json!("Never")));
    assert_eq!(written(&right), [None, None]);
    assert!(right.warnings().is_empty());
}

#[test]
fn runtime_that_restarts_single_pods_gets_a_warning() {
    let outcome = outcome(|set| set.backoff_limit(3));
    assert_eq!(written(&outcome), [None, Some(json!("Never"))]);
    let warnings = outcome.warnings();
    let field = "spec.template.spec.replicatedJobs[node].template.spec.backoffLimit: is 3, ";
    assert!(
        warnings.len() == 1
            && warnings[0].starts_with(field)
            && warnings[0].contains("`failurePolicy.maxRestarts`"),
        "{warnings:?}"
    );
}
