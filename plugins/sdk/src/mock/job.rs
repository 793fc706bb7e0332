//! A TrainJob that is built in the code of a test.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_model::{
    claims::Grants,
    facts::HOST_PREFIX,
    job::Job,
    plugin::Phase,
    record::{Field, Record},
};

use super::{
    MockError, MockPlugin, Outcome,
    lookups::Cluster,
    plugin::MockSettings,
    pods::{MockContainer, MockPodSet},
    run::{ConfiguredPlugin, Plugins},
};
use crate::PluginParts;

/// A TrainJob for a test.
///
/// Settings such as [`Self::grants`] are those of the plugin that runs with [`Self::transform`] or [`Self::all_phases`]. Other plugins that
/// are active for the same TrainJob, with their own settings, are added with [`Self::beside`].
#[derive(Debug)]
pub struct MockJob {
    job: Job,
    record: Record,
    config: Value,
    settings: MockSettings,
    beside: Vec<(MockPlugin, Value)>,
    cluster: Cluster,
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
            settings: MockSettings::default(),
            beside: Vec::new(),
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

    /// Sets the plugin's configuration in its PolicyPlugin (`config`).
    #[must_use]
    pub fn operator_config(mut self, config: Value) -> Self {
        self.settings.operator.operator_config = Arc::new(config);
        self
    }

    /// Adds grants, as in `grants` of a PolicyPlugin.
    #[must_use]
    pub fn grants(mut self, grants: &[&str]) -> Self {
        self.settings.add_grants(grants);
        self
    }

    /// Grants everything that the plugin claims, as for built-in plugins.
    #[must_use]
    pub fn all_granted(mut self) -> Self {
        self.settings.operator.grants = Grants::AsClaimed;
        self
    }

    /// Sets a limit of one call, as in `limits` of a PolicyPlugin. The mock host does not measure fuel, memory and time.
    #[must_use]
    pub fn limit(mut self, name: &str, limit: u64) -> Self {
        self.settings.set_limit(name, limit);
        self
    }

    /// Adds another plugin that is active for the TrainJob, with its configuration in the runtime. The plugins run in the order in which a
    /// cluster would run them, and [`Outcome::order`] has it. A test fails if they have no order, or change the same field without one.
    ///
    /// ```
    /// use serde_json::json;
    /// use trainyard_sdk::{PluginParts, mock::{MockJob, MockPlugin, Outcome}};
    ///
    /// fn with_topology(fabric: &PluginParts, topology: &PluginParts) -> Outcome {
    ///     MockJob::new("bert")
    ///         .trainer(4, |node| node.limit("nvidia.com/gpu", "8"))
    ///         .beside(MockPlugin::new(topology).all_granted(), json!({"level": "rack"}))
    ///         .transform(fabric)
    ///         .unwrap()
    /// }
    /// ```
    #[must_use]
    pub fn beside(mut self, plugin: impl Into<MockPlugin>, config: Value) -> Self {
        self.beside.push((plugin.into(), config));
        self
    }

    /// Sets a fact of the operator, such as `status/url`, or one of the host's own, such as `host/status-ca`.
    #[must_use]
    pub fn fact(mut self, name: &str, text: &str) -> Self {
        if name.starts_with(HOST_PREFIX) {
            let facts = Arc::make_mut(&mut self.job.host_facts);
            facts.insert(name.to_owned(), text.to_owned());
        } else {
            self.job.facts = self.job.facts.with(name, text);
        }
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

    /// Adds an object that plugins can look up.
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
        self.cluster.not_served.add(api_version, kind);
        self
    }

    /// Runs only the transform phase, of this plugin and of those [beside](Self::beside) it.
    ///
    /// # Errors
    /// The call failed.
    pub fn transform(self, plugin: &PluginParts) -> Result<Outcome, MockError> {
        self.run(plugin, &[Phase::Transform])
    }

    /// Runs all phases of this plugin and of those [beside](Self::beside) it, in order. As in a cluster, a phase in which a plugin reports an error is the last one, and the
    /// first phase is called again after each lookup.
    ///
    /// # Errors
    /// The first call that failed.
    pub fn all_phases(self, plugin: &PluginParts) -> Result<Outcome, MockError> {
        self.run(plugin, &Phase::ALL)
    }

    fn run(self, plugin: &PluginParts, phases: &[Phase]) -> Result<Outcome, MockError> {
        let mut own = MockPlugin::new(plugin);
        own.settings = self.settings;
        let all = std::iter::once((own, self.config)).chain(self.beside);
        let plugins = all.map(|(plugin, config)| ConfiguredPlugin::load(plugin, config));
        let plugins = Plugins::new(plugins.collect::<Result<_, _>>()?)?;
        plugins.run(Arc::new(self.job), self.record, &self.cluster, phases)
    }
}
