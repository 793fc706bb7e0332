//! Metrics of the plugins that the cluster declares.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::label::Label;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabels {
    stage: Label,
    reason: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NotLoadedLabels {
    plugin: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InactiveLabels {
    plugin: Label,
    reason: Label,
}

/// The metrics of revisions.
#[derive(Default)]
pub(super) struct RevisionMetrics {
    stage: Family<StageLabels, Gauge>,
    behind: Gauge,
    not_loaded: Family<NotLoadedLabels, Gauge>,
    inactive: Family<InactiveLabels, Gauge>,
}

impl RevisionMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "trainyard_plugin_revision_stage",
            "1 for the stage of the newest PluginRevision and its reason, in the leader",
            self.stage.clone(),
        );
        registry.register(
            "trainyard_plugin_replicas_behind",
            "Replicas that have not loaded a PluginRevision that is in use, in the leader",
            self.behind.clone(),
        );
        registry.register(
            "trainyard_plugin_not_loaded",
            "1 for each plugin of the running PluginRevision that this process skips",
            self.not_loaded.clone(),
        );
        registry.register(
            "trainyard_policy_plugin_inactive",
            "1 for each PolicyPlugin whose condition Active is false, except for those that are disabled, in the leader",
            self.inactive.clone(),
        );
    }

    pub(super) fn set_stage(&self, stage: Option<(&str, &str)>) {
        self.stage.clear();
        if let Some((stage, reason)) = stage {
            let (stage, reason) = (Label::new(stage), Label::new(reason));
            let labels = StageLabels { stage, reason };
            self.stage.get_or_create(&labels).set(1);
        }
    }

    pub(super) fn set_behind(&self, replicas: usize) {
        self.behind.set(i64::try_from(replicas).unwrap_or(i64::MAX));
    }

    pub(super) fn set_inactive<'p>(&self, plugins: impl Iterator<Item = (&'p str, &'p str)>) {
        self.inactive.clear();
        for (plugin, reason) in plugins {
            let (plugin, reason) = (Label::new(plugin), Label::new(reason));
            self.inactive
                .get_or_create(&InactiveLabels { plugin, reason })
                .set(1);
        }
    }

    pub(super) fn set_not_loaded<'p>(&self, plugins: impl Iterator<Item = &'p str>) {
        self.not_loaded.clear();
        for plugin in plugins {
            let plugin = Label::new(plugin);
            self.not_loaded
                .get_or_create(&NotLoadedLabels { plugin })
                .set(1);
        }
    }
}
