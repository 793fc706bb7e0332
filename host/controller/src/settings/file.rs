//! Trainyard's own configuration file.

use std::{num::NonZeroUsize, path::PathBuf};

use kube::core::Duration;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use trainyard_config::RenderingSettings;

use super::{
    FeatureGate, FeatureGates, LeaderElection, LogFormat, LogLevel, Logging, MAX_CONCURRENCY,
    SecureServing, Settings, duration::DURATION, plugins::PluginsFile,
};
use crate::{
    certificate::{CertManagement, CipherSuite, TlsSettings, TlsVersion},
    serve::BindAddress,
    spans::{Endpoint, TracingSettings},
    status_server::StatusServerSettings,
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
    /// The status server, to which pods report progress. It is served if the feature gate `TrainJobStatus` is on.
    #[serde(default)]
    status_server: StatusServer,
    /// Features that are on or off.
    #[serde(default)]
    feature_gates: Gates,
    /// The certificate that the controller creates and renews for its TLS servers.
    #[serde(default)]
    cert_management: CertManagementFile,
    /// The options of TLS, for all TLS servers.
    #[serde(default)]
    tls: Tls,
    /// The reconciliation of TrainJobs.
    #[serde(default)]
    controller: Controller,
    /// The connection to the API server.
    #[serde(default)]
    client_connection: ClientConnection,
    /// How JobSets are written.
    #[serde(default)]
    job_set: JobSet,
    /// The path of a file or a directory with PolicyPlugins, which grant permissions to plugins and configure them, or of a policy file. By
    /// default, plugins have no further permissions.
    #[serde(default)]
    #[schemars(length(min = 1))]
    policy_file: Option<PathBuf>,
    /// The settings for all TrainJobs. A policy file has them at its root, and each may be set in one of the two files only.
    #[serde(default)]
    rendering: RenderingSettings,
    /// A directory of plugins. Its `.wasm` files are loaded at startup, in addition to the built-in plugins.
    #[serde(default)]
    #[schemars(length(min = 1))]
    plugin_dir: Option<PathBuf>,
    /// Where plugins are declared, and how a change of them is rolled out.
    #[serde(default)]
    plugins: PluginsFile,
    /// The log.
    #[serde(default)]
    logging: LoggingFile,
    /// The export of spans to a collector of OpenTelemetry.
    #[serde(default)]
    tracing: Tracing,
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

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Metrics {
    /// The address of `/metrics`: `HOST:PORT`, `:PORT` for all interfaces, or `0` to disable it. Default `:8080`.
    #[schemars(with = "Option<String>")]
    bind_address: Option<BindAddress>,
    /// Whether metrics are served over TLS, with the certificate of the webhooks. Default false: over plain HTTP.
    secure_serving: bool,
    /// Who may read metrics.
    auth: MetricsAuth,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct MetricsAuth {
    /// Whether the API server decides who may read metrics, by TokenReview and SubjectAccessReview. It requires `secureServing`. Default
    /// false.
    pub(super) enabled: bool,
}

/// The certificate that the controller creates. The reference's file has the same fields.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct CertManagementFile {
    /// Whether the controller creates and renews the certificate of its TLS servers, and writes the authority into the webhook
    /// configurations. Default false.
    pub(super) enable: bool,
    /// The Service of the webhooks. Default `kubeflow-trainer-webhooks`.
    #[schemars(length(max = 63))]
    webhook_service_name: String,
    /// The Secret with the certificate, in the namespace of the pod. Default `kubeflow-trainer-webhook-cert`.
    #[schemars(length(max = 253))]
    webhook_secret_name: String,
}

impl CertManagementFile {
    pub(super) fn resolve(self) -> CertManagement {
        let default = CertManagement::default();
        let or = |name: String, default: String| if name.is_empty() { default } else { name };
        CertManagement {
            enable: self.enable,
            webhook_service_name: or(self.webhook_service_name, default.webhook_service_name),
            webhook_secret_name: or(self.webhook_secret_name, default.webhook_secret_name),
        }
    }
}

/// The options of TLS. The reference's file has the same fields.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Tls {
    /// The lowest version of TLS. Default `VersionTLS12`.
    min_version: TlsVersion,
    /// The cipher suites of TLS 1.2. Default: all of the list. Those of TLS 1.3 cannot be restricted.
    cipher_suites: Vec<CipherSuite>,
    /// The protocols over TLS. The servers support only HTTP/1.1.
    #[serde(rename = "nextProtos")]
    _next_protos: Vec<NextProtocol>,
}

