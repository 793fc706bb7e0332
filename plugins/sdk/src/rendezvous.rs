//! The rendezvous of the nodes of a TrainJob, for policies whose first node coordinates the others.

use trainyard_sdk_derive::Config;

use crate::{
    contract::{Container, Context, PodSet, Port},
    paths::HOST_NAMES,
};

/// The port on which the first node listens, unless the runtime or the operator chooses another one.
const DEFAULT_PORT: u16 = 29500;

/// The name of the runtime's port that is used instead.
const PORT_NAME: &str = "rendezvous";

/// The `backoffLimit` that JobSet requires if it restarts the containers of all pods in place.
const IN_PLACE: u32 = i32::MAX as u32;

/// The field of a pod that holds its index in its Job, for [`Container::put_env_field`].
pub const POD_INDEX: &str = "metadata.annotations['batch.kubernetes.io/job-completion-index']";

/// The operator's configuration of a policy whose nodes meet at a port.
#[derive(Config, Debug)]
pub struct RendezvousConfig {
    /// The port on which the first node listens if the runtime's container has no TCP port named `rendezvous`.
    #[config(default = 29500, minimum = 29000, maximum = 29999)]
    pub rendezvous_port: u16,
}

/// The port on which the first node listens, and who chose it.
///
/// ```
/// use trainyard_sdk::{Context, Failure, RendezvousConfig, RendezvousPort};
///
/// fn transform(ctx: &Context) -> Result<(), Failure> {
///     let (set, node) = ctx.trainer("example")?;
///     let operator = ctx.job().operator_config_as::<RendezvousConfig>()?;
///     let port = RendezvousPort::of(ctx, &set, &node, &operator);
///     ctx.because(port.because);
///     node.put_env("MASTER_PORT", &port.number.to_string());
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RendezvousPort {
    /// The number.
    pub number: u16,
    /// Who chose it, for [`Context::because`].
    pub because: &'static str,
    is_of_runtime: bool,
}

impl RendezvousPort {
    /// Returns the port of a TrainJob: the container's TCP port with the name `rendezvous` in the runtime, or else the operator's. The
    /// runtime's port is read from the base, which needs no claim.
    #[must_use]
    pub fn of(
        ctx: &Context,
        pod_set: &PodSet,
        node: &Container,
        operator: &RendezvousConfig,
    ) -> Self {
        let base = ctx.base_of(pod_set);
        let base = base.and_then(|set| set.container(&node.name()));
        let mut ports = base
            .map(|node| node.ports())
            .unwrap_or_default()
            .into_iter();
        let named =
            ports.find(|port| port.name.as_deref() == Some(PORT_NAME) && port.protocol == "TCP");
        match (named, operator.rendezvous_port) {
            (Some(port), _) => Self {
                number: port.number,
                because: "the runtime's port with the name `rendezvous`",
                is_of_runtime: true,
            },
            (None, number) => Self {
                number,
                because: match number {
                    DEFAULT_PORT => "the port on which the nodes meet",
                    _ => "`rendezvousPort` in the operator's configuration",
                },
                is_of_runtime: false,
            },
        }
    }

    /// Adds the port to the container, unless the container has it. The name and host port that the runtime sets are kept.
    pub fn open(self, container: &Container) {
        if !self.is_of_runtime && container.port(self.number, "TCP").is_none() {
            container.put_port(&Port::tcp(self.number));
        }
    }

    /// Warns if the pods use the network of their machine, where each port is free for one pod only. `plugin` is the plugin's name.
    pub fn warn_of_host_network(self, ctx: &Context, pod_set: &PodSet, plugin: &str) {
        let base = ctx.base_of(pod_set);
        let member = base.and_then(|set| set.raw("hostNetwork"));
        if member.and_then(|member| member.boolean("")) != Some(true) {
            return;
        }
        let number = self.number;
        let message = match self.is_of_runtime {
            true => format!(
                "is true, so port {number}, which the runtime names `{PORT_NAME}`, is a port of the machine, and only one pod of all TrainJobs of this runtime runs there, while the others stay pending; remove `hostNetwork`, use a runtime with another port for TrainJobs that are to share machines, or leave it if each pod takes a whole machine"
            ),
            false => format!(
                "is true, so port {number} is a port of the machine, and only one pod of all TrainJobs with this port runs there, while the others stay pending; add a TCP port with the name `{PORT_NAME}` and a number of its own to the container in the runtime, whose TrainJobs share it, or change the default, `rendezvousPort` in `config` of the PolicyPlugin {plugin}"
            ),
        };
        ctx.warn(&message, Some(&pod_set.path("hostNetwork")));
    }
}

impl Context {
    /// Warns if the nodes of a policy cannot connect to the first pod: it has no DNS name, or the pods have no index.
    pub fn warn_of_unreachable_nodes(&self, policy: &str, pod_set: &PodSet) {
        if !self.info().has_host_names() {
            let message = format!(
                "is false, so {policy} cannot find the first node by its DNS name; remove it, or set it to true"
            );
            self.warn(&message, Some(HOST_NAMES));
        }
        if !pod_set.is_indexed() {
            let message = format!(
                "is `NonIndexed`, so {policy} cannot tell the nodes apart by their index; remove it, or set it to `Indexed`"
            );
            self.warn(&message, Some(&pod_set.job_path("completionMode")));
        }
    }
    /// Warns if the runtime lets a node of several restart alone, for policies whose ranks form a fixed group: the others wait for the
    /// failed one in a collective operation until they time out, and the new one waits for a group that never forms.
    pub fn warn_of_lone_restarts(&self, pod_set: &PodSet) {
        if pod_set.address_count() < 2 {
            return;
        }
        let base = self.base_of(pod_set);
        let limit = match base.and_then(|set| set.backoff_limit()) {
            Some(0 | IN_PLACE) => return,
            Some(limit) => format!("is {limit}"),
            None => "is not set and defaults to 6".to_owned(),
        };
        let message = format!(
            "{limit}, so a node that fails is restarted alone, while the others wait for it until they time out; set it to 0, so that all nodes restart, as often as the JobSet's `failurePolicy.maxRestarts` allows"
        );
        self.warn(&message, Some(&pod_set.job_path("backoffLimit")));
    }
}
