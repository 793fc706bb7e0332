//! Getting the objects that a pod refers to.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
    core::v1::{ConfigMap, Node, Pod, Secret, ServiceAccount},
};
use kube::{Api, Client, ResourceExt as _, api::PostParams};
use serde_json::Value;

use super::facts::Objects;

/// The names of the objects to which a pod refers.
#[derive(Debug, Default, PartialEq, Eq)]
struct References {
    config_maps: BTreeSet<String>,
    secrets: BTreeSet<String>,
    audiences: BTreeSet<String>,
}

/// Gets all objects to which the pod refers and that exist.
pub(super) async fn objects(client: &Client, pod: &Pod) -> anyhow::Result<Objects> {
    let namespace = pod.namespace().unwrap_or_default();
    let references = references(&serde_json::to_value(&pod.spec)?);
    let mut objects = Objects::default();
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    for name in references.config_maps {
        if let Some(found) = config_maps.get_opt(&name).await? {
            objects.config_maps.insert(name, found);
        }
    }
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    for name in references.secrets {
        if let Some(found) = secrets.get_opt(&name).await? {
            objects.secrets.insert(name, found);
        }
    }
    let spec = pod.spec.clone().unwrap_or_default();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace);
    let account = spec.service_account_name.as_deref().unwrap_or("default");
    for audience in references.audiences {
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: (!audience.is_empty()).then(|| vec![audience.clone()]),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: Some(pod.name_any()),
                    uid: pod.uid(),
                }),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let answer = accounts
            .create_token_request(account, &PostParams::default(), &request)
            .await?;
        if let Some(token) = answer.status.and_then(|status| status.token) {
            objects.tokens.insert(audience, token);
        }
    }
    if let Some(name) = &spec.node_name {
        let nodes: Api<Node> = Api::all(client.clone());
        objects.node = nodes.get_opt(name).await?.unwrap_or_default();
    }
    Ok(objects)
}

/// Returns the references in a spec. Their keys say of what kind they are, wherever they are.
fn references(spec: &Value) -> References {
    let mut found = References::default();
    collect(spec, &mut found);
    found
}

fn collect(value: &Value, found: &mut References) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(fields) => {
            for (key, value) in fields {
                let text = |of: &str| value.get(of).and_then(Value::as_str).map(str::to_owned);
                match key.as_str() {
                    "configMap" | "configMapRef" | "configMapKeyRef" => {
                        found.config_maps.extend(text("name"))
                    }
                    "secret" => found
                        .secrets
                        .extend(text("secretName").or_else(|| text("name"))),
                    "secretRef" | "secretKeyRef" => found.secrets.extend(text("name")),
                    "serviceAccountToken" => {
                        found.audiences.insert(text("audience").unwrap_or_default());
                    }
                    _ => collect(value, found),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn env_vars_and_volumes_refer_to_objects() {
        let spec = json!({
            "initContainers": [{"name": "a", "envFrom": [{"secretRef": {"name": "s1"}}, {"configMapRef": {"name": "c1"}}]}],
            "containers": [{"name": "b", "env": [
                {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c2", "key": "k"}}},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s2", "key": "k"}}},
            ]}],
            "volumes": [
                {"name": "v", "configMap": {"name": "c3"}},
                {"name": "w", "secret": {"secretName": "s3"}},
                {"name": "x", "projected": {"sources": [
                    {"secret": {"name": "s4"}}, {"serviceAccountToken": {"path": "token"}},
                ]}},
            ],
        });
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let expected = References {
            config_maps: set(&["c1", "c2", "c3"]),
            secrets: set(&["s1", "s2", "s3", "s4"]),
            audiences: set(&[""]),
        };
        assert_eq!(references(&spec), expected);
    }
}
