//! The `trainyard` command: one file for each of its commands.

mod built_ins;
mod cli;
mod cluster;
mod controller;
mod crds;
mod explain;
mod load;
mod output;
mod plan;
mod plugin;
mod policy_file;
mod rbac;
mod render;
mod report;
mod run;
mod validate;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Two providers may be linked; whoever opens the first connection must not have to choose.
    let _ = rustls::crypto::ring::default_provider().install_default();
    cli::Cli::parse().run()
}
