//! What `helm uninstall` would delete of what running TrainJobs need, before the move or the way back.

use serde_json::Value;
use trainyard_model::text::clean;

use crate::live_objects::{Kind, LiveObjects, annotation};

const CRD: Kind = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
const WEBHOOKS: Kind = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
);

/// Returns a note for each release of Helm that must not be uninstalled as it is. Helm keeps its record of a release in Secrets, which are
/// not read; the objects say the same.
pub(super) async fn notes(live: &LiveObjects) -> Vec<String> {
    find(live).await.unwrap_or_else(|error| {
        vec![format!(
            "{error}; before you uninstall a Helm release, check that neither JobSet nor the CRDs of TrainJobs belong to it (docs/move.md)"
        )]
    })
}

async fn find(live: &LiveObjects) -> Result<Vec<String>, String> {
    let crd = live.get(CRD, "trainjobs.trainer.kubeflow.org").await?;
    let trainer = live.get(WEBHOOKS, "validator.trainer.kubeflow.org").await?;
    let jobset = live.get(WEBHOOKS, "jobset-validating-webhook-configuration");
    let (crd, trainer, jobset) = (
        crd.as_ref().and_then(Release::of),
        trainer.as_ref().and_then(Release::of),
        jobset.await?,
    );
    let mut notes = Vec::new();
    if let Some(release) = crd.as_ref().filter(|release| !release.keeps) {
        notes.push(format!(
            "the CRDs belong to {}: do not uninstall it, which would delete all TrainJobs and their JobSets, and follow docs/move.md instead",
            release.text()
        ));
    }
    let jobset = jobset.as_ref().and_then(Release::of);
    if let Some(release) = jobset.filter(|release| !release.keeps)
        && [crd, trainer].iter().flatten().any(|it| it.is(&release))
    {
        notes.push(format!(
            "JobSet belongs to {}: do not uninstall it, which would delete JobSet's controller and webhooks; docs/move.md#jobset says how to keep them",
            release.text()
        ));
    }
    Ok(notes)
}

/// The release of Helm that an object belongs to.
struct Release {
    name: String,
    namespace: String,
    /// Whether Helm keeps the object.
    keeps: bool,
}

impl Release {
    fn of(object: &Value) -> Option<Self> {
        Some(Self {
            name: clean(annotation(object, "meta.helm.sh/release-name")?).to_string(),
            namespace: clean(annotation(object, "meta.helm.sh/release-namespace")?).to_string(),
            keeps: annotation(object, "helm.sh/resource-policy") == Some("keep"),
        })
    }

    fn is(&self, other: &Self) -> bool {
        (&self.name, &self.namespace) == (&other.name, &other.namespace)
    }

    fn text(&self) -> String {
        format!(
            "the Helm release {} in the namespace {}",
            self.name, self.namespace
        )
    }
}
