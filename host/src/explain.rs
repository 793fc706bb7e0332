//! `trainyard explain`.

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use trainyard_render::{Provenance, Setter};

use crate::{
    cli::{InputArgs, LoadArgs, ReportFormat},
    input::{self, Done},
    output,
    report::Failure,
};

/// What `explain` takes.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    load: LoadArgs,
    /// Only this field and what is below it, as the record spells it (`pod-sets[node].containers[node].env`) or as the
    /// JobSet does (`spec.replicatedJobs[0].template`).
    #[arg(value_name = "FIELD")]
    field: Option<String>,
    /// The form of the output.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
}

/// What is known of one TrainJob's fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explained<'a> {
    train_job: String,
    namespace: &'a str,
    fields: Vec<&'a Provenance>,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    input::render_all(&args.input, &args.load, |done| {
        let explained: Vec<_> = done
            .iter()
            .map(|done| explain(done, args.field.as_deref()))
            .collect();
        if let Some(field) = args
            .field
            .as_deref()
            .filter(|_| explained.iter().all(|e| e.fields.is_empty()))
        {
            let line = format!(
                "neither a plugin nor a TrainJob set `{field}` or anything below it; without a field, explain lists all that they set"
            );
            return Err([line].into_iter().collect());
        }
        match args.output {
            ReportFormat::Json => output::json(&explained),
            ReportFormat::Table => output::print(&tables(&explained)),
        }
    })
}

fn explain<'a>(done: &'a Done<'_>, field: Option<&str>) -> Explained<'a> {
    let wanted = |p: &&Provenance| field.is_none_or(|field| p.is_at(field));
    Explained {
        train_job: done.job.job.metadata.name.clone(),
        namespace: &done.job.namespace,
        fields: done.rendered.provenance.iter().filter(wanted).collect(),
    }
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
