//! `trainyard why`: why a live TrainJob does not run, from its status and from the objects that it waits for.

mod answer;
mod events;
mod plugins;
mod pods;
mod read;

use clap::Args;

use self::{answer::Answer, read::Facts};
use crate::{
    args,
    cluster::{Access, ClusterArgs},
    live_objects::LiveObjects,
    output,
    report::ErrorList,
};

/// Arguments of `why`.
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The TrainJob.
    #[arg(value_name = "trainjob/NAME", value_parser = args::train_job)]
    train_job: String,
    /// The namespace of the TrainJob [default: that of the kubeconfig context].
    #[arg(short, long, value_parser = args::namespace)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = WhyFormat::Text)]
    output: WhyFormat,
}

/// The output format of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum WhyFormat {
    /// Text.
    Text,
    /// JSON.
    Json,
}

pub(crate) fn run(args: &WhyArgs) -> Result<(), ErrorList> {
    let facts = args.cluster.run(Access::Read, async |client, default| {
        let namespace = args.namespace.clone().unwrap_or(default);
        let objects = LiveObjects { client, namespace };
        let facts = Facts::read(&objects, &args.train_job).await;
        facts.map_err(|error| ErrorList::from_iter([error]))
    })?;
    let answer = Answer::of(&facts);
    match args.output {
        WhyFormat::Text => output::lines(answer.lines()),
        WhyFormat::Json => output::json(&answer),
    }
}
