//! Renders TrainJobs with the loaded plugins.

use std::{collections::BTreeMap, sync::Arc};

use tracing::span::EnteredSpan;
use trainyard_api::{Runtime, TrainJob};
use trainyard_model::{
    claims::Variables,
    deadline::Deadline,
    facts::HostFacts,
    limits::Limits,
    lookup::Lookups,
    pipeline::{self, Pipeline, Stage},
    plan::{Candidate, Generation, PlanError},
    plugin::{Phase, Plugin},
    record::{Owner, Record},
    session::Session,
};

use crate::{
    Stopped, assemble, invariants,
    journal::Journal,
    plugin_log,
    problem::{InputObject, Problem},
    rendered::Rendered,
    resolve::{self, ClusterFacts},
    select::{self, Active, PlannedPlugins, Selected},
    skipped::SkippedPlugin,
    totals,
};

/// The loaded plugins, checked against each other, and the operator's settings for all TrainJobs.
pub struct Renderer {
    generation: Generation,
    plugins: BTreeMap<Arc<str>, Arc<dyn Plugin>>,
    skipped: Vec<SkippedPlugin>,
    facts: ClusterFacts,
}

impl Renderer {
    /// Checks the plugins against each other.
    ///
    /// # Errors
    /// All conflicts and cycles among them.
    pub fn new(
        plugins: impl IntoIterator<Item = Arc<dyn Plugin>>,
        facts: ClusterFacts,
    ) -> Result<Self, Vec<PlanError>> {
        let plugins: Vec<_> = plugins.into_iter().collect();
        let infos = plugins.iter().map(|plugin| plugin.info().clone());
        let generation = Candidate::new(infos, &facts.accelerators).into_generation()?;
        let by_name = plugins
            .into_iter()
            .map(|plugin| (plugin.info().id.name.clone(), plugin))
            .collect();
        Ok(Self {
            generation,
            plugins: by_name,
            skipped: Vec::new(),
            facts,
        })
    }

    /// Records the plugins that were skipped: a TrainJob that needs one of them is refused with the reason.
    #[must_use]
    pub fn with_skipped(mut self, skipped: Vec<SkippedPlugin>) -> Self {
        self.skipped = skipped;
        self
    }

    /// Returns the plugins that were skipped.
    #[must_use]
    pub fn skipped(&self) -> &[SkippedPlugin] {
        &self.skipped
    }

    /// Wraps each plugin in another one.
    #[must_use]
    pub fn wrapped(mut self, wrap: impl Fn(Arc<dyn Plugin>) -> Arc<dyn Plugin>) -> Self {
        let plugins = self.plugins.into_iter();
        self.plugins = plugins.map(|(name, plugin)| (name, wrap(plugin))).collect();
        self
    }

