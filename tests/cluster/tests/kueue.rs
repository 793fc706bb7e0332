//! TrainJobs in queues of Kueue, with its own controller: `make test-kueue`. It builds Kueue from its Go module, which takes minutes.

// Tests may panic.
#![allow(clippy::indexing_slicing)]

mod common;
mod kueue_admits_and_preempts_train_jobs;

use std::process::ExitCode;

use trainyard_cluster::Program;

fn main() -> ExitCode {
    Program::default()
        .tests(
            "kueue_admits_and_preempts_train_jobs",
            kueue_admits_and_preempts_train_jobs::tests(),
        )
        .run()
}
