//! The settings of the process, from a configuration file and flags. Flags take precedence.
//!
//! The file is Trainyard's own (`trainyard.dev/v1alpha1`, kind `ControllerConfiguration`) or the reference's
//! (`config.trainer.kubeflow.org/v1alpha1`, kind `Configuration`). `trainyard-config` reads both strictly: it refuses unknown fields and
//! wrong types, and reports all errors at once.

mod check;
mod duration;
mod file;
mod plugins;
mod print;
mod read;
mod reference;

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

pub use crate::{
    declared::{PluginSettings, PluginsSource, RolloutSettings},
    gates::{FeatureGate, FeatureGateError, FeatureGates},
};
use clap::ValueEnum;
pub use print::PrintError;
pub use read::{LoadedSettings, OURS as CONTROLLER_CONFIGURATION};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use trainyard_config::RenderingSettings;

use crate::{
    certificate::{CertManagement, TlsSettings},
    client::Rate,
    lease::{LEASE_NAME, LeaseOptions},
    serve::BindAddress,
    spans::{Endpoint, TracingSettings},
    status_server::StatusServerSettings,
    webhook::WebhookSettings,
};

/// The default number of TrainJobs that are reconciled concurrently.
const CONCURRENCY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);

/// The maximum number of TrainJobs that are reconciled concurrently.
pub const MAX_CONCURRENCY: usize = 1024;

/// The default timeout for reading or rendering one TrainJob. A large one takes milliseconds.
const RENDER_TIMEOUT: Duration = Duration::from_secs(30);

/// The settings of the process.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Leader election.
    pub leader_election: LeaderElection,
    /// The address of metrics. Default `:8080`.
    pub metrics_bind_address: BindAddress,
    /// Whether metrics are served over TLS. Default [`SecureServing::Never`].
    pub metrics_secure_serving: SecureServing,
    /// Whether the API server decides who may read metrics. It requires TLS. Default false.
    pub metrics_auth: bool,
    /// The address of the health probes. Default `:8081`.
    pub health_probe_bind_address: BindAddress,
    /// The admission webhooks. Off by default.
    pub webhook: WebhookSettings,
    /// The status server, if the feature gate is on.
    pub status_server: StatusServerSettings,
    /// The feature gates.
    pub feature_gates: FeatureGates,
    /// The options of TLS, for all servers.
    pub tls: TlsSettings,
    /// The certificates that the controller creates.
    pub cert_management: CertManagement,
    /// How many TrainJobs are reconciled concurrently. Default 16.
    pub concurrency: NonZeroUsize,
    /// How long reading or rendering one TrainJob may take. Default 30 s.
    pub render_timeout: Duration,
    /// The maximum average rate of API calls per second. No limit by default.
    pub qps: Option<f64>,
    /// The maximum burst of API calls. Default twice `qps`.
    pub burst: Option<u32>,
    /// Whether JobSets are written with JobSet's own defaults, for clusters without its webhooks.
    pub write_job_set_defaults: bool,
    /// A file or a directory with PolicyPlugins, which grant permissions to plugins and configure them, or a policy file.
    pub policy_file: Option<PathBuf>,
    /// The settings for all TrainJobs.
    pub rendering: RenderingSettings,
    /// A directory of plugins to load in addition to the built-in ones.
    pub plugin_dir: Option<PathBuf>,
    /// Where plugins are declared, and how changes of them are rolled out.
    pub plugins: PluginSettings,
    /// The log.
    pub logging: Logging,
    /// The export of spans. Off by default.
    pub tracing: TracingSettings,
    /// Whether TrainJobs are only compared with what another controller made, and nothing is written.
    pub shadow: bool,
}

/// Whether metrics are served over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecureServing {
    /// They are served over plain HTTP.
    Never,
    /// They are served over TLS if there is a certificate. It is the default of the reference's file, and works without webhooks, too.
    WithCertificate,
    /// They are served over TLS. The controller does not start without a certificate.
    Always,
}

/// The settings of leader election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderElection {
    /// Whether a leader is elected. Disabled by default, as in the reference; its manifests and ours enable it.
    pub leader_elect: bool,
    /// How long after the leader's last renewal another replica can take over. Default 15 s.
    pub lease_duration: Duration,
    /// How long the leader tries to renew the Lease before its process exits. Default 10 s.
    pub renew_deadline: Duration,
    /// How long the leader waits between attempts. Default 2 s.
    pub retry_period: Duration,
    /// The name of the Lease. The default, `trainer.kubeflow.org`, is the reference's.
    pub resource_name: String,
    /// The namespace of the Lease. Defaults to the namespace of the process.
    pub resource_namespace: Option<String>,
}

/// The settings of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Logging {
    /// The format of log lines.
    pub format: LogFormat,
    /// The minimum level of log lines.
    pub level: LogLevel,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One JSON object per line.
    #[default]
    Json,
    /// Human-readable text.
    Text,
}

/// The level of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Failures.
    Error,
    /// Also warnings.
    Warn,
    /// Also actions.
    #[default]
    Info,
    /// Also details of actions.
    Debug,
    /// Everything.
    Trace,
}

