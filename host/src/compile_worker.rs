//! `trainyard compile-worker`, the hidden command that compiles one plugin in a process with limits.

use std::{io, process::ExitCode};

use trainyard_sandbox::{CompilerCommand, compile};

/// The name of the command.
pub(crate) const NAME: &str = "compile-worker";

/// Returns how the loader starts the command: as another process of this program.
pub(crate) fn compiler() -> io::Result<CompilerCommand> {
    CompilerCommand::this_program(NAME)
}

pub(crate) fn run() -> ExitCode {
    compile::child_main()
}
