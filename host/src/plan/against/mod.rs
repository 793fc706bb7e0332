//! `trainyard plan --against` and `--against-policy`: what another version of a plugin, or other PolicyPlugins, would change.

mod jobs;
mod refusal;
mod settings;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Serialize;
use trainyard_model::{
    claims::Grants, names::short_digest, plan::PlanError, plugin_info::PluginInfo,
};

use self::{jobs::JobImpact, refusal::Refusal};
use super::{
    PlanArgs, PlanFormat,
    report::{Clash, Reason, line, names_of},
};
use crate::{
    input,
    load::{LoadedPlugins, NextPlugins},
    output::{self, counted},
    report::ErrorList,
    upgrade::{Change, VersionProblem, changes, version_problem},
};

/// What a change of plugins and of PolicyPlugins would change.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlanImpact {
    /// The plugins that are new, that differ, or that would not be loaded.
    plugins: Vec<PluginImpact>,
    accepted: bool,
    /// The reasons why plugins would be refused.
    problems: Vec<Refusal>,
    orders: BeforeAfter<Vec<Vec<Vec<String>>>>,
    because: AddedRemoved<Reason>,
    possible_clashes: AddedRemoved<Clash>,
    /// The digests of the plan. `None` if there would be no plan.
    digest: BeforeAfter<Option<String>>,
    /// The TrainJobs and runtimes of the input. `None` if there would be no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    train_jobs: Option<Vec<JobImpact>>,
}

/// A plugin that would change.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PluginImpact {
    /// `None` if it would be added.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<PluginSummary>,
    /// `None` if it would not be loaded any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    then: Option<PluginSummary>,
    /// The changes of its manifest. Empty for a plugin that is added or not loaded any more.
    changes: Vec<Change>,
    /// The operator's settings.
    settings: AddedRemoved<String>,
    /// What is wrong with its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<VersionProblem>,
}

/// The identity of a plugin.
#[derive(PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct PluginSummary {
    name: String,
    version: String,
    digest: String,
}

impl PluginSummary {
    fn of(plugin: &PluginInfo) -> Self {
        Self {
            name: plugin.id.name.to_string(),
            version: plugin.id.version.to_string(),
            digest: plugin.id.digest.to_string(),
        }
    }

    fn shown(&self) -> String {
        format!(
            "{} {} ({})",
            self.name,
            self.version,
            short_digest(&self.digest)
        )
    }
}

/// The value now, and after the change.
#[derive(Serialize)]
struct BeforeAfter<T> {
    now: T,
    then: T,
}

/// What is added and what is removed.
#[derive(Serialize)]
struct AddedRemoved<T> {
    added: Vec<T>,
    removed: Vec<T>,
}

impl<T: Ord + Clone> AddedRemoved<T> {
    fn between(now: impl IntoIterator<Item = T>, then: impl IntoIterator<Item = T>) -> Self {
        let now: BTreeSet<T> = now.into_iter().collect();
        let then: BTreeSet<T> = then.into_iter().collect();
        Self {
            added: then.difference(&now).cloned().collect(),
            removed: now.difference(&then).cloned().collect(),
        }
    }

