//! The objects beside a JobSet.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::client::Body;
use kube::core::Request;
use serde_json::Value;
use trainyard_model::object::ApplyMode;
use trainyard_model::text::clean;
use trainyard_render::RenderedObject;

use super::Pass;
use crate::client;
use crate::keys;
use crate::kubernetes::code;
use crate::reconcile::error::ReconcileError;
use crate::reconcile::listed::Listed;
use crate::reconcile::{MANAGER, creating, owner};

/// How far the JobSet is, for the objects beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is to be made, or has never run.
    Fresh,
    /// It has run, and is suspended.
    Suspended,
    /// It runs.
    Running,
}

impl Stage {
    /// Whether an object that is there may be changed.
    pub(super) fn lets_change(self, mode: ApplyMode) -> bool {
        match mode {
            ApplyMode::Once => false,
            ApplyMode::WithJobSet => self == Self::Fresh,
            ApplyMode::WhileSuspended => self != Self::Running,
            ApplyMode::Live => true,
        }
    }
}

/// An object beside a JobSet, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) listed: Listed,
    /// What was applied last; none where that is not known, or was never.
    pub(super) applied: Option<Applied>,
}

/// What was applied of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Applied {
    /// A number that differs where the content does.
    content: u64,
    /// The version that the object had then.
    version: Option<String>,
}

impl Held {
    /// Objects of which only the names are known.
    pub(super) fn by_name(listed: &[Listed]) -> Arc<[Self]> {
        let held = |listed: &Listed| Self {
            listed: listed.clone(),
            applied: None,
        };
        listed.iter().map(held).collect()
    }

    /// Whether the object was applied last at that version.
    pub(super) fn is_at(&self, version: Option<&str>) -> bool {
        let applied = self.applied.as_ref();
        applied.is_some_and(|applied| applied.version.as_deref() == version)
    }

    /// Whether this content was applied last.
    pub(super) fn has(&self, value: &Value) -> bool {
        let applied = self.applied.as_ref();
        applied.is_some_and(|applied| applied.content == content(value))
    }
}

fn content(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}

/// An object on its way.
struct Beside<'v> {
    listed: Listed,
    api: Api<DynamicObject>,
    rendered: &'v RenderedObject,
    /// The object with its owner.
    value: Value,
}

impl Beside<'_> {
    fn what(&self, done: &str) -> String {
        format!("{done} {} `{}`", self.listed.kind, self.listed.name)
    }
}

