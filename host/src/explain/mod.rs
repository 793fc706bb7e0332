//! `trainyard explain`.

mod blocks;
mod differences;
mod live;
mod table;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;
use trainyard_api::{FieldPath, fields::value_at, names, path::PathError};
use trainyard_render::{InputJob, NoSuchField, Provenance, Rendered};

use crate::{
    args::{self, RunArgs},
    cluster::ClusterArgs,
    field_changes::without_env_name,
    input,
    output::{self, BufferedList, List},
    plan::DisabledReport,
    report::ErrorList,
};

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// `trainjob/NAME`: explain a live TrainJob from its snapshot instead of files. Use -n for its namespace, which defaults to that of
    /// the current kubeconfig context. `FIELD`: explain only this field and the fields below it. It is a path of the JobSet, such as
    /// `spec.replicatedJobs[node].template` (or `[0]` for `[node]`), or a path that plugins claim, such as
    /// `pod-sets[node].containers[node].env`. `ENV`: explain only the env var of that name, in all containers.
    #[arg(value_name = "trainjob/NAME|FIELD|ENV", value_parser = subject)]
    subjects: Vec<Subject>,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = ExplainFormat::Text)]
    output: ExplainFormat,
    /// Also write a bundle of a live TrainJob for `trainyard replay`.
    #[arg(long, value_name = "BUNDLE", value_hint = clap::ValueHint::FilePath)]
    record: Option<PathBuf>,
}

/// The output format of explanations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExplainFormat {
    /// Text, grouped by container. Nothing is truncated.
    Text,
    /// A table with a line for each change. Values longer than 60 characters are truncated.
    Wide,
    /// JSON.
    Json,
}

impl ExplainFormat {
    const fn list(self) -> List {
        match self {
            Self::Text | Self::Wide => List::PARAGRAPHS,
            Self::Json => List::JSON,
        }
    }
}

/// A positional argument.
#[derive(Clone, Debug)]
enum Subject {
    Live(String),
    Field(FieldPath),
}

fn subject(text: &str) -> Result<Subject, PathError> {
    match args::live_train_job(text) {
        Some(name) => Ok(Subject::Live(name.to_owned())),
        None => path(text).map(Subject::Field),
    }
}

impl ExplainArgs {
    /// Returns the live TrainJob, if any, and the fields.
    fn subjects(&self) -> Result<(Option<&str>, Vec<&FieldPath>), ErrorList> {
        let (mut live, mut fields) = (None, Vec::new());
        for subject in &self.subjects {
            match subject {
                Subject::Field(path) => fields.push(path),
                Subject::Live(name) if live.is_none() => live = Some(name.as_str()),
                Subject::Live(_) => {
                    return Err(["pass at most one trainjob/NAME"].into_iter().collect());
                }
            }
        }
        Ok((live, fields))
    }
}

/// Parses a path, which may begin with a dot as in jq.
fn path(text: &str) -> Result<FieldPath, PathError> {
    let path: FieldPath = text.strip_prefix('.').unwrap_or(text).parse()?;
    if path.is_root() {
        // Fails, because a single dot is not a field.
        return ".".parse();
    }
    Ok(path)
}

/// The explanation of a TrainJob's fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation<'a> {
    train_job: &'a str,
    namespace: &'a str,
    /// The plugins that are disabled for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    disabled_plugins: Vec<DisabledReport>,
    /// The parameters of plugins that it sets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<ParameterReport<'a>>,
    /// The objects beside the JobSet, if all fields are explained.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    objects: Vec<ObjectReport<'a>>,
    fields: Vec<Provenance>,
}

/// An object beside the JobSet, which a plugin emitted.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectReport<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
    plugin: &'a str,
    version: &'a str,
}

/// A parameter of a plugin that the TrainJob sets.
#[derive(Serialize)]
struct ParameterReport<'a> {
    plugin: &'a str,
    /// The path in the plugin's configuration.
    path: String,
    value: &'a Value,
}

impl<'a> Explanation<'a> {
    /// Returns the explanation of a TrainJob's fields: of these, or of all if `wanted` is empty.
    fn new(
        namespace: &'a str,
        train_job: &'a str,
        rendered: &'a Rendered,
        wanted: &[&FieldPath],
        fields: Vec<Provenance>,
    ) -> Self {
        let parameters = rendered.plan.iter().flat_map(|active| {
            let value = |path: &FieldPath| value_at(&active.config, path.segments());
            let of_plugin = active.parameters.iter();
            of_plugin.filter_map(move |path| {
                Some(ParameterReport {
                    plugin: &active.plugin.id.name,
                    path: path.to_string(),
                    value: value(path)?,
                })
            })
        });
        let objects = wanted.is_empty().then_some(&rendered.objects);
        let objects = objects.into_iter().flatten().map(|object| ObjectReport {
            api_version: object.kind.api_version(),
            kind: object.kind.kind(),
            name: object.name.as_str(),
            plugin: &object.plugin.name,
            version: &object.plugin.version,
        });
        Self {
            train_job,
            namespace,
            disabled_plugins: DisabledReport::of(&rendered.disabled),
            parameters: parameters.collect(),
            objects: objects.collect(),
            fields,
        }
    }

