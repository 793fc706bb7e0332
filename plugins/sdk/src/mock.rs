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
//! #     use trainyard_sdk::{native::Phases, PluginParts, Transform};
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

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_model::{
    job::Job,
    lookup::{LookupAnswer, LookupKey},
    object::Object,
    plugin::Settings,
    policy::{Phase, Policy},
    record::{Container, Datum, Field, Fields, Owner, PodSet, Record},
    session::{CallError, Session},
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
    objects: Vec<Value>,
}

/// What a plugin did to a TrainJob.
#[derive(Debug)]
pub struct Outcome {
    session: Session,
}

/// Why a call counts for nothing: the host's own error, or a plugin that no host would load.
#[derive(Debug, thiserror::Error)]
pub enum MockError {
    /// How the call ended.
    #[error(transparent)]
    Call(#[from] Box<CallError>),
    /// The plugin is not loaded.
    #[error(transparent)]
    Plugin(#[from] NativeError),
    /// Its configuration fails its schema.
    #[error("the configuration is refused: {0}")]
    Config(String),
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
            objects: Vec::new(),
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

    /// The plugin's configuration in the runtime.
    #[must_use]
    pub fn config(mut self, config: Value) -> Self {
        self.config = config;
        self
    }

    /// What the operator sets: grants, limits, configuration.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// The DNS subdomain of the pods.
    #[must_use]
    pub fn subdomain(mut self, subdomain: &str) -> Self {
        self.record.subdomain = subdomain.into();
        self
    }

    /// A pod set.
    #[must_use]
    pub fn pod_set(mut self, name: &str, build: impl FnOnce(MockPodSet) -> MockPodSet) -> Self {
        let built = build(MockPodSet {
            set: PodSet::new(name),
            containers: Vec::new(),
        });
        let position = u32::try_from(self.record.pod_sets.len()).unwrap_or(u32::MAX);
        let mut set = built.set;
        set.counts_nodes = set.ancestor.as_deref() == Some("trainer");
        self.record.pod_sets.push(set);
        for mut container in built.containers {
            let (list, name) = (container.list, container.name.clone());
            container.pod_set = position;
            let id = self.record.new_container(container);
            if let Some(set) = self.record.pod_sets.get_mut(position as usize) {
                set.fields.load(list, &name, Datum::Container(id));
            }
        }
        self
    }

    /// An object that the plugin can look up.
    #[must_use]
    pub fn object(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// Runs transform alone.
    ///
    /// # Errors
    /// How the call ended.
    pub fn transform(self, plugin: &PluginParts) -> Result<Outcome, MockError> {
        self.run(plugin, &[Phase::Transform])
    }

    /// Runs every phase that the plugin has, in the order of a TrainJob.
    ///
    /// # Errors
    /// How the first call that failed ended.
    pub fn all_phases(self, plugin: &PluginParts) -> Result<Outcome, MockError> {
        self.run(plugin, &Phase::ALL)
    }

    fn run(self, plugin: &PluginParts, phases: &[Phase]) -> Result<Outcome, MockError> {
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
        let mut session = Session::new(Arc::new(self.job), self.record);
        for phase in phases
            .iter()
            .filter(|phase| policy.plugin().manifest.has(**phase))
        {
            loop {
                let Err(error) = session.call(&policy, *phase, 0, config.clone()) else {
                    break;
                };
                let answer = error
                    .missing()
                    .and_then(|key| Some((key.clone(), answer(&self.objects, key)?)));
                match answer {
                    Some((key, answer)) => session.learn(key, answer),
                    None => return Err(error.into()),
                }
            }
        }
        Ok(Outcome { session })
    }
}

fn answer(objects: &[Value], key: &LookupKey) -> Option<LookupAnswer> {
    let text = |object: &Value, pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let is = |object: &Value, version: &str, kind: &str| {
        text(object, "/apiVersion") == version && text(object, "/kind") == kind
    };
    match key {
        LookupKey::Object {
            api_version,
            kind,
            name,
        } => objects
            .iter()
            .find(|object| is(object, api_version, kind) && text(object, "/metadata/name") == *name)
            .map(|object| LookupAnswer::Object(Arc::new(object.clone()))),
        LookupKey::All { api_version, kind } => {
            let found = objects
                .iter()
                .filter(|object| is(object, api_version, kind));
            Some(LookupAnswer::All(
                found.map(|object| Arc::new(object.clone())).collect(),
            ))
        }
        LookupKey::Served { .. } => Some(LookupAnswer::Served(true)),
    }
}

impl Outcome {
    /// The value at a path of the record (`pod-sets[node].containers[node].env[NAME]`) that the plugin wrote; none where
    /// it wrote nothing there, or removed it.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<Value> {
        self.writes()
            .into_iter()
            .rev()
            .find(|(at, _)| at == path)
            .and_then(|(_, value)| value)
    }

    /// Everything that the plugin wrote, in its order; none is a removal.
    #[must_use]
    pub fn writes(&self) -> Vec<(String, Option<Value>)> {
        let record = self.session.record();
        let changes = self
            .session
            .committed()
            .iter()
            .flat_map(|committed| &committed.changes);
        changes
            .map(|change| {
                (
                    record.path(&change.place).to_string(),
                    change.new.as_ref().and_then(Datum::to_json),
                )
            })
            .collect()
    }

    /// The objects that it emitted.
    #[must_use]
    pub fn objects(&self) -> Vec<&Object> {
        self.session
            .emitted()
            .iter()
            .map(|emitted| &emitted.object)
            .collect()
    }

    /// What it warned of.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.session
            .warnings()
            .iter()
            .map(|said| said.failure.to_string())
            .collect()
    }

    /// What it refuses the TrainJob for by [`Context::error`](crate::Context::error).
    #[must_use]
    pub fn errors(&self) -> Vec<String> {
        self.session
            .errors()
            .iter()
            .map(|said| said.failure.to_string())
            .collect()
    }
}

/// A pod set for a test.
#[derive(Debug)]
pub struct MockPodSet {
    set: PodSet,
    containers: Vec<Container>,
}

impl MockPodSet {
    /// Its ancestor label, as `trainer`.
    #[must_use]
    pub fn ancestor(mut self, ancestor: &str) -> Self {
        self.set.ancestor = Some(ancestor.into());
        self
    }

