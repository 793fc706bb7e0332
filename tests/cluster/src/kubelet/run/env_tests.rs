#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv4Addr};

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;
use crate::kubelet::run::facts::Objects;

fn objects() -> Objects {
    let mut objects = Objects::default();
    let map = json!({"data": {"LEVEL": "info", "dash-ed": "1"}});
    let secret = json!({"data": {"TOKEN": "c2VjcmV0"}});
    let node = json!({"status": {"allocatable": {"cpu": "64"}}});
    let map = serde_json::from_value(map).unwrap();
    objects.config_maps.insert("settings".to_owned(), map);
    let secret = serde_json::from_value(secret).unwrap();
    objects.secrets.insert("keys".to_owned(), secret);
    objects.node = serde_json::from_value(node).unwrap();
    objects
}

fn resolved(container: &Value) -> Result<Env, Problem> {
    let pod = json!({
        "metadata": {
            "name": "llm-node-0-0-x", "namespace": "team", "uid": "1",
            "labels": {"app": "llm"}, "annotations": {"index": "3"},
        },
        "spec": {"nodeName": "node-1", "containers": []},
    });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let objects = objects();
    let facts = Facts {
        pod: &pod,
        pod_ip: IpAddr::V4(Ipv4Addr::new(10, 244, 0, 7)),
        host_ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
        objects: &objects,
    };
    let container: Container = serde_json::from_value(container.clone()).unwrap();
    resolve(
        &container,
        &Image::default().env("FROM_IMAGE", "yes"),
        &facts,
    )
}

fn value(container: &Value, name: &str) -> Option<String> {
    find(&resolved(container).unwrap(), name).map(str::to_owned)
}

#[test]
fn fields_of_the_pod_become_values() {
    for (path, expected) in [
        ("metadata.name", "llm-node-0-0-x"),
        ("metadata.namespace", "team"),
        ("metadata.labels['app']", "llm"),
        ("metadata.annotations['index']", "3"),
        ("metadata.annotations['none']", ""),
        ("spec.nodeName", "node-1"),
        ("status.podIP", "10.244.0.7"),
        ("status.hostIP", "10.0.0.1"),
    ] {
        let from = json!({"fieldRef": {"fieldPath": path}});
        let container = json!({"name": "node", "env": [{"name": "A", "valueFrom": from}]});
        assert_eq!(value(&container, "A").as_deref(), Some(expected), "{path}");
    }
}

#[test]
fn resources_are_given_in_units_of_the_divisor() {
    let resources = json!({"limits": {"memory": "3Gi"}, "requests": {"cpu": "1500m"}});
    for (resource, divisor, expected) in [
        ("limits.memory", "1Mi", "3072"),
        ("limits.memory", "0", "3221225472"),
        ("requests.cpu", "1", "2"),
        ("requests.cpu", "1m", "1500"),
        ("limits.cpu", "1", "64"),
        ("requests.memory", "1", "0"),
    ] {
        let from = json!({"resourceFieldRef": {"resource": resource, "divisor": divisor}});
        let env = json!([{"name": "A", "valueFrom": from}]);
        let container = json!({"name": "node", "resources": resources, "env": env});
        assert_eq!(
            value(&container, "A").as_deref(),
            Some(expected),
            "{resource}"
        );
    }
}

#[test]
fn later_env_vars_win_and_refer_to_earlier_ones() {
    let container = json!({
        "name": "node",
        "envFrom": [
            {"configMapRef": {"name": "settings"}, "prefix": "MY_"},
            {"secretRef": {"name": "keys"}},
            {"configMapRef": {"name": "none", "optional": true}},
        ],
        "env": [
            {"name": "B", "value": "$(MY_LEVEL)/$(TOKEN)/$(LATER)"},
            {"name": "MY_LEVEL", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "LEVEL"}}},
            {"name": "TOKEN", "value": "other"},
            {"name": "LATER", "value": "1"},
            {"name": "EMPTY"},
            {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "none", "optional": true}}},
        ],
    });
    let value = |name| value(&container, name);
    assert_eq!(value("B").as_deref(), Some("info/secret/$(LATER)"));
    assert_eq!(value("MY_dash-ed").as_deref(), Some("1"));
    assert_eq!(value("MY_LEVEL").as_deref(), Some("info"));
    assert_eq!(value("TOKEN").as_deref(), Some("other"));
    assert_eq!(value("EMPTY").as_deref(), Some(""));
    assert_eq!(value("FROM_IMAGE").as_deref(), Some("yes"));
    assert_eq!(value("NONE"), None);
}

#[test]
fn missing_objects_and_keys_are_waited_for() {
    let of_key = json!({"secretKeyRef": {"name": "keys", "key": "none"}});
    for (container, message) in [
        (
            json!({"name": "node", "env": [{"name": "A", "valueFrom": of_key}]}),
            "couldn't find key none in Secret keys",
        ),
        (
            json!({"name": "node", "envFrom": [{"configMapRef": {"name": "none"}}]}),
            "ConfigMap none does not exist",
        ),
    ] {
        let problem = resolved(&container).unwrap_err();
        assert_eq!(problem, Problem::Missing(message.to_owned()));
    }
}

#[test]
fn commands_come_from_the_container_or_its_image() {
    let env = vec![("A".to_owned(), "1".to_owned())];
    let image = Image::default().entrypoint(["python", "train.py"]);
    for (container, expected) in [
        (
            json!({"command": ["run", "$(A)"], "args": ["$(B)"]}),
            &["run", "1", "$(B)"][..],
        ),
        (
            json!({"args": ["--rank=$(A)"]}),
            &["python", "train.py", "--rank=1"],
        ),
        (json!({}), &["python", "train.py"]),
    ] {
        let mut named = container.clone();
        named
            .as_object_mut()
            .unwrap()
            .insert("name".to_owned(), json!("node"));
        let container: Container = serde_json::from_value(named).unwrap();
        assert_eq!(command(&container, &image, &env).unwrap(), expected);
        if container.command.is_none() && container.args.is_none() {
            assert!(command(&container, &Image::default(), &env).is_err());
        }
    }
}
