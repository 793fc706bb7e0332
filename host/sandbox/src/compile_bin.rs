//! A program that does nothing but compile, for tests of this crate: `trainyard` itself is such a program too, by a
//! hidden subcommand.

use std::process::ExitCode;

fn main() -> ExitCode {
    trainyard_sandbox::compile::child_main()
}
