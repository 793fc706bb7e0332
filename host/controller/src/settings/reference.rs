//! The reference's configuration file, as its v2.3.0 reads it, for a controller that takes its place.
//!
//! `metrics.auth` is newer than that.

use std::{collections::BTreeMap, num::NonZeroUsize};

use serde::Deserialize;
use serde_json::Value;
use trainyard_api::FieldPath;

use super::{
    Settings, Warning,
    file::{ClientConnection, LeaderElectionFile},
};
use crate::serve::BindAddress;

/// The kind whose concurrency counts here.
const TRAIN_JOB: &str = "TrainJob.trainer.kubeflow.org";

/// What has no meaning here, and what there is instead.
const IGNORED: [(&str, &str); 8] = [
    ("/webhook", "this controller serves no webhooks"),
    ("/certManagement", "this controller manages no certificates"),
    ("/statusServer", "this controller has no status server"),
    ("/tls", "this controller serves nothing over TLS"),
    ("/featureGates", "this controller has no feature gates"),
    ("/metrics/auth", "metrics are served to all who reach them"),
    ("/health/readinessEndpointName", "the name is always readyz"),
    ("/health/livenessEndpointName", "the name is always healthz"),
];

/// The keys that have a meaning here; the schema has refused what the reference does not know.
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
    controller: Controller,
    #[serde(default)]
    client_connection: ClientConnection,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metrics {
    bind_address: String,
    secure_serving: Option<bool>,
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
    /// The settings that it means, and what of it means nothing; `value` is what it was read from.
    pub(super) fn resolve(self, value: &Value) -> (Settings, Vec<Warning>) {
        let mut warnings = ignored(value);
        let mut warn = |field: &str, text: String| {
            let field = field.to_owned();
            warnings.push(Warning { field, text });
        };
        let default = Settings::default();
        let metrics = address(
            &self.metrics.bind_address,
            BindAddress::all_interfaces(8443),
        );
        if self.metrics.secure_serving != Some(false) && metrics != BindAddress::Off {
            warn(
                "metrics.secureServing",
                format!("metrics are served on {metrics} over plain HTTP"),
            );
        }
        for kind in self.controller.group_kind_concurrency.keys() {
            if kind != TRAIN_JOB {
                warn(
                    &format!("controller.groupKindConcurrency[{kind}]"),
                    "nothing is reconciled by that name; only TrainJobs are".to_owned(),
                );
            }
        }
        let ClientConnection { qps, burst } = self.client_connection;
        if let Some(qps) = qps.filter(|qps| *qps > 0.0) {
            warn(
                "clientConnection.qps",
                format!("at most {qps} API calls a second are made; without it there is no limit"),
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
            concurrency: concurrency.copied().unwrap_or(default.concurrency),
            qps,
            burst,
            ..Settings::default()
        };
        (settings, warnings)
    }
}

/// In the reference's file nothing means its default; only `0` is off.
fn address(text: &str, default: BindAddress) -> BindAddress {
    match text.parse() {
        Ok(address) if !text.is_empty() => address,
        _ => default,
    }
}

fn ignored(value: &Value) -> Vec<Warning> {
    let default = |pointer: &str, value: &Value| {
        pointer.starts_with("/health/") && matches!(value.as_str(), Some("" | "readyz" | "healthz"))
    };
    let there = IGNORED.iter().filter_map(|(pointer, text)| {
        let value = value.pointer(pointer)?;
        (!default(pointer, value)).then(|| Warning {
            field: FieldPath::root().below_pointer(pointer).to_string(),
            text: format!("has no effect: {text}"),
        })
    });
    there.collect()
}

pub(super) fn schema() -> Result<Value, serde_json::Error> {
    serde_json::from_str(include_str!("reference.schema.json"))
}
