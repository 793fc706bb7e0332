//! TrainJobs that are many or expensive: `make test-load`, which takes minutes of CPU.

// Tests may panic.
#![allow(clippy::indexing_slicing)]

mod common;
mod controller_restart_writes_nothing;
mod hostile_train_jobs_block_no_others;

use std::process::ExitCode;

use trainyard_cluster::Program;

fn main() -> ExitCode {
    Program::default()
        .tests(
            "controller_restart_writes_nothing",
            controller_restart_writes_nothing::tests(),
        )
        .tests(
            "hostile_train_jobs_block_no_others",
            hostile_train_jobs_block_no_others::tests(),
        )
        .run()
}