    const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

/// Reports what a new plugin file and new PolicyPlugins would change.
pub(super) fn run(
    args: &PlanArgs,
    file: Option<&Path>,
    policy: &[PathBuf],
) -> Result<(), ErrorList> {
    if matches!(args.output, PlanFormat::Mermaid | PlanFormat::Html) {
        return Err(ErrorList::from_iter([
            "--against and --against-policy print a table or JSON; remove -o, or use -o json",
        ]));
    }
    let has_input = !args.run.input.filename.is_empty();
    let input = has_input.then(|| input::admit(&args.run.input, None));
    let input = input.transpose()?;
    let objects = input.as_ref().map(|input| &*input.policy_plugins);
    let objects = objects.unwrap_or_default();
    let (now, next) = LoadedPlugins::load_now_and_next(&args.run.load, file, policy, objects)?;
    let mut impact = PlanImpact::of(&now, &next);
    let mut failure = ErrorList::default();
    if let Some(input) = input {
        match next.renderer() {
            Some(renderer) => {
                let (jobs, errors) = jobs::compare(&args.run.input, input, &now, &renderer)?;
                impact.train_jobs = Some(jobs);
                failure.absorb(errors);
            }
            None => failure.add(
                "the TrainJobs and runtimes were not compared, because the plugins would have no plan",
            ),
        }
    }
    match args.output {
        PlanFormat::Json => output::json(&impact)?,
        _ => output::lines(impact.lines())?,
    }
    failure.absorb(impact.errors());
    failure.or_ok(())
}

impl PlanImpact {
    fn of(now: &LoadedPlugins, next: &NextPlugins) -> Self {
        let generation = now.renderer.generation();
        let candidate = next.candidate();
        let of_settings = next.refused().flat_map(Refusal::all_of);
        let of_plan = candidate.errors().iter().map(Refusal::from);
        let not_loaded = next.not_loaded.iter().map(|why| Refusal::other(why));
        let problems: Vec<_> = of_settings.chain(of_plan).chain(not_loaded).collect();
        let accepted = problems.is_empty();
        let is_cycle = |error: &PlanError| matches!(error, PlanError::Cycle { .. });
        // Plugins in a cycle have no order.
        let then = if candidate.errors().iter().any(is_cycle) {
            Vec::new()
        } else {
            candidate.overview()
        };
        Self {
            plugins: plugins(generation.plugins(), next),
            accepted,
            problems,
            orders: BeforeAfter {
                now: names_of(&generation.overview()),
                then: names_of(&then),
            },
            because: AddedRemoved::between(
                generation.edges().iter().map(Reason::from),
                candidate.edges().iter().map(Reason::from),
            ),
            possible_clashes: AddedRemoved::between(
                generation.possible_clashes().iter().map(Clash::from),
                candidate.possible_clashes().iter().map(Clash::from),
            ),
            digest: BeforeAfter {
                now: Some(generation.digest(&now.renderer.facts().facts)),
                then: accepted.then(|| candidate.digest(&next.facts().facts)),
            },
            train_jobs: None,
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut out = Vec::new();
        for plugin in &self.plugins {
            plugin.push_lines(&mut out);
        }
        if self.plugins.is_empty() {
            out.push("no plugin would change".to_owned());
        }
        out.push(if self.accepted {
            "would be accepted".to_owned()
        } else {
            "would be refused:".to_owned()
        });
        let problems = self.problems.iter();
        out.extend(problems.map(|problem| format!("  {}", problem.message())));
        let orders = |when: &str, orders: &[Vec<Vec<String>>]| {
            let text = |order: &Vec<Vec<String>>| format!("order {when}: {}", line(order));
            orders.iter().map(text).collect::<Vec<_>>()
        };
        out.extend(orders("now", &self.orders.now));
        if self.orders.then.is_empty() {
            out.push("order then: none, because of the cycle".to_owned());
        } else if self.orders.now == self.orders.then {
            out.push("order then: the same".to_owned());
        } else {
            out.extend(orders("then", &self.orders.then));
        }
        push_differences(&mut out, "order: ", &self.because, |reason| &reason.message);
        push_differences(
            &mut out,
            "possible clash: ",
            &self.possible_clashes,
            |clash| &clash.message,
        );
        for (when, digest) in [("now", &self.digest.now), ("then", &self.digest.then)] {
            out.extend(
                digest
                    .iter()
                    .map(|digest| format!("digest {when}: {digest}")),
            );
        }
        jobs::push_lines(self.train_jobs.as_deref(), &mut out);
        out
    }

    /// Returns why the change should not be made.
    fn errors(&self) -> ErrorList {
        let mut failure = ErrorList::default();
        if !self.accepted {
            let refused = counted(self.problems.len(), "problem");
            failure.add(format!(
                "the plugins would be refused, for {refused}; standard output has the reasons"
            ));
        }
        let jobs = self.train_jobs.iter().flatten();
        let broken = jobs.filter(|job| job.is_broken()).count();
        if broken > 0 {
            let broken = match broken {
                1 => "1 TrainJob or runtime".to_owned(),
                broken => format!("{broken} TrainJobs and runtimes"),
            };
            failure.add(format!(
                "the change breaks {broken} of the input; standard output has the errors"
            ));
        }
        failure
    }
}

/// Returns the plugins that differ between now and then, by name.
fn plugins<'a>(
    now: impl Iterator<Item = &'a Arc<PluginInfo>>,
    next: &'a NextPlugins,
) -> Vec<PluginImpact> {
    let now: Vec<_> = now.collect();
    let then: Vec<_> = next.infos().collect();
    let names = now.iter().chain(&then).map(|plugin| &plugin.id.name);
    let names: BTreeSet<_> = names.collect();
    let of = |all: &[&'a Arc<PluginInfo>], name: &str| {
        all.iter().find(|plugin| *plugin.id.name == *name).copied()
    };
    let impacts = names.into_iter().map(|name| {
        let then = of(&then, name).map(|then| (then, next.grants(then)));
        let now = of(&now, name).map(|now| (now, now.settings.grants.clone()));
        PluginImpact::of(now, then)
    });
    impacts.filter(PluginImpact::is_change).collect()
}

impl PluginImpact {
    /// Compares a plugin now and then, each with the operator's grants.
    fn of(
        now: Option<(&Arc<PluginInfo>, Grants)>,
        then: Option<(&Arc<PluginInfo>, Grants)>,
    ) -> Self {
        let settings = |side: &Option<(&Arc<PluginInfo>, Grants)>| {
            let lines = side
                .as_ref()
                .map(|(plugin, grants)| settings::lines(plugin, grants));
            lines.unwrap_or_default()
        };
        let settings = AddedRemoved::between(settings(&now), settings(&then));
        let (now, then) = (now.map(|(now, _)| now), then.map(|(then, _)| then));
        let changed = now.zip(then);
        let changes = changed.map(|(now, then)| changes(&now.manifest, &then.manifest));
        let changes = changes.unwrap_or_default();
        let is_breaking = changes.iter().any(|change| change.breaks.is_some());
        let version = changed
            .filter(|(now, then)| now.id.digest != then.id.digest)
            .and_then(|(now, then)| {
                version_problem(&now.id.version, &then.id.version, is_breaking)
            });
        Self {
            now: now.map(|now| PluginSummary::of(now)),
            then: then.map(|then| PluginSummary::of(then)),
            changes,
            settings,
            version,
        }
    }

