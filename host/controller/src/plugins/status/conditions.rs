//! The conditions of a PolicyPlugin.

use k8s_openapi::jiff::Timestamp;
use trainyard_config::policy_plugin::{Condition, ConditionStatus, Origin, Stage};
use trainyard_model::text::clean_to;

use super::{KnownRevision, PausedPlugin, Plugin, StatusFacts};
use crate::plugins::{
    PluginCondition, Problem,
    difference::is_same,
    objects::PolicyPluginState,
    rollout::{PROGRESSES, RevisionFacts},
    written,
};

/// The most characters of a message.
const MESSAGE: usize = 4_096;

/// Returns the conditions of the PolicyPlugin of this name.
pub(super) fn conditions(
    name: &str,
    state: &PolicyPluginState,
    facts: &StatusFacts<'_>,
) -> Vec<Condition> {
    let generation = facts.proposed.plugin(name).generation;
    let conditions = PluginCondition::ALL.into_iter().map(|kind| {
        let (status, reason, message) = match kind {
            PluginCondition::Active => active(name, facts),
            PluginCondition::Paused => paused(name, facts),
            other => found(other, name, facts),
        };
        let known = state.status.conditions.iter();
        let known = known.into_iter().find(|it| it.kind == kind.name());
        let since = known.filter(|known| known.status == status);
        Condition {
            kind: kind.name().to_owned(),
            status,
            reason,
            message: clean_to(&message, MESSAGE),
            last_transition_time: since.map_or_else(
                || written(facts.now),
                |known| known.last_transition_time.clone(),
            ),
            observed_generation: generation,
        }
    });
    conditions.collect()
}

/// The reason if a built-in plugin is used, because it is as new as the one of the PolicyPlugin.
const BUILT_IN_IS_NEWER: &str = "BuiltInIsNewer";

type Found = (ConditionStatus, String, String);

fn of(status: ConditionStatus, reason: &str, message: impl Into<String>) -> Found {
    (status, reason.to_owned(), message.into())
}

/// Returns a condition that follows from resolving and loading the plugin.
fn found(kind: PluginCondition, name: &str, facts: &StatusFacts<'_>) -> Found {
    let (all, proposed) = (facts.proposed, facts.proposed.plugin(name));
    if let Some(problem) = &proposed.problem {
        let Problem {
            condition,
            reason,
            message,
        } = problem;
        if *condition == kind {
            let status = match kind {
                PluginCondition::Conflicting => ConditionStatus::True,
                _ => ConditionStatus::False,
            };
            return of(status, reason, message.as_str());
        }
        if (kind, *condition) == (PluginCondition::Pulled, PluginCondition::Verified) {
            return of(
                ConditionStatus::Unknown,
                "NotReached",
                "the condition Verified comes first: its content is fetched after its signature is verified",
            );
        }
        // What comes before it holds.
        if kind > *condition {
            return of(
                ConditionStatus::Unknown,
                "NotReached",
                format!("the condition {condition} comes first"),
            );
        }
    }
    if let Some(message) = &proposed.waiting {
        let message = format!("{message}; it is tried again");
        return match kind {
            PluginCondition::Pulled => of(ConditionStatus::False, "Retrying", message),
            _ => of(
                ConditionStatus::Unknown,
                "NotReached",
                "the condition Pulled comes first",
            ),
        };
    }
    let is_built_in = matches!(
        proposed.resolved.as_ref().map(|plugin| &plugin.origin),
        Some(Origin::BuiltIn(_))
    );
    let others_fail = !all.is_loaded && (all.has_problems() || all.lacks_content());
    let newest = Plugin::of(name, facts).newest;
    match kind {
        PluginCondition::Pulled if is_built_in => of(
            ConditionStatus::True,
            "BuiltIn",
            "it is part of the controller",
        ),
        PluginCondition::Pulled => match &proposed.note {
            Some(note) => of(ConditionStatus::True, "NotFollowed", note.as_str()),
            None => of(
                ConditionStatus::True,
                "Pulled",
                "its content has the digest of the status",
            ),
        },
        PluginCondition::Verified if is_built_in => of(
            ConditionStatus::True,
            "BuiltIn",
            "it is part of the controller",
        ),
        PluginCondition::Verified => match &proposed.signer {
            Some(signer) => of(
                ConditionStatus::True,
                "Signed",
                format!("signed by {signer}"),
            ),
            None => of(
                ConditionStatus::True,
                "Accepted",
                "the controller's configuration accepts it without a signature",
            ),
        },
        PluginCondition::Loaded if let Some(why) = &proposed.built_in => {
            of(ConditionStatus::False, BUILT_IN_IS_NEWER, why.as_str())
        }
        // The set was not loaded.
        _ if others_fail && newest.is_none() => of(
            ConditionStatus::Unknown,
            "OthersFail",
            "all PolicyPlugins are loaded together, and another one has a problem; see its conditions",
        ),
        PluginCondition::Loaded => loaded(newest.map(|(revision, _)| revision), name),
        // Nobody has asked about the permissions of the plugin that is not used.
        PluginCondition::Permitted if is_built_in || proposed.built_in.is_some() => of(
            ConditionStatus::True,
            "BuiltIn",
            "the role of the controller has its permissions",
        ),
        PluginCondition::Permitted => of(
            ConditionStatus::True,
            "Permitted",
            "the controller had the permissions for what it looks up and emits when its PluginRevision was created",
        ),
        _ => of(
            ConditionStatus::False,
            "NoConflict",
            "it does not conflict with another plugin",
        ),
    }
}

