//! Trainyard's own configuration file.

use std::{num::NonZeroUsize, path::PathBuf};

use kube::core::Duration;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{LeaderElection, LogFormat, LogLevel, Logging, MAX_CONCURRENCY, Settings};
use crate::{
    serve::BindAddress,
    webhook::{PORT, WebhookSettings},
};

/// The configuration of the controller.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ControllerConfiguration {
    /// `trainyard.dev/v1alpha1`.
    #[serde(rename = "apiVersion")]
    #[schemars(extend("const" = "trainyard.dev/v1alpha1"))]
    _api_version: String,
    /// `ControllerConfiguration`.
    #[serde(rename = "kind")]
    #[schemars(extend("const" = "ControllerConfiguration"))]
    _kind: String,
    /// Leader election, by which only one of several replicas reconciles.
    #[serde(default)]
    leader_election: LeaderElectionFile,
    /// Metrics.
    #[serde(default)]
    metrics: Metrics,
    /// Health probes.
    #[serde(default)]
    health: Health,
    /// The admission webhooks.
    #[serde(default)]
    webhook: Webhook,
    /// The reconciliation of TrainJobs.
    #[serde(default)]
    controller: Controller,
    /// The connection to the API server.
    #[serde(default)]
    client_connection: ClientConnection,
    /// How JobSets are written.
    #[serde(default)]
    job_set: JobSet,
    /// The path of the policy file, which grants permissions to plugins and configures them. By default, plugins have no further
    /// permissions.
    #[serde(default)]
    #[schemars(length(min = 1))]
    policy_file: Option<PathBuf>,
    /// A directory of plugins. Its `.wasm` files are loaded at startup, in addition to the built-in plugins.
    #[serde(default)]
    #[schemars(length(min = 1))]
    plugin_dir: Option<PathBuf>,
    /// The log.
    #[serde(default)]
    logging: LoggingFile,
}

/// Leader election, with the fields of Kubernetes' `LeaderElectionConfiguration`. The reference's file has the same fields.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct LeaderElectionFile {
    /// Whether a leader is elected, so that only one of several replicas reconciles. Default false.
    leader_elect: Option<bool>,
    /// How long after the leader's last renewal another replica can take over; at least one second. Default `15s`.
    #[schemars(with = "Option<String>", regex(pattern = DURATION), length(max = 64))]
    lease_duration: Option<Duration>,
    /// How long the leader tries to renew the Lease before its process exits; less than `leaseDuration`. Default `10s`.
    #[schemars(with = "Option<String>", regex(pattern = DURATION), length(max = 64))]
    renew_deadline: Option<Duration>,
    /// How long the leader waits between attempts; `renewDeadline` must be more than 1.2 times as long. Default `2s`.
    #[schemars(with = "Option<String>", regex(pattern = DURATION), length(max = 64))]
    retry_period: Option<Duration>,
    /// The kind of the lock. Only `leases` is supported.
    #[serde(rename = "resourceLock")]
    #[schemars(extend("enum" = ["", "leases"]))]
    _resource_lock: Option<String>,
    /// The name of the Lease. The default, `trainer.kubeflow.org`, is the reference's, so that the two controllers never work at the same
    /// time.
    #[schemars(length(max = 253))]
    resource_name: Option<String>,
    /// The namespace of the Lease. Defaults to the namespace of the pod.
    #[schemars(length(max = 63))]
    resource_namespace: Option<String>,
}

