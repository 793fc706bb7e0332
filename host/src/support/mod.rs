//! `trainyard support-bundle`: what is needed to find out why a cluster's controller or its TrainJobs do not work, without credentials.

mod collect;
mod redact;

use std::path::PathBuf;

use clap::Args;
use trainyard_bundle::{Cluster, FORM, Index, pack};

use self::collect::{Collection, Scope};
use crate::{
    args,
    cluster::{Access, ClusterArgs},
    output::{self, counted},
    recording::this_host,
    replicas::ReplicaArgs,
    report::{self, ErrorList},
};

/// Arguments of `support-bundle`.
#[derive(Debug, Args)]
pub(crate) struct SupportArgs {
    /// The bundle to write.
    #[arg(value_name = "BUNDLE", value_hint = clap::ValueHint::FilePath)]
    bundle: PathBuf,
    /// A namespace whose TrainJobs are collected, with their runtimes, JobSets, pods and Events. Can be repeated [default: the namespace of the
    /// kubeconfig context].
    #[arg(short, long, value_parser = args::namespace)]
    namespace: Vec<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    replicas: ReplicaArgs,
}

pub(crate) fn run(args: &SupportArgs) -> Result<(), ErrorList> {
    let collection = args.cluster.run(Access::Read, async |client, default| {
        let mut namespaces = args.namespace.clone();
        if namespaces.is_empty() {
            namespaces.push(default);
        }
        let scope = Scope {
            client,
            namespaces,
            replicas: args.replicas.clone(),
        };
        let collected = Collection::of(&scope).await;
        collected.map_err(|error| ErrorList::from_iter([error]))
    })?;
    let (files, unread) = collection.files()?;
    for line in &unread {
        report::warn(line);
    }
    let index = Index {
        form: FORM,
        trainyard: this_host(),
        cluster: Cluster::of(&Default::default()),
        plugins: Vec::new(),
        train_jobs: Vec::new(),
        files: Default::default(),
    };
    pack(&args.bundle, index, &files).map_err(|error| ErrorList::from_iter([error]))?;
    output::lines([format!(
        "{} with {} written; {} lists what was removed; read the files before you pass them on",
        output::path(&args.bundle),
        counted(files.len(), "file"),
        collect::REMOVED_FILE,
    )])
}
