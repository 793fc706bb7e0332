//! The operator's settings that a started TrainJob is pinned to.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Settings;
use crate::{claims::Grants, digest::canonical_digest, record::ObeyedDomains};

/// The operator's settings for a plugin, for comparison with later ones.
///
/// It is stored in a ConfigMap in the TrainJob's namespace, so it has digests: users can see that the operator's settings changed, but
/// not what they are. Limits are plain numbers, so a limit that only one of two releases has does not count as a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PinnedSettings {
    /// The digest of the grants, in any order.
    pub grants: String,
    /// The limits by name.
    pub limits: BTreeMap<String, u64>,
    /// The digest of the operator's configuration, with the defaults of its schema.
    pub operator_config: String,
    /// The digest of `after` and `before` in PolicyPlugins.
    pub order: String,
}

impl PinnedSettings {
    /// Returns the settings of a loaded plugin, with the complete operator configuration, and with the domains that affect it.
    #[must_use]
    pub(super) fn of(settings: &Settings, obeyed: Option<&ObeyedDomains>) -> Self {
        let sorted = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
        Self {
            grants: canonical_digest(&grants(&settings.grants, obeyed)),
            limits: limits(settings),
            operator_config: canonical_digest(&settings.operator_config),
            order: canonical_digest(&json!([sorted(&settings.after), sorted(&settings.before)])),
        }
    }

    /// The parts in which later settings differ, for messages.
    #[must_use]
    pub fn changes(&self, now: &Self) -> Vec<&'static str> {
        let mut limits = self.limits.iter();
        let changed = [
            (self.grants != now.grants, "grants"),
            (
                limits.any(|(name, limit)| now.limits.get(name).is_some_and(|now| now != limit)),
                "limits",
            ),
            (
                self.operator_config != now.operator_config,
                "operator configuration",
            ),
            (self.order != now.order, "declared order"),
        ];
        let changed = changed.into_iter().filter(|(changed, _)| *changed);
        changed.map(|(_, part)| part).collect()
    }
}

fn grants(grants: &Grants, obeyed: Option<&ObeyedDomains>) -> Value {
    let granted = match grants {
        Grants::AsClaimed => return json!("as claimed"),
        Grants::Paths(paths) => paths.iter().map(ToString::to_string),
    };
    let granted: BTreeSet<_> = granted.collect();
    // The shipped list may grow in a release, which does not change what the operator granted.
    let domains = |obeyed: &ObeyedDomains| -> BTreeSet<String> {
        obeyed.domains().map(str::to_owned).collect()
    };
    match obeyed.map(domains) {
        Some(obeyed) if obeyed != domains(&ObeyedDomains::default()) => json!([granted, obeyed]),
        _ => json!(granted),
    }
}

fn limits(settings: &Settings) -> BTreeMap<String, u64> {
    let limits = json!(settings.limits);
    let limits = limits.as_object().into_iter().flatten();
    let number = |(name, limit): (&String, &Value)| Some((name.clone(), limit.as_u64()?));
    limits.filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use super::*;
    use crate::{claims::ClaimPath, limits::Limits};

    fn granted(paths: &[&str]) -> Settings {
        let paths = paths.iter().map(|path| path.parse::<ClaimPath>().unwrap());
        Settings {
            grants: Grants::Paths(paths.collect()),
            ..Settings::default()
        }
    }

    fn pinned(settings: &Settings) -> PinnedSettings {
        PinnedSettings::of(settings, Some(&settings.obeyed))
    }

    fn changes(then: &Settings, now: &Settings) -> Vec<&'static str> {
        pinned(then).changes(&pinned(now))
    }

    #[test]
    fn each_part_that_changed_is_named() {
        let then = Settings::default();
        assert_eq!(changes(&then, &Settings::built_in()), ["grants"]);
        assert_eq!(changes(&then, &granted(&["labels[a]"])), ["grants"]);
        let now = Settings {
            limits: Limits {
                fuel: 1,
                ..Limits::default()
            },
            operator_config: Arc::new(json!({"a": 1})),
            before: vec!["b".to_owned()],
            ..Settings::default()
        };
        assert_eq!(
            changes(&then, &now),
            ["limits", "operator configuration", "declared order"]
        );
        assert_eq!(changes(&now, &now), [""; 0]);
    }

    #[test]
    fn another_writing_of_the_same_settings_is_no_change() {
        let (one, other) = (
            ["labels[a]", "labels[b]"],
            ["labels[b]", "labels[a]", "labels[a]"],
        );
        assert_eq!(changes(&granted(&one), &granted(&other)), [""; 0]);
        let config = |text: &str| Settings {
            operator_config: Arc::new(serde_json::from_str(text).unwrap()),
            ..Settings::default()
        };
        let (one, other) = (
            config(r#"{"a": {"c": 1, "b": [2]}}"#),
            config(r#"{"a": {"b": [2], "c": 1}}"#),
        );
        assert_eq!(changes(&one, &other), [""; 0]);
    }

    #[test]
    fn a_limit_that_one_release_does_not_know_is_no_change() {
        let now = pinned(&Settings::default());
        let mut then = now.clone();
        then.limits.remove("logLines").unwrap();
        then.limits.insert("ofALaterRelease".to_owned(), 1);
        assert_eq!(then.changes(&now), [""; 0]);
        then.limits.insert("fuel".to_owned(), 1);
        assert_eq!(then.changes(&now), ["limits"]);
    }

    #[test]
    fn what_the_operator_set_can_not_be_read_in_it() {
        let settings = Settings {
            operator_config: Arc::new(json!({"endpoint": "internal.example.com"})),
            ..granted(&["labels[secret-project]"])
        };
        let text = json!(pinned(&settings)).to_string();
        assert!(!text.contains("internal") && !text.contains("secret-project"));
    }
}
