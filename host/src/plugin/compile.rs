//! `trainyard plugin compile`.

use std::path::PathBuf;

use clap::Args;

use crate::{args::LoadArgs, load, output, report::ErrorList};

/// Arguments of `plugin compile`.
#[derive(Debug, Args)]
pub(crate) struct CompileArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// The directory to write, for `--compiled-dir`.
    #[arg(short, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    output: PathBuf,
}

pub(super) fn run(args: &CompileArgs) -> Result<(), ErrorList> {
    load::compile(&args.load, &args.output, |plugin| {
        output::lines([format!("compiled plugin {}", plugin.id)])
    })
}
