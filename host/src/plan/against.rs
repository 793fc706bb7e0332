//! `trainyard plan --against`: what adding or replacing a plugin would change.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use serde::Serialize;
use trainyard_model::{
    claims::ClaimError,
    names::short_digest,
    plan::{Candidate, PlanError, SharedPath},
    plugin_info::{PluginError, PluginInfo},
};
use trainyard_render::Renderer;

use super::{
    PlanFormat,
    report::{Clash, Reason, line, names_of},
};
use crate::{
    args::LoadArgs,
    load::{LoadedPlugins, NewPlugin},
    output,
    report::ErrorList,
};

/// What loading a plugin would change.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlanImpact {
    plugin: PluginSummary,
    /// The loaded plugin that it would replace.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaces: Option<PluginSummary>,
    accepted: bool,
    /// The reasons why it would be refused.
    problems: Vec<Refusal>,
    orders: BeforeAfter<Vec<Vec<Vec<String>>>>,
    because: AddedRemoved<Reason>,
    possible_clashes: AddedRemoved<Clash>,
    /// What the manifest declares, such as claims, phases and when the plugin is active.
    declares: AddedRemoved<String>,
    /// The digests of the plan. `None` if there would be no plan.
    digest: BeforeAfter<Option<String>>,
}

/// The identity of a plugin.
#[derive(Serialize)]
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
}

/// A reason why a plugin would be refused.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
enum Refusal {
    /// A claim is not granted.
    Grant { path: String, message: String },
    /// Two plugins write the same paths.
    Conflict {
        first: String,
        second: String,
        paths: Vec<SharedWrite>,
        message: String,
    },
    /// Plugins depend on each other in a cycle.
    Cycle {
        plugins: Vec<String>,
        message: String,
    },
    /// Another reason.
    Other { message: String },
}

/// A path that two plugins write.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct SharedWrite {
    place: String,
    first_claim: String,
    second_claim: String,
}

impl SharedWrite {
    fn of(path: &SharedPath) -> Self {
        Self {
            place: path.place.clone(),
            first_claim: path.first_claim.clone(),
            second_claim: path.second_claim.clone(),
        }
    }
}

impl Refusal {
    fn message(&self) -> &str {
        match self {
            Self::Grant { message, .. }
            | Self::Conflict { message, .. }
            | Self::Cycle { message, .. }
            | Self::Other { message } => message,
        }
    }

    fn all_of(error: &PluginError) -> Vec<Self> {
        let of_claim = |error: &ClaimError| match error {
            ClaimError::NotGranted { path, .. } | ClaimError::NodeSetNotGranted { path } => {
                Self::Grant {
                    path: path.clone(),
                    message: error.to_string(),
                }
            }
            ClaimError::TooMany(_) | ClaimError::Impossible { .. } => Self::Other {
                message: error.to_string(),
            },
        };
        match error {
            PluginError::Claims { errors, .. } => errors.iter().map(of_claim).collect(),
            PluginError::Disabled(_)
            | PluginError::Digest { .. }
            | PluginError::OperatorConfig { .. } => vec![Self::Other {
                message: error.to_string(),
            }],
        }
    }
}

impl From<&PlanError> for Refusal {
    fn from(error: &PlanError) -> Self {
        let message = error.to_string();
        match error {
            PlanError::Conflict {
                first,
                second,
                shared,
                ..
            } => Self::Conflict {
                first: first.to_string(),
                second: second.to_string(),
                paths: shared.listed.iter().map(SharedWrite::of).collect(),
                message,
            },
            PlanError::Cycle { cycle, .. } => Self::Cycle {
                plugins: cycle.iter().map(|edge| edge.first.to_string()).collect(),
                message,
            },
            PlanError::SameName { .. }
            | PlanError::TooMany { .. }
            | PlanError::NodeSets { .. }
            | PlanError::SameSwitch { .. }
            | PlanError::AlwaysExcluded { .. }
            | PlanError::Excluded { .. } => Self::Other { message },
        }
    }
}

/// The value now, and with the plugin.
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
}

pub(super) fn run(load: &LoadArgs, file: &Path, format: PlanFormat) -> Result<(), ErrorList> {
    if matches!(format, PlanFormat::Mermaid | PlanFormat::Html) {
        return Err(ErrorList::from_iter([
            "--against prints a table or JSON; remove -o, or use -o json",
        ]));
    }
    let (loaded, new) = LoadedPlugins::load_with_new(load, file)?;
    let impact = PlanImpact::of(&loaded.renderer, &new);
    match format {
        PlanFormat::Json => output::json(&impact)?,
        _ => output::lines(impact.lines())?,
    }
    if impact.accepted {
        return Ok(());
    }
    let file = file.display();
    Err(ErrorList::from_iter([format!(
        "{file}: plugin {} would be refused; standard output has the reasons",
        new.plugin.id
    )]))
}

