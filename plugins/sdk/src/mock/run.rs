//! Runs the plugins of a test in their order, by the pipeline of the host.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use trainyard_model::{
    claims::Variables,
    deadline::Deadline,
    job::Job,
    lookup::LookupKey,
    pipeline::{self, Clash, PhaseError, Pipeline, Stage, Stopped, with_answers},
    plan::Generation,
    plugin::{Phase, Plugin},
    plugin_info::PluginInfo,
    record::Record,
    session::Session,
};

use super::{MockError, MockPlugin, Outcome, lookups::Cluster};
use crate::native::NativePlugin;

/// A loaded plugin with its complete configuration.
pub(super) struct ConfiguredPlugin {
    plugin: NativePlugin,
    config: Arc<Value>,
}

impl ConfiguredPlugin {
    /// Loads a plugin, and checks its configuration in the runtime.
    pub(super) fn load(plugin: MockPlugin, config: Value) -> Result<Self, MockError> {
        let plugin = plugin.load()?;
        let config = plugin.info().config(config).map_err(|errors| {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            MockError::Config(format!(
                "plugin {}: {}",
                plugin.info().id,
                errors.join("; ")
            ))
        })?;
        Ok(Self { plugin, config })
    }
}

/// The plugins of a test, checked against each other.
pub(super) struct Plugins {
    loaded: Vec<ConfiguredPlugin>,
    generation: Generation,
}

impl Plugins {
    pub(super) fn new(loaded: Vec<ConfiguredPlugin>) -> Result<Self, MockError> {
        let infos = loaded.iter().map(|one| one.plugin.info().clone());
        let generation = Generation::new(infos).map_err(MockError::Order)?;
        Ok(Self { loaded, generation })
    }

    /// Returns the plugins in their order for a TrainJob.
    fn stages(&self, job: &Job) -> Result<Vec<Stage<'_>>, MockError> {
        let by_name: BTreeMap<_, _> = self
            .loaded
            .iter()
            .map(|one| (one.plugin.info().id.name.clone(), one))
            .collect();
        let variables = by_name.iter().map(|(name, one)| {
            let variables = Variables {
                job: job.name.clone(),
                config: one.config.clone(),
            };
            (name.clone(), variables)
        });
        let order = self.generation.plan(&variables.collect());
        let order = order.map_err(MockError::Order)?;
        Ok(pipeline::stages(order.iter().filter_map(
            |plugin: &Arc<PluginInfo>| {
                let one = by_name.get(&plugin.id.name)?;
                Some((&one.plugin as &dyn Plugin, one.config.clone()))
            },
        )))
    }

    /// Runs these phases of all plugins.
    pub(super) fn run(
        &self,
        job: Arc<Job>,
        record: Record,
        cluster: &Cluster,
        phases: &[Phase],
    ) -> Result<Outcome, MockError> {
        let plan = self.stages(&job)?;
        let pipeline = Pipeline {
            plan: &plan,
            generation: &self.generation,
            deadline: &Deadline::none(),
        };
        let answer = |key: &LookupKey| cluster.answer(key, (&*job).into());
        // Tests also inspect the writes before a reported error.
        let mut session = None;
        let mut clashes = Vec::new();
        let ended = with_answers(answer, |lookups| {
            let fresh = Session::new(job.clone(), record.clone()).with_lookups(lookups.clone());
            let session = session.insert(fresh);
            for phase in phases {
                pipeline.run(session, *phase)?;
                clashes = self.clashes(session, *phase);
                if !clashes.is_empty() {
                    break;
                }
            }
            Ok(())
        });
        if !clashes.is_empty() {
            return Err(MockError::Clash(clashes));
        }
        let mut session = session.unwrap_or_else(|| Session::new(job.clone(), record));
        match ended {
            Ok(()) if phases.contains(&Phase::Build) => own_data_is_emitted(&session)?,
            Ok(()) => {}
            Err(Stopped::Needs(needs)) => {
                let mut lookups = needs.lookups.into_iter();
                lookups
                    .next()
                    .map_or(Ok(()), |lookup| Err(MockError::NoObject(Box::new(lookup))))?;
            }
            Err(Stopped::Refused(errors)) => errors.into_iter().try_for_each(failed)?,
        }
        let names = plan.iter().map(|stage| &*stage.plugin.info().id.name);
        let committed = session.take_committed().into_iter();
        let writes = committed.flat_map(|committed| committed.writes).collect();
        Ok(Outcome::new(session, writes, names))
    }

    /// Returns the conflicts that a host finds after a phase.
    fn clashes(&self, session: &Session, phase: Phase) -> Vec<Clash> {
        match phase {
            Phase::Transform => pipeline::clashing_writes(session, &self.generation),
            Phase::Build => pipeline::clashing_objects(session),
            Phase::Check => Vec::new(),
        }
    }
}

fn own_data_is_emitted(session: &Session) -> Result<(), MockError> {
    let first = session.find_missing_objects().pop_first();
    first.map_or(Ok(()), |missing| {
        Err(MockError::MissingObject(Box::new(missing)))
    })
}

/// Converts the error of a phase. Errors that the plugin reported are part of the outcome instead.
fn failed(error: PhaseError) -> Result<(), MockError> {
    match error {
        PhaseError::Reported(_) => Ok(()),
        PhaseError::Call(error) => Err(MockError::Call(error)),
        other => Err(MockError::Phase(Box::new(other))),
    }
}