impl Pass<'_> {
    /// Writes objects beside a JobSet, each as its mode lets.
    pub(super) async fn apply_beside(
        &self,
        objects: impl IntoIterator<Item = &RenderedObject>,
        stage: Stage,
    ) -> Result<Arc<[Held]>, ReconcileError> {
        let mut held = Vec::new();
        for object in objects {
            held.push(self.put(object, stage).await?);
        }
        Ok(held.into())
    }

    /// Writes an object. One that is there and may not change is used as it is.
    pub(super) async fn put(
        &self,
        object: &RenderedObject,
        stage: Stage,
    ) -> Result<Held, ReconcileError> {
        let listed = Listed::of(object);
        let beside = Beside {
            api: self.reconciler.beside(self.key, &listed.kind),
            rendered: object,
            value: self.owned(object.value.clone()),
            listed,
        };
        let mode = object.apply;
        // Before it is created, whatever its mode: a quota is asked, and counts, before the API server looks whether it exists.
        let there = self.there(&beside).await?;
        let applied = match (there, stage.lets_change(mode)) {
            (true, false) => None,
            (there, true) => Some(self.apply(&beside, there).await?),
            // It may change later, and only what was applied loses what it had before.
            (false, false) if mode == ApplyMode::WhileSuspended => {
                Some(self.apply(&beside, false).await?)
            }
            (false, false) => {
                self.make_once(&beside).await?;
                None
            }
        };
        Ok(Held {
            listed: beside.listed,
            applied: applied.filter(|_| mode == ApplyMode::Live),
        })
    }

    /// Creates an object that does not exist. One that another controller created meanwhile is used, so that both have the same
    /// keys; it may have used up a quota.
    async fn make_once(&self, beside: &Beside<'_>) -> Result<(), ReconcileError> {
        let failed = |error| ReconcileError::api(beside.what("creating"), error);
        let created = if beside.rendered.material.is_empty() {
            let object = serde_json::to_vec(&beside.value);
            let object = object.map_err(|error| failed(kube::Error::SerdeError(error)))?;
            let objects = Request::new(beside.api.resource_url());
            let request = objects.create(&creating(), object);
            self.reconciler.text(request).await.map(drop)
        } else {
            self.create_with_keys(beside).await?
        };
        match created {
            Ok(()) => Ok(()),
            Err(error) if matches!(code(&error), Some(403 | 409)) => {
                match self.there(beside).await? {
                    true => Ok(()),
                    false => Err(failed(error)),
                }
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Creates a Secret with key material, which is made for it. Of the answer nothing is kept that may hold a key.
    async fn create_with_keys(
        &self,
        beside: &Beside<'_>,
    ) -> Result<Result<(), kube::Error>, ReconcileError> {
        let (value, material) = (beside.value.clone(), beside.rendered.material.clone());
        let filled = self.on_thread(move |_, _| keys::fill(&value, &material));
        let filled = filled.await?.map_err(|problem| ReconcileError::Keys {
            name: beside.listed.name.to_string(),
            problem,
        })?;
        let objects = Request::new(beside.api.resource_url());
        let request = objects.create(&creating(), Vec::new());
        let request = match request {
            Ok(request) => request.map(|_| Body::from(filled.json)),
            Err(error) => return Ok(Err(kube::Error::BuildRequest(error))),
        };
        match client::created(&self.reconciler.client, request).await {
            Err(kube::Error::Api(refusal)) => {
                let texts = filled.texts;
                let shown = move |_: &_, _: &_| match texts.are_quoted_in(&refusal.message) {
                    true => {
                        client::refusal(refusal.code, "the answer quotes a key, and is not shown")
                    }
                    false => kube::Error::Api(refusal),
                };
                Ok(Err(self.on_thread(shown).await?))
            }
            created => Ok(created),
        }
    }

    /// Applies an object; by force only where ours is there.
    async fn apply(&self, beside: &Beside<'_>, there: bool) -> Result<Applied, ReconcileError> {
        let params = PatchParams::apply(MANAGER);
        let params = if there { params.force() } else { params };
        let patch = Patch::Apply(&beside.value);
        let name = beside.listed.name.as_str();
        let applied = beside.api.patch_metadata(name, &params, &patch).await;
        let applied =
            applied.map_err(|error| ReconcileError::api(beside.what("writing"), error))?;
        Ok(Applied {
            content: content(&beside.rendered.value),
            version: applied.metadata.resource_version,
        })
    }

    /// Whether there is such an object already, of this TrainJob. One that is being deleted is an error: the pods would wait for it.
    async fn there(&self, beside: &Beside<'_>) -> Result<bool, ReconcileError> {
        let Listed { kind, name, .. } = &beside.listed;
        let found = beside.api.get_metadata_opt(name.as_str()).await;
        match found.map_err(|error| ReconcileError::api(beside.what("reading"), error))? {
            Some(found) if !owner::owns(&self.job, &found.metadata) => Err(owner::foreign(
                &self.key.name,
                kind.kind(),
                name.as_str(),
                &found.metadata,
            )),
            Some(found) if found.metadata.deletion_timestamp.is_some() => {
                Err(ReconcileError::Deleting {
                    kind: kind.to_string(),
                    name: name.to_string(),
                    finalizers: clean(&found.metadata.finalizers.unwrap_or_default().join(", ")),
                })
            }
            found => Ok(found.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_changes_when_it_says() {
        let stages = [Stage::Fresh, Stage::Suspended, Stage::Running];
        for (mode, lets) in [
            (ApplyMode::WithJobSet, [true, false, false]),
            (ApplyMode::Once, [false, false, false]),
            (ApplyMode::WhileSuspended, [true, true, false]),
            (ApplyMode::Live, [true, true, true]),
        ] {
            assert_eq!(stages.map(|stage| stage.lets_change(mode)), lets, "{mode}");
        }
    }
}
