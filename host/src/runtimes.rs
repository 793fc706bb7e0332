//! `trainyard runtimes`.

use anyhow::Context as _;
use clap::{Args, builder::PossibleValuesParser};
use serde_json::Value;
use trainyard_api::{
    names::{ANCESTOR_LABEL, ANCESTOR_TRAINER, FRAMEWORK_LABEL, NODE},
    yaml,
};

use crate::{
    output::{self, Table},
    report::ErrorList,
};

/// The runtimes in the folders of the plugins, by name, which `build.rs` lists.
static RUNTIMES: &[Runtime] = include!(concat!(env!("OUT_DIR"), "/runtimes.rs"));

/// Arguments of `runtimes`.
#[derive(Debug, Args)]
pub(crate) struct RuntimesArgs {
    /// A runtime to print as YAML. Can be repeated.
    #[arg(conflicts_with = "all", hide_possible_values = true, value_parser = PossibleValuesParser::new(names()))]
    name: Vec<String>,
    /// Print all runtimes as YAML.
    #[arg(long)]
    all: bool,
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
    let texts: Vec<_> = selected.map(|runtime| runtime.text).collect();
    output::print(&texts.join("---\n"))
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