/// The pattern of a duration in Go's format: `15s`, `1m30s`, `500ms`.
pub(super) const DURATION: &str = r"^([0-9]{1,6}(\.[0-9]{1,9})?(ns|us|µs|μs|ms|s|m|h))+$";

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Metrics {
    /// The address of `/metrics`, over plain HTTP: `HOST:PORT`, `:PORT` for all interfaces, or `0` to disable it. Default `:8080`.
    #[schemars(with = "Option<String>")]
    bind_address: Option<BindAddress>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Health {
    /// The address of `/healthz` and `/readyz`: `HOST:PORT`, `:PORT` for all interfaces, or `0` to disable them. Default `:8081`.
    #[schemars(with = "Option<String>")]
    health_probe_bind_address: Option<BindAddress>,
}

/// The admission webhooks. The reference's file has the fields `port` and `host`, too.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Webhook {
    /// The port of the webhooks, over HTTPS; 0 for any free port. Default 9443.
    #[schemars(range(min = 0, max = 65535))]
    port: Option<u16>,
    /// The host name or address to listen on. Default: all interfaces.
    host: String,
    /// The directory with the certificate and its key, `tls.crt` and `tls.key`, which are read again when they change. By default, no webhooks
    /// are served.
    #[schemars(length(min = 1))]
    cert_dir: Option<PathBuf>,
}

impl Webhook {
    pub(super) fn resolve(self) -> WebhookSettings {
        WebhookSettings {
            bind_address: BindAddress::At {
                host: self.host,
                port: self.port.unwrap_or(PORT),
            },
            cert_dir: self.cert_dir,
            ..WebhookSettings::default()
        }
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Controller {
    /// How many TrainJobs are reconciled concurrently. Default 16.
    #[schemars(range(min = 1, max = MAX_CONCURRENCY))]
    concurrency: Option<NonZeroUsize>,
    /// How long rendering one TrainJob may take before it is retried with backoff. Default `30s`.
    #[schemars(with = "Option<String>", regex(pattern = DURATION), length(max = 64))]
    render_timeout: Option<Duration>,
}

/// The rate limit of API calls. The reference's file has the same fields.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ClientConnection {
    /// The maximum average rate of API calls per second. Default 0: no limit other than the API server's priority and fairness.
    #[schemars(range(min = 0))]
    pub(super) qps: Option<f64>,
    /// The maximum burst of API calls. Default 0: twice `qps`.
    #[schemars(range(min = 0))]
    pub(super) burst: Option<u32>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct JobSet {
    /// Whether JobSets are written with JobSet's own defaults, for clusters without its webhooks. Default false.
    write_defaults: bool,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct LoggingFile {
    /// The format of log lines. Default `json`.
    format: LogFormat,
    /// The minimum level of log lines. Default `info`.
    level: LogLevel,
}

impl LeaderElectionFile {
    pub(super) fn resolve(self) -> LeaderElection {
        let default = LeaderElection::default();
        let named = |name: Option<String>| name.filter(|name| !name.is_empty());
        LeaderElection {
            leader_elect: self.leader_elect.unwrap_or(default.leader_elect),
            lease_duration: self
                .lease_duration
                .map_or(default.lease_duration, Into::into),
            renew_deadline: self
                .renew_deadline
                .map_or(default.renew_deadline, Into::into),
            retry_period: self.retry_period.map_or(default.retry_period, Into::into),
            resource_name: named(self.resource_name).unwrap_or(default.resource_name),
            resource_namespace: named(self.resource_namespace),
        }
    }
}

impl ControllerConfiguration {
    pub(super) fn resolve(self) -> Settings {
        let default = Settings::default();
        Settings {
            leader_election: self.leader_election.resolve(),
            metrics_bind_address: self
                .metrics
                .bind_address
                .unwrap_or(default.metrics_bind_address),
            health_probe_bind_address: self
                .health
                .health_probe_bind_address
                .unwrap_or(default.health_probe_bind_address),
            webhook: self.webhook.resolve(),
            concurrency: self.controller.concurrency.unwrap_or(default.concurrency),
            render_timeout: self
                .controller
                .render_timeout
                .map_or(default.render_timeout, Into::into),
            qps: self.client_connection.qps,
            burst: self.client_connection.burst,
            write_job_set_defaults: self.job_set.write_defaults,
            policy_file: self.policy_file,
            plugin_dir: self.plugin_dir,
            logging: Logging {
                format: self.logging.format,
                level: self.logging.level,
            },
        }
    }
}

pub(super) fn schema() -> Value {
    schemars::schema_for!(ControllerConfiguration).to_value()
}
