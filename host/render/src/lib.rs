//! The pure path from a TrainJob and its runtime to a JobSet: select, resolve, plan, transform, derive, build, check,
//! assemble. A function of its inputs; policies run through [`trainyard_model::policy::Policy`] alone.
//!
//! In the order of the path:
//! - `select`: which plugins are active; `left_out` are those that a process goes on without.
//! - `resolve`: the TrainJob and its runtime become the base record.
//! - `pipeline`: the record's way through the plugins; `additions` and `together` are what several plugins add to one list, and how much.
//! - `invariants` and `entries`: what no pod may be, and how many entries an object may have.
//! - `assemble`: the record, written into the runtime's template, by the table of `shape`.
//! - `explain`: who set each field; `place` is where a place of the record stands in the JobSet.
//!
//! `problem` is what is wrong with a TrainJob or its runtime. `catalog` holds the objects of one run of the command line, and renders them.

mod additions;
mod assemble;
mod catalog;
mod entries;
mod explain;
mod invariants;
mod left_out;
mod pipeline;
mod place;
mod problem;
mod resolve;
mod select;
mod shape;
mod together;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use trainyard_api::{FieldPath, Runtime, TrainJob};
use trainyard_model::{
    claims::Variables,
    deadline::Deadline,
    facts::Facts,
    limits::Limits,
    lookup::Lookups,
    object::{ApplyMode, Content, DataValue, EmittedObject, ObjectKind, ObjectName, SecretValue},
    plan::{Generation, Plan, PlanError},
    plugin::PluginId,
    policy::{Phase, Policy},
    record::{Owner, Record},
    session::Session,
};

pub use self::{
    catalog::{Catalog, Counts, Job},
    explain::{NotThere, Provenance, Setter, Step as ProvenanceStep},
    left_out::{Declared, LeftOut},
    problem::{About, Problem, Warning},
    resolve::ClusterFacts,
    select::{Active, plan_of},
};
use self::{
    explain::{Defaults, Origins},
    pipeline::{Calls, Step},
    resolve::{PatchChanges, Resolved},
};

/// The loaded policies, checked against each other, with what the operator sets for all TrainJobs.
pub struct Renderer {
    generation: Generation,
    policies: BTreeMap<Arc<str>, Arc<dyn Policy>>,
    left_out: Vec<LeftOut>,
    facts: ClusterFacts,
}

/// What a TrainJob becomes.
#[derive(Debug)]
pub struct Rendered {
    /// The objects beside the JobSet, in the order in which they are applied.
    pub objects: Vec<RenderedObject>,
    /// The JobSet, which is applied last.
    pub job_set: Value,
    /// The plugins that ran, in their order, with their configurations.
    pub plan: Vec<Active>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
    patched: Option<Arc<Value>>,
    origins: Origins,
}

impl Rendered {
    /// The spec of the runtime's template with the TrainJob's patches, before anything else was written into it.
    #[must_use]
    pub fn patched(&self) -> &Value {
        self.patched.as_deref().unwrap_or(&self.origins.template)
    }

    /// Who set what: all that the runtime's template does not have as it is. Worked out anew by every call.
    #[must_use]
    pub fn provenance(&self) -> Vec<Provenance> {
        self.origins.provenance(&self.job_set)
    }

    /// The plan that it went through, as a snapshot keeps it.
    #[must_use]
    pub fn whole_plan(&self) -> Plan {
        plan_of(&self.plan, &self.origins.job.facts)
    }

    /// What plugins read of the objects that they looked up: with it in the place of the lookups, the same TrainJob becomes the
    /// same.
    #[must_use]
    pub fn read_lookups(&self) -> Lookups {
        self.origins.session.read_lookups()
    }

    /// The same with all that was read, however large: what a bundle holds.
    #[must_use]
    pub fn all_read_lookups(&self) -> Lookups {
        self.origins.session.all_read_lookups()
    }

    /// The operator's facts that plugins read.
    #[must_use]
    pub fn read_facts(&self) -> Facts {
        self.origins.session.read_facts()
    }

    /// Who set a field and all below it, as the JobSet spells it (`spec.replicatedJobs[0].replicas`, or with names in
    /// brackets) or as the record does (`pod-sets[node].replicas`). Never empty: what nobody changed is the runtime's.
    ///
    /// # Errors
    /// The JobSet has no such field, and nobody removed one.
    pub fn explain(&self, path: &FieldPath) -> Result<Vec<Provenance>, NotThere> {
        self.origins.explain(&self.job_set, path)
    }
}

