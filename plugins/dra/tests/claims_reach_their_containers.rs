//! Resource claims reach the pods of the nodes and the containers that use them, whether the runtime or the TrainJob requests them.

use serde_json::{Value, json};
use trainyard_plugin_dra::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob, Outcome};

use crate::common::{PER_NODE, four_gpus, job, mock};

const SET: &str = "pod-sets[node].resource-claims[gpu]";
const USE: &str = "pod-sets[node].containers[node].resource-claims[gpu]";

fn template() -> Value {
    json!({"resourceClaimTemplateName": "four-gpus"})
}

fn used(outcome: &Outcome) -> Option<Value> {
    outcome.value(USE)
}

/// The outcome of a TrainJob that requests these claims for each node.
fn requesting(job: MockJob, wish: &Value) -> Outcome {
    let job = job.spec(json!({"trainer": {"resourceClaimsPerNode": wish}}));
    job.object(four_gpus()).all_phases(&PLUGIN).unwrap()
}

#[test]
fn unused_claim_goes_to_the_node_container() {
    let outcome = job(|set| set.resource_claim("gpu", template()))
        .object(four_gpus())
        .all_phases(&PLUGIN)
        .unwrap();
    assert_eq!(used(&outcome), Some(json!({"name": "gpu"})));
    assert_eq!(
        outcome.reason(USE).as_deref(),
        Some("no container of the pods uses this claim")
    );
    assert!(outcome.warnings().is_empty(), "{:?}", outcome.warnings());
}

#[test]
fn used_claim_is_unchanged() {
    let sidecar = |c: MockContainer| c.uses_resource_claim("gpu", Some("a"));
    let outcome = job(|set| {
        set.resource_claim("gpu", template())
            .container("sidecar", sidecar)
    })
    .object(four_gpus())
    .all_phases(&PLUGIN)
    .unwrap();
    assert_eq!(used(&outcome), None);
    assert!(outcome.writes().is_empty(), "{:?}", outcome.writes());
}

#[test]
fn train_job_request_replaces_the_runtime_claim() {
    let wish = json!([{"name": "gpu", "resourceClaimTemplateName": "four-gpus"}]);
    let runtime = job(|set| set.resource_claim("gpu", json!({"resourceClaimName": "one"})));
    let outcome = requesting(runtime, &wish);
    let expected = json!({"name": "gpu", "resourceClaimTemplateName": "four-gpus"});
    assert_eq!(outcome.value(SET), Some(expected));
    assert_eq!(used(&outcome), Some(json!({"name": "gpu"})));
    assert_eq!(
        outcome.reason(SET).as_deref(),
        Some("requested by spec.trainer.resourceClaimsPerNode[0]")
    );
}

#[test]
fn annotation_is_equivalent_to_the_field() {
    let wish = json!([{"name": "gpu", "resourceClaimTemplateName": "four-gpus", "containerNames": ["node", "sidecar"]}]);
    let with_sidecar = || job(|set| set.container("sidecar", |c| c)).object(four_gpus());
    let by_field = with_sidecar()
        .spec(json!({"trainer": {"resourceClaimsPerNode": wish}}))
        .all_phases(&PLUGIN)
        .unwrap();
    for job in [
        with_sidecar().annotation(PER_NODE, &wish.to_string()),
        with_sidecar().runtime_annotation(PER_NODE, &wish.to_string()),
    ] {
        let by_annotation = job.all_phases(&PLUGIN).unwrap();
        assert_eq!(by_annotation.writes(), by_field.writes());
        assert!(by_annotation.errors().is_empty());
    }
    let sidecar = "pod-sets[node].containers[sidecar].resource-claims[gpu]";
    assert_eq!(by_field.value(sidecar), Some(json!({"name": "gpu"})));
}

#[test]
fn train_job_overrides_the_runtime_annotation() {
    let of_runtime = json!([
        {"name": "gpu", "deviceClassName": "gpu.example.com"},
        {"name": "nic", "deviceClassName": "rdma.example.com"},
    ]);
    let outcome = job(|set| set)
        .spec(json!({"trainer": {"resourceClaimsPerNode": [
            {"name": "gpu", "resourceClaimTemplateName": "four-gpus"},
        ]}}))
        .runtime_annotation(PER_NODE, &of_runtime.to_string())
        .object(four_gpus())
        .all_phases(&PLUGIN)
        .unwrap();
    let expected = json!({"name": "gpu", "resourceClaimTemplateName": "four-gpus"});
    assert_eq!(outcome.value(SET), Some(expected));
    assert!(
        outcome
            .value("pod-sets[node].resource-claims[nic]")
            .is_some()
    );
    assert_eq!(outcome.objects().len(), 1, "the template of `nic` alone");
}

