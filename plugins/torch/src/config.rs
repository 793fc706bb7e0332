//! The block `mlPolicy.torch` of a runtime.

use trainyard_sdk::{Config, Document, Setting};

/// `mlPolicy.torch`.
#[derive(Config, Debug)]
pub(crate) struct TorchConfig {
    /// The number of processes per node if the TrainJob does not set it: a number, auto, cpu or gpu.
    pub(crate) num_proc_per_node: Option<Processes>,
    /// Further containers that get the same environment.
    pub(crate) env_injection: Option<EnvInjection>,
    /// Elastic training: it goes on while nodes are missing. `numNodes` is the maximum.
    pub(crate) elastic: Option<Elastic>,
    /// The form of `elastic` in Kubeflow Trainer v2.0 and v2.1.
    pub(crate) elastic_policy: Option<ElasticPolicy>,
}

/// The bounds of elastic training.
#[derive(Config, Debug)]
pub(crate) struct Elastic {
    /// The number of nodes with which training starts and goes on; all nodes if it is not set.
    #[config(minimum = 1, maximum = 2147483647)]
    pub(crate) min_nodes: Option<u32>,
    /// How often torchrun restarts the processes of its node after a failure, such as the loss of another node.
    #[config(default = 3, minimum = 0, maximum = 2147483647)]
    pub(crate) max_restarts: u32,
}

/// The form of [`Elastic`] in Kubeflow Trainer v2.0 and v2.1.
#[derive(Config, Debug)]
pub(crate) struct ElasticPolicy {
    /// The same as `elastic.minNodes`.
    #[config(minimum = 1, maximum = 2147483647)]
    pub(crate) min_nodes: Option<u32>,
    /// Must equal the number of nodes.
    #[config(minimum = 1, maximum = 2147483647)]
    pub(crate) max_nodes: Option<u32>,
    /// The same as `elastic.maxRestarts`.
    #[config(default = 3, minimum = 0, maximum = 2147483647)]
    pub(crate) max_restarts: u32,
    /// Not supported; any metric is refused.
    pub(crate) metrics: Option<Metrics>,
}

/// The metrics by which a HorizontalPodAutoscaler would change the number of nodes.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Whether there are none.
    pub(crate) is_empty: bool,
}

impl Setting for Metrics {
    const BODY: &'static str = r#""type":"array""#;

    fn read(document: &Document, at: &str) -> Option<Self> {
        let is_empty = document.len(at) == 0;
        Some(Self { is_empty }).filter(|_| document.kind(at).is_some())
    }
}

/// Containers that get the environment in addition to the node container.
#[derive(Config, Debug)]
pub(crate) struct EnvInjection {
    /// The containers, by replicated job.
    #[config(max_items = 16)]
    pub(crate) targets: Vec<Target>,
}

/// Containers of one replicated job.
#[derive(Config, Debug)]
pub(crate) struct Target {
    /// The replicated job's name.
    #[config(min_length = 1, max_length = 253)]
    pub(crate) job_name: String,
    /// Its containers or init containers. `node` is not allowed, because it always gets the environment.
    #[config(min_items = 1, max_items = 8, unique_items)]
    pub(crate) container_names: Vec<ContainerName>,
}

/// The name of a container other than `node`.
#[derive(Debug)]
pub(crate) struct ContainerName(pub(crate) String);

impl Setting for ContainerName {
    const BODY: &'static str =
        r#""type":"string","minLength":1,"maxLength":63,"not":{"const":"node"}"#;

    fn read(document: &Document, at: &str) -> Option<Self> {
        document.text(at).map(Self)
    }
}

/// The number of processes per node, if it is neither a number, which the host handles, nor `auto`, which is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Processes {
    /// One for each CPU.
    Cpu,
    /// One for each GPU, as torchrun counts them.
    Gpu,
}

impl Setting for Processes {
    const BODY: &'static str = r#""anyOf":[{"type":"integer","minimum":1,"maximum":2147483647},{"enum":["auto","cpu","gpu"]}]"#;

    fn read(document: &Document, at: &str) -> Option<Self> {
        match document.text(at).as_deref() {
            Some("cpu") => Some(Self::Cpu),
            Some("gpu") => Some(Self::Gpu),
            _ => None,
        }
    }
}
