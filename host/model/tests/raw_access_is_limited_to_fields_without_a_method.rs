//! Raw access is limited to fields that no method reads or sets: for any other field, a call and a claim are refused with the name of the
//! method. Fields of the runtime are read without a copy.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_model::{
    call::{Call, Fault},
    contract::handle,
    plugin::Phase,
    plugin_info::PluginError,
    record::{EntryScope, Field, Record},
};

use crate::common::{self, call_over, container, load, manifest, plugin, pod_set};

/// The record of these tests over a template with raw members.
fn record() -> Record {
    let mut record = common::record();
    let pod = json!({
        "hostNetwork": true,
        "securityContext": {"runAsUser": 7, "sysctls": [{"name": "a", "value": "b"}]},
        "dnsConfig": {"searches": ["a.b"], "options": null},
        "initContainers": [{"name": "setup", "tty": false}],
        "containers": [{"name": "side"}, {"name": "node", "tty": true, "securityContext": {"privileged": true}}],
    });
    record.template = Some(Arc::new(json!({"replicatedJobs": [
        {"name": "node", "template": {"spec": {"template": {"spec": pod}}}},
        {"name": "launcher", "template": {"spec": {"template": {"spec": {}}}}},
    ]})));
    record
}

const ALL: [(&str, &str); 3] = [
    ("writes", "pod-sets[*].raw[*]"),
    ("writes", "pod-sets[*].containers[*].raw[*]"),
    ("writes", "pod-sets[*].init-containers[*].raw[*]"),
];

fn transform() -> Call {
    let plugin = plugin(&manifest("p", &ALL));
    call_over(Phase::Transform, &plugin, record(), 1, json!({}))
}

