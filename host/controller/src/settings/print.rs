//! Writes settings as a configuration file.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};
use thiserror::Error;
use trainyard_api::nulls;
use trainyard_config::RenderingSettings;

use super::{
    FeatureGate, LeaderElection, Logging, PluginSettings, RolloutSettings, SecureServing, Settings,
    read::OURS,
};
use crate::{
    certificate::{CertManagement, TlsSettings},
    serve::BindAddress,
    spans::TracingSettings,
    status_server::StatusServerSettings,
    webhook::{PORT, WebhookSettings},
};

/// A setting cannot be written to a configuration file.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PrintError {
    /// A path is not text.
    #[error(
        "the configuration cannot be printed: {key}: the path {} is not valid UTF-8; rename the file or the directory", path.display()
    )]
    NotUtf8 {
        /// The key of the configuration file.
        key: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// No key says that webhooks are off although there is a certificate.
    #[error(
        "the configuration cannot be printed: --webhook-bind-address=0 has no key; to serve no webhooks, leave out the certificate"
    )]
    WebhooksOff,
}

impl Settings {
    /// Returns a configuration file with these settings. All keys that have a value are in it, including those with their default.
    ///
    /// # Errors
    /// A setting cannot be written.
    pub fn to_file(&self) -> Result<Value, PrintError> {
        // Without `..`, because a new setting has to be written too.
        let Self {
            leader_election,
            metrics_bind_address,
            metrics_secure_serving,
            metrics_auth,
            health_probe_bind_address,
            webhook,
            status_server,
            feature_gates,
            cert_management,
            tls:
                TlsSettings {
                    min_version,
                    cipher_suites,
                },
            concurrency,
            render_timeout,
            qps,
            burst,
            write_job_set_defaults,
            policy_file,
            rendering,
            plugin_dir,
            plugins:
                PluginSettings {
                    source,
                    signers,
                    store,
                    rollout: RolloutSettings { steps, interval },
                },
            logging: Logging { format, level },
            tracing:
                TracingSettings {
                    endpoint,
                    sampling_ratio,
                    // These have no key.
                    limits: _,
                },
            // It is a flag without a key.
            shadow: _,
        } = self;
        let secure_serving = match metrics_secure_serving {
            SecureServing::Never => false,
            SecureServing::Always => true,
            SecureServing::WithCertificate => webhook.cert_dir.is_some() || cert_management.enable,
        };
        let mut file = json!({
            "apiVersion": OURS.api_version,
            "kind": OURS.kind,
            "leaderElection": leader_election_file(leader_election),
            "metrics": {
                "bindAddress": metrics_bind_address.to_string(),
                "secureServing": secure_serving,
                "auth": {"enabled": metrics_auth},
            },
            "health": {"healthProbeBindAddress": health_probe_bind_address.to_string()},
            "webhook": webhook_file(webhook, cert_management.enable)?,
            "statusServer": status_server_file(status_server),
            "featureGates": {
                FeatureGate::TrainJobStatus.name(): feature_gates.is_on(FeatureGate::TrainJobStatus),
            },
            "certManagement": cert_management_file(cert_management, webhook.cert_dir.is_some()),
            "tls": {"minVersion": min_version, "cipherSuites": cipher_suites},
            "controller": {"concurrency": concurrency, "renderTimeout": duration(*render_timeout)},
            "clientConnection": {"qps": qps, "burst": burst},
            "jobSet": {"writeDefaults": write_job_set_defaults},
            "policyFile": path("policyFile", policy_file.as_deref())?,
            "rendering": (*rendering != RenderingSettings::default()).then_some(rendering),
            "pluginDir": path("pluginDir", plugin_dir.as_deref())?,
            "plugins": {
                "signers": signers.signers().collect::<Vec<_>>(),
                "unsigned": signers.unsigned(),
                "source": source,
                "store": path("plugins.store", store.as_deref())?,
                "rollout": {"steps": steps, "interval": duration(*interval)},
            },
            "logging": {"format": format.name(), "level": level.name()},
            "tracing": {
                "endpoint": endpoint.as_ref().map(ToString::to_string),
                "samplingRatio": sampling_ratio,
            },
        });
        nulls::drop_nulls(&mut file);
        Ok(file)
    }
}

fn leader_election_file(settings: &LeaderElection) -> Value {
    let LeaderElection {
        leader_elect,
        lease_duration,
        renew_deadline,
        retry_period,
        resource_name,
        resource_namespace,
    } = settings;
    json!({
        "leaderElect": leader_elect,
        "leaseDuration": duration(*lease_duration),
        "renewDeadline": duration(*renew_deadline),
        "retryPeriod": duration(*retry_period),
        "resourceLock": "leases",
        "resourceName": resource_name,
        "resourceNamespace": resource_namespace,
    })
}

fn webhook_file(settings: &WebhookSettings, is_managed: bool) -> Result<Value, PrintError> {
    let WebhookSettings {
        bind_address,
        cert_dir,
        // These have no key.
        deadline: _,
        linger: _,
    } = settings;
    Ok(match bind_address {
        // Without a certificate, no webhooks are served either.
        BindAddress::Off if cert_dir.is_none() && !is_managed => {
            json!({"port": PORT, "host": ""})
        }
        BindAddress::Off => return Err(PrintError::WebhooksOff),
        BindAddress::At { host, port } => json!({
            "port": port,
            "host": host,
            "certDir": path("webhook.certDir", cert_dir.as_deref())?,
        }),
    })
}

fn status_server_file(settings: &StatusServerSettings) -> Value {
    let StatusServerSettings {
        bind_address,
        qps,
        burst,
        // This has no key.
        linger: _,
    } = settings;
    let port = match bind_address {
        BindAddress::At { port, .. } => Some(port),
        BindAddress::Off => None,
    };
    json!({"port": port, "qps": qps, "burst": burst})
}

fn cert_management_file(settings: &CertManagement, is_mounted: bool) -> Value {
    let CertManagement {
        enable,
        webhook_service_name,
        webhook_secret_name,
    } = settings;
    json!({
        // A mounted certificate takes precedence.
        "enable": *enable && !is_mounted,
        "webhookServiceName": webhook_service_name,
        "webhookSecretName": webhook_secret_name,
    })
}

fn path<'p>(key: &'static str, path: Option<&'p Path>) -> Result<Option<&'p str>, PrintError> {
    let Some(path) = path else { return Ok(None) };
    path.to_str().map(Some).ok_or_else(|| PrintError::NotUtf8 {
        key,
        path: path.to_owned(),
    })
}

/// The most hours that the schema lets stand before one unit.
const MOST_HOURS: u64 = 999_999;

/// Returns a duration in Go's format: `1m30s`.
fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let rest = Duration::new(seconds % 60, duration.subsec_nanos());
    let (mut hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let mut text = String::new();
    while hours > 0 {
        let part = hours.min(MOST_HOURS);
        text += &format!("{part}h");
        hours -= part;
    }
    if minutes > 0 {
        text += &format!("{minutes}m");
    }
    if text.is_empty() || !rest.is_zero() {
        text += &format!("{rest:?}");
    }
    text
}
