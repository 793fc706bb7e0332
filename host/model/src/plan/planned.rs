//! The plan of a TrainJob: the plugins that rendered it, with their configuration and settings.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::{Line, digest};
use crate::{
    facts::Facts,
    plugin_info::{PinnedSettings, PluginInfo},
};

/// One plugin of a plan, with its complete configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedPlugin {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `sha256:` and the digest of its file.
    pub digest: String,
    /// Its configuration in the runtime, with the defaults of its schema.
    pub config: Value,
    /// The operator's settings. `None` in a plan of an earlier release, which pins no settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<PinnedSettings>,
}

impl PlannedPlugin {
    /// Returns the entry of a loaded plugin with a configuration.
    #[must_use]
    pub fn of(plugin: &PluginInfo, config: &Value) -> Self {
        Self {
            name: plugin.id.name.to_string(),
            version: plugin.id.version.to_string(),
            digest: plugin.id.digest.to_string(),
            config: config.clone(),
            settings: Some(plugin.pinned_settings()),
        }
    }

    /// Its line in the digest.
    fn line(&self) -> Line<'_> {
        Line {
            name: &self.name,
            version: &self.version,
            content: &self.digest,
            config: Some(&self.config),
            settings: self.settings.clone(),
        }
    }

    fn is_the_same_file(&self, now: &Self) -> bool {
        (&self.name, &self.version, &self.digest) == (&now.name, &now.version, &now.digest)
    }

    /// The parts that have changed.
    fn changes(&self, now: &Self) -> Vec<&'static str> {
        let settings = self.settings.as_ref().zip(now.settings.as_ref());
        let mut changes = settings.map_or_else(Vec::new, |(then, now)| then.changes(now));
        if self.config != now.config {
            changes.push("configuration");
        }
        changes
    }
}

/// The plan of a TrainJob.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Its digest, as documented in the digest module. Two TrainJobs with the same digest were rendered in the same way.
    pub digest: String,
    /// The plugins in their order.
    pub plugins: Vec<PlannedPlugin>,
}

impl Plan {
    /// Returns a plan of plugins in that order, with the operator's facts.
    #[must_use]
    pub fn new(plugins: Vec<PlannedPlugin>, facts: &Facts) -> Self {
        let order: Vec<_> = plugins.iter().map(|planned| &*planned.name).collect();
        let lines = plugins.iter().map(PlannedPlugin::line);
        let digest = digest(lines.collect(), facts, [], [order.join(" ")]);
        Self { digest, plugins }
    }

    /// Whether a TrainJob that is pinned to this plan can be rendered with the plan `now`: the same plugins in the same order, with the same
    /// configuration and pinned settings.
    #[must_use]
    pub fn is_kept_by(&self, now: &Self) -> bool {
        self.has_the_files_of(now)
            && self
                .pairs(now)
                .all(|(then, now)| then.changes(now).is_empty())
    }

    fn has_the_files_of(&self, now: &Self) -> bool {
        self.plugins.len() == now.plugins.len()
            && self
                .pairs(now)
                .all(|(then, now)| then.is_the_same_file(now))
    }

