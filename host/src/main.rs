//! The `trainyard` command: one file for each of its commands.

mod built_ins;
mod cli;
mod controller;
mod crds;
mod explain;
mod load;
mod output;
mod plan;
mod plugin;
mod policy_file;
mod render;
mod report;
mod run;
mod validate;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    cli::Cli::parse().run()
}
