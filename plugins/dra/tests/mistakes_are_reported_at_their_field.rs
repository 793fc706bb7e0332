//! Mistakes in requests for devices, and in their uses, are reported with their field, all at once.

use serde_json::{Value, json};
use trainyard_plugin_dra::PLUGIN;

use crate::common::{PER_NODE, four_gpus, job, mock, template};

/// The errors for a list of device requests.
fn errors(wishes: &Value) -> String {
    let outcome = job(|set| set)
        .spec(json!({"trainer": {"resourceClaimsPerNode": wishes}}))
        .object(four_gpus());
    match outcome.all_phases(&PLUGIN) {
        Ok(outcome) => outcome.errors().join("\n"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn invalid_device_requests_are_refused() {
    let at = "spec.trainer.resourceClaimsPerNode";
    for (wishes, expected) in [
        (json!([{"resourceClaimName": "a"}]), "[0].name: is required"),
        (
            json!([{"name": "A_b", "resourceClaimName": "b"}]),
            "[0].name: `A_b` is not a DNS label",
        ),
        (
            json!([{"name": "a", "resourceClaimName": "../b"}]),
            "[0].resourceClaimName: `../b` is not a valid object name",
        ),
        (
            json!([{"name": "a", "deviceClassName": "gpu/example"}]),
            "[0].deviceClassName: `gpu/example` is not a valid object name",
        ),
        (json!([{"name": "a"}]), "[0]: has no source"),
        (
            json!([{"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "c"}]),
            "[0]: has more than one source",
        ),
        (
            json!([{"name": "a", "resourceClaimName": "b", "deviceClassName": "c"}]),
            "[0]: has more than one source",
        ),
        (
            json!([{"name": "a", "resourceClaimName": "b", "count": 2}]),
            "[0].count: is allowed only with `deviceClassName`",
        ),
        (
            json!([{"name": "a", "deviceClassName": "b", "count": 0}]),
            "[0].count: must be an integer from 1 to 32",
        ),
        (
            json!([{"name": "a", "deviceClassName": "b", "count": "4"}]),
            "[0].count: must be an integer from 1 to 32",
        ),
        (
            json!([{"name": "a", "deviceClassName": "b", "selectors": ["true", ""]}]),
            "[0].selectors[1]: must be a CEL expression of 1 to 10240 bytes",
        ),
        (
            json!([{"name": "a", "deviceClassName": "b", "selectors": vec!["true"; 33]}]),
            "[0].selectors: has more than 32 selectors",
        ),
        (
            json!([{"name": "a", "resourceClaimName": "b", "container": "x"}]),
            "[0].container: unknown field",
        ),
        (
            json!([{"name": "a", "resourceClaimTemplateName": "four-gpus", "containerNames": "node"}]),
            "[0].containerNames: must be a list of strings",
        ),
        (
            json!([{"name": "a", "resourceClaimTemplateName": "four-gpus", "containerNames": ["x"]}]),
            "[0].containerNames[0]: replicated job `node` has no container `x`",
        ),
        (
            json!([{"name": "a", "resourceClaimTemplateName": "four-gpus"}, {"name": "a", "resourceClaimName": "b"}]),
            "[1]: duplicate claim `a`; request it once",
        ),
    ] {
        let found = errors(&wishes);
        assert!(
            found.contains(&format!("{at}{expected}")),
            "{wishes}: {found}"
        );
    }
}

#[test]
fn greatest_device_request_is_accepted() {
    let most = json!([{
        "name": "a", "deviceClassName": "gpu.example.com", "count": 32, "selectors": vec!["true"; 32],
    }]);
    assert_eq!(errors(&most), "");
}

#[test]
fn all_mistakes_are_reported_in_one_run() {
    let found = errors(&json!([{"name": "a"}, {"name": "b", "resourceClaimName": 1}]));
    assert_eq!(found.lines().count(), 2, "{found}");
}

#[test]
fn claim_in_both_field_and_annotation_is_refused() {
    let wish = json!([{"name": "gpu", "resourceClaimTemplateName": "four-gpus"}]);
    let outcome = job(|set| set)
        .spec(json!({"trainer": {"resourceClaimsPerNode": wish}}))
        .annotation(PER_NODE, &wish.to_string())
        .object(four_gpus())
        .all_phases(&PLUGIN);
    let errors = outcome.map_or_else(|error| error.to_string(), |o| o.errors().join("\n"));
    let expected = format!("metadata.annotations[{PER_NODE}][0]: duplicate claim `gpu`");
    assert!(errors.contains(&expected), "{errors}");
}

#[test]
fn annotation_that_is_not_a_list_is_refused() {
    for text in ["", "{}", "[", "4"] {
        let outcome = job(|set| set)
            .annotation(PER_NODE, text)
            .all_phases(&PLUGIN);
        let errors = outcome.map_or_else(|error| error.to_string(), |o| o.errors().join("\n"));
        assert!(
            errors.contains("must be a JSON list of claims"),
            "{text}: {errors}"
        );
    }
}

#[test]
fn container_using_an_unknown_claim_is_refused() {
    let outcome = job(|set| set.container("other", |c| c.uses_resource_claim("nic", None)))
        .all_phases(&PLUGIN);
    let errors = outcome.map_or_else(|error| error.to_string(), |o| o.errors().join("\n"));
    let place = "spec.template.spec.replicatedJobs[node].template.spec.template.spec.containers[other].resources.claims: ";
    assert!(
        errors.contains(&format!(
            "{place}container `other` of replicated job `node` uses the resource claim `nic`"
        )),
        "{errors}"
    );
}

/// An unknown claim in `resourcesPerNode` is an error of the TrainJob; in another container, it is one of the runtime.
#[test]
fn unknown_claim_is_reported_where_it_is_written() {
    let both = |set: trainyard_sdk::mock::MockPodSet| {
        set.ancestor("trainer")
            .container("node", |c| {
                c.uses_resource_claim("mine", None)
                    .uses_resource_claim("nic", None)
            })
            .container("other", |c| c.uses_resource_claim("nic", None))
    };
    let outcome = mock()
        .pod_set("node", both)
        .spec(json!({"trainer": {"resourcesPerNode": {"claims": [{"name": "elsewhere"}, {"name": "nic"}]}}}))
        .all_phases(&PLUGIN);
    let errors = outcome.map_or_else(|error| error.to_string(), |o| o.errors().join("\n"));
    let of_runtime = "spec.template.spec.replicatedJobs[node].template.spec.template.spec";
    for expected in [
        "spec.trainer.resourcesPerNode.claims[1]: container `node` of replicated job `node` uses the resource claim `nic`".to_owned(),
        format!("{of_runtime}.containers[node].resources.claims: container `node` of replicated job `node` uses the resource claim `mine`"),
        format!("{of_runtime}.containers[other].resources.claims: container `other` of replicated job `node` uses the resource claim `nic`"),
    ] {
        assert!(errors.contains(&expected), "{expected}\n{errors}");
    }
}

#[test]
fn uncountable_request_is_refused() {
    let old = json!([{"name": "a", "deviceClassName": "gpu.example.com", "count": 4}]);
    let outcome = job(|set| set.resource_claim("gpu", json!({"resourceClaimTemplateName": "t"})))
        .object(template("t", &old))
        .all_phases(&PLUGIN);
    let errors = outcome.map_or_else(|error| error.to_string(), |o| o.errors().join("\n"));
    assert!(
        errors.contains("ResourceClaimTemplate `t`: spec.spec.devices.requests[0]: has neither `exactly` nor `firstAvailable`"),
        "{errors}"
    );
}

#[test]
fn unknown_claim_to_remove_is_refused() {
    let outcome = job(|set| set)
        .annotation("trainyard.dev/exclude-resource-claims", "gpu")
        .all_phases(&PLUGIN);
    let errors = outcome.map_or_else(|error| error.to_string(), |o| o.errors().join("\n"));
    let expected = "metadata.annotations[trainyard.dev/exclude-resource-claims]: no pod has a resource claim `gpu`";
    assert!(errors.contains(expected), "{errors}");
}

#[test]
fn device_request_without_the_api_is_refused() {
    let outcome = job(|set| set)
        .spec(json!({"trainer": {"resourceClaimsPerNode": [{"name": "gpu", "deviceClassName": "gpu.example.com"}]}}))
        .not_served("resource.k8s.io/v1", "ResourceClaimTemplate")
        .all_phases(&PLUGIN);
    let error = outcome.unwrap_err().to_string();
    assert!(
        error.contains("does not serve resource.k8s.io/v1"),
        "{error}"
    );
}

#[test]
fn runtime_claim_without_a_template_name_is_refused() {
    let claim = json!({"resourceClaimTemplateName": "four gpus"});
    let outcome = job(|set| set.resource_claim("gpu", claim)).all_phases(&PLUGIN);
    let errors = outcome.map_or_else(|error| error.to_string(), |o| o.errors().join("\n"));
    assert!(
        errors.contains(
            "resourceClaims[gpu]: `four gpus` is not a valid name of a ResourceClaimTemplate"
        ),
        "{errors}"
    );
}

#[test]
fn device_request_without_nodes_is_refused() {
    let wishes = json!([{"name": "gpu", "resourceClaimTemplateName": "four-gpus"}]);
    let without_nodes = mock()
        .pod_set("launcher", |set| set.container("node", |c| c))
        .spec(json!({"trainer": {"resourceClaimsPerNode": wishes}}));
    let error = without_nodes.all_phases(&PLUGIN).unwrap_err().to_string();
    assert!(
        error.contains(
            "spec.trainer.resourceClaimsPerNode[0]: has no effect, because no replicated job"
        ),
        "{error}"
    );
}

#[test]
fn mistakes_in_runtime_claims_are_refused() {
    let at = "spec.template.spec.replicatedJobs[node].template.spec.template.spec.resourceClaims";
    for (name, claim, expected) in [
        ("gpu", json!({}), "[gpu]: must have exactly one of"),
        (
            "gpu",
            json!({"resourceClaimName": "c", "resourceClaimTemplateName": "four-gpus"}),
            "[gpu]: must have exactly one of",
        ),
        (
            "gpu/a",
            json!({"resourceClaimName": "c"}),
            "[gpu/a]: must have a name that is a DNS label",
        ),
    ] {
        let outcome = job(|set| set.resource_claim(name, claim.clone()))
            .processes_per_node(4)
            .object(four_gpus())
            .all_phases(&PLUGIN)
            .unwrap();
        let errors = outcome.errors().join("\n");
        assert!(
            errors.contains(&format!("{at}{expected}")),
            "{claim}: {errors}"
        );
    }
}

#[test]
fn unknown_request_of_a_claim_is_refused() {
    let requests = json!([{"name": "a", "firstAvailable": [
        {"name": "large", "deviceClassName": "gpu.example.com", "count": 4},
        {"name": "small", "deviceClassName": "gpu.example.com", "count": 4},
    ]}]);
    for (request, found) in [("a", true), ("b", false), ("a/large", false)] {
        let outcome = mock()
            .pod_set("node", |set| {
                set.ancestor("trainer")
                    .container("node", |c| c.uses_resource_claim("gpu", Some(request)))
                    .resource_claim("gpu", json!({"resourceClaimTemplateName": "t"}))
            })
            .object(template("t", &requests))
            .all_phases(&PLUGIN)
            .unwrap();
        let errors = outcome.errors().join("\n");
        let expected = format!(
            "containers[node].resources.claims: container `node` uses the request `{request}`, which the resource claim `gpu` does not have; its requests are `a`"
        );
        assert_eq!(errors.contains(&expected), !found, "{request}: {errors}");
        assert_eq!(errors.is_empty(), found, "{request}: {errors}");
    }
}

#[test]
fn unknown_allocation_mode_is_refused() {
    let request = json!([{"name": "a", "exactly": {"deviceClassName": "gpu.example.com", "allocationMode": "Most"}}]);
    let outcome = job(|set| set.resource_claim("gpu", json!({"resourceClaimTemplateName": "t"})))
        .object(template("t", &request))
        .all_phases(&PLUGIN)
        .unwrap();
    let errors = outcome.errors().join("\n");
    let expected = "ResourceClaimTemplate `t`: spec.spec.devices.requests[0].exactly.allocationMode: unknown mode `Most`";
    assert!(errors.contains(expected), "{errors}");
}