    fn is_change(&self) -> bool {
        self.now != self.then || !self.settings.is_empty()
    }

    fn push_lines(&self, out: &mut Vec<String>) {
        out.push(match (&self.now, &self.then) {
            (Some(now), Some(then)) if now == then => {
                format!("{} would stay, with other settings", now.shown())
            }
            (Some(now), Some(then)) => format!("{} would replace {}", then.shown(), now.shown()),
            (None, Some(then)) => format!("{} would be added", then.shown()),
            (Some(now), None) => format!("{} would not be loaded any more", now.shown()),
            (None, None) => String::new(),
        });
        let changes = self.changes.iter();
        out.extend(changes.map(|change| format!("  {change}")));
        push_differences(out, "  setting: ", &self.settings, |setting| setting);
        let version = self.version.iter();
        out.extend(version.map(|problem| format!("  version: {problem}")));
    }
}

/// Adds a line for each addition (`+`) and removal (`-`).
fn push_differences<T>(
    out: &mut Vec<String>,
    what: &str,
    differences: &AddedRemoved<T>,
    text: impl Fn(&T) -> &String,
) {
    let added = differences.added.iter().map(|one| ("+", one));
    let all = added.chain(differences.removed.iter().map(|one| ("-", one)));
    let (indent, what) = what.split_at(what.len() - what.trim_start().len());
    out.extend(all.map(|(sign, one)| format!("{indent}{sign} {what}{}", text(one))));
}
