//! The report of a plan, of all loaded plugins or of one TrainJob.

use std::collections::BTreeSet;

use serde::Serialize;
use trainyard_api::names;
use trainyard_model::{
    claims::{ClaimPath, Claims, Grants, Verb},
    facts::Facts,
    manifest::{ActiveWhen, NodeSet},
    plan::{Edge, EdgeReason, Generation, PossibleClash, Slot},
    plugin_info::{Exemptions, PluginInfo},
};
use trainyard_render::{DisabledPlugin, PlannedPlugins, plan_of};

/// A plan.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlanReport<'a> {
    /// The TrainJob. `None` for the plan of all loaded plugins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) train_job: Option<String>,
    /// The digest of the plugins, their settings and their order.
    pub(super) digest: String,
    /// The order, as a list of slots. The members of a union share a slot if they are interchangeable.
    pub(super) orders: Vec<Vec<Vec<String>>>,
    /// The plugins, in order.
    pub(super) plugins: Vec<PluginReport<'a>>,
    /// The reasons for the order.
    pub(super) because: Vec<Reason>,
    /// Pairs of write claims that the values of a TrainJob may make the same place.
    pub(super) possible_clashes: Vec<Clash>,
    /// Pairs that are never active together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) excluded: Vec<ExcludedReport>,
    /// Plugins that PolicyPlugins disable.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) disabled: &'a [String],
    /// For the plan of all plugins: those that some TrainJobs run without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) disabled_for_some: Vec<DisabledForSome<'a>>,
    /// For the plan of a TrainJob: the plugins that are disabled for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) disabled_for_train_job: Vec<DisabledReport>,
}

/// A plugin that some TrainJobs run without.
#[derive(Serialize)]
pub(super) struct DisabledForSome<'a> {
    pub(super) name: &'a str,
    #[serde(flatten)]
    pub(super) exemptions: &'a Exemptions,
}

impl DisabledForSome<'_> {
    /// Returns the TrainJobs that run without it, in words.
    pub(super) fn train_jobs(&self) -> Vec<String> {
        let Exemptions {
            disabled_for,
            enabled_for,
            ..
        } = self.exemptions;
        let enabled: Vec<_> = enabled_for.words().collect();
        let others = (!enabled.is_empty()).then(|| format!("all but {}", enabled.join(" and ")));
        let own = self.exemptions.train_jobs_may_disable;
        let own = own.then(|| format!("TrainJobs with {}", names::DISABLED_PLUGINS_ANNOTATION));
        disabled_for.words().chain(others).chain(own).collect()
    }
}

/// A plugin that is disabled for a TrainJob.
#[derive(Serialize)]
pub(crate) struct DisabledReport {
    pub(crate) name: String,
    /// What disables it.
    pub(crate) by: String,
}

impl DisabledReport {
    /// Returns the reports of plugins.
    pub(crate) fn of(disabled: &[DisabledPlugin]) -> Vec<Self> {
        let report = |disabled: &DisabledPlugin| Self {
            name: disabled.plugin.id.name.to_string(),
            by: disabled.by.to_string(),
        };
        disabled.iter().map(report).collect()
    }
}

/// Two plugins that are never active together.
#[derive(Serialize)]
pub(super) struct ExcludedReport {
    pub(super) first: String,
    pub(super) second: String,
    /// What excludes them.
    pub(super) by: String,
}

/// A plugin of a plan.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PluginReport<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    pub(super) digest: &'a str,
    pub(super) active_when: &'a ActiveWhen,
    pub(super) phases: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) claims: Option<&'a Claims>,
    /// The pod sets whose pods are the nodes by this plugin.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) node_sets: &'a [NodeSet],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) grants: Option<GrantsReport>,
}

/// The grants of a plugin.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum GrantsReport {
    /// All its claims.
    AsClaimed(&'static str),
    /// The defaults and these paths.
    Paths(Vec<String>),
}