/// An object beside the JobSet.
#[derive(Debug)]
pub struct RenderedObject {
    /// Its `apiVersion` and `kind`.
    pub kind: ObjectKind,
    /// Its `metadata.name`.
    pub name: ObjectName,
    /// The object, with placeholders for key material.
    pub value: Value,
    /// The keys of a Secret that hold key material: whoever creates it makes that, and writes them anew.
    pub material: BTreeMap<String, SecretValue>,
    /// How it is applied.
    pub apply: ApplyMode,
    /// Who emitted it.
    pub plugin: PluginId,
}

impl Renderer {
    /// Checks the policies against each other.
    ///
    /// # Errors
    /// Every conflict and every cycle among them.
    pub fn new(
        policies: impl IntoIterator<Item = Arc<dyn Policy>>,
        facts: ClusterFacts,
    ) -> Result<Self, Vec<PlanError>> {
        let policies: Vec<_> = policies.into_iter().collect();
        let generation = Generation::new(policies.iter().map(|policy| policy.plugin().clone()))?;
        let by_name = policies
            .into_iter()
            .map(|policy| (policy.plugin().id.name.clone(), policy))
            .collect();
        Ok(Self {
            generation,
            policies: by_name,
            left_out: Vec::new(),
            facts,
        })
    }

    /// The same for a process that goes on without some plugins: a TrainJob that needs one of them is refused with the reason.
    #[must_use]
    pub fn without(mut self, left_out: Vec<LeftOut>) -> Self {
        self.left_out = left_out;
        self
    }

    /// The same with each policy wrapped into another one that runs it.
    #[must_use]
    pub fn wrapped(mut self, wrap: impl Fn(Arc<dyn Policy>) -> Arc<dyn Policy>) -> Self {
        let policies = self.policies.into_iter();
        self.policies = policies
            .map(|(name, policy)| (name, wrap(policy)))
            .collect();
        self
    }

    /// The same with other facts, as another process had them.
    #[must_use]
    pub fn with_facts(mut self, facts: ClusterFacts) -> Self {
        self.facts = facts;
        self
    }

    /// The same with ties between plugins going by this list: see [`Generation::preferring`].
    #[must_use]
    pub fn preferring(mut self, names: impl IntoIterator<Item = Arc<str>>) -> Self {
        self.generation = self.generation.preferring(names);
        self
    }

    /// The loaded plugins with their order.
    #[must_use]
    pub const fn generation(&self) -> &Generation {
        &self.generation
    }

    /// The most objects that plugins emit for one TrainJob: the largest of the limits of those that are loaded, and of the limit that
    /// an operator has not changed.
    #[must_use]
    pub fn most_objects(&self) -> u64 {
        let plugins = self.generation.plugins();
        let limits = plugins.map(|plugin| plugin.settings.limits.objects);
        limits.fold(Limits::default().objects, u64::max)
    }

    /// What the operator sets for all TrainJobs.
    #[must_use]
    pub const fn facts(&self) -> &ClusterFacts {
        &self.facts
    }

    /// The plugins that a TrainJob's runtime switches on, in the order in which they run.
    ///
    /// # Errors
    /// Everything that is wrong with the runtime, its configurations, or the order for this TrainJob.
    pub fn plan(&self, job: &TrainJob, runtime: &Runtime) -> Result<Vec<Active>, Vec<Problem>> {
        let loaded = resolve::load(job, runtime, &self.facts, &Deadline::none())?;
        let planned = self.planned(job, runtime, &loaded.record);
        none_of(loaded.problems, planned)
    }

    /// What a TrainJob's first plugin is called with, and every later one where none writes: for measuring single calls.
    ///
    /// # Errors
    /// Everything that is wrong with the TrainJob and its runtime before a plugin runs.
    pub fn session(
        &self,
        job: &TrainJob,
        runtime: &Runtime,
        namespace: &str,
    ) -> Result<Session, Vec<Problem>> {
        let loaded = resolve::load(job, runtime, &self.facts, &Deadline::none())?;
        let active = self.planned(job, runtime, &loaded.record)?;
        let (resolved, problems) =
            resolve::resolve(job, runtime, loaded, &active, namespace, &self.facts);
        none_of(problems, Ok(Session::new(resolved.job, resolved.record)))
    }

