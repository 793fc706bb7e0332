//! The condition `Active` of a PolicyPlugin.

use trainyard_config::policy_plugin::{ConditionStatus, Stage};

use super::{
    KnownRevision, StatusFacts,
    account::{Account, InRevision, Use},
    found::{BUILT_IN_IS_NEWER, DISABLED, Found, GATE_OFF, IS_DISABLED, SKIPPED, of},
};
use crate::plugins::{
    difference::is_same,
    rollout::{PROGRESSES, RevisionFacts, is_live},
};

/// Returns whether the plugin is used as its PolicyPlugin says, and if not, why.
pub(super) fn active(account: &Account<'_>, facts: &StatusFacts<'_>) -> Found {
    let Account {
        proposed,
        problem,
        wanted,
        running,
    } = account;
    let keeps = running.map_or_else(
        || "no PluginRevision that runs has it".to_owned(),
        |running| running.keeps_running(),
    );
    let is_unavailable = proposed.unavailable.is_some();
    if is_unavailable && proposed.resolved.is_none() {
        return of(ConditionStatus::False, DISABLED, IS_DISABLED);
    }
    if let Some(problem) = problem.as_ref().filter(|_| !is_unavailable) {
        return of(
            ConditionStatus::False,
            &problem.reason,
            format!("see the condition {}; {keeps}", problem.condition),
        );
    }
    if wanted.is_none() && facts.proposed.not_created {
        return of(
            ConditionStatus::False,
            "NotCreated",
            format!(
                "a PluginRevision cannot be created, and is tried again; see the log of the controller, and give it the permissions that `trainyard rbac --plugins-source=Cluster` prints; {keeps}"
            ),
        );
    }
    let others_fail = facts.proposed.is_stopped();
    if wanted.is_none() && !others_fail {
        return of(
            ConditionStatus::False,
            "NoRevision",
            format!(
                "no PluginRevision has it, because it is about to be created, or was deleted and is about to be created again; {keeps}"
            ),
        );
    }
    let others_fail_and = || {
        let message = format!("another PolicyPlugin has a problem; {keeps}");
        of(ConditionStatus::False, "OthersFail", message)
    };
    let Some(InRevision { revision, plugin }) = wanted else {
        return others_fail_and();
    };
    if let Some(running) = running
        && is_same(running.plugin, plugin)
    {
        let other = facts.revisions.iter().rev().find(|it| {
            let mut plugins = it.spec.plugins.iter();
            it.facts.stage == Some(Stage::Share) && !plugins.any(|it| is_same(it, plugin))
        });
        let Some(other) = other else {
            return used(running, proposed.built_in.is_some());
        };
        let RevisionFacts { name, percent, .. } = &other.facts;
        let message = format!(
            "PluginRevision {name}, which has {percent} % of the namespaces, has it otherwise; {keeps} for the others"
        );
        return of(ConditionStatus::False, "RollingOut", message);
    }
    // No further revision is made meanwhile.
    if others_fail && !is_live(revision.facts.stage) {
        return others_fail_and();
    }
    at_stage(revision, &keeps)
}

/// Returns why a revision that does not run is not used, by its stage.
fn at_stage(revision: &KnownRevision, keeps: &str) -> Found {
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
        // The message of a roll-back says how to try it again.
        Some(stage @ Stage::Refused) => of(
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

/// Returns whether a plugin is used that the running revision has as its PolicyPlugin says.
fn used(running: &InRevision<'_>, is_built_in_newer: bool) -> Found {
    let name = &running.revision.facts.name;
    let skipped = |why: &str| {
        format!("PluginRevision {name} runs without it, and TrainJobs that need it wait: {why}")
    };
    match running.usage() {
        Use::Disabled => of(ConditionStatus::False, DISABLED, IS_DISABLED),
        Use::BuiltIn => built_in_is_used(),
        _ if is_built_in_newer => built_in_is_used(),
        Use::Skipped(why) => of(ConditionStatus::False, SKIPPED, skipped(why)),
        Use::GateOff(why) => of(
            ConditionStatus::False,
            GATE_OFF,
            format!(
                "PluginRevision {name} runs without it: {why}; turn it on, or delete the PolicyPlugin"
            ),
        ),
        Use::NotLoaded => of(
            ConditionStatus::False,
            "NotLoaded",
            format!("the leader has not loaded PluginRevision {name} yet"),
        ),
        Use::Used(_) => of(
            ConditionStatus::True,
            "Running",
            "TrainJobs that have not started are rendered with it",
        ),
    }
}

fn built_in_is_used() -> Found {
    of(
        ConditionStatus::False,
        BUILT_IN_IS_NEWER,
        "see the condition Loaded; TrainJobs that have not started are rendered with the built-in plugin",
    )
}
