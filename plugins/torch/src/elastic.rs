//! Elastic training: torchrun forms its group with the nodes that are there, between a minimum and all of them, and forms it again when one
//! is lost or comes back.

use trainyard_sdk::{Container, Context, PodSet};

use crate::config::{Elastic, ElasticPolicy, TorchConfig};

/// The field of the runtime.
const FIELD: &str = "spec.mlPolicy.torch.elastic";
/// Its form in earlier releases.
const OLD_FIELD: &str = "spec.mlPolicy.torch.elasticPolicy";
/// The env var that makes torchrun give the processes of each group a store of their own.
const OWN_STORE: &str = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE";
/// The Job controller's default.
const BACKOFF_LIMIT: u32 = 6;

/// The bounds of a group that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The field that sets them.
    field: &'static str,
    min_nodes: u32,
    max_nodes: u32,
    max_restarts: u32,
}

impl Bounds {
    /// Returns the bounds in the runtime, if it has any, and refuses those that a JobSet cannot have.
    pub(crate) fn of(ctx: &Context, config: &TorchConfig) -> Option<Self> {
        let max_nodes = ctx.job().nodes();
        let (field, min_nodes, max_restarts) = match (&config.elastic, &config.elastic_policy) {
            (None, None) => return None,
            (Some(elastic), old) => {
                if old.is_some() {
                    let message = format!("must not be set together with `{FIELD}`; remove it");
                    ctx.error(&message, Some(OLD_FIELD));
                }
                let Elastic {
                    min_nodes,
                    max_restarts,
                } = elastic;
                (FIELD, *min_nodes, *max_restarts)
            }
            (None, Some(old)) => {
                check_old(ctx, old, max_nodes);
                (OLD_FIELD, old.min_nodes, old.max_restarts)
            }
        };
        let bounds = Self {
            field,
            min_nodes: min_nodes.unwrap_or(max_nodes),
            max_nodes,
            max_restarts,
        };
        if bounds.min_nodes > max_nodes {
            let message = format!(
                "is {}, but the TrainJob has {max_nodes} node{}, and a JobSet does not add any while it runs; lower it, or raise `numNodes`",
                bounds.min_nodes,
                plural(max_nodes)
            );
            ctx.error(&message, Some(&format!("{field}.minNodes")));
        }
        Some(bounds)
    }

    /// Returns the value of `PET_NNODES`.
    pub(crate) fn nodes(self) -> String {
        format!("{}:{}", self.min_nodes, self.max_nodes)
    }

    /// Sets what torchrun needs to form a group that changes. Users can replace these values, for example with a store that outlives the
    /// first node.
    pub(crate) fn set(self, ctx: &Context, container: &Container, endpoint: &str) {
        ctx.because(
            "the group changes while it runs, which torchrun's static rendezvous does not support",
        );
        container.default_env("PET_RDZV_BACKEND", "c10d");
        ctx.because("the first pod of the trainer's replicated job, whose torchrun holds the state of the rendezvous");
        container.default_env("PET_RDZV_ENDPOINT", endpoint);
        ctx.because("the TrainJob's name");
        container.default_env("PET_RDZV_ID", &ctx.job().name());
        ctx.because("a node that comes back waits for the address of a shared store, which torchrun writes only in the first group");
        container.default_env(OWN_STORE, "1");
        ctx.because("the number in the runtime");
        container.default_env("PET_MAX_RESTARTS", &self.max_restarts.to_string());
    }

    /// Refuses the bounds for torchtune, whose line follows from a fixed number of nodes.
    pub(crate) fn refuse_for_torchtune(self, ctx: &Context) {
        let message = "must not be set for torchtune, whose recipes begin again with the first step after each change of the group; remove it";
        ctx.error(message, Some(self.field));
    }

    /// Warns of a Job that fails if the first node is lost: all other nodes restart then, and the Job counts each. Without any restart, it
    /// fails with each node.
    pub(crate) fn warn_of_backoff_limit(self, ctx: &Context, pod_set: &PodSet) {
        let base = ctx.base_of(pod_set);
        let set = base.and_then(|set| set.backoff_limit());
        let limit = set.unwrap_or(BACKOFF_LIMIT);
        if limit >= self.max_nodes {
            return;
        }
        let nodes = self.max_nodes;
        let first = format!(
            "but if the first node is lost, all {nodes} nodes restart, and the Job counts each of them, and fails"
        );
        let found = match set {
            Some(0) => "is 0, so the Job fails if any node is lost".to_owned(),
            Some(limit) => format!("is {limit}, {first}"),
            None => format!("is not set, which means {BACKOFF_LIMIT}, {first}"),
        };
        let message = format!(
            "{found}; set it to at least {}",
            nodes.saturating_mul(self.max_restarts.max(1))
        );
        ctx.warn(&message, Some(&pod_set.job_path("backoffLimit")));
    }
}

/// Refuses what earlier releases declared and a JobSet does not do, whose number of pods is fixed while it runs.
fn check_old(ctx: &Context, old: &ElasticPolicy, nodes: u32) {
    let field = |name: &str| format!("{OLD_FIELD}.{name}");
    if old
        .metrics
        .as_ref()
        .is_some_and(|metrics| !metrics.is_empty)
    {
        let message = "must be empty, because a JobSet neither adds nor removes nodes while it runs; remove it";
        ctx.error(message, Some(&field("metrics")));
    }
    if let Some(max) = old.max_nodes.filter(|max| *max != nodes) {
        let message = format!(
            "is {max}, but the TrainJob has {nodes} node{}, and a JobSet neither adds nor removes any while it runs; set `numNodes` to {max}, or replace `elasticPolicy` with `elastic`, whose maximum is `numNodes`",
            plural(nodes)
        );
        ctx.error(&message, Some(&field("maxNodes")));
    }
    let message = "is the form of Kubeflow Trainer v2.0 and v2.1, which other controllers ignore; write `elastic` with `minNodes` and `maxRestarts` instead";
    ctx.warn(message, Some(OLD_FIELD));
}

fn plural(count: u32) -> &'static str {
    if count == 1 { "" } else { "s" }
}
