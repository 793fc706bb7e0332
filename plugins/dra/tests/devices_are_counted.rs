//! The devices of the claims that the node container uses are counted as the scheduler allocates them.

use serde_json::{Value, json};
use trainyard_plugin_dra::PLUGIN;
use trainyard_sdk::mock::{MockJob, Outcome};

use crate::common::{four_gpus, job, mock, template};

fn claimed() -> MockJob {
    job(|set| set.resource_claim("gpu", json!({"resourceClaimTemplateName": "t"})))
}

/// What a request gives.
fn counted(request: &Value) -> Option<Value> {
    let mut request = request.clone();
    request["name"] = "a".into();
    let outcome = claimed().object(template("t", &json!([request])));
    devices(&outcome.all_phases(&PLUGIN).unwrap(), "a")
}

fn devices(outcome: &Outcome, request: &str) -> Option<Value> {
    outcome.value(&format!(
        "pod-sets[node].devices[resource-claim/gpu/{request}]"
    ))
}

fn gpus(more: Value) -> Value {
    let mut exactly = json!({"deviceClassName": "gpu.example.com"});
    exactly
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    exactly
}

/// The ResourceClaim `c` of this many GPUs.
fn named_claim(count: u32) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "a", "exactly": gpus(json!({"count": count}))}]}},
    })
}

#[test]
fn requests_of_every_form_are_counted() {
    for (request, count, accelerator) in [
        (json!({"exactly": gpus(json!({"count": 4}))}), Some(4), true),
        (json!({"exactly": gpus(json!({}))}), Some(1), true),
        (
            json!({"exactly": gpus(json!({"allocationMode": "All"}))}),
            None,
            true,
        ),
        (
            json!({"exactly": gpus(json!({"count": 2, "adminAccess": true}))}),
            Some(0),
            true,
        ),
        (
            json!({"exactly": {"deviceClassName": "rdma.example.com", "count": 2}}),
            Some(2),
            false,
        ),
        (
            json!({"firstAvailable": [gpus(json!({"count": 4})), gpus(json!({"count": 4}))]}),
            Some(4),
            true,
        ),
        (
            json!({"firstAvailable": [gpus(json!({"count": 4})), gpus(json!({"count": 8}))]}),
            None,
            true,
        ),
        (
            json!({"firstAvailable": [gpus(json!({"count": 4})), {"deviceClassName": "fpga.example.com", "count": 4}]}),
            None,
            true,
        ),
    ] {
        let expected = json!({"count": count, "accelerator": accelerator});
        assert_eq!(counted(&request), Some(expected), "{request}");
    }
}

#[test]
fn only_used_requests_are_counted() {
    let requests = json!([
        {"name": "a", "exactly": gpus(json!({"count": 2}))},
        {"name": "b", "exactly": gpus(json!({"count": 6}))},
    ]);
    let with = |request: Option<&str>| {
        let set = job(|set| {
            set.resource_claim("gpu", json!({"resourceClaimTemplateName": "t"}))
                .init_container("other", |c| c.uses_resource_claim("gpu", request))
        });
        set.object(template("t", &requests))
            .all_phases(&PLUGIN)
            .unwrap()
    };
    // The node container does not use it.
    assert_eq!(devices(&with(Some("a")), "a"), None);
    let both = claimed()
        .object(template("t", &requests))
        .all_phases(&PLUGIN)
        .unwrap();
    assert_eq!(
        devices(&both, "a"),
        Some(json!({"count": 2, "accelerator": true}))
    );
    assert_eq!(
        devices(&both, "b"),
        Some(json!({"count": 6, "accelerator": true}))
    );
}

#[test]
fn named_claim_is_counted_and_shared() {
    let outcome = job(|set| set.resource_claim("gpu", json!({"resourceClaimName": "c"})))
        .object(named_claim(3))
        .all_phases(&PLUGIN)
        .unwrap();
    assert_eq!(
        devices(&outcome, "a"),
        Some(json!({"count": 3, "accelerator": true}))
    );
    let warnings = outcome.warnings().join("\n");
    assert!(
        warnings.contains("is one ResourceClaim for 2 pods"),
        "{warnings}"
    );
}

/// A single pod does not share its claim.
#[test]
fn named_claim_of_one_pod_is_not_reported() {
    let one = mock().nodes(1).pod_set("node", |set| {
        set.ancestor("trainer")
            .container("node", |c| c)
            .resource_claim("gpu", json!({"resourceClaimName": "c"}))
    });
    let outcome = one.object(named_claim(3)).all_phases(&PLUGIN).unwrap();
    assert!(outcome.warnings().is_empty(), "{:?}", outcome.warnings());
}

#[test]
fn unused_claim_of_other_pods_is_reported() {
    let unused = json!({"resourceClaimTemplateName": "four-gpus"});
    let outcome = job(|set| set)
        .pod_set("launcher", |set| {
            set.container("launcher", |c| c)
                .resource_claim("gpu", unused)
        })
        .object(four_gpus())
        .all_phases(&PLUGIN)
        .unwrap();
    let warnings = outcome.warnings().join("\n");
    let expected =
        "the resource claim `gpu` of replicated job `launcher` is not used by any container";
    assert!(warnings.contains(expected), "{warnings}");
}