impl GrantsReport {
    fn of(grants: &Grants) -> Self {
        match grants {
            Grants::AsClaimed => Self::AsClaimed("as claimed"),
            Grants::Paths(paths) => {
                let paths: BTreeSet<_> = paths.iter().map(ToString::to_string).collect();
                Self::Paths(paths.into_iter().collect())
            }
        }
    }
}

/// The reason why one plugin runs before another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reason {
    pub(super) first: String,
    pub(super) then: String,
    /// What the first plugin does at the path. `None` if the order is declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) touch: Option<String>,
    /// The path that the second plugin claims. `None` if the order is declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<String>,
    pub(super) message: String,
}

impl From<&Edge> for Reason {
    fn from(edge: &Edge) -> Self {
        let (touch, path) = match &edge.because {
            EdgeReason::Path { first, path, .. } => (Some(first.to_string()), Some(path.clone())),
            EdgeReason::Declared => (None, None),
        };
        Self {
            first: edge.first.to_string(),
            then: edge.then.to_string(),
            touch,
            path,
            message: edge.to_string(),
        }
    }
}

/// Two writes that a TrainJob's own values may bring to one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Clash {
    pub(super) first: String,
    pub(super) first_claim: String,
    pub(super) second: String,
    pub(super) second_claim: String,
    pub(super) message: String,
}

impl From<&PossibleClash> for Clash {
    fn from(clash: &PossibleClash) -> Self {
        Self {
            first: clash.first.to_string(),
            first_claim: clash.first_path.clone(),
            second: clash.second.to_string(),
            second_claim: clash.second_path.clone(),
            message: clash.to_string(),
        }
    }
}

/// What the plans of one run share.
pub(super) struct Relations<'a> {
    generation: &'a Generation,
    facts: Facts,
    because: Vec<Reason>,
    possible_clashes: Vec<Clash>,
    /// Whether claims and grants are part of the report.
    claims: bool,
}

impl<'a> Relations<'a> {
    pub(super) fn new(generation: &'a Generation, facts: &Facts, claims: bool) -> Self {
        let clashes = generation.possible_clashes();
        Self {
            generation,
            facts: facts.clone(),
            because: generation.edges().iter().map(Reason::from).collect(),
            possible_clashes: clashes.iter().map(Clash::from).collect(),
            claims,
        }
    }

