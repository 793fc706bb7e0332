//! Differences of Flux from the reference. This is a module of host/divergences.

mod effect;
mod rows;

use super::{Plugin, Row, row};

pub(crate) const PLUGIN: Plugin = Plugin {
    rows: ROWS,
    effect: Some(effect::effect),
};

/// Every row of divergences.md, in the order of the table.
const ROWS: &[Row] = &[
    row("flux-without-trainer", rows::without_trainer),
    row("flux-words", rows::words),
    row("flux-args", rows::args),
    row("flux-tasks", rows::tasks),
    row("flux-cores", rows::cores),
    row("flux-binding", rows::binding),
    row("flux-gpus", rows::gpus),
    row("flux-devices", rows::devices),
    row("flux-address", rows::address),
    row("flux-pod-set", rows::pod_set),
    row("flux-volume", rows::volume),
    row("flux-shared-memory", rows::shared_memory),
    row("flux-spread", rows::spread),
    row("flux-group", rows::group),
    row("flux-installer", rows::installer),
    row("flux-command", rows::command),
    row("flux-network", rows::network),
    row("flux-architecture", rows::architecture),
    row("flux-installer-fits", rows::installer_fits),
    row("flux-settings", rows::settings),
    row("flux-unfit", rows::unfit),
    row("flux-failure", rows::failure),
];
