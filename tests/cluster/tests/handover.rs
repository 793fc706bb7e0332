//! TrainJobs that move from the Kubeflow Trainer's controller or an earlier release to this one, and back: `make test-handover`. It builds the
//! Kubeflow Trainer's controller from its Go module.

// Tests may panic.
#![allow(clippy::indexing_slicing)]

mod common;
mod running_train_jobs_of_the_reference_are_adopted;
mod train_jobs_move_over_and_back;

use std::process::ExitCode;

use trainyard_cluster::Program;

fn main() -> ExitCode {
    Program::default()
        .tests(
            "running_train_jobs_of_the_reference_are_adopted",
            running_train_jobs_of_the_reference_are_adopted::tests(),
        )
        .tests(
            "train_jobs_move_over_and_back",
            train_jobs_move_over_and_back::tests(),
        )
        .run()
}