    /// Returns a renderer without the plugin of this name.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn without(&self, name: &str) -> Result<Self, Vec<PlanError>> {
        let others = self.plugins.iter().filter(|(of, _)| &***of != name);
        let others = others.map(|(_, plugin)| plugin.clone());
        let skipped = self.skipped.clone();
        Ok(Self::new(others, self.facts.clone())?.with_skipped(skipped))
    }

    /// Replaces the facts, such as by those of another process. Its accelerators order the plugins, unless that order would be refused. The
    /// host's own facts stay.
    #[must_use]
    pub fn with_facts(mut self, facts: ClusterFacts) -> Self {
        let plugins = self.generation.plugins().cloned();
        if let Ok(generation) = Candidate::new(plugins, &facts.accelerators).into_generation() {
            self.generation = generation;
        }
        self.facts = ClusterFacts {
            host: self.facts.host,
            ..facts
        };
        self
    }

    /// Replaces the host's own facts by those of another renderer, which it shares.
    #[must_use]
    pub fn with_host_facts(mut self, host: HostFacts) -> Self {
        self.facts.host = host;
        self
    }

    /// Breaks ties between plugins by this list. See [`Generation::with_preference`].
    #[must_use]
    pub fn with_preference(mut self, names: impl IntoIterator<Item = Arc<str>>) -> Self {
        self.generation = self.generation.with_preference(names);
        self
    }

    /// Returns a renderer with the same plugins that breaks ties between them by this list.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn preferring(
        &self,
        names: impl IntoIterator<Item = Arc<str>>,
    ) -> Result<Self, Vec<PlanError>> {
        let same = Self::new(self.plugins.values().cloned(), self.facts.clone())?;
        let same = same.with_skipped(self.skipped.clone());
        Ok(same.with_preference(names))
    }

    /// Returns a loaded plugin, such as for another renderer.
    #[must_use]
    pub fn plugin(&self, name: &str) -> Option<&Arc<dyn Plugin>> {
        self.plugins.get(name)
    }

    /// Returns the loaded plugins with their order.
    #[must_use]
    pub const fn generation(&self) -> &Generation {
        &self.generation
    }

    /// Returns the maximum number of objects that plugins may emit for one TrainJob: the largest limit of a loaded plugin, or the default if
    /// that is larger.
    #[must_use]
    pub fn most_objects(&self) -> u64 {
        let plugins = self.generation.plugins();
        let limits = plugins.map(|plugin| plugin.settings.limits.objects);
        limits.fold(Limits::default().objects, u64::max)
    }

    /// Returns the operator's settings for all TrainJobs.
    #[must_use]
    pub const fn facts(&self) -> &ClusterFacts {
        &self.facts
    }

    /// Returns the plugins of a TrainJob in a namespace.
    ///
    /// # Errors
    /// All problems of the runtime, its configurations, the TrainJob's overrides for plugins, and the order for this TrainJob.
    pub fn plan(
        &self,
        job: &TrainJob,
        runtime: &Runtime,
        namespace: &str,
    ) -> Result<PlannedPlugins, Vec<Problem>> {
        let patched = resolve::patch_template(job, runtime, &self.facts, &Deadline::none())?;
        let planned = self.plan_with(job, runtime, namespace, &patched.record);
        unless_refused(patched.problems, planned)
    }

    /// Returns the problems of a runtime that are found before a plugin is called, for a TrainJob that uses it.
    #[must_use]
    pub fn runtime_problems(
        &self,
        job: &TrainJob,
        runtime: &Runtime,
        namespace: &str,
    ) -> Vec<Problem> {
        let problems = self.plan(job, runtime, namespace).err();
        let problems = problems.into_iter().flatten();
        problems
            .filter(|problem| problem.about() == InputObject::Runtime)
            .collect()
    }

    /// Returns the session that a TrainJob's first plugin is called with, for measuring single calls.
    ///
    /// # Errors
    /// All problems of the TrainJob and its runtime that are found before a plugin runs.
    pub fn session(
        &self,
        job: &TrainJob,
        runtime: &Runtime,
        namespace: &str,
    ) -> Result<Session, Vec<Problem>> {
        let patched = resolve::patch_template(job, runtime, &self.facts, &Deadline::none())?;
        let planned = self.plan_with(job, runtime, namespace, &patched.record)?;
        let active = &planned.active;
        let (resolved, problems) =
            resolve::resolve(job, runtime, patched, active, namespace, &self.facts);
        unless_refused(problems, Ok(Session::new(resolved.job, resolved.record)))
    }

    /// Renders one TrainJob with the objects that were looked up so far. The deadline is checked between steps: reading, each patch, each
    /// plugin call, assembling.
    ///
    /// # Errors
    /// [`Stopped::Needs`] if plugins look up an object that is not in `lookups`, or [`Stopped::Refused`] with all problems of the TrainJob and
    /// its runtime that can be found at once, or with [`Problem::Overdue`] if the deadline passes.
    pub fn render(
        &self,
        job: &TrainJob,
        runtime: &Runtime,
        namespace: &str,
        lookups: &Arc<Lookups>,
        deadline: &Deadline,
    ) -> Result<Rendered, Stopped> {
        let in_time = |step: &str| Problem::in_time(deadline, || step.to_owned());
        let span = phase_span("resolve");
        let mut patched = resolve::patch_template(job, runtime, &self.facts, deadline)?;
        let planned = match self.plan_with(job, runtime, namespace, &patched.record) {
            Ok(planned) => planned,
            Err(problems) => {
                patched.problems.extend(problems);
                return Err(Stopped::Refused(patched.problems));
            }
        };
        in_time("the plugins were ordered")?;
        let active = &planned.active;
        let (mut resolved, mut problems) =
            resolve::resolve(job, runtime, patched, active, namespace, &self.facts);
        in_time("the TrainJob's overrides were applied")?;
        drop(span);
        let plan = self.stages(active);
        let mut session = Session::new(resolved.job.clone(), std::mem::take(&mut resolved.record))
            .with_lookups(lookups.clone());
        let pipeline = Pipeline {
            plan: &plan,
            generation: &self.generation,
            deadline,
        };
        let transformed = run_phase(&pipeline, &mut session, Phase::Transform);
        let reserved = resolve::reserved_in_train_job(job, active, &session);
        if !problems.is_empty() {
            problems.extend(reserved.problems);
            problems.extend(refusals(transformed));
            resolved
                .authors(runtime, session.record())
                .locate(&mut problems);
            return Err(Stopped::Refused(problems));
        }
        let with_reserved =
            |ended| unless_refused(reserved.problems, ended).map_err(Stopped::Refused);
        let outcome = match transformed {
            Ok(()) => with_reserved(Ok(()))
                .and_then(|()| self.finish(&pipeline, &mut session, &resolved.journal)),
            Err(Stopped::Refused(of_plugins)) => with_reserved(Err(of_plugins)),
            needs => needs,
        };
        // Lines of a rendering that is started over would be logged twice.
        if !outcome.as_ref().is_err_and(is_started_over) {
            plugin_log::write(&session, namespace);
        }
        if let Err(mut stopped) = outcome {
            let authors = resolved.authors(runtime, session.record());
            authors.locate(stopped.problems_mut());
            return Err(stopped);
        }
        let _span = phase_span("assemble");
        let rendered = Rendered::assemble(
            (job, runtime),
            namespace,
            resolved,
            session,
            planned,
            reserved.warnings,
        );
        in_time("the JobSet was assembled")?;
        let problems = rendered.check();
        in_time("the pods were checked")?;
        unless_refused(problems, Ok(rendered)).map_err(Stopped::Refused)
    }

    /// Checks the record after transform, and runs the other phases.
    fn finish(
        &self,
        pipeline: &Pipeline<'_>,
        session: &mut Session,
        journal: &Journal,
    ) -> Result<(), Stopped> {
        // Checked first, because the next checks take a step for each container.
        totals::check_containers(session, pipeline.plan)?;
        self.check_and_order_init_containers(session, pipeline.plan, journal)?;
        Problem::in_time(pipeline.deadline, || "the record was checked".to_owned())?;
        run_phase(pipeline, session, Phase::Build)?;
        totals::check_objects(session, pipeline.plan)?;
        invariants::check_emitted_once(session)?;
        invariants::check_own_data(session)?;
        run_phase(pipeline, session, Phase::Check)
    }

    fn plan_with(
        &self,
        job: &TrainJob,
        runtime: &Runtime,
        namespace: &str,
        record: &Record,
    ) -> Result<PlannedPlugins, Vec<Problem>> {
        let (generation, skipped) = (&self.generation, &*self.skipped);
        let Selected { active, disabled } =
            select::select(generation, skipped, job, runtime, namespace, record)?;
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
        let order = generation
            .plan(&variables)
            .map_err(|errors| errors.into_iter().map(Problem::from).collect::<Vec<_>>())?;
        let active = order
            .into_iter()
            .filter_map(|plugin| active.get(&plugin.id.name).cloned())
            .collect();
        Ok(PlannedPlugins { active, disabled })
    }

    fn stages(&self, active: &[Active]) -> Vec<Stage<'_>> {
        pipeline::stages(active.iter().filter_map(|active| {
            let plugin: &dyn Plugin = &**self.plugins.get(&active.plugin.id.name)?;
            Some((plugin, active.config.clone()))
        }))
    }

    /// Checks the record after the last transform call, and orders the init containers.
    fn check_and_order_init_containers(
        &self,
        session: &mut Session,
        plan: &[Stage<'_>],
        journal: &Journal,
    ) -> Result<(), Vec<Problem>> {
        let record = session.record();
        let who = |owner: Owner| match owner {
            Owner::Runtime => "the runtime".to_owned(),
            Owner::Patch => "a runtime patch".to_owned(),
            Owner::TrainJob => "the TrainJob".to_owned(),
            Owner::Plugin(rank) => plan.iter().find(|stage| stage.rank == rank).map_or_else(
                || "a plugin".to_owned(),
                |stage| format!("the plugin {}", stage.plugin.info().id),
            ),
        };
        let writes = session.committed().iter().flat_map(|call| &call.writes);
        let changes = writes.map(|write| &write.change);
        let mut problems = invariants::check(record, changes, journal, &who);
        problems.extend(invariants::write_conflicts(session, &self.generation));
        let mut orders = Vec::new();
        for (set, position) in record.pod_sets.iter().zip(0u32..) {
            match assemble::place_init_containers(record, position) {
                Ok(Some(ids)) => orders.push((position, ids)),
                Ok(None) => {}
                Err(conflict) => problems.push(Problem::Invariant {
                    place: format!("pod-sets[{}].init-containers", set.name),
                    message: format!(
                        "the requested positions contradict each other: {}; exclude one of the plugins that request them",
                        conflict.names.join(", ")
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

/// Returns the span of a phase, until it is dropped. The controller can export it. It is in the log only at the level `trace`.
fn phase_span(phase: &'static str) -> EnteredSpan {
    tracing::trace_span!("phase", phase).entered()
}

fn run_phase(pipeline: &Pipeline<'_>, session: &mut Session, phase: Phase) -> Result<(), Stopped> {
    let _span = phase_span(phase.name());
    let ended = pipeline.run(session, phase);
    ended.map_err(|stopped| stopped.map(Problem::from))
}

/// Returns the refusals by plugins of a TrainJob that already has problems, so that all are reported at once. Failed calls are ignored,
/// because the problems may be their cause, and lookups because their answers are not needed.
fn refusals(transformed: Result<(), Stopped>) -> impl Iterator<Item = Problem> {
    let stopped = transformed.err().into_iter();
    let problems = stopped.flat_map(Stopped::into_problems);
    problems.filter(|problem| matches!(problem, Problem::Refused { .. }))
}

/// Whether the same TrainJob will be rendered again.
fn is_started_over(stopped: &Stopped) -> bool {
    match stopped {
        Stopped::Needs(_) => true,
        Stopped::Refused(problems) => problems.iter().any(Problem::is_transient),
    }
}

/// Returns the outcome if there are no problems, or else the problems of both.
fn unless_refused<T>(
    problems: Vec<Problem>,
    outcome: Result<T, Vec<Problem>>,
) -> Result<T, Vec<Problem>> {
    match outcome {
        Ok(outcome) if problems.is_empty() => Ok(outcome),
        Ok(_) => Err(problems),
        Err(more) => Err(problems.into_iter().chain(more).collect()),
    }
}
