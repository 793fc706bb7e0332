//! The objects beside a JobSet.

use kube::{
    api::{GetParams, ObjectMeta, Patch, PatchParams},
    client::Body,
    core::Request,
};
use serde::Deserialize;
use serde_json::{Value, json};
use trainyard_model::{object::waits_for, text::clean};
use trainyard_render::RenderedObject;

use super::{LiveCluster, MANAGER, creating};
use crate::{
    client::{self, segment},
    keys,
    kubernetes::unless_gone,
    reconcile::{
        cluster::{Objects, Result},
        error::ReconcileError,
        facts::ObjectState,
        object_ref::ObjectRef,
        object_version::ObjectVersion,
        owner,
    },
    wire::{self, without_managed_fields},
};

/// What is read of an object to see whether it waits.
#[derive(Deserialize)]
struct Observed {
    metadata: ObjectMeta,
    #[serde(default)]
    status: Value,
}

impl Objects for LiveCluster<'_> {
    async fn object(&mut self, object: &ObjectRef) -> Result<ObjectState> {
        let found = self.metadata(object).await?;
        let deleting = found.as_ref().filter(|it| it.deletion_timestamp.is_some());
        let finalizers = deleting.map(|it| it.finalizers.clone().unwrap_or_default());
        Ok(match (self.state_of(object, found), finalizers) {
            (ObjectState::Ours(_), Some(finalizers)) => {
                ObjectState::Unusable(ReconcileError::Deleting {
                    kind: object.kind.to_string(),
                    name: object.name.to_string(),
                    finalizers: clean(&finalizers.join(", ")),
                    is_recreated: true,
                })
            }
            (state, _) => state,
        })
    }

    async fn listed_object(&mut self, object: &ObjectRef) -> Result<ObjectState> {
        if !self.pinned.emits(&object.kind) {
            return Ok(ObjectState::NotEmitted);
        }
        let found = self.metadata(object).await?;
        Ok(self.state_of(object, found))
    }

    async fn apply_object(
        &mut self,
        object: &RenderedObject,
        over: Option<&ObjectVersion>,
    ) -> Result<Option<Box<str>>> {
        let mut params = PatchParams::apply(MANAGER);
        let mut value = self.with_owner(object);
        if let Some(over) = over {
            params.force = true;
            if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                // With the version alone, an object that is gone would be created.
                metadata.insert("uid".to_owned(), json!(over.uid));
                metadata.insert("resourceVersion".to_owned(), json!(over.version));
            }
        }
        let patch = Patch::Apply(&value);
        let objects = self.emitted(&object.kind);
        let name = object.name.as_str();
        match objects.patch_metadata(name, &params, &patch).await {
            Ok(applied) => Ok(applied.metadata.resource_version.map(Into::into)),
            Err(error) => {
                let object = ObjectRef::of(object);
                Err(self.not_served_or(&object, "writing", error).await)
            }
        }
    }

    async fn create_object(&mut self, object: &RenderedObject) -> Result<()> {
        let value = self.with_owner(object);
        let objects = Request::new(self.emitted(&object.kind).resource_url());
        let created = if object.material.is_empty() {
            match serde_json::to_vec(&value) {
                Ok(bytes) => {
                    let request = objects.create(&creating(), bytes);
                    self.text(request).await.map(drop)
                }
                Err(error) => Err(kube::Error::SerdeError(error)),
            }
        } else {
            self.create_with_keys(&objects, object, value).await?
        };
        match created {
            Ok(()) => Ok(()),
            Err(error) => {
                let object = ObjectRef::of(object);
                Err(self.not_served_or(&object, "creating", error).await)
            }
        }
    }
}

impl LiveCluster<'_> {
    /// Creates a Secret with generated keys. No part of the answer that may contain a key is kept.
    async fn create_with_keys(
        &self,
        objects: &Request,
        object: &RenderedObject,
        value: Value,
    ) -> Result<Result<(), kube::Error>> {
        let material = object.material.clone();
        let filled = self.on_thread(move |_, _| keys::fill(&value, &material));
        let filled = filled.await?.map_err(|problem| ReconcileError::Keys {
            name: object.name.to_string(),
            problem,
        })?;
        let request = match objects.create(&creating(), Vec::new()) {
            Ok(request) => request.map(|_| Body::from(filled.json)),
            Err(error) => return Ok(Err(kube::Error::BuildRequest(error))),
        };
        match client::written(&self.reconciler.client, request).await {
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

    /// Returns the object with its owner reference.
    fn with_owner(&self, object: &RenderedObject) -> Value {
        let mut value = object.value.clone();
        owner::set(&mut value, &self.key.name, &self.job.uid);
        value
    }

    /// Returns what an object waits for, by the rules of its plugin. The list may be forged, so only the TrainJob's objects of kinds that plugins
    /// emit are read.
    pub(super) async fn waits_for(&self, object: &ObjectRef) -> Result<Option<String>> {
        if !self.pinned.emits(&object.kind) {
            return Ok(None);
        }
        let objects = Request::new(self.emitted(&object.kind).resource_url());
        let request = objects.get(&segment(object.name.as_str()), &GetParams::default());
        let text = match unless_gone(self.text(request).await) {
            Ok(text) => text,
            Err(error) => return Err(self.not_served_or(object, "reading", error).await),
        };
        let uid = self.job.uid.clone();
        let waits = move |text: String| {
            let sent: Observed = wire::decode(&without_managed_fields(&text)).ok()?;
            let Observed { metadata, status } = sent;
            let is_ours = owner::is_of(&uid, &metadata);
            let annotations = metadata.annotations.filter(|_| is_ours)?;
            waits_for(&annotations, &status)
        };
        self.on_thread(move |_, _| text.and_then(waits)).await
    }

    async fn metadata(&self, object: &ObjectRef) -> Result<Option<ObjectMeta>> {
        let objects = self.emitted(&object.kind);
        match objects.get_metadata_opt(object.name.as_str()).await {
            Ok(found) => Ok(found.map(|it| it.metadata)),
            Err(error) => Err(self.not_served_or(object, "reading", error).await),
        }
    }

    fn state_of(&self, object: &ObjectRef, found: Option<ObjectMeta>) -> ObjectState {
        match found {
            None => ObjectState::Missing,
            Some(found) if owner::is_of(&self.job.uid, &found) => {
                ObjectState::Ours(ObjectVersion::of(&found))
            }
            Some(found) => {
                let (kind, name) = (object.kind.kind(), object.name.as_str());
                ObjectState::Unusable(owner::foreign(&self.key.name, kind, name, &found))
            }
        }
    }
}
