//! Warnings depend on what the TrainJob runs and on the objects of the input, not on what a plugin happens to read.

use serde_json::Value;

use trainyard_divergences::difference::Answer;

use crate::differences_from_the_reference_are_listed::trainyard;

/// Returns the answer for a TrainJob with a queue and these fields beside `runtimeRef`.
fn answer(runtime: &str, spec: &str) -> Answer {
    let job = format!(
        "
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: job, namespace: ml, labels: {{kueue.x-k8s.io/queue-name: team}}}}
spec: {{runtimeRef: {{name: a}}, {spec}}}
"
    );
    let answer = trainyard::of_text(&format!("{runtime}---{job}"));
    assert!(answer.refused.is_empty(), "{answer:?}");
    answer
}

fn warnings(runtime: &str, spec: &str) -> Vec<String> {
    answer(runtime, spec).warnings
}

/// Returns a runtime of a policy with these fields of the JobSet, of its Job and of container `node`.
fn with(policy: &str, job_set: &str, job: &str, container: &str) -> String {
    let pod = format!("{{containers: [{{name: node, image: i, {container}}}]}}");
    let job = format!("{{{job}, template: {{spec: {pod}}}}}");
    let label = "{labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}";
    let jobs = format!("[{{name: node, template: {{metadata: {label}, spec: {job}}}}}]");
    format!(
        "
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {{name: a}}
spec:
  mlPolicy: {policy}
  template: {{spec: {{{job_set}, replicatedJobs: {jobs}}}}}
"
    )
}

fn having<'a>(warnings: &'a [String], part: &str) -> Vec<&'a String> {
    let has_part = |warning: &&String| warning.contains(part);
    warnings.iter().filter(has_part).collect()
}

#[test]
fn limit_ranges_count_without_a_gang() {
    let limited = with(
        "{numNodes: 1, torch: {}}",
        "network: {}",
        "backoffLimit: 0",
        "resources: {limits: {cpu: 1}}",
    );
    let range = |namespace: &str| {
        format!(
            "{limited}---
apiVersion: v1
kind: LimitRange
metadata: {{name: defaults, namespace: {namespace}}}
spec: {{limits: [{{type: Container, defaultRequest: {{cpu: 4}}}}]}}
"
        )
    };
    let of = |runtime: &str| warnings(runtime, "trainer: {numNodes: 1}");
    let found = of(&range("ml"));
    let said = "Kueue counts 4 cpu for each pod of `node` instead of 1";
    assert_eq!(having(&found, said).len(), 1, "{found:?}");
    assert_eq!(of(&range("other")), [""; 0]);
    assert_eq!(of(&limited), [""; 0]);
}

#[test]
fn claims_that_kueue_cannot_count_are_found_with_a_number_of_processes() {
    let claims = "[{name: gpus, resourceClaimTemplateName: all}]";
    let runtime = with(
        "{numNodes: 1, torch: {}}",
        "network: {}",
        "backoffLimit: 0",
        "resources: {claims: [{name: gpus}]}",
    );
    let runtime = runtime.replace(
        "{containers:",
        &format!("{{resourceClaims: {claims}, containers:"),
    );
    let template = "---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: all, namespace: ml}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu, allocationMode: All}}]}}}
";
    let found = warnings(
        &format!("{runtime}{template}"),
        "trainer: {numProcPerNode: 1}",
    );
    let said = "Kueue never admits this TrainJob, because it cannot count a resource claim with `allocationMode: All`";
    assert_eq!(having(&found, said).len(), 1, "{found:?}");
}

#[test]
fn one_process_of_one_gpu_is_no_difference() {
    let of = |gpus: u32, given: &str| {
        let resources = format!("resources: {{limits: {{nvidia.com/gpu: {gpus}, memory: 1Gi}}}}");
        let policy = "{numNodes: 2, torch: {}}";
        let runtime = with(policy, "network: {}", "backoffLimit: 0", &resources);
        let given = format!("trainer: {{resourcesPerNode: {{limits: {{{given}}}}}}}");
        let found = warnings(&runtime, &given);
        having(&found, "(see `partial-override` in docs/move.md)").len()
    };
    assert_eq!(of(1, "memory: 2Gi"), 0);
    assert_eq!(of(1, "nvidia.com/gpu: 1"), 0);
    assert_eq!(of(1, "memory: 2Gi, cpu: 2"), 1);
    assert_eq!(of(2, "memory: 2Gi"), 1);
}

