//! Differences of JAX from the reference. This is a module of host/divergences.

use super::{Plugin, Row, row};
use crate::{answer::Refusal, seen::Seen};

pub(crate) const PLUGIN: Plugin = Plugin {
    rows: ROWS,
    effect: None,
};

/// Every row of divergences.md, in the order of the table.
const ROWS: &[Row] = &[row("jax-reserved-env", reserved_env)];

fn reserved_env(seen: &Seen<'_>) -> bool {
    let names_it = |refusal: &Refusal| {
        refusal.error.starts_with("JAX_") && refusal.error.contains("is set by the plugin jax")
    };
    seen.we_refuse("spec.trainer.env[") && seen.our_refusal().is_some_and(names_it)
}
