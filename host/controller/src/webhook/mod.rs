//! Admission webhooks: TrainJobs and runtimes are checked before the API server stores them, by the code that reads and renders them in a
//! reconcile.
//!
//! A request passes through these files:
//!
//! 1. [`server`] has the four paths of the reference, over TLS, with the shared [`certificate`](crate::certificate). It bounds the body in
//!    size and in time.
//! 2. [`review`] reads the AdmissionReview, and writes the answer.
//! 3. [`mutation`] sets the times of runtime patches and converts old forms. [`train_job`] says what an update changes and how much has
//!    to be checked, and [`runtime_patches`] when they may change. All of them are pure.
//! 4. [`checks`] checks the object with the stores, the plugins and their threads. Namespaces take turns, and every check has a deadline.
//! 5. [`verdict`] says which errors refuse an object. Everything that its author cannot correct is a warning, because the controller
//!    reports it on the TrainJob.

mod checks;
mod mutation;
mod review;
mod runtime;
mod runtime_patches;
mod server;
mod stored;
mod train_job;
mod verdict;

use std::{path::PathBuf, sync::Arc, time::Duration};

use checks::Checks;
use server::Server;
use tokio_util::sync::CancellationToken;

use crate::{
    certificate::ServedCertificate,
    metrics::Metrics,
    reconcile::Reconciler,
    serve::{BindAddress, Limits, LingeringServer, ServeError},
};

/// The directory of the reference in which certificates are mounted.
pub const CERT_DIR: &str = "/tmp/k8s-webhook-server/serving-certs";

/// The port of the reference's webhooks.
pub const PORT: u16 = 9443;

/// The settings of the webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    /// The address. Default `:9443`.
    pub bind_address: BindAddress,
    /// The directory with `tls.crt`, `tls.key` and possibly `ca.crt`. Without it, no webhooks are served.
    pub cert_dir: Option<PathBuf>,
    /// How long the check of one object may take, including its wait for other objects of its namespace. It has to be less than the
    /// `timeoutSeconds` of the webhooks, after which the API server refuses the object. Default 5 s.
    pub deadline: Duration,
    /// How long webhooks are still served after the process was told to stop, because API servers learn only then that they have to call
    /// another replica. Default 5 s.
    pub linger: Duration,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            bind_address: BindAddress::all_interfaces(PORT),
            cert_dir: None,
            deadline: Duration::from_secs(5),
            linger: Duration::from_secs(5),
        }
    }
}

/// One of the webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Webhook {
    MutateTrainJob,
    ValidateTrainJob,
    ValidateTrainingRuntime,
    ValidateClusterTrainingRuntime,
}

impl Webhook {
    pub(crate) const ALL: [Self; 4] = [
        Self::MutateTrainJob,
        Self::ValidateTrainJob,
        Self::ValidateTrainingRuntime,
        Self::ValidateClusterTrainingRuntime,
    ];

    /// Returns its path, which is the reference's.
    const fn path(self) -> &'static str {
        match self {
            Self::MutateTrainJob => "/mutate-trainer-kubeflow-org-v1alpha1-trainjob",
            Self::ValidateTrainJob => "/validate-trainer-kubeflow-org-v1alpha1-trainjob",
            Self::ValidateTrainingRuntime => {
                "/validate-trainer-kubeflow-org-v1alpha1-trainingruntime"
            }
            Self::ValidateClusterTrainingRuntime => {
                "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime"
            }
        }
    }

    /// Returns the name that the reference's manifests give it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::MutateTrainJob => "defaulter.trainjob.trainer.kubeflow.org",
            Self::ValidateTrainJob => "validator.trainjob.trainer.kubeflow.org",
            Self::ValidateTrainingRuntime => "validator.trainingruntime.trainer.kubeflow.org",
            Self::ValidateClusterTrainingRuntime => {
                "validator.clustertrainingruntime.trainer.kubeflow.org"
            }
        }
    }

    /// Returns the kind of the objects that it is called for.
    const fn kind(self) -> &'static str {
        use trainyard_api::names;
        match self {
            Self::MutateTrainJob | Self::ValidateTrainJob => names::TRAIN_JOB,
            Self::ValidateTrainingRuntime => names::TRAINING_RUNTIME,
            Self::ValidateClusterTrainingRuntime => names::CLUSTER_TRAINING_RUNTIME,
        }
    }
}

/// Serves webhooks with a certificate until some time after `stop`. Without one, none are served.
///
/// # Errors
/// The address cannot be listened on.
pub(crate) async fn serve(
    settings: &WebhookSettings,
    reconciler: &Reconciler,
    (metrics, certificate): (&Arc<Metrics>, Option<&ServedCertificate>),
    stop: &CancellationToken,
) -> Result<LingeringServer, ServeError> {
    let Some(certificate) = certificate else {
        return Ok(LingeringServer::default());
    };
    let tls = certificate.acceptor().map_err(ServeError::Tls)?;
    let checks = Checks::new(reconciler, settings.deadline);
    let app = Arc::new(Server::new(checks, metrics.clone())).router();
    let over = (tls, Limits::WEBHOOKS);
    LingeringServer::start(&settings.bind_address, over, app, settings.linger, stop).await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use std::collections::BTreeMap;

    use serde_json::{Value, json};
    use trainyard_api::yaml;

    use super::*;

    /// The webhooks of the chart by their names.
    fn deployed() -> BTreeMap<String, Value> {
        let text = include_str!("../../../../charts/trainyard/files/webhooks.yaml");
        let documents = yaml::read(text).into_iter();
        let documents = documents.map(|document| document.unwrap().value);
        let webhooks = documents.filter_map(|it| it.get("webhooks")?.as_array().cloned());
        let named = webhooks.flatten().map(|webhook| {
            let name = webhook["name"].as_str().unwrap().to_owned();
            (name, webhook)
        });
        named.collect()
    }

    #[test]
    fn deployed_webhooks_have_the_names_and_rules_of_the_reference() {
        let deployed = deployed();
        assert_eq!(deployed.len(), Webhook::ALL.len());
        for webhook in Webhook::ALL {
            let found = &deployed[webhook.name()];
            assert_eq!(found["clientConfig"]["service"]["path"], webhook.path());
            assert_eq!(found["sideEffects"], "None");
            let resource = format!("{}s", webhook.kind().to_lowercase());
            let rule = json!({
                "apiGroups": ["trainer.kubeflow.org"], "apiVersions": ["v1alpha1"],
                "operations": ["CREATE", "UPDATE"], "resources": [resource],
            });
            assert_eq!(found["rules"], json!([rule]));
            let timeout = found["timeoutSeconds"].as_u64().unwrap();
            assert!(timeout > WebhookSettings::default().deadline.as_secs());
            let is_for_runtimes = !found["rules"][0]["resources"][0]
                .to_string()
                .contains("trainjobs");
            let bypass = json!({"matchExpressions": [{
                "key": "trainer.kubeflow.org/webhook-validation", "operator": "NotIn", "values": ["disabled"],
            }]});
            let selector = found.get("objectSelector");
            assert_eq!(selector, is_for_runtimes.then_some(&bypass));
            let conditions = found["matchConditions"].as_array().unwrap();
            assert_eq!(conditions[0]["name"], "not-deleted");
            assert_eq!(conditions[1]["name"], "spec-changes");
        }
    }
}
