//! The reference's configuration file, in the form of v2.3.0, with the newer field `metrics.auth`.

use std::{collections::BTreeMap, num::NonZeroUsize};

use serde::Deserialize;
use serde_json::Value;
use trainyard_api::{FieldPath, Located};
use trainyard_config::ConfigFile;

use super::{
    FeatureGates, SecureServing, Settings,
    file::{
        CertManagementFile, ClientConnection, LeaderElectionFile, MetricsAuth, StatusServer, Tls,
        Webhook,
    },
};
use crate::{serve::BindAddress, webhook::CERT_DIR};

/// The kind whose concurrency has an effect.
const TRAIN_JOB: &str = "TrainJob.trainer.kubeflow.org";

/// The fields that have no effect, with the reason.
const IGNORED: [(&str, &str); 2] = [
    (
        "/health/readinessEndpointName",
        "the endpoint is always /readyz",
    ),
    (
        "/health/livenessEndpointName",
        "the endpoint is always /healthz",
    ),
];

/// The fields that have an effect. The schema has refused those that the reference does not know.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Configuration {
    #[serde(default)]
    leader_election: LeaderElectionFile,
    #[serde(default)]
    metrics: Metrics,
    #[serde(default)]
    health: Health,
    #[serde(default)]
    webhook: Webhook,
    #[serde(default)]
    cert_management: CertManagementFile,
    #[serde(default)]
    tls: Tls,
    #[serde(default)]
    controller: Controller,
    #[serde(default)]
    client_connection: ClientConnection,
    #[serde(default)]
    status_server: StatusServer,
    #[serde(default)]
    feature_gates: BTreeMap<String, bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metrics {
    bind_address: String,
    secure_serving: Option<bool>,
    auth: MetricsAuth,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Health {
    health_probe_bind_address: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Controller {
    group_kind_concurrency: BTreeMap<String, NonZeroUsize>,
}

impl Configuration {
    /// Returns the settings, with a warning for each field of the file that has no effect or another one than in the reference.
    pub(super) fn resolve(self, file: &ConfigFile) -> (Settings, Vec<Located>) {
        let mut warnings = ignored(file);
        let mut warn = |field: FieldPath, message: String| {
            let location = file.location(field);
            warnings.push(Located { location, message });
        };
        let default = Settings::default();
        let metrics = address(
            &self.metrics.bind_address,
            BindAddress::all_interfaces(8443),
        );
        let secure = self.metrics.secure_serving != Some(false);
        if secure && metrics != BindAddress::Off {
            warn(
                FieldPath::of(["metrics", "secureServing"]),
                format!(
                    "metrics are served on {metrics} over plain HTTP, unless there is a certificate from \
                     `--cert-management` or `--webhook-cert-dir`"
                ),
            );
        }
        let mut certificates = self.cert_management.resolve();
        if std::mem::take(&mut certificates.enable) {
            warn(
                FieldPath::of(["certManagement", "enable"]),
                "has an effect only with `--cert-management`, because it needs permissions that a controller without webhooks \
                 does not have"
                    .to_owned(),
            );
        } else if file.value().get("webhook").is_some() {
            warn(
                FieldPath::of(["webhook"]),
                format!(
                    "webhooks are served only with `--cert-management`, or with `--webhook-cert-dir`, whose default is {CERT_DIR}"
                ),
            );
        }
        for kind in self.controller.group_kind_concurrency.keys() {
            if kind != TRAIN_JOB {
                warn(
                    FieldPath::of(["controller", "groupKindConcurrency"]).key(kind),
                    format!("has no effect: this controller reconciles {TRAIN_JOB} only"),
                );
            }
        }
        let ClientConnection { qps, burst } = self.client_connection;
        if let Some(qps) = qps.filter(|qps| *qps > 0.0) {
            warn(
                FieldPath::of(["clientConnection", "qps"]),
                format!("API calls are limited to {qps} per second; remove the field for no limit"),
            );
        }
        let concurrency = self.controller.group_kind_concurrency.get(TRAIN_JOB);
        let settings = Settings {
            leader_election: self.leader_election.resolve(),
            metrics_bind_address: metrics,
            health_probe_bind_address: address(
                &self.health.health_probe_bind_address,
                default.health_probe_bind_address,
            ),
            metrics_secure_serving: match secure {
                true => SecureServing::WithCertificate,
                false => SecureServing::Never,
            },
            metrics_auth: self.metrics.auth.enabled,
            webhook: self.webhook.resolve(),
            status_server: self.status_server.resolve(),
            // The check has refused unknown gates.
            feature_gates: FeatureGates::of_file(&self.feature_gates).unwrap_or_default(),
            tls: self.tls.resolve(),
            cert_management: certificates,
            concurrency: concurrency.copied().unwrap_or(default.concurrency),
            qps,
            burst,
            ..Settings::default()
        };
        (settings, warnings)
    }
}

/// Parses an address. In the reference's file, the empty string is the default; only `0` is off.
fn address(text: &str, default: BindAddress) -> BindAddress {
    match text.parse() {
        Ok(address) if !text.is_empty() => address,
        _ => default,
    }
}

fn ignored(file: &ConfigFile) -> Vec<Located> {
    let is_default = |pointer: &str, value: &Value| {
        pointer.starts_with("/health/") && matches!(value.as_str(), Some("" | "readyz" | "healthz"))
    };
    let ignored = IGNORED.iter().filter_map(|(pointer, reason)| {
        let value = file.value().pointer(pointer)?;
        (!is_default(pointer, value)).then(|| Located {
            location: file.location(FieldPath::root().below_pointer(pointer)),
            message: format!("has no effect: {reason}"),
        })
    });
    ignored.collect()
}

/// Returns the JSON Schema of the reference's file. If it were not valid JSON, every file would be refused.
pub(super) fn schema() -> Value {
    serde_json::from_str(include_str!("reference.schema.json")).unwrap_or(Value::Bool(false))
}
