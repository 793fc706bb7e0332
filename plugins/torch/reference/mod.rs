//! Differences of Torch from the reference. This is a module of host/divergences.

mod rows;
mod torchtune_rows;

use super::{Plugin, Row, row};

pub(crate) const PLUGIN: Plugin = Plugin {
    rows: ROWS,
    effect: None,
};

/// Every row of divergences.md, in the order of the table, and what else shows a row that plugins share.
const ROWS: &[Row] = &[
    row("runtime-processes", torchtune_rows::runtime_processes),
    row("torch-elastic", rows::torch_elastic),
    row("torchtune-model", torchtune_rows::model),
    row("torchtune-devices", torchtune_rows::devices),
    row("torchtune-address", torchtune_rows::address),
    row("torchtune-runtime-args", torchtune_rows::runtime_args),
    row(
        "torchtune-repeated-settings",
        torchtune_rows::repeated_settings,
    ),
    row("torchtune-runtime-command", torchtune_rows::runtime_command),
    row("torchtune-complete-line", torchtune_rows::complete_line),
    row("torchtune-options", torchtune_rows::options),
    row("torchtune-configuration", torchtune_rows::configuration),
    row("counts", torchtune_rows::nodes_of_the_template),
];
