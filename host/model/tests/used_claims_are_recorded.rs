//! A call records exactly the claims that allowed its accesses.

use serde_json::json;
use trainyard_model::{claims::Verb, plugin::Phase};

use crate::common::{
    call, call_over, container, manifest,
    methods::{METHODS, On},
    plugin, with_helper,
};

/// A claim that no method of the table needs.
const UNUSED: (&str, &str) = ("reads", "pod-sets[unused].containers[unused].working-dir");

#[test]
fn every_method_uses_its_claims_and_no_others() {
    for method in METHODS {
        let claims: Vec<_> = method.all_claims().into_iter().chain([UNUSED]).collect();
        let plugin = plugin(&manifest("p", &claims));
        let mut call = call(method.phase, &plugin);
        (method.run)(&mut call, On::Record).unwrap();
        for (at, (verb, path)) in plugin.manifest.claims.iter().enumerate() {
            let is_used = call.used_claims() & (1 << at) != 0;
            let is_needed = (verb, path.to_string().as_str()) != (Verb::Read, UNUSED.1);
            assert_eq!(is_used, is_needed, "{}: {path}", method.name);
        }
    }
}

/// Of several claims that allow an access, the first is used, so the others can be removed.
#[test]
fn one_claim_is_used_for_an_access() {
    let claims = [
        ("reads", "pod-sets[node].containers[node].env[MODE]"),
        ("reads", "pod-sets[*].containers[*].env[*]"),
        ("writes", "pod-sets[node].containers[node].env[MODE]"),
    ];
    let plugin = plugin(&manifest("p", &claims));
    let mut call = call(Phase::Transform, &plugin);
    let node = container(&mut call, "node", "node");
    assert_eq!(call.used_claims(), 0);
    call.container_env(node, "MODE").unwrap();
    assert_eq!(call.used_claims(), 0b001);
    call.container_env(node, "NODE_NAME").unwrap();
    assert_eq!(call.used_claims(), 0b011);
    call.container_env(node, "OTHER").unwrap_or_default();
    assert_eq!(call.used_claims(), 0b011);
}

#[test]
fn one_claim_is_used_to_see_an_added_container() {
    let claims = ["labels[x]", "image", "args"].map(|field| match field {
        "labels[x]" => field.to_owned(),
        field => format!("pod-sets[node].containers[helper].{field}"),
    });
    let reads: Vec<_> = claims.iter().map(|path| ("reads", path.as_str())).collect();
    let plugin = plugin(&manifest("q", &reads));
    let mut call = call_over(Phase::Transform, &plugin, with_helper(), 2, json!({}));
    container(&mut call, "node", "helper");
    assert_eq!(call.used_claims(), 0b010);
}
