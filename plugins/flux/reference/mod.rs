//! Differences of Flux from the reference, and generated inputs. This is a module of tests/differences_from_the_reference_are_listed.

mod effect;
mod inputs;
mod rows;

use super::{Generator, Plugin, Row, compare, row};

pub(crate) const PLUGIN: Plugin = Plugin {
    rows: ROWS,
    generators: GENERATORS,
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

const GENERATORS: &[Generator] = &[Generator {
    change: inputs::change,
    ..Generator::new("flux", inputs::runtime)
}];

#[test]
#[ignore = "needs Go: `make test-reference` runs it"]
fn generated_inputs_differ_as_listed() {
    compare(&GENERATORS[0], 1000);
}
