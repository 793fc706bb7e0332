//! The conditions of a PolicyPlugin.

use k8s_openapi::jiff::Timestamp;
use trainyard_config::policy_plugin::{Condition, ConditionStatus, Origin, ResolvedPlugin, Stage};
use trainyard_model::text::clean_to;

use super::{
    PausedPlugin, StatusFacts,
    account::{Account, Use},
    active::active,
    found::{BUILT_IN_IS_NEWER, DISABLED, Found, GATE_OFF, IS_DISABLED, SKIPPED, of},
};
use crate::plugins::{PluginCondition, Problem, Verified, objects::PolicyPluginState, written};

/// The most characters of a message.
const MESSAGE: usize = 4_096;

/// Returns the conditions of the PolicyPlugin of this name.
pub(super) fn conditions(
    name: &str,
    state: &PolicyPluginState,
    account: &Account<'_>,
    facts: &StatusFacts<'_>,
) -> Vec<Condition> {
    let conditions = PluginCondition::ALL.into_iter().map(|kind| {
        let (status, reason, message) = match kind {
            PluginCondition::Active => active(account, facts),
            PluginCondition::Paused => paused(name, facts),
            other => found(other, account, facts),
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
            observed_generation: account.proposed.generation,
        }
    });
    conditions.collect()
}

/// Returns a condition that follows from resolving and loading the plugin.
fn found(kind: PluginCondition, account: &Account<'_>, facts: &StatusFacts<'_>) -> Found {
    let Account {
        proposed, problem, ..
    } = account;
    if let Some(Problem {
        condition,
        reason,
        message,
    }) = problem
    {
        if *condition == kind {
            let status = match kind {
                PluginCondition::Conflicting => ConditionStatus::True,
                _ => ConditionStatus::False,
            };
            return of(status, reason, message.as_str());
        }
        // The content is fetched after its signature is verified. What comes before the problem is known if the plugin was resolved. One that
        // is disabled was not.
        let comes_before = kind < *condition && *condition != PluginCondition::Verified;
        let is_resolved = proposed.resolved.is_some() && proposed.unavailable.is_none();
        if !comes_before || !is_resolved {
            return not_reached(*condition);
        }
    }
    let is_built_in = matches!(
        proposed.resolved.as_ref().map(|plugin| &plugin.origin),
        Some(Origin::BuiltIn(_))
    );
    match kind {
        PluginCondition::Pulled | PluginCondition::Verified if is_built_in => of(
            ConditionStatus::True,
            "BuiltIn",
            "it is part of the controller",
        ),
        PluginCondition::Pulled => pulled(account),
        PluginCondition::Verified => verified(account),
        PluginCondition::Loaded => loaded(account, facts),
        // Nobody has asked about the permissions of the plugin that is not used.
        PluginCondition::Permitted if is_built_in || proposed.built_in.is_some() => of(
            ConditionStatus::True,
            "BuiltIn",
            "the role of the controller has its permissions",
        ),
        // The rest is found out about a loaded plugin only.
        _ => match (loaded(account, facts), kind) {
            (unknown @ (ConditionStatus::Unknown, ..), _) => unknown,
            ((ConditionStatus::False, ..), _) if proposed.built_in.is_none() => {
                not_reached(PluginCondition::Loaded)
            }
            (_, PluginCondition::Permitted) => of(
                ConditionStatus::True,
                "Permitted",
                "the controller had the permissions for what it looks up and emits when they were checked, before its PluginRevision is created",
            ),
            _ => of(
                ConditionStatus::False,
                "NoConflict",
                "it does not conflict with another plugin",
            ),
        },
    }
}

fn not_reached(condition: PluginCondition) -> Found {
    of(
        ConditionStatus::Unknown,
        "NotReached",
        format!("it is not known; see the condition {condition}"),
    )
}

fn not_used() -> Found {
    of(
        ConditionStatus::Unknown,
        "NotUsed",
        "this content is not used, so it was neither pulled nor verified again",
    )
}

fn pulled(account: &Account<'_>) -> Found {
    match (account.verified(), &account.proposed.note) {
        (Some(_), Some(note)) => of(ConditionStatus::True, "NotFollowed", note.as_str()),
        (None, Some(note)) => of(ConditionStatus::Unknown, "NotFollowed", note.as_str()),
        (None, None) => not_used(),
        (Some(_), None) => of(
            ConditionStatus::True,
            "Pulled",
            "pulled; status.digest is the digest of its file",
        ),
    }
}

fn verified(account: &Account<'_>) -> Found {
    match account.verified() {
        None => not_used(),
        Some(Verified {
            signer: Some(signer),
        }) => of(
            ConditionStatus::True,
            "Signed",
            format!("signed by {signer}"),
        ),
        Some(Verified { signer: None }) => of(
            ConditionStatus::True,
            "Accepted",
            "the controller's configuration accepts it without a signature",
        ),
    }
}

/// Returns whether the plugin is loaded as its PolicyPlugin says, with the warnings about it.
fn loaded(account: &Account<'_>, facts: &StatusFacts<'_>) -> Found {
    const LOADED: &str = "it is loaded with the settings of this object";
    let Account {
        proposed,
        problem,
        wanted,
        ..
    } = account;
    let is_loaded = || of(ConditionStatus::True, "Loaded", LOADED);
    let is_disabled = |it: &ResolvedPlugin| it.settings.disabled;
    if proposed.resolved.as_ref().is_some_and(is_disabled) {
        return of(ConditionStatus::Unknown, DISABLED, IS_DISABLED);
    }
    if let Some(why) = &proposed.built_in {
        return of(ConditionStatus::False, BUILT_IN_IS_NEWER, why.as_str());
    }
    let Some(wanted) = wanted else {
        let all = facts.proposed;
        return match problem {
            _ if all.is_loaded => is_loaded(),
            Some(problem) => not_reached(problem.condition),
            None if all.is_stopped() => of(
                ConditionStatus::Unknown,
                "OthersFail",
                "all PolicyPlugins are loaded together, and another one has a problem; see its conditions",
            ),
            None => not_reached(PluginCondition::Active),
        };
    };
    let revision = &wanted.revision.facts;
    match wanted.usage() {
        Use::Used(loaded) => match loaded.warnings.get(&wanted.plugin.name) {
            None => is_loaded(),
            Some(warnings) => of(
                ConditionStatus::True,
                "LoadedWithWarnings",
                format!("{LOADED}, but: {}", warnings.join("; ")),
            ),
        },
        Use::Disabled => of(ConditionStatus::Unknown, DISABLED, IS_DISABLED),
        Use::BuiltIn => not_reached(PluginCondition::Active),
        Use::Skipped(why) => of(ConditionStatus::False, SKIPPED, why),
        Use::GateOff(why) => of(ConditionStatus::False, GATE_OFF, why),
        Use::NotLoaded if revision.stage == Some(Stage::Refused) => of(
            ConditionStatus::False,
            "Refused",
            "see the condition Active",
        ),
        Use::NotLoaded => of(
            ConditionStatus::True,
            "Loaded",
            format!(
                "it was loaded with the settings of this object before PluginRevision {} was created",
                revision.name
            ),
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