    /// Renders one TrainJob, with what was looked up for its plugins so far.
    ///
    /// # Errors
    /// Everything that is wrong with it and its runtime, as far as it can be known at once. A [`Problem::Missing`] names what a
    /// plugin asks for beyond the lookups: with its answer among them, rendering goes on from the start.
    pub fn render(
        &self,
        job: &TrainJob,
        runtime: &Runtime,
        namespace: &str,
        lookups: &Arc<Lookups>,
    ) -> Result<Rendered, Vec<Problem>> {
        self.render_within(job, runtime, namespace, lookups, &Deadline::none())
    }

    /// The same within a time, which is checked between steps: reading, each patch, each plugin call, assembling.
    ///
    /// # Errors
    /// As of [`Self::render`], and [`Problem::Overdue`] if it takes too long.
    pub fn render_within(
        &self,
        job: &TrainJob,
        runtime: &Runtime,
        namespace: &str,
        lookups: &Arc<Lookups>,
        deadline: &Deadline,
    ) -> Result<Rendered, Vec<Problem>> {
        let step = |step: &str| Problem::in_time(deadline, || step.to_owned());
        let mut loaded = resolve::load(job, runtime, &self.facts, deadline)?;
        let active = match self.planned(job, runtime, &loaded.record) {
            Ok(active) => active,
            Err(problems) => {
                loaded.problems.extend(problems);
                return Err(loaded.problems);
            }
        };
        step("the plugins were put in order")?;
        let (resolved, mut problems) =
            resolve::resolve(job, runtime, loaded, &active, namespace, &self.facts);
        step("the TrainJob's overrides were applied")?;
        let plan = self.steps(&active);
        let mut session =
            Session::new(resolved.job.clone(), resolved.record.clone()).knowing(lookups.clone());
        let calls = Calls {
            plan: &plan,
            generation: &self.generation,
            namespace,
            deadline,
        };
        if !problems.is_empty() {
            problems.extend(pipeline::refusals(&mut session, &calls));
            return Err(problems);
        }
        let outcome = self.run(&mut session, &calls, &resolved.patches);
        let again = |problems: &Vec<Problem>| problems.iter().any(Problem::is_made_again);
        if !outcome.as_ref().is_err_and(again) {
            pipeline::log(&session, namespace);
        }
        outcome?;
        let rendered = finish((job, runtime), namespace, resolved, session, &active);
        step("the JobSet was assembled")?;
        let written = rendered.objects.iter().map(|object| &object.value);
        let written = std::iter::once(&rendered.job_set).chain(written);
        let problems: Vec<_> = written.flat_map(entries::check).collect();
        if problems.is_empty() {
            Ok(rendered)
        } else {
            Err(problems)
        }
    }

    /// All phases of the plan's plugins.
    fn run(
        &self,
        session: &mut Session,
        calls: &Calls<'_>,
        patches: &[PatchChanges],
    ) -> Result<(), Vec<Problem>> {
        pipeline::run(session, Phase::Transform, calls)?;
        // Before what is done for each of them.
        together::containers_within_limit(session, calls.plan)?;
        self.freeze(session, calls.plan, patches)?;
        Problem::in_time(calls.deadline, || "the record was checked".to_owned())?;
        pipeline::run(session, Phase::Build, calls)?;
        together::objects_within_limit(session, calls.plan)?;
        invariants::emitted_once(session)?;
        invariants::own_data_is_emitted(session)?;
        pipeline::run(session, Phase::Check, calls)?;
        Ok(())
    }

    fn planned(
        &self,
        job: &TrainJob,
        runtime: &Runtime,
        record: &Record,
    ) -> Result<Vec<Active>, Vec<Problem>> {
        let active = select::select(&self.generation, &self.left_out, job, runtime, record)?;
        let name: Arc<str> = job.metadata.name.as_str().into();
        let variables = active
            .iter()
            .map(|(plugin, active)| {
                let variables = Variables {
                    job: name.clone(),
                    config: active.config.clone(),
                };
                (plugin.clone(), variables)
            })
            .collect();
        let order = self
            .generation
            .plan(&variables)
            .map_err(|errors| errors.into_iter().map(Problem::from).collect::<Vec<_>>())?;
        Ok(order
            .into_iter()
            .filter_map(|plugin| active.get(&plugin.id.name).cloned())
            .collect())
    }

