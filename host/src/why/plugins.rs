//! The plugins that the JobSet of a TrainJob was rendered with.

use std::collections::BTreeMap;

use serde::{Deserialize as _, Serialize};
use serde_json::Value;
use trainyard_api::names::{RENDERED_WITH_ANNOTATION, REVISION_ANNOTATION, SNAPSHOT_ANNOTATION};
use trainyard_controller::reconcile::Snapshot;
use trainyard_model::names::short_digest;

use crate::live_objects::{annotation, items, text};

/// What a JobSet was rendered with.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RenderedWith {
    /// The PluginRevision.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    plugins: Vec<UsedPlugin>,
}

/// A plugin, with what the snapshot and the PluginRevision say of it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct UsedPlugin {
    name: String,
    /// The first digits of the digest of its file.
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Who signed it, as the controller's configuration names the signer.
    #[serde(skip_serializing_if = "Option::is_none")]
    signer: Option<String>,
}

/// Whether a JobSet notes its plugins.
pub(super) fn are_noted(job_set: &Value) -> bool {
    annotation(job_set, RENDERED_WITH_ANNOTATION).is_some()
}

/// Returns the name of the PluginRevision that a JobSet was rendered with.
pub(super) fn revision_of(job_set: &Value) -> Option<&str> {
    annotation(job_set, REVISION_ANNOTATION)
}

impl RenderedWith {
    /// Returns what a JobSet was rendered with, as far as its snapshot and its revision can be read.
    pub(super) fn of(
        job_set: Option<&Value>,
        snapshot: Option<&Value>,
        revision: Option<&Value>,
    ) -> Self {
        let Some(job_set) = job_set else {
            return Self::default();
        };
        let noted = annotation(job_set, RENDERED_WITH_ANNOTATION).unwrap_or_default();
        let plan = snapshot.and_then(|snapshot| plan(job_set, snapshot));
        let plugins = noted.split(',').filter_map(|plugin| plugin.split_once('@'));
        let plugins = plugins.map(|plugin| UsedPlugin::of(plugin, plan.as_ref(), revision));
        Self {
            revision: revision_of(job_set).map(str::to_owned),
            plugins: plugins.collect(),
        }
    }

    /// Whether nothing is known of it.
    pub(super) const fn is_empty(&self) -> bool {
        self.revision.is_none() && self.plugins.is_empty()
    }

    /// Returns the lines of the text.
    pub(super) fn lines(&self) -> Vec<String> {
        let revision = self.revision.iter().map(|it| format!(" of {it}"));
        let title = format!("Plugins{}:", revision.collect::<String>());
        let plugins = self.plugins.iter();
        let plugins = plugins.map(|plugin| format!("  {}", plugin.line()));
        [title].into_iter().chain(plugins).collect()
    }
}

/// Returns the plan in a snapshot, if it is the one that the JobSet was applied with: others may edit ConfigMaps.
fn plan(job_set: &Value, snapshot: &Value) -> Option<Value> {
    let data = BTreeMap::deserialize(snapshot.get("data")?).ok()?;
    let is_its = annotation(job_set, SNAPSHOT_ANNOTATION)? == Snapshot::digests(&data);
    is_its.then(|| serde_json::from_str(data.get("plan")?).ok())?
}

/// Whether a digest begins with these digits, as the controller notes them. Others may edit JobSets.
fn has_digits(found: &str, digits: &str) -> bool {
    short_digest(found).strip_prefix("sha256:") == Some(digits)
}

/// Returns what a list of plugins says of one.
fn plugin_of<'v>(value: &'v Value, list: &str, name: &str) -> Option<&'v Value> {
    let mut plugins = items(value, list);
    plugins.find(|plugin| text(plugin, "/name") == Some(name))
}

