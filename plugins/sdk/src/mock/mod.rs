//! A mock host for unit tests of a plugin. It uses the host's own record and rules.
//!
//! ```
//! # use trainyard_sdk::{mock::MockJob, Context, Failure, Transform};
//! # struct Greeter;
//! # impl Transform for Greeter {
//! #     fn transform(ctx: &Context) -> Result<(), Failure> {
//! #         ctx.info().with_ancestor("trainer")[0].container("node").unwrap().put_env("GREETING", "hello");
//! #         Ok(())
//! #     }
//! # }
//! # mod plugin {
//! #     use trainyard_sdk::{Phases, PluginParts, Transform};
//! #     pub const PLUGIN: PluginParts = PluginParts {
//! #         manifest: r#"{"name":"greeter","activeWhen":"plugins","claims":{"writes":["pod-sets[@trainer].containers[node].env[GREETING]"]}}"#,
//! #         parts: r#"{"version":"0.1.0","contract":"1.0.0","phases":["transform"]}"#,
//! #         phases: Phases { transform: Some(super::Greeter::transform), ..Phases::NONE },
//! #     };
//! # }
//! # use plugin::PLUGIN;
//! # fn main() {
//! let outcome = MockJob::new("llama")
//!     .pod_set("node", |set| set.ancestor("trainer").count(4).container("node", |c| c.image("torch")))
//!     .transform(&PLUGIN)
//!     .expect("the plugin accepts the job");
//! assert_eq!(outcome.value("pod-sets[node].containers[node].env[GREETING]"), Some("hello".into()));
//! # }
//! ```

mod lookups;
mod outcome;
mod pods;

use std::{fmt, sync::Arc};

use serde_json::{Map, Value, json};
use trainyard_model::{
    claims::{Grants, PathError},
    deadline::Deadline,
    job::Job,
    lookup::LookupKey,
    pipeline::{PendingLookup, PhaseError, Pipeline, Stage, Stopped, with_answers},
    plan::{Generation, PlanError},
    plugin::{Phase, Plugin},
    plugin_info::Settings,
    record::{Field, Record},
    session::{CallError, MissingObject, Session},
};

use self::lookups::Cluster;
pub use self::{
    outcome::Outcome,
    pods::{MockContainer, MockPodSet},
};
#[doc(inline)]
pub use trainyard_model::object::EmittedObject;

use crate::{
    PluginParts,
    native::{NativeError, NativePlugin},
};

/// A TrainJob for a test.
#[derive(Debug)]
pub struct MockJob {
    job: Job,
    record: Record,
    config: Value,
    settings: Settings,
    grants: Vec<String>,
    limits: Map<String, Value>,
    cluster: Cluster,
}

