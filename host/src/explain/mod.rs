//! `trainyard explain`.

mod blocks;
mod live;
mod table;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;
use trainyard_api::{FieldPath, path::PathError};
use trainyard_render::{Job, NotThere, Provenance, Rendered, Setter};

use crate::{
    cli::RunArgs,
    cluster::ClusterArgs,
    output::{self, Held, List},
    report::Failure,
    run,
};

/// What `explain` takes.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// `trainjob/NAME`: a live TrainJob, explained from its snapshot instead of files; its namespace is the one given with -n, or else
    /// that of the kubeconfig file. `FIELD`: only this field and what is below it, by the path that it has in the JobSet
    /// (`spec.replicatedJobs[node].template`, or `[0]` for `[node]`), or by the path that plugins claim
    /// (`pod-sets[node].containers[node].env`). `ENV`: only the env var of that name, in all containers.
    #[arg(value_name = "trainjob/NAME|FIELD|ENV", value_parser = subject)]
    subjects: Vec<Subject>,
    /// The form of the output.
    #[arg(short, long, value_enum, default_value_t = ExplainFormat::Text)]
    output: ExplainFormat,
    /// Also write all that a live TrainJob was rendered from to a file that `trainyard replay` renders once more.
    #[arg(long, value_name = "BUNDLE", value_hint = clap::ValueHint::FilePath)]
    record: Option<PathBuf>,
}

/// The form of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExplainFormat {
    /// Some lines for each field, by container. Nothing is cut.
    Text,
    /// A table with one line for each change. Values of more than 60 characters are cut.
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

/// What a positional argument names.
#[derive(Clone, Debug)]
enum Subject {
    Live(String),
    Field(FieldPath),
}

fn subject(text: &str) -> Result<Subject, PathError> {
    let kinds = ["trainjob/", "trainjobs/"];
    match kinds.iter().find_map(|kind| text.strip_prefix(kind)) {
        Some(name) => Ok(Subject::Live(name.to_owned())),
        None => path(text).map(Subject::Field),
    }
}

impl ExplainArgs {
    /// The live TrainJob, and the fields.
    fn subjects(&self) -> Result<(Option<&str>, Vec<&FieldPath>), Failure> {
        let (mut live, mut fields) = (None, Vec::new());
        for subject in &self.subjects {
            match subject {
                Subject::Field(path) => fields.push(path),
                Subject::Live(name) if live.is_none() => live = Some(name.as_str()),
                Subject::Live(_) => {
                    return Err(["give at most one trainjob/NAME"].into_iter().collect());
                }
            }
        }
        Ok((live, fields))
    }
}

/// A path as a person types it: also with a dot before it, as jq has it.
fn path(text: &str) -> Result<FieldPath, PathError> {
    let path: FieldPath = text.strip_prefix('.').unwrap_or(text).parse()?;
    if path.is_root() {
        // A dot alone names no field.
        return ".".parse();
    }
    Ok(path)
}

/// What is known of one TrainJob's fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explained<'a> {
    train_job: &'a str,
    namespace: &'a str,
    fields: Vec<Provenance>,
}

impl Explained<'_> {
    fn title(&self) -> String {
        format!("TrainJob {}/{}", self.namespace, self.train_job)
    }

    fn text(&self, format: ExplainFormat) -> Result<String, Failure> {
        match format {
            ExplainFormat::Text => Ok(blocks::text(self)),
            ExplainFormat::Wide => Ok(table::text(self)),
            ExplainFormat::Json => output::pretty(self),
        }
    }
}

pub(crate) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let (live, wanted) = args.subjects()?;
    if let Some(name) = live {
        return live::explain(args, name, &wanted);
    }
    if args.record.is_some() {
        return Err(["--record is of a live TrainJob here: give trainjob/NAME, or record files with `trainyard render --record`"]
            .into_iter()
            .collect());
    }
    let mut held = Held::new(args.output.list());
    let make = |job: &Job, rendered: &Rendered| {
        let (fields, not_there) = fields(rendered, &wanted);
        let explained = Explained {
            train_job: &job.job.metadata.name,
            namespace: &job.namespace,
            fields,
        };
        let has_none = explained.fields.is_empty() && !wanted.is_empty();
        let text = (!has_none).then(|| explained.text(args.output));
        let line = |not_there: NotThere| format!("{}: {not_there}", job.location());
        (
            text,
            not_there.into_iter().map(|one| one.map(line)).collect(),
        )
    };
    let mut absences: Vec<_> = wanted.iter().map(|_| Absence::default()).collect();
    let mut failure = run::render_all(&args.run, make, |job, (text, not_there): (_, Vec<_>)| {
        for (absence, line) in absences.iter_mut().zip(not_there) {
            absence.add(line);
        }
        match text {
            Some(text) => held.add(job.location(), &text?),
            None => Ok(()),
        }
    })?
    .failure;
    for absence in absences {
        absence.warn_or_fail(&mut failure);
    }
    run::print(held, failure, args.run.keep_going)
}

/// The TrainJobs that do not have a field, a line each.
#[derive(Default)]
struct Absence {
    lines: Failure,
    /// Whether another TrainJob has it.
    is_there: bool,
}

impl Absence {
    fn add(&mut self, line: Option<String>) {
        match line {
            Some(line) => self.lines.add(line),
            None => self.is_there = true,
        }
    }

    /// A field that some TrainJobs have is a warning for the others. One that none has is mistyped.
    fn warn_or_fail(self, failure: &mut Failure) {
        if self.is_there {
            self.lines.warn();
        } else {
            failure.absorb(self.lines);
        }
    }
}

/// What is known of those fields and what is below them, or of all fields if none is given; and for each of those, that it is not
/// there, if so.
fn fields(rendered: &Rendered, wanted: &[&FieldPath]) -> (Vec<Provenance>, Vec<Option<NotThere>>) {
    if wanted.is_empty() {
        return (rendered.provenance(), Vec::new());
    }
    let (mut all, mut not_there) = (Vec::new(), Vec::new());
    for path in wanted {
        let found = rendered.explain(path);
        not_there.push(found.map(|found| all.extend(found)).err());
    }
    if wanted.len() > 1 {
        all.sort_by(|a, b| a.path.cmp(&b.path));
        // What two of them have in common.
        all.dedup();
    }
    (all, not_there)
}

/// A field by the path that it has in the JobSet; if it is not part of the JobSet, by the record's.
fn path_of(field: &Provenance) -> String {
    let named = field.named();
    named.map_or_else(|| field.path.clone(), ToString::to_string)
}

/// A value as it is shown: an env var that only the runtime set is a whole item, whose name is in the path already.
fn without_name<'v>(field: &Provenance, value: &'v Value) -> &'v Value {
    let segments = field.named().map_or(&[][..], FieldPath::segments);
    let is_env = matches!(segments, [.., list, _] if list.text() == "env");
    match value.get("name") {
        Some(_) if is_env => {
            let own = value.get("value").or_else(|| value.get("valueFrom"));
            own.unwrap_or(value)
        }
        _ => value,
    }
}

/// Who set a field, and why.
fn setter(by: &Setter) -> (String, Option<&str>) {
    match by {
        Setter::Runtime { field } => ("runtime".to_owned(), Some(field)),
        Setter::Patch { manager, field } => (format!("patch of {manager}"), Some(field)),
        Setter::Host { reason } => ("trainyard".to_owned(), Some(reason)),
        Setter::TrainJob { field } => ("TrainJob".to_owned(), Some(field)),
        Setter::Plugin {
            name,
            version,
            reason,
            ..
        } => (format!("{name} {version}"), reason.as_deref()),
    }
}
