//! The plugins that the JobSet of a TrainJob was rendered with.

use std::collections::BTreeMap;

use serde::{Deserialize as _, Serialize};
use serde_json::Value;
use trainyard_api::names::{RENDERED_WITH_ANNOTATION, REVISION_ANNOTATION, SNAPSHOT_ANNOTATION};
use trainyard_controller::reconcile::Snapshot;

use crate::live_objects::{annotation, items, text};

/// A plugin, with what the PluginRevision says of it that the JobSet was rendered with.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsedPlugin {
    name: String,
    /// The first digits of the digest of its file.
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Who signed it, as the controller's configuration names the signer.
    #[serde(skip_serializing_if = "Option::is_none")]
    signer: Option<String>,
    /// The PluginRevision that the JobSet was rendered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
}

/// Whether a JobSet notes its plugins.
pub(super) fn are_noted(job_set: &Value) -> bool {
    annotation(job_set, RENDERED_WITH_ANNOTATION).is_some()
}

/// Returns the name of the PluginRevision that a JobSet was rendered with.
pub(super) fn revision_of(job_set: &Value) -> Option<&str> {
    annotation(job_set, REVISION_ANNOTATION)
}

/// Returns the plugins of a JobSet, with what its snapshot and its revision say of them, as far as these can be read.
pub(super) fn used(
    job_set: Option<&Value>,
    snapshot: Option<&Value>,
    revision: Option<&Value>,
) -> Vec<UsedPlugin> {
    let Some(job_set) = job_set else {
        return Vec::new();
    };
    let noted = annotation(job_set, RENDERED_WITH_ANNOTATION).unwrap_or_default();
    let plan = snapshot.and_then(|snapshot| plan(job_set, snapshot));
    let plugins = noted.split(',').filter_map(|plugin| plugin.split_once('@'));
    plugins
        .map(|plugin| UsedPlugin::of(plugin, plan.as_ref(), (revision_of(job_set), revision)))
        .collect()
}

/// Returns the plan in a snapshot, if it is the one that the JobSet was applied with: others may edit ConfigMaps.
fn plan(job_set: &Value, snapshot: &Value) -> Option<Value> {
    let data = BTreeMap::deserialize(snapshot.get("data")?).ok()?;
    let is_its = annotation(job_set, SNAPSHOT_ANNOTATION)? == Snapshot::digests(&data);
    is_its.then(|| serde_json::from_str(data.get("plan")?).ok())?
}

/// Whether a digest begins with these digits.
fn has_digits(found: &str, digest: &str) -> bool {
    found.trim_start_matches("sha256:").starts_with(digest)
}

/// Returns what a list of plugins says of one.
fn plugin_of<'v>(value: &'v Value, list: &str, name: &str) -> Option<&'v Value> {
    let mut plugins = items(value, list);
    plugins.find(|plugin| text(plugin, "/name") == Some(name))
}

impl UsedPlugin {
    fn of(
        (name, digest): (&str, &str),
        plan: Option<&Value>,
        (of, revision): (Option<&str>, Option<&Value>),
    ) -> Self {
        let has_digits =
            |of: &&Value| text(of, "/digest").is_some_and(|found| has_digits(found, digest));
        let declared = revision.and_then(|it| plugin_of(it, "/spec/plugins", name));
        let content = declared.filter(has_digits);
        let planned = plan.and_then(|plan| plugin_of(plan, "/plugins", name));
        let version = content.or(planned.filter(has_digits));
        let signers = content
            .and(revision)
            .and_then(|it| it.pointer("/status/signers"));
        let owned = |text: &str| text.to_owned();
        Self {
            name: name.to_owned(),
            digest: digest.to_owned(),
            version: version.and_then(|it| text(it, "/version")).map(owned),
            signer: signers.and_then(|it| it.get(name)?.as_str()).map(owned),
            // A built-in plugin that no PolicyPlugin configures is that of the controller.
            revision: of
                .filter(|_| revision.is_none() || declared.is_some())
                .map(owned),
        }
    }

    /// Returns the line of the text.
    pub(super) fn line(&self) -> String {
        let Self { name, digest, .. } = self;
        let version = self.version.iter().map(|it| format!("version {it}"));
        let signer = self.signer.iter().map(|it| format!("signed by {it}"));
        let revision = self.revision.iter().map(|it| format!("of {it}"));
        let known: Vec<_> = version.chain(signer).chain(revision).collect();
        match known.is_empty() {
            true => format!("{name}@{digest}"),
            false => format!("{name}@{digest}, {}", known.join(", ")),
        }
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
                {"name": "stamp", "digest": format!("sha256:{digest}"), "version": "2.0.0"}, {"name": "torch"},
            ]},
            "status": {"stage": "RolledBack", "signers": {"stamp": "acme"}},
        })
    }

    fn lines(job_set: &Value, snapshot: Option<&Value>, revision: Option<&Value>) -> Vec<String> {
        let used = used(Some(job_set), snapshot, revision);
        used.iter().map(UsedPlugin::line).collect()
    }

    #[test]
    fn plugins_are_those_of_the_revision_that_the_job_set_names() {
        const DIGEST: &str = "ff36a9d77be90000";
        let mut job_set = json!({"metadata": {"annotations": {
            RENDERED_WITH_ANNOTATION: "mpi@0123456789ab,stamp@ff36a9d77be9,torch@1123456789ab",
            REVISION_ANNOTATION: "rev-3-0123456789abcdef",
        }}});
        let of = ", of rev-3-0123456789abcdef";
        let line = |plugin: &str, more: &[&str]| format!("{plugin}{}", more.concat());
        let (mpi, stamp, torch) = (
            "mpi@0123456789ab",
            "stamp@ff36a9d77be9",
            "torch@1123456789ab",
        );
        let found = lines(&job_set, None, Some(&revision(DIGEST)));
        let known = line(stamp, &[", version 2.0.0, signed by acme", of]);
        // What no PolicyPlugin declares is that of the controller.
        assert_eq!(found, [mpi.to_owned(), known, line(torch, &[of])]);
        // An object of that name that another client made says nothing of another content.
        let found = lines(&job_set, None, Some(&revision("00000000")));
        assert_eq!(found[1], line(stamp, &[of]));
        // Few users may read revisions.
        let found = lines(&job_set, None, None);
        assert_eq!(found, [mpi, stamp, torch].map(|plugin| line(plugin, &[of])));
        let plan = json!({"plugins": [
            {"name": "stamp", "version": "2.0.0", "digest": format!("sha256:{DIGEST}")},
            {"name": "mpi", "version": "0.1.0", "digest": "sha256:0123456789abcdef"},
            {"name": "torch", "version": "0.1.0", "digest": "sha256:00000000"},
        ]});
        let data = BTreeMap::from([("plan".to_owned(), plan.to_string())]);
        let snapshot = json!({"data": data});
        // Anybody could have written it.
        assert_eq!(lines(&job_set, Some(&snapshot), None), found);
        job_set["metadata"]["annotations"][SNAPSHOT_ANNOTATION] = json!(Snapshot::digests(&data));
        let found = lines(&job_set, Some(&snapshot), None);
        assert_eq!(found[0], line(mpi, &[", version 0.1.0", of]));
        assert_eq!(found[1], line(stamp, &[", version 2.0.0", of]));
        assert_eq!(found[2], line(torch, &[of]));
        assert_eq!(used(None, None, None), []);
    }
}
