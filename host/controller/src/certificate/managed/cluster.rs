//! The Secret and the webhook configurations in the cluster.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
    client::Body,
    core::Request,
};
use serde_json::{Map, Value, json};
use thiserror::Error;
use zeroize::Zeroizing;

use super::{
    material::{Authority, CA_CERTIFICATE, Data, KEYS, Material},
    plan::{SecretState, TrustedByWebhooks},
};
use crate::{
    client::{message_of, without_content, written},
    keys::KeyTexts,
    kubernetes::{code, unless_gone},
};

/// The webhook configurations of the reference, by their kinds.
pub(super) const CONFIGURATIONS: [(&str, &str); 2] = [
    (
        "MutatingWebhookConfiguration",
        "defaulter.trainer.kubeflow.org",
    ),
    (
        "ValidatingWebhookConfiguration",
        "validator.trainer.kubeflow.org",
    ),
];

/// The field manager of all writes.
const MANAGER: &str = "trainyard-certificates";

/// Why the cluster cannot be read or changed.
#[derive(Debug, Error)]
pub(super) enum ClusterError {
    #[error("{object}: cannot {verb} it: {message}; {}", advice(*.code))]
    Call {
        object: String,
        verb: &'static str,
        message: String,
        code: Option<u16>,
    },
    #[error(
        "{object}: cert-manager writes its caBundle, because of the annotation {annotation}; remove the annotation, or set \
         certManagement.enable to false and mount cert-manager's certificate"
    )]
    CertManager {
        object: String,
        annotation: &'static str,
    },
}

const fn advice(code: Option<u16>) -> &'static str {
    match code {
        Some(403) => {
            "grant the permissions of docs/secrets.md#certificates to the controller, or set certManagement.enable to false"
        }
        _ => "retrying",
    }
}

impl ClusterError {
    /// Whether another process was faster.
    pub(super) const fn is_conflict(&self) -> bool {
        matches!(
            self,
            Self::Call {
                code: Some(409),
                ..
            }
        )
    }
}

/// The Secret, as it was read.
pub(super) struct Found {
    pub(super) state: SecretState,
    /// The version to replace; `None` to create it.
    version: Option<String>,
}

/// A configuration, as it was read.
pub(super) struct FoundConfiguration {
    kind: &'static str,
    name: &'static str,
    object: DynamicObject,
    pub(super) trusted: TrustedByWebhooks,
}

/// The access to the objects.
#[derive(Clone)]
pub(super) struct Objects {
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) secret: String,
}

impl Objects {
    /// Returns the Secret's kind and name for messages.
    pub(super) fn secret_name(&self) -> String {
        format!("Secret {}/{}", self.namespace, self.secret)
    }

    /// Reads the Secret.
    pub(super) async fn secret(&self) -> Result<Found, ClusterError> {
        let api = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        let found = unless_gone(api.get(&self.secret).await);
        let found = found.map_err(|error| failed(self.secret_name(), "read", error))?;
        let Some(mut secret) = found else {
            return Ok(Found {
                state: SecretState::Absent,
                version: None,
            });
        };
        let data = std::mem::take(&mut secret.data).unwrap_or_default();
        let data = data.into_iter();
        let data: Data = data
            .map(|(key, text)| (key, Zeroizing::new(text.0)))
            .collect();
        let state = match foreign(&secret, &data) {
            Some(why) => SecretState::Foreign(format!(
                "{}: it is not overwritten, because {why}; delete it, or set certManagement.webhookSecretName to another name",
                self.secret_name()
            )),
            None if data.values().all(|text| text.is_empty()) => SecretState::Empty,
            None => match Material::parse(&data) {
                Ok(material) => SecretState::Valid(Arc::new(material)),
                Err(error) => SecretState::Invalid {
                    error,
                    authorities: data
                        .get(CA_CERTIFICATE)
                        .map_or_else(Vec::new, |text| Authority::all_of(CA_CERTIFICATE, text)),
                },
            },
        };
        Ok(Found {
            state,
            version: secret.metadata.resource_version,
        })
    }