impl UsedPlugin {
    fn of((name, digest): (&str, &str), plan: Option<&Value>, revision: Option<&Value>) -> Self {
        let is_it = |of: &&Value| text(of, "/digest").is_some_and(|it| has_digits(it, digest));
        let declared = revision.and_then(|it| plugin_of(it, "/spec/plugins", name));
        let declared = declared.filter(is_it);
        let planned = plan.and_then(|plan| plugin_of(plan, "/plugins", name));
        let version = declared.or(planned.filter(is_it));
        let signers = declared.and(revision);
        let signers = signers.and_then(|it| it.pointer("/status/signers"));
        Self {
            name: name.to_owned(),
            digest: digest.to_owned(),
            version: version
                .and_then(|it| text(it, "/version"))
                .map(str::to_owned),
            signer: signers.and_then(|it| Some(it.get(name)?.as_str()?.to_owned())),
        }
    }

    fn line(&self) -> String {
        let Self { name, digest, .. } = self;
        let version = self.version.iter().map(|it| format!(", version {it}"));
        let signer = self.signer.iter().map(|it| format!(", signed by {it}"));
        let known = version.chain(signer).collect::<String>();
        format!("{name}@{digest}{known}")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;

    /// A revision with a version of `stamp`.
    fn revision(digest: &str) -> Value {
        json!({
            "metadata": {"name": "rev-3-0123456789abcdef"},
            "spec": {"number": 3, "plugins": [
                {"name": "mpi"}, {"name": "stamp", "digest": format!("sha256:{digest}"), "version": "2.0.0"},
            ]},
            "status": {"stage": "RolledBack", "signers": {"stamp": "acme"}},
        })
    }

    fn lines(job_set: &Value, snapshot: Option<&Value>, revision: Option<&Value>) -> Vec<String> {
        RenderedWith::of(Some(job_set), snapshot, revision).lines()
    }

    #[test]
    fn plugins_are_those_of_the_revision_that_the_job_set_names() {
        const DIGEST: &str = "ff36a9d77be90000";
        const TITLE: &str = "Plugins of rev-3-0123456789abcdef:";
        const MPI: &str = "  mpi@0123456789ab";
        const STAMP: &str = "  stamp@ff36a9d77be9";
        let mut job_set = json!({"metadata": {"annotations": {
            RENDERED_WITH_ANNOTATION: "mpi@0123456789ab,stamp@ff36a9d77be9",
            REVISION_ANNOTATION: "rev-3-0123456789abcdef",
        }}});
        let found = lines(&job_set, None, Some(&revision(DIGEST)));
        let signed = format!("{STAMP}, version 2.0.0, signed by acme");
        assert_eq!(found, [TITLE, MPI, &signed]);
        // An object of that name that another client made says nothing of another content.
        let found = lines(&job_set, None, Some(&revision("00000000")));
        assert_eq!(found, [TITLE, MPI, STAMP]);
        // Few users may read revisions.
        assert_eq!(lines(&job_set, None, None), [TITLE, MPI, STAMP]);
        let plan = json!({"plugins": [
            {"name": "stamp", "version": "2.0.0", "digest": format!("sha256:{DIGEST}")},
            {"name": "mpi", "version": "0.1.0", "digest": "sha256:00000000"},
        ]});
        let data = BTreeMap::from([("plan".to_owned(), plan.to_string())]);
        let snapshot = json!({"data": data});
        // Anybody could have written it.
        assert_eq!(lines(&job_set, Some(&snapshot), None), [TITLE, MPI, STAMP]);
        job_set["metadata"]["annotations"][SNAPSHOT_ANNOTATION] = json!(Snapshot::digests(&data));
        let found = lines(&job_set, Some(&snapshot), None);
        assert_eq!(found, [TITLE, MPI, &format!("{STAMP}, version 2.0.0")]);
        // A TrainJob may use no plugin.
        job_set["metadata"]["annotations"][RENDERED_WITH_ANNOTATION] = json!("");
        assert_eq!(lines(&job_set, None, None), [TITLE]);
        assert!(RenderedWith::of(None, None, None).is_empty());
    }
}
