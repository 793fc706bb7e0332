//! TrainJobs in queues of Kueue, with its own controller.

mod common;
mod kueue_admits_and_preempts_train_jobs;

use std::process::ExitCode;

use kueue_admits_and_preempts_train_jobs::{Newest, Oldest, tests};
use trainyard_cluster::Program;

fn main() -> ExitCode {
    Program::default()
        .tests("kueue_admits_and_preempts_train_jobs", tests::<Newest>())
        .tests("kueue_admits_and_preempts_train_jobs", tests::<Oldest>())
        .run()
}
