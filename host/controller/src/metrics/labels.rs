//! The sets of labels of the metrics.

use prometheus_client::encoding::EncodeLabelSet;
use trainyard_model::{names::short_digest, plugin_info::PluginId};

use super::label::Label;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ControllerLabels {
    pub(super) controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ResultLabels {
    pub(super) controller: &'static str,
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct FailureLabels {
    pub(super) kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct KindLabels {
    pub(super) kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct HeldLabels {
    pub(super) kind: &'static str,
    /// Empty if the objects are cluster-scoped.
    pub(super) namespace: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CodeLabels {
    pub(super) code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ReasonLabels {
    pub(super) reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CallLabels {
    pub(super) plugin: Label,
    pub(super) phase: &'static str,
    pub(super) digest: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ErrorLabels {
    pub(super) plugin: Label,
    pub(super) phase: &'static str,
    pub(super) kind: &'static str,
    pub(super) digest: Label,
}

/// A plugin with its digest, shortened as in errors.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct DigestLabels {
    pub(super) plugin: Label,
    pub(super) digest: Label,
}

impl DigestLabels {
    pub(super) fn of(id: &PluginId) -> Self {
        Self {
            plugin: Label::new(&id.name),
            digest: Label::new(short_digest(&id.digest)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PluginLabels {
    pub(super) plugin: Label,
    pub(super) version: Label,
    pub(super) digest: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct NameLabels {
    pub(super) plugin: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PlanLabels {
    pub(super) digest: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct FileLabels {
    pub(super) file: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ApiLabels {
    pub(super) verb: &'static str,
    pub(super) kind: Label,
    pub(super) code: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct QueueLabels {
    pub(super) name: &'static str,
    pub(super) controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WebhookLabels {
    pub(super) webhook: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct VerdictLabels {
    pub(super) webhook: &'static str,
    pub(super) verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ChangeLabels {
    pub(super) change: &'static str,
}
