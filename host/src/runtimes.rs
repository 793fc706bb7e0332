//! `trainyard runtimes`.

use anyhow::Context as _;
use clap::{ArgGroup, Args, builder::PossibleValuesParser};
use kube::{Client, core::GroupVersionKind};
use serde_json::Value;
use trainyard_api::{
    names::{
        ANCESTOR_LABEL, ANCESTOR_TRAINER, CLUSTER_TRAINING_RUNTIME, FRAMEWORK_LABEL, NODE,
        TRAINER_GROUP,
    },
    yaml,
};

use crate::{
    apply,
    cluster::{Access, ClusterArgs},
    output::{self, Table},
    report::ErrorList,
};

/// The runtimes in the folders of the plugins, by name, which `build.rs` lists.
static RUNTIMES: &[Runtime] = include!(concat!(env!("OUT_DIR"), "/runtimes.rs"));

/// Arguments of `runtimes`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("selected").args(["name", "all"]))]
pub(crate) struct RuntimesArgs {
    /// A runtime to print as YAML. Can be repeated.
    #[arg(conflicts_with = "all", hide_possible_values = true, value_parser = PossibleValuesParser::new(names()))]
    name: Vec<String>,
    /// Print all runtimes as YAML.
    #[arg(long)]
    all: bool,
    /// Apply the runtimes to the cluster instead of printing them, as `kubectl apply --server-side --force-conflicts` does.
    #[arg(long, requires = "selected")]
    apply: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// A runtime that the program contains.
pub(crate) struct Runtime {
    pub(crate) name: &'static str,
    /// Its file, with comments.
    pub(crate) text: &'static str,
}

/// The shipped runtimes, by name.
pub(crate) fn shipped() -> &'static [Runtime] {
    RUNTIMES
}

fn names() -> impl Iterator<Item = &'static str> {
    RUNTIMES.iter().map(|runtime| runtime.name)
}

pub(crate) fn run(args: &RuntimesArgs) -> Result<(), ErrorList> {
    if args.name.is_empty() && !args.all {
        return list();
    }
    let is_selected =
        |runtime: &&Runtime| args.all || args.name.iter().any(|name| name == runtime.name);
    let selected = RUNTIMES.iter().filter(is_selected);
    if args.apply {
        return args
            .cluster
            .run(Access::Any, |client, _| apply(selected, client));
    }
    let texts: Vec<_> = selected.map(|runtime| runtime.text).collect();
    output::print(&texts.join("---\n"))
}

/// Applies runtimes to the cluster, and prints a line for each of them.
async fn apply(selected: impl Iterator<Item = &Runtime>, client: Client) -> Result<(), ErrorList> {
    let mut errors = ErrorList::default();
    for runtime in selected {
        match runtime.apply(client.clone()).await {
            Ok(()) => output::lines([format!("{} applied", runtime.name)])?,
            Err(error) => errors.absorb(error.into()),
        }
    }
    errors.or_ok(())
}

/// Prints a row for each runtime.
fn list() -> Result<(), ErrorList> {
    let mut table = Table::new(&["name", "framework", "nodes", "image"]);
    for runtime in RUNTIMES {
        let value = runtime.value()?;
        let nodes = value.pointer("/spec/mlPolicy/numNodes");
        table.row([
            runtime.name.to_owned(),
            text(
                value
                    .pointer("/metadata/labels")
                    .and_then(|labels| labels.get(FRAMEWORK_LABEL)),
            ),
            nodes.map_or_else(|| "1".to_owned(), Value::to_string),
            text(trainer(&value).and_then(|container| container.get("image"))),
        ]);
    }
    output::lines(table.lines())
}

impl Runtime {
    fn value(&self) -> Result<Value, anyhow::Error> {
        let document = yaml::read(self.text).into_iter().next();
        let document = document.with_context(|| format!("runtime {} is empty", self.name))??;
        Ok(document.value)
    }

    async fn apply(&self, client: Client) -> Result<(), anyhow::Error> {
        let kind = GroupVersionKind::gvk(TRAINER_GROUP, "v1alpha1", CLUSTER_TRAINING_RUNTIME);
        apply::apply(client, &kind, self.name, &self.value()?).await
    }
}

/// Returns a text for a cell.
fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or("-").to_owned()
}

/// Returns the container of a runtime that trains.
fn trainer(runtime: &Value) -> Option<&Value> {
    let is_trainer = |job: &&Value| {
        let labels = job.pointer("/template/metadata/labels");
        labels.and_then(|labels| labels.get(ANCESTOR_LABEL)) == Some(&ANCESTOR_TRAINER.into())
    };
    let jobs = runtime.pointer("/spec/template/spec/replicatedJobs");
    let job = jobs?.as_array()?.iter().find(is_trainer)?;
    let containers = job.pointer("/template/spec/template/spec/containers")?;
    let is_node = |container: &&Value| container.get("name") == Some(&NODE.into());
    containers.as_array()?.iter().find(is_node)
}
