//! The `trainyard` command: one file for each of its commands.

mod built_ins;
mod bundle;
mod cli;
mod cluster;
mod controller;
mod crds;
mod explain;
mod load;
mod log;
mod output;
mod plan;
mod plugin;
mod policy_file;
mod rbac;
mod record;
mod render;
mod replay;
mod report;
mod run;
mod stats;
mod validate;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Two providers may be linked, so one has to be installed before the first connection.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match cli::Cli::try_parse() {
        Ok(cli) => cli.run(),
        Err(error) if error.use_stderr() => report::wrong_usage(&error),
        // Help, or the version.
        Err(error) => error.exit(),
    }
}