/// Returns the condition of a plugin that is loaded, with the warnings about it.
fn loaded(newest: Option<&KnownRevision>, name: &str) -> Found {
    const LOADED: &str = "it is loaded with the settings of this object";
    let warnings = newest.and_then(|revision| revision.loaded.as_ref()?.warnings.get(name));
    match warnings {
        None => of(ConditionStatus::True, "Loaded", LOADED),
        Some(warnings) => of(
            ConditionStatus::True,
            "LoadedWithWarnings",
            format!("{LOADED}, but: {}", warnings.join("; ")),
        ),
    }
}

/// Returns whether the plugin is paused for all namespaces. It has no content of TrainJobs, because everyone who may read PolicyPlugins sees it.
fn paused(name: &str, facts: &StatusFacts<'_>) -> Found {
    let Some(PausedPlugin { id, phase, failing }) = facts.paused.get(name) else {
        return of(
            ConditionStatus::False,
            "NotPaused",
            "its calls do not fail in all namespaces",
        );
    };
    let since = Timestamp::try_from(failing.since).map_or_else(|_| String::new(), written);
    let last = failing.last.as_ref();
    let (kind, words) = last.map_or(("unknown", ""), |last| (last.kind, &last.words));
    of(
        ConditionStatus::True,
        "FailsEverywhere",
        format!(
            "since {since}, calls of {id} in {phase} have failed in {} namespaces and succeeded in none; the last one ({kind}): {words}; each namespace is tried again after 30 s to 5 minutes, and the first call that succeeds ends the pause; correct the plugin, its config or its limits, disable it, or set the annotation trainyard.dev/retry to another value to call it again now",
            failing.namespaces
        ),
    )
}

/// Returns whether the plugin is used as its PolicyPlugin says, and if not, why.
fn active(name: &str, facts: &StatusFacts<'_>) -> Found {
    let Plugin { newest, running } = Plugin::of(name, facts);
    let keeps = match running {
        Some((revision, plugin)) => format!(
            "PluginRevision {} keeps running with {}",
            revision.facts.name,
            plugin.version.as_ref().map_or_else(
                || "its earlier settings".to_owned(),
                |version| format!("version {version} of it"),
            )
        ),
        None => "no PluginRevision that runs has it".to_owned(),
    };
    let proposed = facts.proposed.plugin(name);
    if let Some(problem) = &proposed.problem {
        return of(
            ConditionStatus::False,
            &problem.reason,
            format!("see the condition {}; {keeps}", problem.condition),
        );
    }
    if proposed.waiting.is_some() {
        return of(
            ConditionStatus::False,
            "Retrying",
            format!("see the condition Pulled; {keeps}"),
        );
    }
    if newest.is_none() && facts.proposed.not_created {
        return of(
            ConditionStatus::False,
            "NotCreated",
            format!(
                "a PluginRevision cannot be created, and is tried again; see the log of the controller, and give it the permissions that `trainyard rbac --plugins-source=Cluster` prints; {keeps}"
            ),
        );
    }
    let others_fail = facts.proposed.has_problems() || facts.proposed.lacks_content();
    if newest.is_none() && !others_fail {
        return of(
            ConditionStatus::False,
            "NoRevision",
            format!(
                "no PluginRevision has it, because it is about to be created, or was deleted and is about to be created again; {keeps}"
            ),
        );
    }
    let Some((revision, plugin)) = newest else {
        return of(
            ConditionStatus::False,
            "OthersFail",
            format!("another PolicyPlugin has a problem; {keeps}"),
        );
    };
    let is_running = running.is_some_and(|(_, running)| is_same(running, plugin));
    if is_running && plugin.settings.disabled {
        return of(ConditionStatus::False, "Disabled", "spec.disabled is true");
    }
    let loaded = revision.loaded.as_ref();
    if is_running && let Some(why) = loaded.and_then(|it| it.left_out(name)) {
        let why = format!("{why}; turn it on, or delete the PolicyPlugin");
        return of(ConditionStatus::False, "GateOff", why);
    }
    if is_running && proposed.built_in.is_some() {
        return of(
            ConditionStatus::False,
            BUILT_IN_IS_NEWER,
            "see the condition Loaded; TrainJobs that have not started are rendered with the built-in plugin",
        );
    }
    if is_running {
        return of(
            ConditionStatus::True,
            "Running",
            "TrainJobs that have not started are rendered with it",
        );
    }
    let RevisionFacts {
        name,
        stage,
        percent,
        reason,
        ..
    } = &revision.facts;
    let status = revision.state.status.as_ref();
    let message = status.map_or("", |status| &status.message);
    match stage {
        None => of(
            ConditionStatus::False,
            "RollingOut",
            format!("PluginRevision {name} is about to be rolled out; {keeps}"),
        ),
        Some(Stage::Share) if *reason == PROGRESSES => of(
            ConditionStatus::False,
            "RollingOut",
            format!(
                "PluginRevision {name} has {percent} % of the namespaces; {keeps} for the others"
            ),
        ),
        Some(Stage::Share) => of(
            ConditionStatus::False,
            reason,
            format!("PluginRevision {name}: {message}; {keeps} for the others"),
        ),
        Some(Stage::Shadow) => of(
            ConditionStatus::False,
            reason,
            format!("PluginRevision {name}: {message}; {keeps}"),
        ),
        Some(stage @ (Stage::RolledBack | Stage::Refused)) => of(
            ConditionStatus::False,
            &format!("{stage:?}"),
            format!(
                "PluginRevision {name}: {message}; to try it again, run `kubectl annotate pluginrevision {name} trainyard.dev/retry= --overwrite`; {keeps}"
            ),
        ),
        Some(stage) => of(
            ConditionStatus::False,
            &format!("{stage:?}"),
            format!("PluginRevision {name}: {message}; {keeps}"),
        ),
    }
}
