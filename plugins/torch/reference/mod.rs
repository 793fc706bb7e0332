//! Differences of Torch from the reference, and generated inputs. This is a module of tests/differences_from_the_reference_are_listed.

mod inputs;
mod rows;
mod torchtune_inputs;
mod torchtune_rows;

use super::{Generator, Plugin, Row, compare, row};

pub(crate) const PLUGIN: Plugin = Plugin {
    rows: ROWS,
    generators: GENERATORS,
    ..Plugin::NONE
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

const GENERATORS: &[Generator] = &[
    Generator {
        kept: 60,
        ..Generator::new("torch", inputs::runtime)
    },
    Generator {
        change: torchtune_inputs::change,
        ..Generator::new("torchtune", inputs::runtime)
    },
];

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn generated_inputs_differ_as_listed() {
    compare(&GENERATORS[0], 2000);
}

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn generated_torchtune_inputs_differ_as_listed() {
    compare(&GENERATORS[1], 1000);
}