/// The reason why a call failed: the host's own error, or a plugin that no host would load.
///
/// `Debug` prints the same as `Display`, so that `unwrap` in a test shows a readable message.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum MockError {
    /// The call failed.
    #[error(transparent)]
    Call(#[from] Box<CallError>),
    /// A phase failed after its call.
    #[error(transparent)]
    Phase(Box<PhaseError>),
    /// The plugin looks up an object that the test did not add with [`MockJob::object`].
    #[error("{0}; add the object with `MockJob::object`")]
    NoObject(Box<PendingLookup>),
    /// A volume or an env var refers to an object of the plugin that it did not emit.
    #[error("{}: {}", .0.place, .0)]
    MissingObject(Box<MissingObject>),
    /// The plugin is not loaded.
    #[error(transparent)]
    Plugin(Box<NativeError>),
    /// The order that the plugin declares is impossible.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Order(Vec<PlanError>),
    /// The configuration does not match its schema.
    #[error("the configuration is refused: {0}")]
    Config(String),
    /// A grant is not a valid path.
    #[error("the grant {0}")]
    Grant(#[from] PathError),
    /// The limit does not exist or cannot have this value.
    #[error("the limits are refused: {0}")]
    Limits(#[from] serde_json::Error),
}

impl From<NativeError> for MockError {
    fn from(error: NativeError) -> Self {
        Self::Plugin(Box::new(error))
    }
}

impl fmt::Debug for MockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl MockJob {
    /// Creates a TrainJob with this name, one node and no pod sets.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let job = Job {
            name: name.into(),
            namespace: "default".into(),
            uid: "00000000-0000-0000-0000-000000000000".into(),
            nodes: 1,
            spec: Arc::new(json!({})),
            ..Job::default()
        };
        Self {
            job,
            record: Record::new(name, name, "cluster.local"),
            config: json!({}),
            settings: Settings::default(),
            grants: Vec::new(),
            limits: Map::new(),
            cluster: Cluster::default(),
        }
    }

    /// Sets the TrainJob's `spec`, which plugins read with claims `job[POINTER]`.
    #[must_use]
    pub fn spec(mut self, spec: Value) -> Self {
        self.job.spec = Arc::new(spec);
        self
    }

    /// Sets the number of nodes.
    #[must_use]
    pub fn nodes(mut self, nodes: u32) -> Self {
        self.job.nodes = nodes;
        self
    }

    /// Sets an explicit number of processes per node.
    #[must_use]
    pub fn processes_per_node(mut self, processes: u32) -> Self {
        self.job.processes_per_node = Some(processes);
        self
    }

    /// Sets the namespace; `default` by default.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.job.namespace = namespace.into();
        self
    }

    /// Sets the UID, which hashed names include.
    #[must_use]
    pub fn uid(mut self, uid: &str) -> Self {
        self.job.uid = uid.into();
        self
    }

    /// Suspends the TrainJob.
    #[must_use]
    pub fn suspended(mut self) -> Self {
        self.job.suspended = true;
        self
    }

    /// Sets a label of the TrainJob.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.job.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets an annotation of the TrainJob.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.job
            .annotations
            .insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets the runtime that the TrainJob names, such as `ClusterTrainingRuntime` and `torch-distributed`.
    #[must_use]
    pub fn runtime(mut self, kind: &str, name: &str) -> Self {
        self.job.runtime.kind = kind.into();
        self.job.runtime.name = name.into();
        self
    }

    /// Sets a label of the runtime.
    #[must_use]
    pub fn runtime_label(mut self, key: &str, value: &str) -> Self {
        let labels = &mut self.job.runtime.labels;
        labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets an annotation of the runtime.
    #[must_use]
    pub fn runtime_annotation(mut self, key: &str, value: &str) -> Self {
        let annotations = &mut self.job.runtime.annotations;
        annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets a label of the JobSet.
    #[must_use]
    pub fn job_set_label(mut self, key: &str, value: &str) -> Self {
        self.record.fields.load(Field::Labels, key, value.into());
        self
    }

    /// Sets an annotation of the JobSet.
    #[must_use]
    pub fn job_set_annotation(mut self, key: &str, value: &str) -> Self {
        let fields = &mut self.record.fields;
        fields.load(Field::Annotations, key, value.into());
        self
    }

    /// Sets the plugin's configuration in the runtime.
    #[must_use]
    pub fn config(mut self, config: Value) -> Self {
        self.config = config;
        self
    }

    /// Sets the plugin's configuration in the policy file (`config`).
    #[must_use]
    pub fn operator_config(mut self, config: Value) -> Self {
        self.settings.operator_config = Arc::new(config);
        self
    }

    /// Adds grants, as in the policy file's `grants`.
    #[must_use]
    pub fn grants(mut self, grants: &[&str]) -> Self {
        self.grants
            .extend(grants.iter().copied().map(str::to_owned));
        self
    }

    /// Grants everything that the plugin claims, as for built-in plugins.
    #[must_use]
    pub fn all_granted(mut self) -> Self {
        self.settings.grants = Grants::AsClaimed;
        self
    }

    /// Sets a limit of one call, as in the policy file's `limits`. The mock host does not measure fuel, memory and time.
    #[must_use]
    pub fn limit(mut self, name: &str, limit: u64) -> Self {
        self.limits.insert(name.to_owned(), limit.into());
        self
    }

    /// Sets a fact of the operator's policy file, such as `status/url`.
    #[must_use]
    pub fn fact(mut self, name: &str, text: &str) -> Self {
        self.job.facts = self.job.facts.with(name, text);
        self
    }

    /// Sets the DNS subdomain of the pods.
    #[must_use]
    pub fn subdomain(mut self, subdomain: &str) -> Self {
        self.record.subdomain = subdomain.into();
        self
    }

    /// Disables the DNS names of the pods (`network.enableDNSHostnames: false`).
    #[must_use]
    pub const fn without_host_names(mut self) -> Self {
        self.record.has_host_names = false;
        self
    }

    /// Adds a pod set.
    #[must_use]
    pub fn pod_set(mut self, name: &str, build: impl FnOnce(MockPodSet) -> MockPodSet) -> Self {
        build(MockPodSet::new(name)).load(&mut self.record);
        self
    }

    /// Sets the number of nodes, and adds the pod set whose pods they are: `node` with the ancestor `trainer` and a container `node`.
    #[must_use]
    pub fn trainer(
        self,
        nodes: u32,
        container: impl FnOnce(MockContainer) -> MockContainer,
    ) -> Self {
        self.nodes(nodes).pod_set("node", |set| {
            set.ancestor("trainer")
                .count(nodes)
                .container("node", container)
        })
    }

    /// Adds an object that the plugin can look up.
    #[must_use]
    pub fn object(mut self, object: Value) -> Self {
        self.cluster.objects.push(object);
        self
    }

    /// Adds an object to the catalog ([`Lookups::find_in_catalog`](crate::Lookups::find_in_catalog)).
    #[must_use]
    pub fn catalog_object(mut self, object: Value) -> Self {
        self.cluster.catalog.push(object);
        self
    }

    /// Makes the cluster not serve the kind: lookups of it return `None`.
    #[must_use]
    pub fn not_served(mut self, api_version: &str, kind: &str) -> Self {
        let kind = (api_version.to_owned(), kind.to_owned());
        self.cluster.not_served.push(kind);
        self
    }

    /// Runs only the transform phase.
    ///
    /// # Errors
    /// The call failed.
    pub fn transform(self, plugin: &PluginParts) -> Result<Outcome, MockError> {
        self.run(plugin, &[Phase::Transform])
    }

    /// Runs all phases of the plugin, in order. As in a cluster, a phase in which the plugin reports an error is the last one, and the
    /// first phase is called again after each lookup.
    ///
    /// # Errors
    /// The first call that failed.
    pub fn all_phases(self, plugin: &PluginParts) -> Result<Outcome, MockError> {
        self.run(plugin, &Phase::ALL)
    }

    /// Parses the policy file's settings and adds them to the operator's settings.
    fn read_settings(&mut self) -> Result<(), MockError> {
        if let Grants::Paths(paths) = &mut self.settings.grants {
            for grant in &self.grants {
                paths.push(grant.parse()?);
            }
        }
        if !self.limits.is_empty() {
            let limits = Value::Object(std::mem::take(&mut self.limits));
            self.settings.limits = serde_json::from_value(limits)?;
        }
        Ok(())
    }

    fn run(mut self, plugin: &PluginParts, phases: &[Phase]) -> Result<Outcome, MockError> {
        self.read_settings()?;
        let plugin = NativePlugin::new(plugin, self.settings)?;
        let config = plugin.info().config(self.config).map_err(|errors| {
            MockError::Config(
                errors
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("; "),
            )
        })?;
        let generation = Generation::new([plugin.info().clone()]).map_err(MockError::Order)?;
        let plan = [Stage {
            plugin: &plugin,
            config,
            rank: 0,
        }];
        let pipeline = Pipeline {
            plan: &plan,
            generation: &generation,
            deadline: &Deadline::none(),
        };
        let (job, cluster) = (Arc::new(self.job), self.cluster);
        let answer = |key: &LookupKey| cluster.answer(key, (&*job).into());
        // Tests also inspect the writes before a reported error.
        let mut session = None;
        let ended = with_answers(answer, |lookups| {
            let fresh =
                Session::new(job.clone(), self.record.clone()).with_lookups(lookups.clone());
            let session = session.insert(fresh);
            for phase in phases {
                pipeline.run(session, *phase)?;
            }
            Ok(())
        });
        let session = session.unwrap_or_else(|| Session::new(job.clone(), self.record));
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
        Ok(Outcome::new(session))
    }
}

fn own_data_is_emitted(session: &Session) -> Result<(), MockError> {
    let first = session.find_missing_objects().pop_first();
    first.map_or(Ok(()), |find_missing_objects| {
        Err(MockError::MissingObject(Box::new(find_missing_objects)))
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