    /// Returns the plan of all loaded plugins.
    pub(super) fn of_all(&'a self, disabled: &'a [String]) -> PlanReport<'a> {
        let orders = self.generation.overview();
        let mut plugins: Vec<&PluginInfo> =
            self.generation.plugins().map(|plugin| &**plugin).collect();
        let turn = |plugin: &&PluginInfo| {
            let place = |order: &Vec<Slot>| {
                order
                    .iter()
                    .position(|slot| slot.names.contains(&plugin.id.name))
            };
            orders.iter().filter_map(place).max()
        };
        plugins.sort_by_key(turn);
        let excluded = self.generation.excluded().iter();
        let disabled_for_some = plugins.iter().map(|plugin| DisabledForSome {
            name: &plugin.id.name,
            exemptions: &plugin.settings.exemptions,
        });
        let disabled_for_some = disabled_for_some.filter(|plugin| !plugin.exemptions.is_empty());
        PlanReport {
            disabled,
            disabled_for_some: disabled_for_some.collect(),
            excluded: excluded
                .map(|(first, second)| {
                    let by = self.generation.excluding(first, second);
                    ExcludedReport {
                        first: first.to_string(),
                        second: second.to_string(),
                        by: by.map_or_else(
                            || "PolicyPlugin".to_owned(),
                            |by| format!("manifest of {by}"),
                        ),
                    }
                })
                .collect(),
            ..self.report(
                None,
                self.generation.digest(&self.facts),
                names_of(&orders),
                &plugins,
            )
        }
    }

    /// Returns the plan of one TrainJob.
    pub(super) fn of_job(&'a self, job: String, plan: &'a PlannedPlugins) -> PlanReport<'a> {
        let active = plan.active.iter();
        let plugins: Vec<&PluginInfo> = active.map(|active| &*active.plugin).collect();
        let order = plugins.iter().map(|plugin| Slot::of(plugin)).collect();
        PlanReport {
            disabled_for_train_job: DisabledReport::of(&plan.disabled),
            ..self.report(
                Some(job),
                plan_of(&plan.active, &self.facts).digest,
                names_of(&[order]),
                &plugins,
            )
        }
    }

    fn report(
        &'a self,
        train_job: Option<String>,
        digest: String,
        orders: Vec<Vec<Vec<String>>>,
        plugins: &[&'a PluginInfo],
    ) -> PlanReport<'a> {
        let active: BTreeSet<&str> = plugins.iter().map(|plugin| &*plugin.id.name).collect();
        let both = |a: &str, b: &str| active.contains(a) && active.contains(b);
        let because = self
            .because
            .iter()
            .filter(|one| both(&one.first, &one.then));
        let clashes = self.possible_clashes.iter();
        let clashes = clashes.filter(|one| both(&one.first, &one.second));
        PlanReport {
            train_job,
            digest,
            orders,
            plugins: plugins.iter().map(|plugin| self.plugin(plugin)).collect(),
            because: because.cloned().collect(),
            possible_clashes: clashes.cloned().collect(),
            excluded: Vec::new(),
            disabled: &[],
            disabled_for_some: Vec::new(),
            disabled_for_train_job: Vec::new(),
        }
    }

    fn plugin(&self, plugin: &'a PluginInfo) -> PluginReport<'a> {
        let manifest = &plugin.manifest;
        let phases = manifest.phases.iter();
        PluginReport {
            name: &plugin.id.name,
            version: &plugin.id.version,
            digest: &plugin.id.digest,
            active_when: &manifest.active_when,
            phases: phases.map(|phase| phase.name()).collect(),
            claims: self.claims.then_some(&manifest.claims),
            node_sets: if self.claims {
                &manifest.node_sets
            } else {
                &[]
            },
            grants: self
                .claims
                .then(|| GrantsReport::of(&plugin.settings.grants)),
        }
    }
}

/// Returns orders with the names of the plugins.
pub(super) fn names_of(orders: &[Vec<Slot>]) -> Vec<Vec<Vec<String>>> {
    let names = |slot: &Slot| slot.names.iter().map(ToString::to_string).collect();
    let order = |order: &Vec<Slot>| order.iter().map(names).collect();
    orders.iter().map(order).collect()
}

/// Returns an order as a line, such as `a -> {b | c} -> d`.
pub(super) fn line(order: &[Vec<String>]) -> String {
    let slot = |names: &Vec<String>| match &**names {
        [name] => name.clone(),
        names => format!("{{{}}}", names.join(" | ")),
    };
    let slots: Vec<_> = order.iter().map(slot).collect();
    if slots.is_empty() {
        "no plugin is active".to_owned()
    } else {
        slots.join(" -> ")
    }
}

impl PlanReport<'_> {
    pub(super) fn title(&self) -> String {
        match &self.train_job {
            Some(job) => format!("TrainJob {job}"),
            None => "All loaded plugins".to_owned(),
        }
    }
}

impl<'a> PluginReport<'a> {
    /// Returns the paths that it claims.
    pub(super) fn paths(&self) -> impl Iterator<Item = &'a ClaimPath> + use<'a> {
        let claims = self.claims.into_iter();
        claims.flat_map(|claims| claims.iter().map(|(_, path)| path))
    }

    /// Returns its claims.
    pub(super) fn touches(&self) -> impl Iterator<Item = (Verb, &ClaimPath)> {
        self.claims.into_iter().flat_map(Claims::iter)
    }
}