#[test]
fn template_is_created_from_the_short_form() {
    let wish = |count: u32| {
        json!([{
            "name": "gpu", "deviceClassName": "gpu.example.com", "count": count,
            "selectors": ["device.attributes[\"gpu.example.com\"].model == \"A\""],
        }])
    };
    let made = |count| {
        let spec = json!({"trainer": {"resourceClaimsPerNode": wish(count)}});
        job(|set| set).spec(spec).all_phases(&PLUGIN).unwrap()
    };
    let outcome = made(4);
    let [object] = outcome.objects()[..] else {
        panic!("{:?}", outcome.objects())
    };
    assert_eq!(object.kind.kind(), "ResourceClaimTemplate");
    assert!(
        object.name.as_str().starts_with("llama-gpu-"),
        "{}",
        object.name
    );
    let claim = json!({"name": "gpu", "resourceClaimTemplateName": object.name.as_str()});
    assert_eq!(outcome.value(SET), Some(claim));
    let trainyard_model::object::Content::Body(body) = &object.content else {
        panic!("{object:?}")
    };
    assert_eq!(
        body["spec"],
        json!({"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {
            "deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 4,
            "selectors": [{"cel": {"expression": "device.attributes[\"gpu.example.com\"].model == \"A\""}}],
        }}]}}})
    );
    assert_ne!(
        made(8).objects()[0].name,
        object.name,
        "a template can't be changed"
    );
    let devices = outcome.value("pod-sets[node].devices[resource-claim/gpu/gpu]");
    assert_eq!(devices, Some(json!({"count": 4, "accelerator": true})));
}

#[test]
fn claim_can_be_removed() {
    let outcome = job(|set| {
        set.resource_claim("gpu", template())
            .container("sidecar", |c| c.uses_resource_claim("gpu", None))
    })
    .annotation("trainyard.dev/exclude-resource-claims", " gpu ,")
    .object(four_gpus())
    .all_phases(&PLUGIN)
    .unwrap();
    assert_eq!(outcome.value(SET), None);
    let sidecar = "pod-sets[node].containers[sidecar].resource-claims[gpu]";
    assert_eq!(outcome.value(sidecar), None);
    assert!(outcome.errors().is_empty(), "{:?}", outcome.errors());
}

#[test]
fn launcher_gets_no_node_claims() {
    let outcome = mock()
        .pod_set("launcher", |set| set.container("node", |c| c))
        .pod_set("node", |set| {
            set.ancestor("trainer").container("node", |c| c)
        })
        .spec(json!({"trainer": {"resourceClaimsPerNode": [
            {"name": "gpu", "resourceClaimTemplateName": "four-gpus"},
        ]}}))
        .object(four_gpus())
        .all_phases(&PLUGIN)
        .unwrap();
    assert!(outcome.value(SET).is_some());
    assert_eq!(
        outcome.value("pod-sets[launcher].resource-claims[gpu]"),
        None
    );
}

#[test]
fn claim_of_the_runtime_annotation_can_be_removed() {
    let of_runtime = json!([{"name": "gpu", "deviceClassName": "gpu.example.com"}]);
    let outcome = job(|set| set)
        .runtime_annotation(PER_NODE, &of_runtime.to_string())
        .annotation("trainyard.dev/exclude-resource-claims", "gpu,gpu")
        .all_phases(&PLUGIN)
        .unwrap();
    assert!(outcome.errors().is_empty(), "{:?}", outcome.errors());
    assert!(outcome.writes().is_empty(), "{:?}", outcome.writes());
    assert!(outcome.objects().is_empty());
}

#[test]
fn replacement_claim_does_not_inherit_requests() {
    let runtime = |set: trainyard_sdk::mock::MockPodSet| {
        set.ancestor("trainer")
            .resource_claim("gpu", json!({"resourceClaimTemplateName": "other"}))
            .container("node", |c| c.uses_resource_claim("gpu", Some("b")))
            .container("sidecar", |c| c.uses_resource_claim("gpu", Some("b")))
    };
    let wish = json!([{"name": "gpu", "resourceClaimTemplateName": "four-gpus"}]);
    let outcome = requesting(mock().pod_set("node", runtime), &wish);
    assert_eq!(used(&outcome), Some(json!({"name": "gpu"})));
    let sidecar = "pod-sets[node].containers[sidecar].resource-claims[gpu]";
    assert_eq!(outcome.value(sidecar), Some(json!({"name": "gpu"})));
    let devices = outcome.value("pod-sets[node].devices[resource-claim/gpu/a]");
    assert_eq!(devices, Some(json!({"count": 4, "accelerator": true})));
}

/// A request for a claim that the runtime has already leaves the uses of its containers unchanged.
#[test]
fn named_container_that_uses_a_request_keeps_it() {
    let runtime = |set: trainyard_sdk::mock::MockPodSet| {
        set.resource_claim("gpu", template())
            .container("sidecar", |c| c.uses_resource_claim("gpu", Some("a")))
    };
    let wish = json!([{"name": "gpu", "resourceClaimTemplateName": "four-gpus", "containerNames": ["sidecar", "node"]}]);
    let outcome = requesting(job(runtime), &wish);
    assert_eq!(used(&outcome), Some(json!({"name": "gpu"})));
    let sidecar = "pod-sets[node].containers[sidecar].resource-claims[gpu]";
    assert_eq!(outcome.value(sidecar), None, "{:?}", outcome.writes());
}
