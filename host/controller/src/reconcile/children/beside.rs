//! The objects beside a JobSet.

use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::Value;
use trainyard_model::object::ApplyMode;
use trainyard_render::RenderedObject;

use super::{Pass, resource};
use crate::reconcile::error::{ReconcileError, code};
use crate::reconcile::{MANAGER, creating, owner};

/// An object beside a JobSet, on its way.
struct Beside {
    kind: String,
    name: String,
    api: Api<DynamicObject>,
    value: Value,
}

impl Beside {
    fn what(&self, done: &str) -> String {
        format!("{done} {} `{}`", self.kind, self.name)
    }
}

impl Pass<'_> {
    /// Writes the objects beside a JobSet that may change.
    pub(super) async fn apply_beside(
        &self,
        objects: &[RenderedObject],
    ) -> Result<(), ReconcileError> {
        for object in objects {
            let value = self.owned(object.value.clone());
            let text = |pointer: &str| {
                let text = value.pointer(pointer).and_then(Value::as_str);
                text.unwrap_or_default().to_owned()
            };
            let beside = Beside {
                kind: text("/kind"),
                name: text("/metadata/name"),
                api: Api::namespaced_with(
                    self.reconciler.client.clone(),
                    &self.key.namespace,
                    &resource(&text("/apiVersion"), &text("/kind")),
                ),
                value,
            };
            match object.apply {
                ApplyMode::Once => self.make_once(beside).await?,
                _ => self.apply(beside).await?,
            }
        }
        Ok(())
    }

    /// Creates an object, and uses the one that is there: two controllers at once have the same.
    async fn make_once(&self, beside: Beside) -> Result<(), ReconcileError> {
        let failed = |error| ReconcileError::api(beside.what("creating"), error);
        let object = serde_json::from_value(beside.value.clone());
        let object = object.map_err(|error| failed(kube::Error::SerdeError(error)))?;
        match beside.api.create(&creating(), &object).await {
            Ok(_) => Ok(()),
            Err(error) if code(&error) == Some(409) => match self.there(&beside).await? {
                true => Ok(()),
                false => Err(failed(error)),
            },
            Err(error) => Err(failed(error)),
        }
    }

    async fn apply(&self, beside: Beside) -> Result<(), ReconcileError> {
        let params = PatchParams::apply(MANAGER);
        let params = match self.there(&beside).await? {
            true => params.force(),
            false => params,
        };
        let patch = Patch::Apply(&beside.value);
        let applied = beside.api.patch(&beside.name, &params, &patch).await;
        let failed = |error| ReconcileError::api(beside.what("writing"), error);
        applied.map(drop).map_err(failed)
    }

    /// Whether there is such an object already, of this TrainJob.
    async fn there(&self, beside: &Beside) -> Result<bool, ReconcileError> {
        let found = beside.api.get_metadata_opt(&beside.name).await;
        match found.map_err(|error| ReconcileError::api(beside.what("reading"), error))? {
            Some(found) if !owner::owns(&self.job, &found.metadata) => {
                Err(owner::foreign(&beside.kind, &beside.name, &found.metadata))
            }
            found => Ok(found.is_some()),
        }
    }
}
