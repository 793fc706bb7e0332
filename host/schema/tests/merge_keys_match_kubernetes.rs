//! The merge keys of patches are exactly those that Kubernetes' own document declares.

use std::collections::BTreeMap;

use serde_json::Value;
use trainyard_api::merge::{Child, JOB_TEMPLATE, Node};

/// The lists with a merge key, by their path in a Job template.
type Keys = BTreeMap<String, String>;

const PINNED: &str = include_str!("../documents/kubernetes/batch-v1.json");

/// The merge keys that a type of the document declares, including the types that it refers to.
fn declared(types: &Value, schema: &Value, path: &str, keys: &mut Keys) {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap();
        declared(types, types.get(name).unwrap(), path, keys);
    }
    for part in schema
        .get("allOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        declared(types, part, path, keys);
    }
    if let Some(key) = schema.get("x-kubernetes-patch-merge-key") {
        keys.insert(path.to_owned(), key.as_str().unwrap().to_owned());
    }
    for (name, member) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        declared(types, member, &format!("{path}.{name}"), keys);
    }
    for below in ["items", "additionalProperties"] {
        if let Some(schema) = schema.get(below) {
            declared(types, schema, path, keys);
        }
    }
}

fn in_the_table(node: &'static Node, path: &str, keys: &mut Keys) {
    for (name, child) in node.fields() {
        let path = format!("{path}.{name}");
        match child {
            Child::Object(node) => in_the_table(node, &path, keys),
            Child::Map => {}
            Child::List(key, node) => {
                keys.insert(path.clone(), key.to_owned());
                in_the_table(node, &path, keys);
            }
        }
    }
}

#[test]
fn merge_keys_of_job_templates_match_kubernetes() {
    let types: Value = serde_json::from_str(PINNED).unwrap();
    let (mut theirs, mut ours) = (Keys::new(), Keys::new());
    let template = types.get("io.k8s.api.batch.v1.JobTemplateSpec").unwrap();
    declared(&types, template, "", &mut theirs);
    in_the_table(&JOB_TEMPLATE, "", &mut ours);
    assert!(theirs.len() > 20, "{theirs:?}");
    assert_eq!(ours, theirs);
}

/// Fails if a field of the table does not exist, because its key would never be used.
#[test]
fn every_field_of_the_table_exists() {
    fn exists(types: &Value, schema: &Value, node: &'static Node, path: &str) {
        let followed = |schema: &Value| -> Value {
            let parts = schema.get("allOf").and_then(Value::as_array);
            let schema = parts.and_then(|parts| parts.first()).unwrap_or(schema);
            let reference = schema.get("$ref").and_then(Value::as_str);
            let named = reference.and_then(|name| types.get(name.rsplit('/').next()?));
            named.unwrap_or(schema).clone()
        };
        let schema = followed(schema);
        for (name, child) in node.fields() {
            let member = schema.pointer(&format!("/properties/{name}"));
            let member = followed(member.unwrap_or_else(|| panic!("{path} has no {name}")));
            match child {
                Child::Object(node) => exists(types, &member, node, name),
                Child::Map => assert!(
                    member.get("additionalProperties").is_some(),
                    "{path}.{name}"
                ),
                Child::List(_, node) => exists(types, &member["items"], node, name),
            }
        }
    }
    let types: Value = serde_json::from_str(PINNED).unwrap();
    let template = &types["io.k8s.api.batch.v1.JobTemplateSpec"];
    exists(&types, template, &JOB_TEMPLATE, "template");
}
