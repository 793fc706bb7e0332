//! The plugins that the JobSet of a TrainJob was rendered with.

use serde::Serialize;
use serde_json::Value;
use trainyard_api::names::RENDERED_WITH_ANNOTATION;

use crate::live_objects::{annotation, text};

/// A plugin, with what its PolicyPlugin says of it if that still has the same content.
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
    /// The PluginRevision that has it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
}

/// Whether a JobSet notes its plugins.
pub(super) fn are_noted(job_set: &Value) -> bool {
    annotation(job_set, RENDERED_WITH_ANNOTATION).is_some()
}

/// Returns the plugins of a JobSet.
pub(super) fn used(job_set: Option<&Value>, policies: &[Value]) -> Vec<UsedPlugin> {
    let noted = job_set.and_then(|job_set| annotation(job_set, RENDERED_WITH_ANNOTATION));
    let each = noted.unwrap_or_default().split(',');
    let each = each.filter_map(|plugin| plugin.split_once('@'));
    each.map(|(name, digest)| UsedPlugin::of(name, digest, policies))
        .collect()
}

impl UsedPlugin {
    fn of(name: &str, digest: &str, policies: &[Value]) -> Self {
        let is_it = |policy: &&Value| {
            let found = text(policy, "/status/digest");
            let found = found.map(|found| found.trim_start_matches("sha256:"));
            text(policy, "/metadata/name") == Some(name)
                && found.is_some_and(|found| found.starts_with(digest))
        };
        let policy = policies.iter().find(is_it);
        let own = |field| Some(text(policy?, field)?.to_owned());
        Self {
            name: name.to_owned(),
            digest: digest.to_owned(),
            version: own("/status/version"),
            signer: own("/status/signer"),
            revision: own("/status/revision"),
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
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn policy_plugins_tell_signers_of_the_same_content_alone() {
        let job_set = json!({"metadata": {"annotations": {RENDERED_WITH_ANNOTATION: "stamp@ff36a9d77be9,torch@0123456789ab"}}});
        let policy = |digest: &str| {
            json!({"metadata": {"name": "stamp"}, "status": {
                "digest": format!("sha256:{digest}"), "version": "2.0.0", "signer": "acme", "revision": "rev-2-ab",
            }})
        };
        let lines = |policies: &[Value]| {
            let used = used(Some(&job_set), policies);
            used.iter().map(UsedPlugin::line).collect::<Vec<_>>()
        };
        assert_eq!(
            lines(&[policy("ff36a9d77be90000")]),
            [
                "stamp@ff36a9d77be9, version 2.0.0, signed by acme, of rev-2-ab",
                "torch@0123456789ab",
            ]
        );
        assert_eq!(
            lines(&[policy("00000000")]),
            ["stamp@ff36a9d77be9", "torch@0123456789ab"]
        );
        assert_eq!(used(None, &[]), []);
    }
}