    /// Creates the Secret, or replaces what was found.
    pub(super) async fn write(
        &self,
        found: &Found,
        material: &Material,
    ) -> Result<(), ClusterError> {
        let texts = material.data();
        let data: Map<_, _> = texts
            .iter()
            .filter(|(_, text)| text.is_some() || found.version.is_some())
            .map(|(key, text)| {
                let text = text
                    .as_ref()
                    .map(|text| BASE64_STANDARD.encode(text.as_bytes()));
                ((*key).to_owned(), text.map_or(Value::Null, Value::String))
            })
            .collect();
        let request = Request::new(format!("/api/v1/namespaces/{}/secrets", self.namespace));
        let request = match &found.version {
            None => {
                let secret = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                    "metadata": {"name": self.secret, "labels": {"app.kubernetes.io/managed-by": "trainyard"}},
                    "data": data,
                });
                let params = PostParams {
                    field_manager: Some(MANAGER.to_owned()),
                    ..PostParams::default()
                };
                request.create(&params, secret.to_string().into_bytes())
            }
            Some(version) => {
                let patch = json!({"metadata": {"resourceVersion": version}, "data": data});
                let params = PatchParams {
                    field_manager: Some(MANAGER.to_owned()),
                    ..PatchParams::default()
                };
                request.patch(&self.secret, &params, &Patch::Merge(patch))
            }
        };
        let sent = match request.map_err(kube::Error::BuildRequest) {
            Ok(request) => written(&self.client, request.map(Body::from)).await,
            Err(error) => Err(error),
        };
        sent.map_err(|error| {
            let mut error = failed(self.secret_name(), "write", error);
            if let ClusterError::Call { message, .. } = &mut error
                && private(texts).are_quoted_in(message)
            {
                "the message of the API server quotes a private key and is not shown"
                    .clone_into(message);
            }
            error
        })
    }

    /// Reads the configurations that exist.
    pub(super) async fn configurations(&self) -> Result<Vec<FoundConfiguration>, ClusterError> {
        let mut found = Vec::new();
        for (kind, name) in CONFIGURATIONS {
            let read = unless_gone(self.configuration(kind).get(name).await);
            let read = read.map_err(|error| failed(format!("{kind} {name}"), "read", error))?;
            if let Some(object) = read {
                found.push(FoundConfiguration::new(kind, name, object)?);
            }
        }
        Ok(found)
    }

    /// Writes a bundle into all webhooks of a configuration.
    pub(super) async fn inject(
        &self,
        configuration: &FoundConfiguration,
        bundle: &str,
    ) -> Result<(), ClusterError> {
        let FoundConfiguration {
            kind, name, object, ..
        } = configuration;
        let mut object = object.clone();
        let webhooks = object
            .data
            .get_mut("webhooks")
            .and_then(Value::as_array_mut);
        for webhook in webhooks.into_iter().flatten() {
            if let Some(client) = webhook
                .get_mut("clientConfig")
                .and_then(Value::as_object_mut)
            {
                let bundle = BASE64_STANDARD.encode(bundle);
                client.insert("caBundle".to_owned(), bundle.into());
            }
        }
        // Not a patch, because the role of the reference allows only updates. The version of the object is that of the update.
        let params = PostParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PostParams::default()
        };
        let api = self.configuration(kind);
        let replaced = api.replace(name, &params, &object).await;
        let object = || format!("{kind} {name}");
        replaced.map_err(|error| failed(object(), "write the caBundle of", error))?;
        Ok(())
    }

    fn configuration(&self, kind: &str) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &resource(kind))
    }
}

pub(super) fn resource(kind: &str) -> ApiResource {
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
    ApiResource::from_gvk(&kind)
}

fn webhooks(object: &DynamicObject) -> Vec<Value> {
    let webhooks = object.data.get("webhooks").and_then(Value::as_array);
    webhooks.cloned().unwrap_or_default()
}

impl FoundConfiguration {
    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    fn new(
        kind: &'static str,
        name: &'static str,
        object: DynamicObject,
    ) -> Result<Self, ClusterError> {
        let annotation = [
            "cert-manager.io/inject-ca-from",
            "cert-manager.io/inject-ca-from-secret",
            "cert-manager.io/inject-apiserver-ca",
        ];
        let annotations = object.metadata.annotations.as_ref();
        let has = |name: &&str| annotations.is_some_and(|them| them.contains_key(*name));
        if let Some(annotation) = annotation.into_iter().find(has) {
            return Err(ClusterError::CertManager {
                object: format!("{kind} {name}"),
                annotation,
            });
        }
        let bundle = |webhook: &Value| {
            let text = webhook.pointer("/clientConfig/caBundle");
            let text = text.and_then(Value::as_str).unwrap_or_default();
            Authority::all_of(
                "caBundle",
                &BASE64_STANDARD.decode(text).unwrap_or_default(),
            )
        };
        let trusted = TrustedByWebhooks(webhooks(&object).iter().map(bundle).collect());
        Ok(Self {
            kind,
            name,
            object,
            trusted,
        })
    }
}

/// Returns why a Secret is not ours; `None` if it may be changed.
fn foreign(secret: &Secret, data: &Data) -> Option<String> {
    let ObjectMeta {
        annotations,
        owner_references,
        ..
    } = &secret.metadata;
    let mut owners = owner_references.iter().flatten();
    if let Some(owner) = owners.find(|owner| owner.controller == Some(true)) {
        return Some(format!("{} {} controls it", owner.kind, owner.name));
    }
    let mut annotations = annotations.iter().flat_map(BTreeMap::keys);
    if let Some(annotation) = annotations.find(|name| name.starts_with("cert-manager.io/")) {
        return Some(format!("it has the annotation {annotation}"));
    }
    if secret.immutable == Some(true) {
        return Some("it is immutable".to_owned());
    }
    if let Some(kind) = secret
        .type_
        .as_deref()
        .filter(|kind| !matches!(*kind, "" | "Opaque"))
    {
        return Some(format!("its type is {kind}"));
    }
    let key = data.keys().find(|key| !KEYS.contains(&key.as_str()))?;
    Some(format!("it has the key {key}"))
}

/// Returns the private keys among texts.
fn private(texts: BTreeMap<&'static str, Option<Zeroizing<String>>>) -> KeyTexts {
    let keys = texts.into_iter().filter(|(name, _)| name.ends_with(".key"));
    KeyTexts::new(keys.filter_map(|(_, text)| text))
}

fn failed(object: String, verb: &'static str, error: kube::Error) -> ClusterError {
    let error = without_content(error);
    ClusterError::Call {
        object,
        verb,
        message: message_of(&error),
        code: code(&error),
    }
}
