//! Gangs that a real scheduler places: `make test-gangs`. It builds that scheduler from its Go module, which takes minutes.

// Tests may panic.
#![allow(clippy::indexing_slicing)]

mod common;
mod gangs_do_not_deadlock;

use std::process::ExitCode;

use trainyard_cluster::Program;

fn main() -> ExitCode {
    Program::default()
        .tests("gangs_do_not_deadlock", gangs_do_not_deadlock::tests())
        .run()
}
