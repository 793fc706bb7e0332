//! Differences of MPI from the reference. This is a module of host/divergences.

mod rows;

use super::{Plugin, Row, row};

pub(crate) const PLUGIN: Plugin = Plugin {
    rows: ROWS,
    effect: None,
};

/// Every row of divergences.md, in the order of the table, and what else shows a row that plugins share.
const ROWS: &[Row] = &[
    row("mpi-implementations", rows::implementations),
    row("mpi-open-mpi-5", rows::open_mpi_5),
    row("mpi-own-line", rows::own_line),
    row("mpi-slots", rows::slots),
    row("mpi-runtime-nodes", rows::runtime_nodes),
    row("mpi-one-node", rows::one_node),
    row("mpi-resources", rows::resources),
    row("mpi-image", rows::image),
    row("mpi-roots-key", rows::roots_key),
    row("mpi-runtime-not-whole", rows::runtime_not_whole),
    row("mpi-mount-path", rows::mount_path),
    row("mpi-command", rows::command),
    row("mpi-unfit", rows::unfit),
    row("mpi-mutable-keys", rows::mutable_keys),
    row("counts", rows::hosts_of_the_template),
];
