//! `trainyard plugin`.

mod apply;
mod build;
mod built;
mod cases;
mod check;
mod claims;
mod compile;
mod conform;
mod convert;
mod diff;
mod inspect;
mod new;
mod registry;
mod screened;
mod script;
mod template;
mod test;
mod watch;
mod wit;
mod wrap;

use clap::Subcommand;

use crate::report::ErrorList;

/// `trainyard plugin`.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Show what a plugin file, or a plugin in a registry, declares and imports, and why it would not be loaded, or print the PolicyPlugins
    /// that they need. None of their phases run.
    Inspect(inspect::InspectArgs),
    /// Create a new plugin that works, in Rust, C, Go, JavaScript or Python, with a case.
    New(new::NewArgs),
    /// Check a plugin's directory without compiling the plugin: its manifest.json and Cargo.toml, its policy.yaml, and its cases.
    ///
    /// It does not check what only the code declares: the phases, and the schemas of configurations that are derived.
    Check(check::CheckArgs),
    /// Build the plugin in a directory: a crate, or one with a `build.sh`, which runs with TRAINYARD set to this program.
    Build(build::BuildArgs),
    /// Render the cases of a plugin with their own runtimes and with every shipped runtime, and compare the results with expected files.
    ///
    /// The expected files of a case are expected.yaml with the JobSets and the other objects, or expected.txt with the errors if the case
    /// is refused, and warnings.txt. Those for the shipped runtimes are in a directory for each of them, runtimes/NAME.
    Test(test::TestArgs),
    /// Render the cases of a plugin as `plugin test` does, and show which claims and grants the calls used, and which are missing.
    Claims(claims::ClaimsArgs),
    /// Try what a plugin of good quality does, with its cases, the shipped runtimes and what users change in them, and print a report.
    Conform(conform::ConformArgs),
    /// Show what a new version of a plugin declares differently, and whom that breaks. The exit code is 1 if its version is too low for that.
    Diff(diff::DiffArgs),
    /// Push a plugin file to an OCI registry, or into a directory of the OCI image layout, and print its reference with its digest.
    Push(registry::PushArgs),
    /// Pull a plugin from an OCI registry or such a directory into a file, and print its reference with its digest.
    Pull(registry::PullArgs),
    /// Copy a plugin from one registry or directory to another, with its signatures, SBOM and provenance.
    Copy(registry::CopyArgs),
    /// Check that a plugin in a registry or directory is signed by cosign with a key that may sign a plugin of its name.
    Verify(registry::VerifyArgs),
    /// Convert a policy file to PolicyPlugins and the section `rendering` of the controller's configuration, and print them.
    Convert(convert::ConvertArgs),
    /// Apply PolicyPlugins to the cluster after they are checked, as `kubectl apply --server-side --force-conflicts` does.
    Apply(apply::ApplyArgs),
    /// Compile the built-in plugins and plugin files before they are needed, such as when an image is built, so that no pod waits for it.
    ///
    /// The code fits this build of Trainyard and the architecture of this machine, whatever its processor.
    Compile(compile::CompileArgs),
    /// Make a plugin of a core module or component that another tool built, such as a compiler for C, Go or JavaScript.
    Wrap(wrap::WrapArgs),
    /// Write the contract as WIT files, which tools of other languages read.
    Wit(wit::WitArgs),
}

pub(crate) fn run(command: &PluginCommand) -> Result<(), ErrorList> {
    match command {
        PluginCommand::Inspect(args) => inspect::run(args),
        PluginCommand::New(args) => new::run(args),
        PluginCommand::Check(args) => check::run(args),
        PluginCommand::Build(args) => build::run(args),
        PluginCommand::Test(args) => test::run(args),
        PluginCommand::Claims(args) => claims::run(args),
        PluginCommand::Conform(args) => conform::run(args),
        PluginCommand::Diff(args) => diff::run(args),
        PluginCommand::Push(args) => registry::push(args),
        PluginCommand::Pull(args) => registry::pull(args),
        PluginCommand::Copy(args) => registry::copy(args),
        PluginCommand::Verify(args) => registry::verify(args),
        PluginCommand::Convert(args) => convert::run(args),
        PluginCommand::Apply(args) => apply::run(args),
        PluginCommand::Compile(args) => compile::run(args),
        PluginCommand::Wrap(args) => wrap::run(args),
        PluginCommand::Wit(args) => wit::run(args),
    }
}
