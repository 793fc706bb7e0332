//! The calls to the API server that write revisions and the status of PolicyPlugins.

use kube::{
    Resource as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    core::Request,
};
use serde_json::{Value, json};
use trainyard_config::policy_plugin::{
    API_VERSION, PLUGIN_REVISION, PluginRevisionSpec, PluginRevisionStatus, PolicyPluginStatus,
    Replica,
};

use super::{
    Plugins,
    objects::{
        PolicyPluginObject, PolicyPluginState, RevisionObject, RevisionState, revision_object,
    },
};
use crate::{
    kubernetes::unless_gone,
    reconcile::{creating, merging},
    watch::{Feed, FeedError, Keyed, answer, read},
};

type Result<T> = std::result::Result<T, kube::Error>;

impl Plugins {
    /// Reads all revisions from the API server, and not from its cache.
    pub(super) async fn read_revisions(&self) -> Result<()> {
        let path = RevisionObject::url_path(&(), None);
        let parse = |object: &str| read::<RevisionObject>(object).ok();
        let feed = Feed::new(
            self.parts.client.clone(),
            path,
            ListParams::default(),
            parse,
        );
        let all = feed.all(|_| 1).await.map_err(FeedError::into_call)?;
        for (name, state) in all {
            self.revisions.put_read(name, state);
        }
        self.changed();
        Ok(())
    }

    /// Creates a revision, or creates it again after it has run and was deleted.
    pub(super) async fn create(&self, spec: &PluginRevisionSpec, has_run: bool) -> Result<()> {
        let object = revision_object(spec, has_run);
        let body = serde_json::to_vec(&object).map_err(kube::Error::SerdeError)?;
        let request = requests::<RevisionObject>().create(&creating(), body);
        let created = answer::<RevisionObject>(&self.parts.client, request).await?;
        self.put(created);
        Ok(())
    }

    /// Writes the stage of a revision, unless the object has changed.
    pub(super) async fn write_stage(
        &self,
        (name, at): (&str, &RevisionState),
        status: &PluginRevisionStatus,
    ) -> Result<()> {
        let mut status = json!(status);
        if let Some(members) = status.as_object_mut() {
            // Each replica writes its own.
            members.shift_remove("replicas");
        }
        remove_others(&mut status, &STAGE_MEMBERS);
        let patch = json!({
            "metadata": {"uid": at.uid, "resourceVersion": at.resource_version()},
            "status": status,
        });
        self.patch_status(name, &merging(), &Patch::Merge(patch))
            .await
    }

    /// Writes this replica's entry of a revision; `None` removes it.
    pub(super) async fn write_replica(&self, name: &str, entry: Option<&Replica>) -> Result<()> {
        let entries: Vec<_> = entry.into_iter().collect();
        let patch = Patch::Apply(json!({
            "apiVersion": API_VERSION,
            "kind": PLUGIN_REVISION,
            "metadata": {"name": name},
            "status": {"replicas": entries},
        }));
        let params = PatchParams::apply(&self.parts.pod).force();
        self.patch_status(name, &params, &patch).await
    }

    async fn patch_status(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<Value>,
    ) -> Result<()> {
        let request = requests::<RevisionObject>().patch_subresource("status", name, params, patch);
        // A revision that was deleted is an error, too: nothing is written.
        let written = answer::<RevisionObject>(&self.parts.client, request).await?;
        self.put(written);
        Ok(())
    }

    /// Deletes a revision.
    pub(super) async fn delete(&self, name: &str) -> Result<()> {
        let request = requests::<RevisionObject>().delete(name, &DeleteParams::default());
        let request = request.map_err(kube::Error::BuildRequest)?;
        unless_gone(self.parts.client.request_text(request).await)?;
        if let Some(state) = self.revision(name) {
            let name = super::ObjectName(name.into());
            self.revisions
                .remove(&name, crate::watch::State::version(&*state));
        }
        self.changed();
        Ok(())
    }

    /// Writes the status of a PolicyPlugin, unless the object has changed: the answer is stored, so a change in it would not be noticed when the
    /// watch shows it.
    pub(super) async fn write_policy_status(
        &self,
        (name, at): (&str, &PolicyPluginState),
        status: &PolicyPluginStatus,
    ) -> Result<()> {
        let mut status = json!(status);
        remove_others(&mut status, &ALL_MEMBERS);
        let patch = Patch::Merge(json!({
            "metadata": {"uid": at.uid, "resourceVersion": at.resource_version()},
            "status": status,
        }));
        let request =
            requests::<PolicyPluginObject>().patch_subresource("status", name, &merging(), &patch);
        let written = answer::<PolicyPluginObject>(&self.parts.client, request).await;
        if let Some(Some((name, read))) = unless_gone(written)? {
            self.policies.put_read(name, read);
        }
        Ok(())
    }

    /// Stores the answer to a write, which the watch may show later.
    fn put(&self, answer: Option<Keyed<RevisionObject>>) {
        if let Some((name, read)) = answer {
            self.revisions.put_read(name, read);
        }
        self.changed();
    }
}

/// Lets a merge patch remove the members that have no value.
fn remove_others(status: &mut Value, all: &[&str]) {
    if let Some(members) = status.as_object_mut() {
        for member in all {
            members.entry(*member).or_insert(Value::Null);
        }
    }
}

/// The members of the status of a PluginRevision that the leader writes.
const STAGE_MEMBERS: [&str; 8] = [
    "stage", "percent", "since", "reason", "message", "plan", "signers", "shadow",
];

/// The members of the status of a PolicyPlugin.
const ALL_MEMBERS: [&str; 12] = [
    "observedGeneration",
    "conditions",
    "revision",
    "version",
    "digest",
    "manifestDigest",
    "signer",
    "plan",
    "claims",
    "grants",
    "replicas",
    "trainJobs",
];

fn requests<W: kube::Resource<DynamicType = ()>>() -> Request {
    Request::new(W::url_path(&(), None))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;

    use trainyard_config::policy_plugin::Crd;

    use super::*;

    /// One that is forgotten would keep its old value.
    #[test]
    fn every_member_of_a_status_is_removed_when_it_has_no_value() {
        let of_crd = |crd: Crd| {
            let schema = crd.schema();
            let members = schema.pointer("/properties/status/properties").unwrap();
            let members = members.as_object().unwrap().keys().cloned();
            members.collect::<BTreeSet<_>>()
        };
        let of = |members: &[&str]| members.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(of_crd(Crd::PolicyPlugin), of(&ALL_MEMBERS));
        let mut of_revision: BTreeSet<_> = of(&STAGE_MEMBERS);
        of_revision.insert("replicas".to_owned());
        assert_eq!(of_crd(Crd::PluginRevision), of_revision);
    }
}
