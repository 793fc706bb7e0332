//! The compiler process for the tests of this crate. `trainyard` has a hidden subcommand for it.

use std::process::ExitCode;

fn main() -> ExitCode {
    trainyard_sandbox::compile::child_main()
}