    fn pairs<'p>(
        &'p self,
        now: &'p Self,
    ) -> impl Iterator<Item = (&'p PlannedPlugin, &'p PlannedPlugin)> {
        self.plugins.iter().zip(&now.plugins)
    }

    /// Describes how the plan `now` differs from this one.
    #[must_use]
    pub fn change(&self, now: &Self) -> String {
        if !self.has_the_files_of(now) {
            return format!("its plugins are now {}", now.in_words());
        }
        let changed = self.pairs(now).filter_map(|(then, now)| {
            let parts = then.changes(now);
            (!parts.is_empty()).then(|| format!("the {} of `{}`", parts.join(" and "), then.name))
        });
        let changed: Vec<_> = changed.collect();
        if changed.is_empty() {
            "what its plugins looked up, the facts that they read, the accelerators or the cluster domain has changed"
                .to_owned()
        } else {
            format!("these have changed: {}", changed.join(", "))
        }
    }

    /// The plugins, for messages.
    #[must_use]
    pub fn in_words(&self) -> String {
        let named = |plugin: &PlannedPlugin| {
            format!("{} {} ({})", plugin.name, plugin.version, plugin.digest)
        };
        match &*self.plugins {
            [] => "none".to_owned(),
            plugins => plugins.iter().map(named).collect::<Vec<_>>().join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{claims::Grants, limits::Limits, manifest::Manifest, plugin_info::Settings};

    fn planned(name: &str, digest: &str, settings: Settings) -> PlannedPlugin {
        let manifest = json!({
            "name": name, "version": "1.0.0", "contract": "1.0.0", "activeWhen": "always", "phases": ["build"],
            "operatorConfigSchema": {"properties": {"level": {"type": "integer", "default": 1}}},
        });
        let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
        PlannedPlugin::of(
            &PluginInfo::new(manifest, digest, settings).unwrap(),
            &json!({}),
        )
    }

    fn plan(settings: Settings) -> Plan {
        Plan::new(vec![planned("a", "sha256:a", settings)], &Facts::default())
    }

    fn level(level: u8) -> Settings {
        Settings {
            operator_config: Arc::new(json!({ "level": level })),
            ..Settings::default()
        }
    }

    #[test]
    fn a_change_of_the_operators_settings_changes_the_plan() {
        let then = plan(Settings::default());
        let limits = Limits {
            fuel: 7,
            ..Limits::default()
        };
        let table = [
            (Settings::built_in(), "the grants of `a`"),
            (level(2), "the operator configuration of `a`"),
            (
                Settings {
                    grants: Grants::AsClaimed,
                    limits,
                    ..Settings::default()
                },
                "the grants and limits of `a`",
            ),
        ];
        for (settings, words) in table {
            let now = plan(settings);
            assert!(!then.is_kept_by(&now), "{words}");
            assert_ne!(then.digest, now.digest);
            let error = then.change(&now);
            assert!(error.contains(words), "{words}: {error}");
        }
        // The default in words is the default.
        assert!(then.is_kept_by(&plan(level(1))));
    }

    #[test]
    fn another_file_or_order_changes_the_plan() {
        let of = |name, digest| planned(name, digest, Settings::default());
        let then = Plan::new(
            vec![of("a", "sha256:a"), of("b", "sha256:b")],
            &Facts::default(),
        );
        for (now, words) in [
            (vec![], "none"),
            (vec![of("a", "sha256:a")], "a 1.0.0 (sha256:a)"),
            (
                vec![of("b", "sha256:b"), of("a", "sha256:a")],
                "b 1.0.0 (sha256:b), a 1.0.0 (sha256:a)",
            ),
            (
                vec![of("a", "sha256:a"), of("b", "sha256:c")],
                "a 1.0.0 (sha256:a), b 1.0.0 (sha256:c)",
            ),
        ] {
            let now = Plan::new(now, &Facts::default());
            assert!(!then.is_kept_by(&now), "{now:?}");
            let error = then.change(&now);
            assert_eq!(error, format!("its plugins are now {words}"));
        }
    }

    #[test]
    fn a_plan_of_an_earlier_release_pins_no_settings() {
        let now = plan(level(2));
        let mut old = json!(plan(Settings::default()));
        let planned = old.pointer_mut("/plugins/0").unwrap().as_object_mut();
        assert!(planned.unwrap().remove("settings").is_some());
        let old: Plan = serde_json::from_value(old).unwrap();
        assert_eq!(old.plugins.first().unwrap().settings, None);
        assert!(old.is_kept_by(&now));
        assert!(!old.is_kept_by(&Plan::new(vec![planned_elsewhere()], &Facts::default())));
    }

    fn planned_elsewhere() -> PlannedPlugin {
        planned("a", "sha256:other", Settings::default())
    }

    #[test]
    fn what_is_written_is_read() {
        let plan = plan(level(3));
        let read: Plan = serde_json::from_str(&json!(plan).to_string()).unwrap();
        assert_eq!(read, plan);
    }
}
