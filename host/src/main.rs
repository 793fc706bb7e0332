//! The `trainyard` command: one file for each of its commands.

mod built_ins;
mod cli;
mod controller;
mod crds;
mod explain;
mod input;
mod output;
mod plan;
mod plugins;
mod policy_file;
mod render;
mod report;
mod validate;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    cli::Cli::parse().run()
}
