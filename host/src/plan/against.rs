//! `trainyard plan --against`: what a further plugin, or another version of a loaded one, would change or break.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use serde::Serialize;
use trainyard_model::{
    claims::ClaimError,
    plan::{Candidate, PlanError, SharedPath},
    plugin::{Plugin, PluginError},
};
use trainyard_render::Renderer;

use super::{
    PlanFormat,
    report::{Clash, Reason, in_words, line},
};
use crate::{
    args::LoadArgs,
    load::{Beside, LoadedPlugins},
    output,
    report::ErrorList,
};

/// What would come of a plugin.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Change {
    plugin: Named,
    /// The loaded plugin in whose place it would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaces: Option<Named>,
    accepted: bool,
    /// Why it would be refused.
    problems: Vec<Refusal>,
    orders: BeforeAfter<Vec<Vec<Vec<String>>>>,
    because: Difference<Reason>,
    possible_clashes: Difference<Clash>,
    /// What the manifest declares: claims, and the other things that decide when and how the plugin runs.
    declares: Difference<String>,
    /// None where there would be no plan.
    digest: BeforeAfter<Option<String>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    name: String,
    version: String,
    digest: String,
}

impl Named {
    fn of(plugin: &Plugin) -> Self {
        Self {
            name: plugin.id.name.to_string(),
            version: plugin.id.version.to_string(),
            digest: plugin.id.digest.to_string(),
        }
    }
}

/// One reason why it would be refused.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
enum Refusal {
    /// A claim that is not granted.
    Grant { path: String, message: String },
    /// Two plugins that write the same paths.
    Conflict {
        first: String,
        second: String,
        paths: Vec<Shared>,
        message: String,
    },
    /// Plugins that would each have to run before the next.
    Cycle {
        plugins: Vec<String>,
        message: String,
    },
    /// Anything else.
    Other { message: String },
}

/// A path that two plugins write.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shared {
    place: String,
    first_claim: String,
    second_claim: String,
}

impl Shared {
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
            } => Self::Conflict {
                first: first.to_string(),
                second: second.to_string(),
                paths: shared.listed.iter().map(Shared::of).collect(),
                message,
            },
            PlanError::Cycle { cycle } => Self::Cycle {
                plugins: cycle.iter().map(|edge| edge.first.to_string()).collect(),
                message,
            },
            PlanError::SameName { .. }
            | PlanError::TooMany { .. }
            | PlanError::NodeSets { .. }
            | PlanError::SameSwitch { .. }
            | PlanError::Excluded { .. } => Self::Other { message },
        }
    }
}

#[derive(Serialize)]
struct BeforeAfter<T> {
    now: T,
    then: T,
}

/// What comes and what goes.
#[derive(Serialize)]
struct Difference<T> {
    added: Vec<T>,
    removed: Vec<T>,
}

impl<T: Ord + Clone> Difference<T> {
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
    let (loaded, beside) = LoadedPlugins::load_beside(load, file)?;
    let change = Change::of(&loaded.renderer, &beside);
    match format {
        PlanFormat::Json => output::json(&change)?,
        _ => output::lines(change.lines())?,
    }
    if change.accepted {
        return Ok(());
    }
    let file = file.display();
    Err(ErrorList::from_iter([format!(
        "{file}: plugin {} would be refused; standard output has the reasons",
        beside.plugin.id
    )]))
}

impl Change {
    fn of(renderer: &Renderer, beside: &Beside) -> Self {
        let (generation, facts) = (renderer.generation(), &renderer.facts().facts);
        let new = &beside.plugin;
        let replaced = generation.plugin(&new.id.name);
        let others = generation
            .plugins()
            .filter(|one| one.id.name != new.id.name);
        let candidate = Candidate::new(others.cloned().chain([new.clone()]));
        let of_grants = beside.refused.iter().flat_map(Refusal::all_of);
        let of_plan = candidate.errors().iter().map(Refusal::from);
        let problems: Vec<_> = of_grants.chain(of_plan).collect();
        let accepted = problems.is_empty();
        let is_cycle = |error: &PlanError| matches!(error, PlanError::Cycle { .. });
        // What is in a cycle has no place.
        let then = if candidate.errors().iter().any(is_cycle) {
            Vec::new()
        } else {
            candidate.overview()
        };
        Self {
            plugin: Named::of(new),
            replaces: replaced.map(|replaced| Named::of(replaced)),
            accepted,
            problems,
            orders: BeforeAfter {
                now: in_words(&generation.overview()),
                then: in_words(&then),
            },
            because: Difference::between(
                generation.edges().iter().map(Reason::from),
                candidate.edges().iter().map(Reason::from),
            ),
            possible_clashes: Difference::between(
                generation.possible_clashes().iter().map(Clash::from),
                candidate.possible_clashes().iter().map(Clash::from),
            ),
            declares: Difference::between(replaced.into_iter().flat_map(declared), declared(new)),
            digest: BeforeAfter {
                now: Some(generation.digest(facts)),
                then: accepted.then(|| candidate.digest(facts)),
            },
        }
    }

    fn lines(&self) -> Vec<String> {
        let named = |one: &Named| format!("{} {} ({})", one.name, one.version, one.digest);
        let mut out = vec![match &self.replaces {
            Some(old) => format!("{} in the place of {}", named(&self.plugin), named(old)),
            None => format!("{}, which is not loaded yet", named(&self.plugin)),
        }];
        out.push(if self.accepted {
            "would be accepted".to_owned()
        } else {
            "would be refused:".to_owned()
        });
        let problems = self.problems.iter();
        out.extend(problems.map(|problem| format!("  {}", problem.message())));
        let orders = |when: &str, orders: &[Vec<Vec<String>>]| {
            let told = |order: &Vec<Vec<String>>| format!("order {when}: {}", line(order));
            orders.iter().map(told).collect::<Vec<_>>()
        };
        out.extend(orders("now", &self.orders.now));
        if self.orders.then.is_empty() {
            out.push("order: none, because of the cycle".to_owned());
        } else if self.orders.now == self.orders.then {
            out.push("order then: the same".to_owned());
        } else {
            out.extend(orders("then", &self.orders.then));
        }
        told(&mut out, "order", &self.because, |reason| &reason.message);
        told(
            &mut out,
            "possible clash",
            &self.possible_clashes,
            |clash| &clash.message,
        );
        told(&mut out, "declares", &self.declares, |text| text);
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

/// Adds a line for each thing that comes (`+`) and goes (`-`).
fn told<T>(out: &mut Vec<String>, what: &str, of: &Difference<T>, text: impl Fn(&T) -> &String) {
    let added = of.added.iter().map(|one| ("+", one));
    let all = added.chain(of.removed.iter().map(|one| ("-", one)));
    out.extend(all.map(|(sign, one)| format!("{sign} {what}: {}", text(one))));
}

/// What a manifest declares, a text for each thing that may differ between two versions.
fn declared(plugin: &Arc<Plugin>) -> Vec<String> {
    let manifest = &plugin.manifest;
    let claims = manifest.claims.iter();
    let claims = claims.map(|(touch, path)| format!("{touch}s `{path}`"));
    let counts = manifest.node_sets.iter();
    let counts = counts.map(|set| format!("lets numNodes set {set}"));
    let phases = manifest.phases.iter().map(|phase| format!("phase {phase}"));
    let after = manifest.after.iter().map(|name| format!("after {name}"));
    let before = manifest.before.iter().map(|name| format!("before {name}"));
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
        .chain(reserved)
        .chain(schemas.into_iter().flatten())
        .collect()
}
