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
    /// The TrainJob: `trainjob/NAME`, or `NAMESPACE/NAME` in place of -n.
    #[arg(value_name = "trainjob/NAME|NAMESPACE/NAME", value_parser = train_job)]
    train_job: LiveName,
    /// The namespace of the TrainJob [default: that of the kubeconfig context].
    #[arg(short, long, value_parser = args::namespace)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = WhyFormat::Text)]
    output: WhyFormat,
}

/// The name of a TrainJob, with its namespace if it is written there.
type LiveName = (Option<String>, String);

fn train_job(text: &str) -> Result<LiveName, String> {
    match text.split_once('/') {
        Some((namespace, name)) if args::live_train_job(text).is_none() => {
            Ok((Some(args::namespace(namespace)?), args::train_job(name)?))
        }
        _ => Ok((None, args::train_job(text)?)),
    }
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
    let (written, name) = &args.train_job;
    let namespace = match (written, &args.namespace) {
        (Some(written), Some(other)) if written != other => {
            let both = format!("{written}/{name} is not in the namespace {other}; remove -n");
            return Err(ErrorList::from_iter([both]));
        }
        (written, namespace) => written.as_ref().or(namespace.as_ref()),
    };
    let facts = args.cluster.run(Access::Read, async |client, default| {
        let namespace = namespace.cloned().unwrap_or(default);
        let objects = LiveObjects { client, namespace };
        let facts = Facts::read(&objects, name).await;
        facts.map_err(|error| ErrorList::from_iter([error]))
    })?;
    let answer = Answer::of(&facts);
    match args.output {
        WhyFormat::Text => output::lines(answer.lines()),
        WhyFormat::Json => output::json(&answer),
    }
}