fn json_of(call: &mut Call, document: Option<handle::Document>) -> Option<Value> {
    let text = call.document_json(document?, "").unwrap().unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn raw_fields_of_the_template_are_read_and_replaced() {
    let mut call = transform();
    let set = pod_set(&mut call, "node");
    let read = |call: &mut Call, member: &str| {
        let found = call.pod_set_raw(set, member).unwrap();
        json_of(call, found)
    };
    assert_eq!(read(&mut call, "hostNetwork"), Some(json!(true)));
    assert_eq!(read(&mut call, "securityContext/runAsUser"), Some(json!(7)));
    assert_eq!(
        read(&mut call, "securityContext/sysctls"),
        Some(json!([{"name": "a", "value": "b"}]))
    );
    for absent in ["hostPID", "dnsConfig/options", "dnsConfig/nameservers"] {
        assert_eq!(read(&mut call, absent), None, "{absent}");
    }
    call.pod_set_set_raw(set, "hostNetwork", "null").unwrap();
    call.pod_set_set_raw(set, "hostPID", "true").unwrap();
    call.pod_set_set_raw(set, "dnsConfig/nameservers", r#"["9.9.9.9"]"#)
        .unwrap();
    assert_eq!(read(&mut call, "hostNetwork"), None);
    assert_eq!(read(&mut call, "hostPID"), Some(json!(true)));
    assert_eq!(
        read(&mut call, "dnsConfig/nameservers"),
        Some(json!(["9.9.9.9"]))
    );
    // What is absent is not taken out, so that the journal holds what changes something.
    let before = call.writes().len();
    call.pod_set_set_raw(set, "hostIPC", "null").unwrap();
    assert_eq!(call.writes().len(), before);
}

#[test]
fn raw_container_fields_belong_to_the_named_container() {
    let mut call = transform();
    for (name, tty) in [
        ("node", Some(json!(true))),
        ("side", None),
        ("setup", Some(json!(false))),
    ] {
        let container = container(&mut call, "node", name);
        let found = call.container_raw(container, "tty").unwrap();
        assert_eq!(json_of(&mut call, found), tty, "{name}");
    }
    let node = container(&mut call, "node", "node");
    call.container_set_raw(node, "securityContext/privileged", "false")
        .unwrap();
    let found = call.container_raw(node, "securityContext/privileged");
    let found = found.unwrap();
    assert_eq!(json_of(&mut call, found), Some(json!(false)));
    let other = container(&mut call, "launcher", "node");
    let found = call.container_raw(other, "tty").unwrap();
    assert_eq!(json_of(&mut call, found), None);
}

#[test]
fn record_without_raw_writes_holds_no_raw_fields() {
    let mut call = transform();
    let set = pod_set(&mut call, "node");
    call.pod_set_raw(set, "hostNetwork").unwrap();
    let record = call.finish().record;
    let fields = |scope| record.fields(scope).unwrap();
    assert!(
        fields(EntryScope::PodSet(0)).all(Field::PodRaw).is_empty(),
        "a read adds nothing"
    );
}

#[test]
fn fields_with_a_method_are_refused_with_its_name() {
    let mut call = transform();
    let (set, node) = (
        pod_set(&mut call, "node"),
        container(&mut call, "node", "node"),
    );
    for (member, reported) in [
        ("containers", "`pod-set.container`"),
        ("volumes", "`pod-set.put-raw-volume`"),
        ("tolerations", "`pod-set.add-toleration`"),
        ("affinity", "`pod-set.add-affinity-term`"),
        ("schedulingGates", "`pod-set.add-scheduling-gate`"),
        ("securityContext/fsGroup", "`pod-set.set-fs-group`"),
        ("dnsConfig/searches", "`pod-set.add-dns-search`"),
        ("securityContext", "`securityContext/NAME`"),
        ("dnsConfig", "`dnsConfig/NAME`"),
        ("fsGroup", "name it `securityContext/fsGroup`"),
        ("hostname", "the Job controller sets it"),
        ("subdomain", "JobSet sets it"),
        ("priority", "`pod-set.set-priority-class`"),
        ("preemptionPolicy", "`pod-set.set-priority-class`"),
        // Two members of which Kubernetes makes one setting would let two plugins write it.
        ("serviceAccount", "`serviceAccountName`"),
        ("a/b", "not the name of a member"),
        ("dnsConfig/a/b", "not the name of a member"),
        ("", "not the name of a member"),
        ("dnsConfig/", "not the name of a member"),
    ] {
        for fault in [
            call.pod_set_raw(set, member).map(drop).unwrap_err(),
            call.pod_set_set_raw(set, member, "1").unwrap_err(),
        ] {
            assert!(fault.to_string().contains(reported), "{member}: {fault}");
        }
    }
    for (member, reported) in [
        ("image", "`container.set-image`"),
        ("env", "`container.put-env`"),
        ("volumeMounts", "`container.put-mount`"),
        ("resources", "`container.set-request`"),
        ("securityContext", "`securityContext/NAME`"),
        // A pod has one, a container has none.
        ("dnsConfig/nameservers", "not the name of a member"),
    ] {
        let fault = call.container_set_raw(node, member, "1").unwrap_err();
        assert!(fault.to_string().contains(reported), "{member}: {fault}");
    }
    for (json, reported) in [
        ("{", "not valid JSON"),
        (r#""Always""#, "`Never` or `OnFailure`"),
    ] {
        let fault = call.pod_set_set_raw(set, "restartPolicy", json);
        let fault = fault.unwrap_err();
        assert!(
            matches!(&fault, Fault::Argument(text) if text.contains(reported)),
            "{fault}"
        );
    }
    call.pod_set_set_raw(set, "restartPolicy", r#""Never""#)
        .unwrap();
}

#[test]
fn raw_claims_that_match_no_field_are_refused_with_the_manifest() {
    for (path, problem) in [
        (
            "pod-sets[*].containers[*].raw[image]",
            "`container.set-image`",
        ),
        ("pod-sets[*].raw[containers]", "`pod-set.container`"),
        ("pod-sets[*].raw[securityContext]", "`securityContext/NAME`"),
        ("pod-sets[*].raw[serviceAccount]", "`serviceAccountName`"),
        (
            "pod-sets[*].raw[fsGroup]",
            "name it `securityContext/fsGroup`",
        ),
        (
            "pod-sets[*].containers[*].raw[privileged]",
            "name it `securityContext/privileged`",
        ),
        (
            "pod-sets[*].raw[securityContext/fsGroup]",
            "`pod-set.set-fs-group`",
        ),
        (
            "pod-sets[*].raw[affinity/*]",
            "no raw member begins with `affinity/`",
        ),
        ("pod-sets[*].raw[a/b*]", "no raw member begins with `a/b`"),
        ("pod-sets[*].raw[#]", "read one by one"),
    ] {
        for list in ["reads", "writes"] {
            let error = load(&[(list, path)], &["pod-sets[*].raw[*]"]).unwrap_err();
            let PluginError::Claims { .. } = &error else {
                panic!("{error}")
            };
            let text = error.to_string();
            let is_set = list == "writes" && path.ends_with("[#]");
            assert!(text.contains(problem) || is_set, "{path}: {text}");
        }
    }
    for path in [
        "pod-sets[*].raw[*]",
        "pod-sets[*].raw[host*]",
        "pod-sets[*].raw[serviceAccountName]",
        "pod-sets[*].raw[securityContext/*]",
        "pod-sets[*].raw[securityContext/fsGroup*]",
        "pod-sets[*].raw[securityContext/fsGroupChangePolicy]",
        "pod-sets[*].containers[*].raw[imageVolume]",
        "pod-sets[*].raw[$config./member]",
    ] {
        load(&[("writes", path)], &[path]).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}