#[test]
fn unknown_number_is_reported() {
    let request = json!([{"name": "a", "exactly": gpus(json!({"allocationMode": "All"}))}]);
    let outcome = claimed()
        .object(template("t", &request))
        .all_phases(&PLUGIN)
        .unwrap();
    let warnings = outcome.warnings().join("\n");
    assert!(
        warnings.contains("spec.trainer.numProcPerNode"),
        "{warnings}"
    );
}

#[test]
fn accelerators_requested_twice_are_reported() {
    let outcome =
        job(|set| set.resource_claim("gpu", json!({"resourceClaimTemplateName": "four-gpus"})));
    let both = mock().pod_set("node", |set| {
        set.ancestor("trainer")
            .container("node", |c| c.limit("nvidia.com/gpu", "8"))
            .resource_claim("gpu", json!({"resourceClaimTemplateName": "four-gpus"}))
    });
    let warnings = |job: MockJob| {
        job.object(four_gpus())
            .all_phases(&PLUGIN)
            .unwrap()
            .warnings()
            .join("\n")
    };
    assert!(!warnings(outcome).contains("twice"));
    let both = warnings(both);
    assert!(
        both.contains("twice, by resource/nvidia.com/gpu and by resource-claim/gpu/a"),
        "{both}"
    );
}

#[test]
fn operator_configures_accelerator_classes() {
    let request =
        json!([{"name": "a", "exactly": {"deviceClassName": "fast.example.com", "count": 2}}]);
    let count = |job: MockJob| {
        let outcome = job
            .object(template("t", &request))
            .all_phases(&PLUGIN)
            .unwrap();
        devices(&outcome, "a").unwrap()["accelerator"].clone()
    };
    assert_eq!(count(claimed()), false);
    let config = json!({"acceleratorClasses": ["fast.*"]});
    assert_eq!(count(claimed().operator_config(config)), true);
}

#[test]
fn missing_template_is_a_lookup_unless_the_number_is_set() {
    let missing = claimed().all_phases(&PLUGIN).unwrap_err().to_string();
    assert!(missing.contains("ResourceClaimTemplate"), "{missing}");
    let unknown = json!({"count": null, "accelerator": true});
    for request in [None, Some("a")] {
        let outcome = mock()
            .pod_set("node", |set| {
                set.ancestor("trainer")
                    .container("node", |c| c.uses_resource_claim("gpu", request))
                    .resource_claim("gpu", json!({"resourceClaimTemplateName": "t"}))
            })
            .processes_per_node(4)
            .all_phases(&PLUGIN)
            .unwrap();
        let devices = outcome.value("pod-sets[node].devices[resource-claim/gpu]");
        assert_eq!(devices, Some(unknown.clone()), "{request:?}");
        assert!(outcome.warnings().is_empty(), "{:?}", outcome.warnings());
    }
}

#[test]
fn missing_api_is_reported_and_nothing_is_counted() {
    let outcome = claimed()
        .not_served("resource.k8s.io/v1", "ResourceClaimTemplate")
        .all_phases(&PLUGIN)
        .unwrap();
    assert!(outcome.writes().is_empty());
    let warnings = outcome.warnings().join("\n");
    assert!(
        warnings.contains("does not serve resource.k8s.io/v1"),
        "{warnings}"
    );
}

#[test]
fn resource_claim_with_two_names_is_counted_once() {
    let outcome = job(|set| {
        set.resource_claim("gpu", json!({"resourceClaimName": "c"}))
            .resource_claim("same", json!({"resourceClaimName": "c"}))
    });
    let outcome = outcome.object(named_claim(4)).all_phases(&PLUGIN).unwrap();
    assert!(devices(&outcome, "a").is_some());
    let again = outcome.value("pod-sets[node].devices[resource-claim/same/a]");
    assert_eq!(again, None);
    // It requests devices, which were counted before.
    let warnings = outcome.warnings().join("\n");
    assert!(!warnings.contains("requests no device"), "{warnings}");
}

#[test]
fn likely_mistakes_are_reported() {
    let class = |class: &str, count: u32| json!([{"name": "a", "exactly": {"deviceClassName": class, "count": count}}]);
    for (requests, expected) in [
        (
            class("h100.example.com", 4),
            "of classes that are not known as accelerators (`h100.example.com`)",
        ),
        (class("rdma.example.com", 4), ""),
        (class("gpu.example.com", 4), ""),
        (class("gpu.example.com", 32), ""),
        (
            class("gpu.example.com", 33),
            "requests 33 devices; the scheduler allocates at most 32",
        ),
        (json!([]), "the resource claim `gpu` requests no device"),
    ] {
        let outcome = claimed()
            .object(template("t", &requests))
            .all_phases(&PLUGIN)
            .unwrap();
        let warnings = outcome.warnings().join("\n");
        assert!(warnings.contains(expected), "{requests}: {warnings}");
        assert_eq!(
            warnings.is_empty(),
            expected.is_empty(),
            "{requests}: {warnings}"
        );
    }
    // An accelerator by another way: the claim is for something else.
    let beside = mock().pod_set("node", |set| {
        set.ancestor("trainer")
            .container("node", |c| c.limit("nvidia.com/gpu", "8"))
            .resource_claim("gpu", json!({"resourceClaimTemplateName": "t"}))
    });
    let outcome = beside.object(template("t", &class("fabric.example.com", 1)));
    assert!(outcome.all_phases(&PLUGIN).unwrap().warnings().is_empty());
}
