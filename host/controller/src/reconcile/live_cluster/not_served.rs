//! Objects whose kind the API server does not serve, such as PodGroups without their CRD.

use trainyard_model::lookup::LookupKey;

use super::LiveCluster;
use crate::{
    kubernetes::{is_not_found, kind_of},
    reconcile::{Reconciler, error::ReconcileError, object_ref::ObjectRef},
    watch::SubjectState,
};

impl LiveCluster<'_> {
    /// Returns the error of a call about an object beside the JobSet. If the API server does not serve its kind, the TrainJob is reconciled once
    /// it does.
    ///
    /// Webhooks may answer 404 too, and so does the API server for a namespace that does not exist, so discovery decides.
    pub(super) async fn not_served_or(
        &self,
        object: &ObjectRef,
        doing: &str,
        error: kube::Error,
    ) -> ReconcileError {
        let (api_version, kind) = (object.kind.api_version(), object.kind.kind());
        let Reconciler {
            kinds, interests, ..
        } = self.reconciler;
        let is_missing = is_not_found(&error)
            && matches!(kinds.refresh(&kind_of(api_version, kind)).await, Ok(None));
        if !is_missing {
            return ReconcileError::api(format!("{doing} {object}"), error);
        }
        let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
        let served = LookupKey::Served {
            api_version: api_version.clone(),
            kind: kind.clone(),
        };
        let reach = &self.pinned.generation().reach;
        interests.register(self.key, &served, reach);
        interests.note_state(self.key, &served, reach, SubjectState::NotServed);
        ReconcileError::NotServed {
            api_version,
            kind,
            name: object.name.to_string(),
        }
    }
}
