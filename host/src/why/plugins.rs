//! The plugins that the JobSet of a TrainJob was rendered with.

use serde::Serialize;
use serde_json::Value;
use trainyard_api::names::{RENDERED_WITH_ANNOTATION, STARTED_ANNOTATION};
use trainyard_controller::reconcile::MANAGER;

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

/// The stages of a revision that TrainJobs have been rendered with.
const USED: [&str; 4] = ["Share", "Running", "Previous", "RolledBack"];

/// Whether a JobSet notes its plugins.
pub(super) fn are_noted(job_set: &Value) -> bool {
    annotation(job_set, RENDERED_WITH_ANNOTATION).is_some()
}

/// Returns the plugins of a JobSet.
pub(super) fn used(
    job_set: Option<&Value>,
    snapshot: Option<&Value>,
    revisions: &[Value],
) -> Vec<UsedPlugin> {
    let noted = job_set.and_then(|job_set| annotation(job_set, RENDERED_WITH_ANNOTATION));
    let each = noted.unwrap_or_default().split(',');
    let plugins: Vec<_> = each.filter_map(|plugin| plugin.split_once('@')).collect();
    // The snapshot of a TrainJob that has started is not written again, but its JobSet is.
    let is_started = |job_set: &&Value| annotation(job_set, STARTED_ANNOTATION).is_some();
    let rendered = match job_set.filter(is_started) {
        Some(_) => snapshot.or(job_set),
        None => job_set,
    };
    let revision = rendered_with(rendered.and_then(written), &plugins, revisions);
    let plan = snapshot.and_then(|snapshot| text(snapshot, "/data/plan"));
    let plan: Value = plan
        .and_then(|plan| serde_json::from_str(plan).ok())
        .unwrap_or_default();
    let plugins = plugins.into_iter();
    plugins
        .map(|(name, digest)| UsedPlugin::of((name, digest), &plan, revision))
        .collect()
}

/// Returns when the controller wrote an object last.
fn written(object: &Value) -> Option<&str> {
    items(object, "/metadata/managedFields")
        .filter(|fields| text(fields, "/manager") == Some(MANAGER))
        .filter_map(|fields| text(fields, "/time"))
        .max()
}

/// Returns the revision that a JobSet with these plugins was rendered with: the newest one with their content that was used, and that existed
/// when the rendering was written.
fn rendered_with<'r>(
    written: Option<&str>,
    plugins: &[(&str, &str)],
    revisions: &'r [Value],
) -> Option<&'r Value> {
    let fits = |revision: &&Value| {
        let created = text(revision, "/metadata/creationTimestamp");
        let found = plugins
            .iter()
            .map(|(name, digest)| content(revision, name, digest));
        let found: Vec<_> = found.collect();
        text(revision, "/status/stage").is_some_and(|stage| USED.contains(&stage))
            && written.is_none_or(|written| created <= Some(written))
            && found.contains(&Content::Same)
            && !found.contains(&Content::Other)
    };
    let number = |revision: &&Value| revision.pointer("/spec/number").and_then(Value::as_u64);
    revisions.iter().filter(fits).max_by_key(number)
}

/// Whether a revision has the content of a plugin.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    Same,
    Other,
    /// It does not say: the plugin is built in.
    Unknown,
}

fn content(revision: &Value, name: &str, digest: &str) -> Content {
    match plugin_of(revision, "/spec/plugins", name).and_then(|plugin| text(plugin, "/digest")) {
        None => Content::Unknown,
        Some(found) if has_digits(found, digest) => Content::Same,
        Some(_) => Content::Other,
    }
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
    fn of((name, digest): (&str, &str), plan: &Value, revision: Option<&Value>) -> Self {
        let declared = revision.and_then(|revision| plugin_of(revision, "/spec/plugins", name));
        let revision = revision.filter(|_| declared.is_some());
        let planned = plugin_of(plan, "/plugins", name).filter(|planned| {
            text(planned, "/digest").is_some_and(|found| has_digits(found, digest))
        });
        let version = planned.or(declared).and_then(|it| text(it, "/version"));
        let signer = revision.and_then(|it| it.pointer("/status/signers")?.get(name)?.as_str());
        let owned = |text: &str| text.to_owned();
        Self {
            name: name.to_owned(),
            digest: digest.to_owned(),
            version: version.map(owned),
            signer: signer.map(owned),
            revision: revision
                .and_then(|it| text(it, "/metadata/name"))
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

    /// A revision with a version of `stamp`, as old as its number.
    fn revision(number: u64, stage: &str, digest: &str) -> Value {
        json!({
            "metadata": {"name": format!("rev-{number}"), "creationTimestamp": format!("2026-01-01T00:0{number}:00Z")},
            "spec": {"number": number, "plugins": [
                {"name": "stamp", "digest": format!("sha256:{digest}"), "version": "2.0.0"}, {"name": "torch"},
            ]},
            "status": {"stage": stage, "signers": {"stamp": "acme"}},
        })
    }

    #[test]
    fn revision_is_the_one_that_the_job_set_was_rendered_with() {
        const SAME: &str = "ff36a9d77be90000";
        let written = |time: &str| {
            json!({"metadata": {
                "annotations": {RENDERED_WITH_ANNOTATION: "stamp@ff36a9d77be9,mpi@0123456789ab"},
                "managedFields": [{"manager": MANAGER, "time": time}, {"manager": "jobset", "time": "2027-01-01T00:00:00Z"}],
            }})
        };
        let all = [
            revision(2, "Previous", "00000000"),
            revision(3, "Previous", SAME),
            revision(4, "RolledBack", SAME),
            revision(6, "Superseded", SAME),
            revision(7, "Running", SAME),
        ];
        for (time, of) in [
            ("2026-01-01T00:02:30Z", None),
            ("2026-01-01T00:03:00Z", Some("rev-3")),
            ("2026-01-01T00:06:30Z", Some("rev-4")),
            ("2026-01-01T00:07:30Z", Some("rev-7")),
        ] {
            let used = used(Some(&written(time)), None, &all);
            let lines: Vec<_> = used.iter().map(UsedPlugin::line).collect();
            let more = of.map(|of| format!(", version 2.0.0, signed by acme, of {of}"));
            let stamp = format!("stamp@ff36a9d77be9{}", more.unwrap_or_default());
            // What is built in is that of the controller.
            assert_eq!(lines, [stamp, "mpi@0123456789ab".to_owned()], "{time}");
        }
        assert_eq!(used(None, None, &all), []);
        // It has started, and was suspended much later.
        let mut started = written("2026-01-01T00:07:30Z");
        started["metadata"]["annotations"][STARTED_ANNOTATION] = json!("true");
        let plan = json!({"plugins": [
            {"name": "stamp", "version": "2.0.0", "digest": format!("sha256:{SAME}")},
            {"name": "mpi", "version": "0.1.0", "digest": "sha256:0123456789abcdef"},
        ]});
        let mut snapshot = written("2026-01-01T00:03:00Z");
        snapshot["data"] = json!({"plan": plan.to_string()});
        let used = used(Some(&started), Some(&snapshot), &all);
        let lines: Vec<_> = used.iter().map(UsedPlugin::line).collect();
        assert_eq!(
            lines,
            [
                "stamp@ff36a9d77be9, version 2.0.0, signed by acme, of rev-3",
                "mpi@0123456789ab, version 0.1.0",
            ]
        );
    }
}