impl LogFormat {
    /// Returns the name of the format in a configuration file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
        }
    }
}

impl LogLevel {
    /// Returns the name of the level in a log filter and in a configuration file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// The settings of flags. Each takes precedence over the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// `--leader-elect`
    pub leader_elect: Option<bool>,
    /// `--metrics-bind-address`
    pub metrics_bind_address: Option<BindAddress>,
    /// `--health-probe-bind-address`
    pub health_probe_bind_address: Option<BindAddress>,
    /// `--webhook-bind-address`
    pub webhook_bind_address: Option<BindAddress>,
    /// `--webhook-cert-dir`
    pub webhook_cert_dir: Option<PathBuf>,
    /// `--feature-gates`
    pub feature_gates: FeatureGates,
    /// `--cert-management`
    pub cert_management: Option<bool>,
    /// `--concurrency`
    pub concurrency: Option<NonZeroUsize>,
    /// `--kube-api-qps`
    pub qps: Option<f64>,
    /// `--kube-api-burst`
    pub burst: Option<u32>,
    /// `--policy`
    pub policy_file: Option<PathBuf>,
    /// `--plugin-dir`
    pub plugin_dir: Option<PathBuf>,
    /// `--plugin-store`
    pub plugin_store: Option<PathBuf>,
    /// `--log-format`
    pub log_format: Option<LogFormat>,
    /// `--log-level`
    pub log_level: Option<LogLevel>,
    /// `--tracing-endpoint`
    pub tracing_endpoint: Option<Endpoint>,
    /// `--shadow`
    pub shadow: bool,
}

impl Default for LeaderElection {
    fn default() -> Self {
        Self {
            leader_elect: false,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            resource_name: LEASE_NAME.to_owned(),
            resource_namespace: None,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            leader_election: LeaderElection::default(),
            metrics_bind_address: BindAddress::all_interfaces(8080),
            metrics_secure_serving: SecureServing::Never,
            metrics_auth: false,
            health_probe_bind_address: BindAddress::all_interfaces(8081),
            webhook: WebhookSettings::default(),
            status_server: StatusServerSettings::default(),
            feature_gates: FeatureGates::default(),
            tls: TlsSettings::default(),
            cert_management: CertManagement::default(),
            concurrency: CONCURRENCY,
            render_timeout: RENDER_TIMEOUT,
            qps: None,
            burst: None,
            write_job_set_defaults: false,
            policy_file: None,
            rendering: RenderingSettings::default(),
            plugin_dir: None,
            plugins: PluginSettings::default(),
            logging: Logging::default(),
            tracing: TracingSettings::default(),
            shadow: false,
        }
    }
}

impl Settings {
    /// Returns these settings with those of flags in their place.
    #[must_use]
    pub fn with(mut self, flags: Overrides) -> Self {
        fn set<T>(setting: &mut T, flag: Option<T>) {
            if let Some(flag) = flag {
                *setting = flag;
            }
        }
        set(&mut self.leader_election.leader_elect, flags.leader_elect);
        set(&mut self.metrics_bind_address, flags.metrics_bind_address);
        set(
            &mut self.health_probe_bind_address,
            flags.health_probe_bind_address,
        );
        set(&mut self.webhook.bind_address, flags.webhook_bind_address);
        self.webhook.cert_dir = flags.webhook_cert_dir.or(self.webhook.cert_dir);
        self.feature_gates = self.feature_gates.with(&flags.feature_gates);
        set(&mut self.cert_management.enable, flags.cert_management);
        set(&mut self.concurrency, flags.concurrency);
        set(&mut self.logging.format, flags.log_format);
        set(&mut self.logging.level, flags.log_level);
        self.tracing.endpoint = flags.tracing_endpoint.or(self.tracing.endpoint);
        self.qps = flags.qps.or(self.qps);
        self.burst = flags.burst.or(self.burst);
        self.policy_file = flags.policy_file.or(self.policy_file);
        self.plugin_dir = flags.plugin_dir.or(self.plugin_dir);
        self.plugins.store = flags.plugin_store.or(self.plugins.store);
        self.shadow |= flags.shadow;
        self
    }

    /// Returns the rate limit of API calls; `None` means no limit.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        Rate::with_burst(self.qps?, self.burst)
    }
}

impl LeaderElection {
    /// Returns the Lease for a process with this identity in `namespace`; `None` without leader election.
    #[must_use]
    pub fn lease(&self, namespace: &str, identity: String) -> Option<LeaseOptions> {
        self.leader_elect.then(|| LeaseOptions {
            namespace: self
                .resource_namespace
                .clone()
                .unwrap_or_else(|| namespace.to_owned()),
            name: self.resource_name.clone(),
            identity,
            lease_duration: self.lease_duration,
            renew_deadline: self.renew_deadline,
            retry_period: self.retry_period,
        })
    }
}

/// Returns the JSON Schema of Trainyard's own configuration file. A key without a value counts as absent when a file is read; the schema does
/// not allow it for a mapping.
#[must_use]
pub fn schema() -> Value {
    file::schema()
}