#[test]
fn rules_that_end_elastic_training_are_named() {
    let of = |policy: &str, action: &str| {
        let first = "{action: Ignore, onPodConditions: [{type: Other, status: 'True'}]}";
        let rule = format!(
            "{{action: {action}, onPodConditions: [{{type: DisruptionTarget, status: 'True'}}]}}"
        );
        let job = format!("backoffLimit: 40, podFailurePolicy: {{rules: [{first}, {rule}]}}");
        let runtime = with(policy, "network: {}", &job, "command: [torchrun]");
        let runtime = runtime.replace("{containers:", "{restartPolicy: Never, containers:");
        let found = warnings(&runtime, "trainer: {numNodes: 4}");
        let path = "spec.template.spec.replicatedJobs[0].template.spec.podFailurePolicy.rules[1].action: is `FailJob`, so";
        having(&found, path).len()
    };
    let elastic = "{numNodes: 1, torch: {elastic: {minNodes: 2}}}";
    assert_eq!(of(elastic, "FailJob"), 1);
    assert_eq!(of(elastic, "Ignore"), 0);
    assert_eq!(of("{numNodes: 1, torch: {}}", "FailJob"), 0);
}

#[test]
fn rules_that_restart_single_nodes_of_a_fixed_group_are_named() {
    let evicted = "onPodConditions: [{type: DisruptionTarget, status: 'True'}]";
    let ignored = format!("podFailurePolicy: {{rules: [{{action: Ignore, {evicted}}}]}}");
    let of = |policy: &str, failures: &str, job: &str| {
        let runtime = with(
            policy,
            &format!("network: {{}}, {failures}"),
            job,
            "command: [torchrun]",
        );
        let runtime = runtime.replace("{containers:", "{restartPolicy: Never, containers:");
        let found = warnings(&runtime, "trainer: {numNodes: 2}");
        having(&found, "is replaced alone").len() + having(&found, "is restarted alone").len()
    };
    let policies = ["flux", "jax", "torch", "xgboost"];
    for policy in policies.map(|key| format!("{{numNodes: 2, {key}: {{}}}}")) {
        let ignored = format!("backoffLimit: 0, {ignored}");
        assert_eq!(of(&policy, "failurePolicy: {}", &ignored), 1, "{policy}");
        assert_eq!(of(&policy, "failurePolicy: {}", "backoffLimit: 0"), 0);
        let most = "backoffLimit: 2147483647, podReplacementPolicy: Failed";
        assert_eq!(of(&policy, "failurePolicy: {}", most), 1, "{policy}");
        let in_place = "failurePolicy: {restartStrategy: InPlaceRestart}";
        assert_eq!(of(&policy, in_place, most), 0, "{policy}");
        let both = ignored.replace("backoffLimit: 0", most);
        assert_eq!(of(&policy, in_place, &both), 0, "{policy}");
    }
    let elastic = "{numNodes: 2, torch: {elastic: {minNodes: 1}}}";
    let job = format!("backoffLimit: 40, {ignored}");
    assert_eq!(of(elastic, "failurePolicy: {}", &job), 0);
}

#[test]
fn nodes_and_devices_have_warnings_of_their_own() {
    let of = |gpus: &str| {
        let resources = format!("resources: {{limits: {{{gpus}: 4}}}}");
        let job = "backoffLimit: 0, parallelism: 3, completions: 3";
        let runtime = with("{xgboost: {}}", "network: {}", job, &resources);
        let found = warnings(&runtime, "trainer: {}");
        ["counts", "accelerators"]
            .map(|row| having(&found, &format!("(see `{row}` in docs/move.md)")).len())
    };
    assert_eq!(of("amd.com/gpu"), [1, 0]);
    assert_eq!(of("nvidia.com/gpumem"), [1, 1]);
}

/// JAX's coordinator does not listen on the plugin's port then.
#[test]
fn port_of_the_train_job_is_not_said_to_be_the_plugins() {
    let runtime = with(
        "{numNodes: 2, jax: {}}",
        "network: {}",
        "backoffLimit: 0",
        "command: [train]",
    );
    let on_port = |port: u32| {
        let address =
            format!("{{name: JAX_COORDINATOR_ADDRESS, value: 'job-node-0-0.job:{port}'}}");
        let answer = answer(&runtime, &format!("trainer: {{env: [{address}]}}"));
        let said = "JAX_COORDINATOR_ADDRESS is also set by the plugin jax";
        let found = &answer.warnings;
        assert_eq!(having(found, said).len(), 1, "{found:?}");
        let ports = "/spec/replicatedJobs/0/template/spec/template/spec/containers/0/ports";
        let mut objects = answer.objects.iter();
        objects
            .find_map(|object| object.pointer(ports))
            .map(Value::to_string)
    };
    assert_eq!(on_port(1234), None);
    assert!(on_port(29500).is_some());
}

#[test]
fn advice_about_restarts_holds_if_the_runtime_has_them() {
    let policy = "{numNodes: 2, torch: {}}";
    let restarts = "failurePolicy: {maxRestarts: 3}";
    let runtime = with(policy, restarts, "backoffLimit: 6", "command: [torchrun]");
    let found = warnings(&runtime, "trainer: {numNodes: 2}");
    let said = "set it to 0, so that all nodes restart, as often as the JobSet's `failurePolicy.maxRestarts` allows";
    assert_eq!(having(&found, said).len(), 1, "{found:?}");
}
