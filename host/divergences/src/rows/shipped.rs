//! Differences between the runtimes that both sides ship.

use serde_json::Value;

use super::{Row, row};
use crate::{expected::input, seen::Seen};

/// Every row of the table "Shipped runtimes" in divergences.md, in its order.
pub(super) const ROWS: &[Row] = &[
    row("shipped-restarts", restarts).expects(is_of_runtime),
    row("shipped-ssh-server", ssh_server).expects(is_of_runtime),
    row("shipped-shared-memory", shared_memory).expects(is_of_runtime),
];

/// All pods are restarted after the failure of one.
fn restarts(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    let of_job = [
        "backoffLimit",
        "podFailurePolicy",
        "template.spec.restartPolicy",
    ];
    let is_of_job = of_job
        .iter()
        .any(|field| path.ends_with(&format!("].template.spec.{field}")));
    seen.theirs().is_none() && (path == "spec.failurePolicy" || is_of_job)
}

/// The nodes of MPI run their SSH server under a shell.
fn ssh_server(seen: &Seen<'_>) -> bool {
    let node = "spec.replicatedJobs[node].template.spec.template.spec.containers[node].";
    let field = seen.path().strip_prefix(node);
    seen.policy()["mpi"].is_object() && matches!(field, Some("command" | "args"))
}

/// The containers of a framework have shared memory.
fn shared_memory(seen: &Seen<'_>) -> bool {
    let path = seen.path();
    let fields = [".volumes[shared-memory]", ".volumeMounts[/dev/shm]"];
    let is_in_list = fields.iter().any(|field| path.ends_with(field));
    let is_list = path.ends_with(".volumes") || path.ends_with(".volumeMounts");
    seen.theirs().is_none() && (is_in_list || is_list)
}

/// The value is that of the shipped runtime, with JobSet's default of a failure policy.
fn is_of_runtime(seen: &Seen<'_>) -> bool {
    let mut expected = input::of_runtime(seen);
    if let Some(Value::Object(policy)) = expected
        .as_mut()
        .filter(|_| seen.path() == "spec.failurePolicy")
    {
        let strategy = policy.entry("restartStrategy");
        strategy.or_insert_with(|| "Recreate".into());
    }
    seen.ours() == expected.as_ref()
}
