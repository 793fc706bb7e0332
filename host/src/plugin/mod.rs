//! `trainyard plugin`.

mod build;
mod inspect;
mod new;
mod template;

use clap::Subcommand;

use crate::report::ErrorList;

/// `trainyard plugin`.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Show what a plugin file declares and imports, and why it would not be loaded. None of its phases run.
    Inspect(inspect::InspectArgs),
    /// Create the crate of a new plugin that works, with tests and a case.
    New(new::NewArgs),
    /// Build a plugin's crate as a component.
    Build(build::BuildArgs),
}

pub(crate) fn run(command: &PluginCommand) -> Result<(), ErrorList> {
    match command {
        PluginCommand::Inspect(args) => inspect::run(args),
        PluginCommand::New(args) => new::run(args),
        PluginCommand::Build(args) => build::run(args),
    }
}