#[derive(Debug, Deserialize, JsonSchema)]
enum NextProtocol {
    #[serde(rename = "http/1.1")]
    Http1,
}

impl Tls {
    pub(super) fn resolve(self) -> TlsSettings {
        TlsSettings {
            min_version: self.min_version,
            cipher_suites: self.cipher_suites,
        }
    }
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
    /// The directory with the certificate and its key, `tls.crt` and `tls.key`, which are read again when they change. Without it, webhooks are
    /// served only with `certManagement.enable`.
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

/// Feature gates, with the names of the reference.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Gates {
    /// Whether pods report progress to the status server. Alpha; default false.
    #[serde(rename = "TrainJobStatus")]
    train_job_status: Option<bool>,
}

impl Gates {
    fn resolve(&self) -> FeatureGates {
        let set = self
            .train_job_status
            .map(|is_on| (FeatureGate::TrainJobStatus, is_on));
        set.into_iter().collect()
    }
}

/// The status server. The reference's file has the same fields.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct StatusServer {
    /// The port of the status server, over HTTPS. Default 10443.
    #[schemars(range(min = 1, max = 65535))]
    port: Option<u16>,
    /// The maximum average rate at which progress is written, per second and replica. 0 means no limit. Default 5.
    #[schemars(range(min = 0))]
    qps: Option<f64>,
    /// The maximum burst of writes. Default 10, or twice `qps` if that is set.
    #[schemars(range(min = 0))]
    burst: Option<u32>,
}

impl StatusServer {
    pub(super) fn resolve(&self) -> StatusServerSettings {
        let default = StatusServerSettings::default();
        StatusServerSettings {
            bind_address: self
                .port
                .map_or(default.bind_address, BindAddress::all_interfaces),
            qps: self.qps.unwrap_or(default.qps),
            burst: self.burst.or(default.burst.filter(|_| self.qps.is_none())),
            ..default
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

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Tracing {
    /// The URL of the collector, such as `http://collector.observability:4318`, to which spans are sent by OTLP over HTTP. Without it, no spans
    /// are exported.
    #[schemars(with = "Option<String>")]
    endpoint: Option<Endpoint>,
    /// The share of traces that are exported, from 0 to 1. By default, all are, unless the environment variable `OTEL_TRACES_SAMPLER` says
    /// otherwise.
    #[schemars(range(min = 0, max = 1))]
    sampling_ratio: Option<f64>,
}

impl Tracing {
    fn resolve(self) -> TracingSettings {
        TracingSettings {
            endpoint: self.endpoint,
            sampling_ratio: self.sampling_ratio,
            ..TracingSettings::default()
        }
    }
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
            metrics_secure_serving: match self.metrics.secure_serving {
                true => SecureServing::Always,
                false => SecureServing::Never,
            },
            metrics_auth: self.metrics.auth.enabled,
            webhook: self.webhook.resolve(),
            status_server: self.status_server.resolve(),
            feature_gates: self.feature_gates.resolve(),
            tls: self.tls.resolve(),
            cert_management: self.cert_management.resolve(),
            concurrency: self.controller.concurrency.unwrap_or(default.concurrency),
            render_timeout: self
                .controller
                .render_timeout
                .map_or(default.render_timeout, Into::into),
            qps: self.client_connection.qps,
            burst: self.client_connection.burst,
            write_job_set_defaults: self.job_set.write_defaults,
            policy_file: self.policy_file,
            rendering: self.rendering,
            plugin_dir: self.plugin_dir,
            plugins: self.plugins.resolve(),
            logging: Logging {
                format: self.logging.format,
                level: self.logging.level,
            },
            tracing: self.tracing.resolve(),
            // Only a flag turns it on, so that a file that two processes share does not.
            shadow: default.shadow,
        }
    }
}

pub(super) fn schema() -> Value {
    schemars::schema_for!(ControllerConfiguration).to_value()
}
