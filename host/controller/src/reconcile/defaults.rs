//! The defaults of JobSet's webhooks, for clusters without them.

use serde_json::{Map, Value, json};

/// Sets the defaults of JobSet v0.12 for fields that are absent.
pub(crate) fn fill(job_set: &mut Value) {
    let Some(spec) = job_set.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    default(spec, "successPolicy", json!({"operator": "All"}));
    default(
        spec,
        "startupPolicy",
        json!({"startupPolicyOrder": "AnyOrder"}),
    );
    default(spec, "network", json!({}));
    if let Some(network) = spec.get_mut("network").and_then(Value::as_object_mut) {
        default(network, "enableDNSHostnames", json!(true));
        default(network, "publishNotReadyAddresses", json!(true));
    }
    let rules = spec
        .get_mut("failurePolicy")
        .and_then(|policy| policy.get_mut("rules"));
    for (at, rule) in rules
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .enumerate()
    {
        if let Some(rule) = rule.as_object_mut() {
            default(rule, "name", json!(format!("failurePolicyRule{at}")));
        }
    }
    let jobs = spec.get_mut("replicatedJobs").and_then(Value::as_array_mut);
    for job in jobs.into_iter().flatten() {
        if let Some(spec) = job
            .pointer_mut("/template/spec")
            .and_then(Value::as_object_mut)
        {
            default(spec, "completionMode", json!("Indexed"));
        }
        let pods = job.pointer_mut("/template/spec/template/spec");
        if let Some(pods) = pods.and_then(Value::as_object_mut) {
            default(pods, "restartPolicy", json!("OnFailure"));
        }
    }
}

/// Sets what JobSet's webhook adds to `volumeClaimPolicies` when the JobSet is created, and only then. They are immutable, so a JobSet
/// without these defaults could not be unsuspended by an apply.
pub(crate) fn fill_claims(job_set: &mut Value) {
    let policies = job_set.pointer_mut("/spec/volumeClaimPolicies");
    let policies = policies.and_then(Value::as_array_mut);
    for policy in policies.into_iter().flatten() {
        let Some(policy) = policy.as_object_mut() else {
            continue;
        };
        default(policy, "retentionPolicy", json!({"whenDeleted": "Delete"}));
        let templates = policy.get_mut("templates").and_then(Value::as_array_mut);
        for template in templates.into_iter().flatten() {
            if let Some(template) = template.as_object_mut() {
                default(template, "status", json!({}));
            }
        }
    }
}

fn default(object: &mut Map<String, Value>, name: &str, value: Value) {
    object.entry(name).or_insert(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_as_they_are_stored() {
        let mut job_set = json!({"spec": {"volumeClaimPolicies": [
            {"templates": [{"metadata": {"name": "a"}, "spec": {}}]},
            {"templates": [], "retentionPolicy": {"whenDeleted": "Retain"}},
        ]}});
        fill_claims(&mut job_set);
        let expected = json!({"spec": {"volumeClaimPolicies": [
            {
                "templates": [{"metadata": {"name": "a"}, "spec": {}, "status": {}}],
                "retentionPolicy": {"whenDeleted": "Delete"},
            },
            {"templates": [], "retentionPolicy": {"whenDeleted": "Retain"}},
        ]}});
        assert_eq!(job_set, expected);
    }

    #[test]
    fn values_that_are_set_are_kept() {
        let mut job_set = json!({"spec": {
            "network": {"enableDNSHostnames": false}, "successPolicy": {"operator": "Any"},
            "failurePolicy": {"rules": [{"action": "FailJobSet"}, {"name": "mine", "action": "FailJobSet"}]},
            "replicatedJobs": [
                {"name": "a", "template": {"spec": {"template": {"spec": {"restartPolicy": "Never"}}}}},
                {"name": "b", "template": {"spec": {"completionMode": "NonIndexed", "template": {"spec": {}}}}},
            ],
        }});
        fill(&mut job_set);
        let expected = json!({"spec": {
            "network": {"enableDNSHostnames": false, "publishNotReadyAddresses": true},
            "successPolicy": {"operator": "Any"}, "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
            "failurePolicy": {"rules": [
                {"name": "failurePolicyRule0", "action": "FailJobSet"}, {"name": "mine", "action": "FailJobSet"},
            ]},
            "replicatedJobs": [
                {"name": "a", "template": {"spec": {"completionMode": "Indexed", "template": {"spec": {"restartPolicy": "Never"}}}}},
                {"name": "b", "template": {"spec": {"completionMode": "NonIndexed", "template": {"spec": {"restartPolicy": "OnFailure"}}}}},
            ],
        }});
        assert_eq!(job_set, expected);
    }
}
