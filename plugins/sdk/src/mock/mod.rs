//! A mock host: the host's own record and rules behind the same handles, for unit tests of a plugin.
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

#![expect(
    clippy::result_large_err,
    reason = "an error ends a test, and shows the whole call"
)]

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
    pipeline::{PendingLookup, PhaseError, Pipeline, Step, Stopped, with_answers},
    plan::{Generation, PlanError},
    plugin::Settings,
    policy::{Phase, Policy},
    record::{Field, Record},
    session::{CallError, MissingObject, Session},
};

use self::lookups::Cluster;
pub use self::{
    outcome::Outcome,
    pods::{MockContainer, MockPodSet},
};
use crate::{
    PluginParts,
    native::{NativeError, NativePolicy},
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

/// Why a call counts for nothing: the host's own error, or a plugin that no host would load.
///
/// `Debug` prints it as `Display` does, so that `unwrap` in a test shows the sentence.
#[derive(thiserror::Error)]
pub enum MockError {
    /// How the call ended.
    #[error(transparent)]
    Call(#[from] Box<CallError>),
    /// What was wrong between two calls.
    #[error(transparent)]
    Phase(PhaseError),
    /// The plugin looks up an object that the test did not give to [`MockJob::object`].
    #[error("{0}; give the object with `MockJob::object`")]
    NoObject(PendingLookup),
    /// A volume or an env var refers to an object of the plugin that it did not emit.
    #[error("{}: {}", .0.place, .0)]
    MissingObject(MissingObject),
    /// The plugin is not loaded.
    #[error(transparent)]
    Plugin(#[from] NativeError),
    /// The order that the plugin declares is impossible.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Order(Vec<PlanError>),
    /// Its configuration fails its schema.
    #[error("the configuration is refused: {0}")]
    Config(String),
    /// A grant is not a path.
    #[error("the grant {0}")]
    Grant(#[from] PathError),
    /// There is no such limit, or it can't have that value.
    #[error("the limits are refused: {0}")]
    Limits(#[from] serde_json::Error),
}

impl fmt::Debug for MockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl MockJob {
    /// A TrainJob of that name with one node, and no pod sets yet.
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

    /// The TrainJob's `spec`, which plugins read by claims `job[POINTER]`.
    #[must_use]
    pub fn spec(mut self, spec: Value) -> Self {
        self.job.spec = Arc::new(spec);
        self
    }

    /// The number of nodes.
    #[must_use]
    pub fn nodes(mut self, nodes: u32) -> Self {
        self.job.nodes = nodes;
        self
    }

    /// An explicit number of processes per node.
    #[must_use]
    pub fn processes_per_node(mut self, processes: u32) -> Self {
        self.job.processes_per_node = Some(processes);
        self
    }

    /// Its namespace; `default` where nothing is said.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.job.namespace = namespace.into();
        self
    }

    /// Its UID, which goes into hashed names.
    #[must_use]
    pub fn uid(mut self, uid: &str) -> Self {
        self.job.uid = uid.into();
        self
    }

    /// It is suspended.
    #[must_use]
    pub fn suspended(mut self) -> Self {
        self.job.suspended = true;
        self
    }

    /// A label of the TrainJob.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.job.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// An annotation of the TrainJob.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.job
            .annotations
            .insert(key.to_owned(), value.to_owned());
        self
    }

    /// The runtime that it names, as `ClusterTrainingRuntime` and `torch-distributed`.
    #[must_use]
    pub fn runtime(mut self, kind: &str, name: &str) -> Self {
        self.job.runtime.kind = kind.into();
        self.job.runtime.name = name.into();
        self
    }

    /// A label of the runtime.
    #[must_use]
    pub fn runtime_label(mut self, key: &str, value: &str) -> Self {
        let labels = &mut self.job.runtime.labels;
        labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// An annotation of the runtime.
    #[must_use]
    pub fn runtime_annotation(mut self, key: &str, value: &str) -> Self {
        let annotations = &mut self.job.runtime.annotations;
        annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// A label that the JobSet has.
    #[must_use]
    pub fn job_set_label(mut self, key: &str, value: &str) -> Self {
        self.record.fields.load(Field::Labels, key, value.into());
        self
    }

    /// An annotation that the JobSet has.
    #[must_use]
    pub fn job_set_annotation(mut self, key: &str, value: &str) -> Self {
        let fields = &mut self.record.fields;
        fields.load(Field::Annotations, key, value.into());
        self
    }

    /// The plugin's configuration in the runtime.
    #[must_use]
    pub fn config(mut self, config: Value) -> Self {
        self.config = config;
        self
    }

    /// What the operator sets for the plugin in the policy file's `config`.
    #[must_use]
    pub fn operator_config(mut self, config: Value) -> Self {
        self.settings.operator_config = Arc::new(config);
        self
    }

    /// What the operator grants the plugin beyond the default, as in the policy file's `grants`.
    #[must_use]
    pub fn grants(mut self, grants: &[&str]) -> Self {
        self.grants
            .extend(grants.iter().copied().map(str::to_owned));
        self
    }

    /// Grants all that the plugin claims, as for the plugins that are built in.
    #[must_use]
    pub fn all_granted(mut self) -> Self {
        self.settings.grants = Grants::AsClaimed;
        self
    }

    /// A limit of one call, as in the policy file's `limits`. Fuel, memory and time are not measured here.
    #[must_use]
    pub fn limit(mut self, name: &str, limit: u64) -> Self {
        self.limits.insert(name.to_owned(), limit.into());
        self
    }

    /// A fact of the operator's policy file, as `status/url`.
    #[must_use]
    pub fn fact(mut self, name: &str, text: &str) -> Self {
        self.job.facts = self.job.facts.with(name, text);
        self
    }

    /// The DNS subdomain of the pods.
    #[must_use]
    pub fn subdomain(mut self, subdomain: &str) -> Self {
        self.record.subdomain = subdomain.into();
        self
    }

    /// The pods have no DNS names (`network.enableDNSHostnames: false`).
    #[must_use]
    pub const fn without_host_names(mut self) -> Self {
        self.record.has_host_names = false;
        self
    }

    /// A pod set.
    #[must_use]
    pub fn pod_set(mut self, name: &str, build: impl FnOnce(MockPodSet) -> MockPodSet) -> Self {
        build(MockPodSet::new(name)).load(&mut self.record);
        self
    }

    /// An object that the plugin can look up.
    #[must_use]
    pub fn object(mut self, object: Value) -> Self {
        self.cluster.objects.push(object);
        self
    }

    /// The cluster does not serve the kind: a lookup of it gives none.
    #[must_use]
    pub fn not_served(mut self, api_version: &str, kind: &str) -> Self {
        let kind = (api_version.to_owned(), kind.to_owned());
        self.cluster.not_served.push(kind);
        self
    }

    /// Runs transform alone.
    ///
    /// # Errors
    /// How the call ended.
    pub fn transform(self, plugin: &PluginParts) -> Result<Outcome, MockError> {
        self.run(plugin, &[Phase::Transform])
    }

    /// Runs every phase that the plugin has, in the order of a TrainJob. As in a cluster, no phase follows one in which the plugin reports
    /// an error, and the first phase starts over once an object was looked up.
    ///
    /// # Errors
    /// How the first call that failed ended.
    pub fn all_phases(self, plugin: &PluginParts) -> Result<Outcome, MockError> {
        self.run(plugin, &Phase::ALL)
    }

    /// Adds what was written as in a policy file to the operator's settings.
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
        let policy = NativePolicy::new(plugin, self.settings)?;
        let config = policy.plugin().config(self.config).map_err(|errors| {
            MockError::Config(
                errors
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("; "),
            )
        })?;
        let generation = Generation::new([policy.plugin().clone()]).map_err(MockError::Order)?;
        let plan = [Step {
            policy: &policy,
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
        // What a plugin did before it reported errors is what tests look at, too.
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
                    .map_or(Ok(()), |lookup| Err(MockError::NoObject(lookup)))?;
            }
            Err(Stopped::Refused(errors)) => errors.into_iter().try_for_each(failed)?,
        }
        Ok(Outcome::new(session))
    }
}

fn own_data_is_emitted(session: &Session) -> Result<(), MockError> {
    let first = session.find_missing_objects().pop_first();
    first.map_or(Ok(()), |find_missing_objects| {
        Err(MockError::MissingObject(find_missing_objects))
    })
}

/// Fails unless the plugin went on: what it reported is part of the outcome.
fn failed(error: PhaseError) -> Result<(), MockError> {
    match error {
        PhaseError::Reported(_) => Ok(()),
        PhaseError::Call(error) => Err(MockError::Call(error)),
        other => Err(MockError::Phase(other)),
    }
}