impl PlanImpact {
    fn of(renderer: &Renderer, candidate: &NewPlugin) -> Self {
        let (generation, facts) = (renderer.generation(), renderer.facts());
        let accelerators = &facts.accelerators;
        let facts = &facts.facts;
        let new = &candidate.plugin;
        let replaced = generation.plugin(&new.id.name);
        let others = generation
            .plugins()
            .filter(|one| one.id.name != new.id.name);
        let next = Candidate::new(others.cloned().chain([new.clone()]), accelerators);
        let of_settings = candidate.refused.iter().flat_map(Refusal::all_of);
        let of_plan = next.errors().iter().map(Refusal::from);
        let problems: Vec<_> = of_settings.chain(of_plan).collect();
        let accepted = problems.is_empty();
        let is_cycle = |error: &PlanError| matches!(error, PlanError::Cycle { .. });
        // Plugins in a cycle have no order.
        let then = if next.errors().iter().any(is_cycle) {
            Vec::new()
        } else {
            next.overview()
        };
        Self {
            plugin: PluginSummary::of(new),
            replaces: replaced.map(|replaced| PluginSummary::of(replaced)),
            accepted,
            problems,
            orders: BeforeAfter {
                now: names_of(&generation.overview()),
                then: names_of(&then),
            },
            because: AddedRemoved::between(
                generation.edges().iter().map(Reason::from),
                next.edges().iter().map(Reason::from),
            ),
            possible_clashes: AddedRemoved::between(
                generation.possible_clashes().iter().map(Clash::from),
                next.possible_clashes().iter().map(Clash::from),
            ),
            declares: AddedRemoved::between(replaced.into_iter().flat_map(declared), declared(new)),
            digest: BeforeAfter {
                now: Some(generation.digest(facts)),
                then: accepted.then(|| next.digest(facts)),
            },
        }
    }

    fn lines(&self) -> Vec<String> {
        let named = |one: &PluginSummary| {
            let digest = short_digest(&one.digest);
            format!("{} {} ({digest})", one.name, one.version)
        };
        let mut out = vec![match &self.replaces {
            Some(old) => format!("{} would replace {}", named(&self.plugin), named(old)),
            None => format!("{} would be added", named(&self.plugin)),
        }];
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
        push_differences(&mut out, "order", &self.because, |reason| &reason.message);
        push_differences(
            &mut out,
            "possible clash",
            &self.possible_clashes,
            |clash| &clash.message,
        );
        push_differences(&mut out, "declares", &self.declares, |text| text);
        for (when, digest) in [("now", &self.digest.now), ("then", &self.digest.then)] {
            out.extend(
                digest
                    .iter()
                    .map(|digest| format!("digest {when}: {digest}")),
            );
        }
        out
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
    out.extend(all.map(|(sign, one)| format!("{sign} {what}: {}", text(one))));
}

/// Returns a line for each declaration of a manifest that may differ between two versions.
fn declared(plugin: &Arc<PluginInfo>) -> Vec<String> {
    let manifest = &plugin.manifest;
    let claims = manifest.claims.iter();
    let claims = claims.map(|(touch, path)| format!("{touch}s `{path}`"));
    let counts = manifest.node_sets.iter();
    let counts = counts.map(|set| format!("lets numNodes set {set}"));
    let phases = manifest.phases.iter().map(|phase| format!("phase {phase}"));
    let after = manifest.after.iter().map(|name| format!("after {name}"));
    let before = manifest.before.iter().map(|name| format!("before {name}"));
    let excludes = manifest.excludes.iter();
    let excludes = excludes.map(|name| format!("excludes {name}"));
    let reserved = manifest.reserved_env.iter();
    let reserved = reserved.flat_map(|some| {
        let when = some.when().map(|when| format!(" {when}"));
        let when = when.unwrap_or_default();
        let names = some.names().iter();
        names.map(move |name| format!("reserves the env var `{name}`{when}"))
    });
    let schema = |what: &str, schema: &Option<trainyard_model::schema::Schema>| {
        let schema = schema.as_ref()?;
        Some(format!(
            "{what} of the schema {}",
            serde_json::json!(schema)
        ))
    };
    let schemas = [
        schema("configuration", &manifest.config_schema),
        schema("operator configuration", &manifest.operator_config_schema),
    ];
    let active = format!("active when {}", manifest.active_when);
    std::iter::once(active)
        .chain(phases)
        .chain(claims)
        .chain(counts)
        .chain(after)
        .chain(before)
        .chain(excludes)
        .chain(reserved)
        .chain(schemas.into_iter().flatten())
        .collect()
}
