//! `trainyard explain`.

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use trainyard_api::{FieldPath, path::PathError};
use trainyard_render::{NotThere, Provenance, Setter};

use crate::{
    cli::{InputArgs, LoadArgs, ReportFormat},
    output,
    report::{self, Failure},
    run::{self, Done},
};

/// What `explain` takes.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    load: LoadArgs,
    /// Only this field and what is below it, as the JobSet spells it (`spec.replicatedJobs[0].template`, or
    /// `spec.replicatedJobs[node].template`) or as the record does (`pod-sets[node].containers[node].env`).
    #[arg(value_name = "FIELD", value_parser = path)]
    field: Option<FieldPath>,
    /// The form of the output.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
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

pub(crate) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    run::render_all(&args.input, &args.load, |done| {
        let mut explained = Vec::with_capacity(done.len());
        let mut missing = Vec::new();
        for done in done {
            match explain(done, args.field.as_ref()) {
                Ok(one) => explained.push(one),
                Err(error) => missing.push(format!("{}: {error}", done.job.place())),
            }
        }
        if explained.is_empty() && !missing.is_empty() {
            return Err(missing.into_iter().collect());
        }
        missing.iter().for_each(report::warn);
        match args.output {
            ReportFormat::Json => output::json(&explained),
            ReportFormat::Table => output::print(&tables(&explained)),
        }
    })
}

fn explain<'a>(done: &'a Done<'_>, field: Option<&FieldPath>) -> Result<Explained<'a>, NotThere> {
    let fields = match field {
        Some(field) => done.rendered.explain(field)?,
        None => done.rendered.provenance(),
    };
    Ok(Explained {
        train_job: &done.job.job.metadata.name,
        namespace: &done.job.namespace,
        fields,
    })
}

fn tables(explained: &[Explained<'_>]) -> String {
    let mut out = String::new();
    for (at, job) in explained.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        out.push_str(&format!("TrainJob {}/{}\n", job.namespace, job.train_job));
        let mut table = output::table(&["field", "set by", "value", "was", "why"]);
        for provenance in &job.fields {
            for step in &provenance.steps {
                let (by, why) = setter(&step.by);
                table.add_row([
                    provenance.path.clone(),
                    by,
                    short(step.to.as_ref()),
                    short(step.from.as_ref()),
                    why,
                ]);
            }
        }
        out.push_str(&output::table_text(&table));
    }
    out
}

fn setter(by: &Setter) -> (String, String) {
    match by {
        Setter::Runtime { field } => ("runtime".to_owned(), field.clone()),
        Setter::Patch { manager, field } => (format!("patch of {manager}"), field.clone()),
        Setter::Host { reason } => ("trainyard".to_owned(), reason.clone()),
        Setter::TrainJob { field } => ("TrainJob".to_owned(), field.clone()),
        Setter::Plugin {
            name,
            version,
            reason,
            ..
        } => (
            format!("{name} {version}"),
            reason.clone().unwrap_or_else(|| "-".to_owned()),
        ),
    }
}

/// A value in one line of a table.
fn short(value: Option<&Value>) -> String {
    const MOST: usize = 60;
    let text = match value {
        None => return "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    let line = trainyard_model::text::clean(&text);
    if line.chars().count() <= MOST {
        line
    } else {
        line.chars().take(MOST).chain(['…']).collect()
    }
}
