//! `trainyard completions`.

use clap::Args;
use clap_complete::Shell;

use crate::{output, report::ErrorList};

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Prints the completion script of a command line.
pub(crate) fn run(args: &CompletionsArgs, mut command: clap::Command) -> Result<(), ErrorList> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "trainyard", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