    fn steps(&self, active: &[Active]) -> Vec<Step<'_>> {
        let ranks = pipeline::ranks(active.iter().map(|active| &active.plugin.id));
        let step = |active: &Active| {
            let name = &active.plugin.id.name;
            let policy: &dyn Policy = &**self.policies.get(name)?;
            Some(Step {
                policy,
                config: active.config.clone(),
                rank: *ranks.get(name)?,
            })
        };
        active.iter().filter_map(step).collect()
    }

    /// Checks the record that no plugin changes any more, and solves what asked for a place.
    fn freeze(
        &self,
        session: &mut Session,
        plan: &[Step<'_>],
        patches: &[PatchChanges],
    ) -> Result<(), Vec<Problem>> {
        let record = session.record();
        let who = |owner: Owner| match owner {
            Owner::Runtime => "the runtime".to_owned(),
            Owner::Patch => "a runtime patch".to_owned(),
            Owner::TrainJob => "the TrainJob".to_owned(),
            Owner::Plugin(rank) => plan.iter().find(|step| step.rank == rank).map_or_else(
                || "a plugin".to_owned(),
                |step| format!("the plugin {}", step.policy.plugin().id),
            ),
        };
        let changes = session.committed().iter().flat_map(|c| &c.changes);
        let mut problems = invariants::check(record, changes, patches, &who);
        let is_declared =
            |a: &PluginId, b: &PluginId| self.generation.is_declared(&a.name, &b.name);
        problems.extend(invariants::contested(session, is_declared));
        let mut orders = Vec::new();
        for (set, position) in record.pod_sets.iter().zip(0u32..) {
            match assemble::place_init_containers(record, position) {
                Ok(Some(ids)) => orders.push((position, ids)),
                Ok(None) => {}
                Err(unsolvable) => problems.push(Problem::Invariant {
                    place: format!("pod-sets[{}].init-containers", set.name),
                    message: format!(
                        "the places asked for can't be met together: {}; exclude one of the plugins that ask for them",
                        unsolvable.names.join(", ")
                    ),
                }),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        for (position, ids) in orders {
            session.place_init_containers(position, &ids);
        }
        Ok(())
    }
}

/// The outcome, unless something was wrong before.
fn none_of<T>(problems: Vec<Problem>, outcome: Result<T, Vec<Problem>>) -> Result<T, Vec<Problem>> {
    match outcome {
        Ok(outcome) if problems.is_empty() => Ok(outcome),
        Ok(_) => Err(problems),
        Err(more) => Err(problems.into_iter().chain(more).collect()),
    }
}

/// Writes down what a TrainJob became.
fn finish(
    (job, runtime): (&TrainJob, &Runtime),
    namespace: &str,
    mut resolved: Resolved,
    session: Session,
    active: &[Active],
) -> Rendered {
    let mut warnings = std::mem::take(&mut resolved.warnings);
    warnings.extend(select::unhandled_claims(session.base(), active));
    warnings.extend(session.warnings().into_iter().map(Warning::from));
    warnings.extend(resolve::reserved_in_runtime(&session));
    let patched = resolved.patched.take();
    let template = runtime.template.spec.clone();
    let defaults = Defaults {
        job: job.defaulted.clone(),
        runtime: runtime.defaulted.clone(),
    };
    let origins = Origins::new(template, resolved, session, defaults);
    let session = &origins.session;
    let record = session.record();
    let template = patched.as_deref().unwrap_or(&origins.template);
    let spec = assemble::assemble(template, record, origins.changes());
    let job_set = assemble::job_set(record, namespace, origins.job.suspended, spec);
    let mut objects: Vec<_> = session
        .emitted()
        .iter()
        .map(|emitted| RenderedObject {
            kind: emitted.object.kind.clone(),
            name: emitted.object.name.clone(),
            value: assemble::object(&emitted.object, namespace),
            material: material(&emitted.object),
            apply: emitted.object.apply,
            plugin: emitted.plugin.clone(),
        })
        .collect();
    // A stable sort: each plugin's objects keep the order in which it emitted them.
    objects.sort_by(|a, b| a.plugin.name.cmp(&b.plugin.name));
    Rendered {
        objects,
        job_set,
        plan: active.to_vec(),
        warnings,
        patched,
        origins,
    }
}

/// The keys of an object that hold key material.
fn material(object: &EmittedObject) -> BTreeMap<String, SecretValue> {
    let Content::Secret { data, .. } = &object.content else {
        return BTreeMap::new();
    };
    let with_material = |(key, held): (&str, &DataValue<SecretValue>)| match held {
        DataValue::Text(text) if text.has_material() => Some((key.to_owned(), text.clone())),
        DataValue::Text(_) | DataValue::Bytes(_) => None,
    };
    data.iter().filter_map(with_material).collect()
}
