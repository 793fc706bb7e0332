//! What is told about revisions, in the log and by Events.

use std::collections::HashSet;

use trainyard_config::policy_plugin::{
    ConditionStatus, PluginRevisionSpec, PolicyPluginStatus, Stage,
};

use super::{
    Leader, ObjectName, PluginCondition,
    difference::changed,
    objects::{PolicyPluginState, RevisionState},
    rollout::{COMPARES, NewStage, PROGRESSES, RESTORED, RevisionFacts, UNCOMPARED, running},
};

/// What Events say that the controller was doing.
const ACTION: &str = "RollingOut";
const CALLING: &str = "CallingPlugins";

impl Leader {
    /// Tells about a new stage: in the log, and by Events about the revision and the PolicyPlugins that it changes.
    pub(super) fn tell(
        &self,
        (name, state, spec): (&str, &RevisionState, &PluginRevisionSpec),
        new: &NewStage,
        facts: &[RevisionFacts],
        plan: Option<&str>,
    ) {
        let plugins = &self.plugins;
        let others = facts.iter().filter(|it| it.number != new.number);
        let others: Vec<_> = others.cloned().collect();
        let before = running(&others).and_then(|running| self.named(running));
        let plugins_changed = changed(before.as_ref().map(|(_, spec)| &**spec), spec);
        let before = before.and_then(|(state, _)| state.status.as_ref()?.plan.clone());
        let (plan, before) = (
            plan.unwrap_or("unknown"),
            before.unwrap_or_else(|| "none".to_owned()),
        );
        tracing::info!(
            revision = name,
            stage = ?new.stage,
            percent = new.percent,
            reason = new.reason,
            message = new.message,
            plan,
            plan_of_running = before,
            plugins = plugins_changed.join(", "),
            "a PluginRevision has a new stage"
        );
        let share = match new.stage {
            Stage::Share => format!(" of {} % of the namespaces", new.percent),
            _ => String::new(),
        };
        let sentence = format!(
            "PluginRevision {name} is at the stage {:?}{share} ({}): {}; plan {plan} (before: {before}); changes {}",
            new.stage,
            new.reason,
            new.message,
            if plugins_changed.is_empty() {
                "no plugin".to_owned()
            } else {
                plugins_changed.join(", ")
            },
        );
        let reason = format!("Revision{:?}", new.stage);
        let is_bad = match new.stage {
            Stage::Refused | Stage::RolledBack => true,
            Stage::Shadow => new.reason != COMPARES,
            Stage::Share => new.reason != PROGRESSES,
            Stage::Running => [RESTORED, UNCOMPARED].contains(&new.reason),
            _ => false,
        };
        let recorder = &plugins.parts.recorder;
        let record = |object: &_| match is_bad {
            true => recorder.warn(object, &reason, ACTION, &[&sentence]),
            false => recorder.note(object, &reason, ACTION, &[&sentence]),
        };
        record(&state.reference(name));
        for name in &plugins_changed {
            if let Some(policy) = plugins.policies.get(&ObjectName(name.as_str().into())) {
                record(&policy.reference(name));
            }
        }
    }

    /// Reports by an Event that a plugin is paused for all namespaces, or no longer. Returns whether it is no longer.
    pub(super) fn tell_of_pause(
        &self,
        name: &str,
        state: &PolicyPluginState,
        after: &PolicyPluginStatus,
    ) -> bool {
        let paused = |status: &PolicyPluginStatus| {
            let mut conditions = status.conditions.iter();
            let found = conditions.find(|it| it.kind == PluginCondition::Paused.name());
            let paused = found.filter(|it| it.status == ConditionStatus::True);
            paused.map(|it| it.message.clone())
        };
        let (object, recorder) = (state.reference(name), &self.plugins.parts.recorder);
        match (paused(&state.status), paused(after)) {
            (None, Some(message)) => recorder.warn(&object, "PluginPaused", CALLING, &[message]),
            (Some(_), None) => {
                let message = "its calls no longer fail in all namespaces, so it is called again";
                recorder.note(&object, "PluginResumed", CALLING, &[message]);
                return true;
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
        false
    }

    /// Warns of revisions that nobody but a controller can have written, and that none has.
    pub(super) fn warn_of_forged(&self, known: &mut HashSet<Box<str>>) {
        for (name, state) in self.plugins.revisions.objects() {
            let Err(problem) = &state.spec else {
                continue;
            };
            if problem.is_newer || !known.insert(state.uid.clone()) {
                continue;
            }
            tracing::warn!(problem = &*problem.message, "a PluginRevision is ignored");
            let reference = state.reference(&name.0);
            let recorder = &self.plugins.parts.recorder;
            recorder.warn(&reference, "RevisionIgnored", ACTION, &[&*problem.message]);
        }
    }
}