    /// Its number of pods.
    #[must_use]
    pub fn count(mut self, count: u32) -> Self {
        self.set.count = count;
        self
    }

    /// A container.
    #[must_use]
    pub fn container(self, name: &str, build: impl FnOnce(MockContainer) -> MockContainer) -> Self {
        self.add(Field::Containers, name, build)
    }

    /// An init container.
    #[must_use]
    pub fn init_container(
        self,
        name: &str,
        build: impl FnOnce(MockContainer) -> MockContainer,
    ) -> Self {
        self.add(Field::InitContainers, name, build)
    }

    /// Devices of a resource claim, as a DRA policy leaves them.
    #[must_use]
    pub fn claimed_devices(mut self, claim: &str, count: Option<u32>) -> Self {
        let devices = json!({ "count": count, "accelerator": true });
        self.set
            .fields
            .load(Field::Devices, &format!("claim/{claim}"), devices.into());
        self
    }

    fn add(
        mut self,
        list: Field,
        name: &str,
        build: impl FnOnce(MockContainer) -> MockContainer,
    ) -> Self {
        let container = Container {
            name: name.into(),
            pod_set: 0,
            list,
            home: Owner::Runtime,
            runtime_command: None,
            runtime_args: None,
            fields: Fields::default(),
        };
        self.containers.push(build(MockContainer(container)).0);
        self
    }
}

/// A container for a test.
#[derive(Debug)]
pub struct MockContainer(Container);

impl MockContainer {
    fn load(mut self, field: Field, key: &str, datum: Datum) -> Self {
        self.0.fields.load(field, key, datum);
        self
    }

    /// Its image.
    #[must_use]
    pub fn image(self, image: &str) -> Self {
        self.load(Field::Image, "", image.into())
    }

    /// Its command, as the runtime has it.
    #[must_use]
    pub fn command(mut self, command: &[&str]) -> Self {
        self.0.runtime_command = Some(command.iter().map(|&item| item.into()).collect());
        self.command_override(command)
    }

    /// Its command, as the TrainJob overrides it.
    #[must_use]
    pub fn command_override(self, command: &[&str]) -> Self {
        let command: Vec<String> = command.iter().map(|&item| item.to_owned()).collect();
        self.load(Field::Command, "", command.as_slice().into())
    }

    /// An env var of the runtime.
    #[must_use]
    pub fn env(self, name: &str, value: &str) -> Self {
        self.load(Field::Env, name, value.into())
    }

    /// A port of the runtime.
    #[must_use]
    pub fn port(self, number: u16, protocol: &str, name: Option<&str>) -> Self {
        let port = json!({ "name": name, "containerPort": number, "protocol": protocol });
        self.load(Field::Ports, &format!("{number}/{protocol}"), port.into())
    }

    /// A resource request.
    #[must_use]
    pub fn request(self, resource: &str, amount: &str) -> Self {
        self.load(Field::Requests, resource, amount.into())
    }

    /// A resource limit.
    #[must_use]
    pub fn limit(self, resource: &str, amount: &str) -> Self {
        self.load(Field::Limits, resource, amount.into())
    }
}
