//! What the operator sets for the process: a configuration file, and flags over it.
//!
//! The file is ours (`trainyard.dev/v1alpha1`, kind `ControllerConfiguration`) or the reference's (`config.trainer.kubeflow.org/v1alpha1`, kind
//! `Configuration`). Both are read strictly by `trainyard-config`: unknown fields and wrong types are refused, with all errors at once.

mod check;
mod file;
mod read;
mod reference;

use std::{
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

use clap::ValueEnum;
pub use read::LoadedSettings;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    client::Rate,
    lease::{LEASE_NAME, LeaseOptions},
    serve::BindAddress,
};

/// How many TrainJobs are reconciled at once unless told otherwise.
const CONCURRENCY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);

/// How long reading or rendering one TrainJob may take unless told otherwise: a large one takes milliseconds.
const RENDER_TIMEOUT: Duration = Duration::from_secs(30);

/// What the process runs by.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Whether one of several processes leads, and how it is found.
    pub leader_election: LeaderElection,
    /// Where metrics are served, over plain HTTP. Default `:8080`.
    pub metrics_bind_address: BindAddress,
    /// Where liveness and readiness are answered. Default `:8081`.
    pub health_probe_bind_address: BindAddress,
    /// How many TrainJobs are reconciled at once. Default 16.
    pub concurrency: NonZeroUsize,
    /// How long reading or rendering one TrainJob may take. Default 30 s.
    pub render_timeout: Duration,
    /// API calls a second; none by default.
    pub qps: Option<f64>,
    /// API calls at once after a pause; twice `qps` by default.
    pub burst: Option<u32>,
    /// Whether JobSets are written with JobSet's own defaults, for clusters without its webhooks.
    pub write_job_set_defaults: bool,
    /// The policy file, for what plugins may do.
    pub policy_file: Option<PathBuf>,
    /// A folder whose plugins are loaded beside the built-in ones.
    pub plugin_dir: Option<PathBuf>,
    /// How the log is written.
    pub logging: Logging,
}

/// Leader election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderElection {
    /// Whether there is one. Off by default, as in the reference; its manifests switch it on, and so do ours.
    pub leader_elect: bool,
    /// How long the others leave the Lease alone after the leader was last heard of. Default 15 s.
    pub lease_duration: Duration,
    /// How long the leader tries to be heard before it gives up. Default 10 s.
    pub renew_deadline: Duration,
    /// How long it waits between two tries. Default 2 s.
    pub retry_period: Duration,
    /// The Lease. Default `trainer.kubeflow.org`, the reference's.
    pub resource_name: String,
    /// Its namespace; by default that of the process.
    pub resource_namespace: Option<String>,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Logging {
    /// One JSON object a line, or text.
    pub format: LogFormat,
    /// The least important lines that are written.
    pub level: LogLevel,
}

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One JSON object per line.
    #[default]
    Json,
    /// Human-readable text.
    Text,
}

/// How important a line of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Errors.
    Error,
    /// Also warnings.
    Warn,
    /// Also what the controller does.
    #[default]
    Info,
    /// Also how it does it.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The level as a filter of the log has it.
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

/// What flags say; each goes before the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// `--leader-elect`
    pub leader_elect: Option<bool>,
    /// `--metrics-bind-address`
    pub metrics_bind_address: Option<BindAddress>,
    /// `--health-probe-bind-address`
    pub health_probe_bind_address: Option<BindAddress>,
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
    /// `--log-format`
    pub log_format: Option<LogFormat>,
    /// `--log-level`
    pub log_level: Option<LogLevel>,
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
            health_probe_bind_address: BindAddress::all_interfaces(8081),
            concurrency: CONCURRENCY,
            render_timeout: RENDER_TIMEOUT,
            qps: None,
            burst: None,
            write_job_set_defaults: false,
            policy_file: None,
            plugin_dir: None,
            logging: Logging::default(),
        }
    }
}

impl Settings {
    /// These settings, with what flags say before them.
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
        set(&mut self.concurrency, flags.concurrency);
        set(&mut self.logging.format, flags.log_format);
        set(&mut self.logging.level, flags.log_level);
        self.qps = flags.qps.or(self.qps);
        self.burst = flags.burst.or(self.burst);
        self.policy_file = flags.policy_file.or(self.policy_file);
        self.plugin_dir = flags.plugin_dir.or(self.plugin_dir);
        self
    }

    /// How many API calls the process makes; none is as many as there are.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        let qps = self.qps?;
        // Saturates at what a u32 holds.
        let twice = NonZeroU32::new((qps * 2.0).ceil() as u32);
        let burst = self.burst.and_then(NonZeroU32::new).or(twice);
        Rate::new(qps, burst.map_or(1, NonZeroU32::get))
    }
}

impl LeaderElection {
    /// The Lease that a process seeks, which runs in `namespace` and is known as `identity`; none without leader election.
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

/// The JSON Schema of our configuration file.
#[must_use]
pub fn schema() -> Value {
    file::schema()
}
