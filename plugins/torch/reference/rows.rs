//! Differences of Torch.

use serde_json::Value;

use crate::{rows::frameworks::is_of_accelerators, seen::Seen};

pub(super) fn runtime_processes(seen: &Seen<'_>) -> bool {
    let field = "spec.mlPolicy.torch.numProcPerNode";
    let of_value =
        is_of_accelerators(seen.path()) && seen.policy()["torch"]["numProcPerNode"] != Value::Null;
    of_value || seen.they_drop(field) || seen.we_refuse(field)
}

/// What makes Torch elastic, and its bounds that a JobSet cannot have.
pub(super) fn torch_elastic(seen: &Seen<'_>) -> bool {
    let fields = ["elastic", "elasticPolicy"];
    let torch = &seen.policy()["torch"];
    let is_elastic = fields.iter().any(|field| torch[*field].is_object());
    let names = [
        "[PET_RDZV_",
        "[PET_MAX_RESTARTS]",
        "[PET_NNODES].value",
        "[TORCH_DISABLE_SHARE_RDZV_TCP_STORE]",
    ];
    let path = seen.path();
    is_elastic
        && names
            .iter()
            .any(|name| path.contains(&format!(".env{name}")))
        || fields.iter().any(|name| {
            let field = format!("spec.mlPolicy.torch.{name}");
            seen.they_drop(&field) || seen.we_refuse(&field)
        })
}
