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
    let jobset = jobset.await?;
    let [crd_release, trainer, jobset] =
        [&crd, &trainer, &jobset].map(|object| object.as_ref().and_then(Release::of));
    let mut notes = Vec::new();
    if let Some(release) = crd_release.as_ref().filter(|_| !is_kept(crd.as_ref())) {
        notes.push(format!(
            "the CRDs belong to {}: do not uninstall it, which would delete all TrainJobs and their JobSets, and follow docs/move.md instead",
            release.text()
        ));
    }
    let ours = [crd_release, trainer];
    if let Some(release) = jobset.filter(|release| ours.iter().flatten().any(|it| it == release)) {
        notes.push(format!(
            "JobSet belongs to {}: do not uninstall it, which would delete JobSet's controller and webhooks; docs/move.md#jobset says how to keep them",
            release.text()
        ));
    }
    Ok(notes)
}

/// Whether a CRD is Trainyard's, which Helm keeps. The annotation for Flux tells it apart: that for Helm may have been added in the cluster,
/// where it has no effect on `helm uninstall`.
fn is_kept(crd: Option<&Value>) -> bool {
    crd.is_some_and(|crd| annotation(crd, "kustomize.toolkit.fluxcd.io/prune") == Some("disabled"))
}

/// The release of Helm that an object belongs to.
#[derive(PartialEq, Eq)]
struct Release {
    name: String,
    namespace: String,
}

impl Release {
    fn of(object: &Value) -> Option<Self> {
        Some(Self {
            name: clean(annotation(object, "meta.helm.sh/release-name")?).to_string(),
            namespace: clean(annotation(object, "meta.helm.sh/release-namespace")?).to_string(),
        })
    }

    fn text(&self) -> String {
        format!(
            "the Helm release {} in the namespace {}",
            self.name, self.namespace
        )
    }
}