    fn title(&self) -> String {
        format!("TrainJob {}/{}", self.namespace, self.train_job)
    }

    /// Returns lines about the plugins of the TrainJob, and the objects that they emitted.
    fn plugins(&self) -> Vec<String> {
        let disabled = self.disabled_plugins.iter();
        let disabled =
            disabled.map(|plugin| format!("disabled plugin: {} ({})", plugin.name, plugin.by));
        let parameters = self.parameters.iter().map(|parameter| {
            let ParameterReport {
                plugin,
                path,
                value,
            } = parameter;
            let by = names::PLUGIN_PARAMETERS_ANNOTATION;
            format!("parameter of {plugin}: {path}: {value} (annotation {by} of the TrainJob)")
        });
        let objects = self.objects.iter().map(|object| {
            let ObjectReport {
                api_version,
                kind,
                name,
                plugin,
                version,
            } = object;
            format!("object: {kind} {name} ({api_version}), emitted by {plugin} {version}")
        });
        disabled.chain(parameters).chain(objects).collect()
    }

    fn text(&self, format: ExplainFormat) -> Result<String, ErrorList> {
        match format {
            ExplainFormat::Text => Ok(blocks::text(self)),
            ExplainFormat::Wide => Ok(table::text(self)),
            ExplainFormat::Json => output::pretty(self),
        }
    }
}

pub(crate) fn run(args: &ExplainArgs) -> Result<(), ErrorList> {
    let (live, wanted) = args.subjects()?;
    if let Some(name) = live {
        return live::explain(args, name, &wanted);
    }
    if args.record.is_some() {
        return Err(["--record needs a live TrainJob; pass trainjob/NAME, or record files with `trainyard render --record`"]
            .into_iter()
            .collect());
    }
    let mut buffered = BufferedList::new(args.output.list());
    let make = |job: &InputJob, rendered: &Rendered| {
        let (fields, missing) = fields(rendered, &wanted);
        let name = &job.train_job.metadata.name;
        let explained = Explanation::new(&job.namespace, name, rendered, &wanted, fields);
        let has_none = explained.fields.is_empty() && !wanted.is_empty();
        let text = (!has_none).then(|| explained.text(args.output));
        let line = |missing: NoSuchField| format!("{}: {missing}", job.location());
        (text, missing.into_iter().map(|one| one.map(line)).collect())
    };
    let mut absences: Vec<_> = wanted.iter().map(|_| MissingField::default()).collect();
    let input = input::read_and_load(&args.run.input, &args.run.load, None)?;
    let keep = |job: &InputJob, (text, missing): (Option<Result<String, ErrorList>>, Vec<_>)| {
        for (absence, line) in absences.iter_mut().zip(missing) {
            absence.add(line);
        }
        match text {
            Some(text) => buffered.add(job.location(), &text?),
            None => Ok(()),
        }
    };
    let mut failure = input::render(input, args.run.keep_going, make, keep)?.failure;
    for absence in absences {
        absence.warn_or_fail(&mut failure);
    }
    input::print(buffered, failure, args.run.keep_going)
}

/// The errors of TrainJobs that do not have a field.
#[derive(Default)]
struct MissingField {
    lines: ErrorList,
    /// Whether another TrainJob has the field.
    is_there: bool,
}

impl MissingField {
    fn add(&mut self, line: Option<String>) {
        match line {
            Some(line) => self.lines.add(line),
            None => self.is_there = true,
        }
    }

    /// Prints warnings if another TrainJob has the field, and fails otherwise.
    fn warn_or_fail(self, failure: &mut ErrorList) {
        if self.is_there {
            self.lines.warn();
        } else {
            failure.absorb(self.lines);
        }
    }
}

/// Returns the origins of these fields and the fields below them, or of all fields if `wanted` is empty. Also returns an error for each field
/// that does not exist.
fn fields(
    rendered: &Rendered,
    wanted: &[&FieldPath],
) -> (Vec<Provenance>, Vec<Option<NoSuchField>>) {
    if wanted.is_empty() {
        return (rendered.provenance(), Vec::new());
    }
    let (mut all, mut missing) = (Vec::new(), Vec::new());
    for path in wanted {
        let found = rendered.explain(path);
        missing.push(found.map(|found| all.extend(found)).err());
    }
    if wanted.len() > 1 {
        all.sort_by(|a, b| a.path.cmp(&b.path));
        // Fields that several paths contain.
        all.dedup();
    }
    (all, missing)
}

/// Returns the path of a field in the JobSet, or in the record if the field is not part of the JobSet.
fn path_of(field: &Provenance) -> String {
    let named = field.named();
    named.map_or_else(|| field.path.clone(), ToString::to_string)
}

/// Returns a value for the output. Of an env var that only the runtime set, this is the item without its name, which the path contains.
fn without_name<'v>(field: &Provenance, value: &'v Value) -> &'v Value {
    let path = field.named();
    path.map_or(value, |path| without_env_name(path, value))
}
