//! `trainyard explain`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use trainyard_api::{FieldPath, path::PathError};
use trainyard_controller::reconcile::live;
use trainyard_model::text::clean_to;
use trainyard_render::{Job, NotThere, Provenance, Rendered, Setter};

use crate::{
    bundle::InputKind,
    cli::{InputArgs, LoadArgs, ReportFormat},
    cluster::{self, ClusterArgs},
    load::Loaded,
    output::{self, Held, List, Table},
    record::{self, Recording, Written},
    report::{self, Failure},
    run,
};

/// What `explain` takes.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// `trainjob/NAME`: a live TrainJob, from its snapshot, instead of files; it is in the namespace that -n gives, or else in
    /// that of the kubeconfig file. `FIELD`: only
    /// this field and what is below it, as the JobSet spells it (`spec.replicatedJobs[0].template`, or
    /// `spec.replicatedJobs[node].template`) or as the record does (`pod-sets[node].containers[node].env`).
    #[arg(value_name = "trainjob/NAME|FIELD", num_args = 0..=2, value_parser = subject)]
    subjects: Vec<Subject>,
    /// The form of the output.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
    /// Also write all that a live TrainJob was rendered from to a file that `trainyard replay` renders once more.
    #[arg(long, value_name = "BUNDLE", value_hint = clap::ValueHint::FilePath)]
    record: Option<PathBuf>,
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
    /// The live TrainJob and the field, at most one of each.
    fn subjects(&self) -> Result<(Option<&str>, Option<&FieldPath>), Failure> {
        let (mut live, mut field) = (None, None);
        for subject in &self.subjects {
            let is_second = match subject {
                Subject::Live(name) => live.replace(name.as_str()).is_some(),
                Subject::Field(path) => field.replace(path).is_some(),
            };
            if is_second {
                return Err(["give one trainjob/NAME and one FIELD at most"]
                    .into_iter()
                    .collect());
            }
        }
        Ok((live, field))
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

pub(crate) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let (live, field) = args.subjects()?;
    if let Some(name) = live {
        return explain_live(args, name, field);
    }
    if args.record.is_some() {
        return Err(["--record is of a live TrainJob here: give trainjob/NAME, or record files with `trainyard render --record`"]
            .into_iter()
            .collect());
    }
    let mut held = Held::new(List::of_reports(args.output));
    let mut missing = Failure::default();
    let make = |job: &Job, rendered: &Rendered| match fields(rendered, field) {
        Ok(fields) => Ok(text(args, &job.job.metadata.name, &job.namespace, fields)),
        Err(not_there) => Err(format!("{}: {not_there}", job.place())),
    };
    run::render_all(&args.input, &args.load, make, |job, made| match made {
        Ok(text) => held.add(job.place(), &text?),
        Err(not_there) => {
            missing.add(not_there);
            Ok(())
        }
    })?;
    if held.is_empty() {
        missing = missing.or_ok(Failure::default())?;
    }
    missing.warn();
    held.print()
}

fn text(
    args: &ExplainArgs,
    train_job: &str,
    namespace: &str,
    fields: Vec<Provenance>,
) -> Result<String, Failure> {
    let explained = Explained {
        train_job,
        namespace,
        fields,
    };
    output::report(&explained, table, args.output)
}

/// Renders a live TrainJob once more from its snapshot, and explains that.
fn explain_live(args: &ExplainArgs, name: &str, field: Option<&FieldPath>) -> Result<(), Failure> {
    if !args.input.filename.is_empty() {
        return Err(["trainjob/NAME is a live TrainJob's: leave -f out"]
            .into_iter()
            .collect());
    }
    let failed = |error: &dyn std::fmt::Display| Failure::from_iter([error.to_string()]);
    let mut loaded = Loaded::load(&args.load)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (namespace, live) = runtime.block_on(async {
        let config = args.cluster.config().await?;
        let given = args.input.namespace.clone();
        let namespace = given.unwrap_or_else(|| config.default_namespace.clone());
        let client = cluster::client(config).map_err(|error| failed(&error))?;
        let live = live(client, &namespace, name).await;
        let live = live.map_err(|error| failed(&error))?;
        Ok::<_, Failure>((namespace, live))
    })?;
    let (namespace, snapshot) = (&*namespace, &live.snapshot);
    if let Some(facts) = snapshot.facts() {
        loaded.renderer = loaded.renderer.with_facts(facts);
    }
    let renderer = &loaded.renderer;
    let rendered = renderer.render(&live.job, &snapshot.runtime, namespace, &snapshot.lookups);
    let rendered = rendered.map_err(Failure::from_iter)?;
    let now = rendered.whole_plan();
    let pinned = snapshot.plan.as_ref();
    if !pinned.is_some_and(|plan| plan.is_kept_by(&now)) {
        let message = format!(
            "TrainJob {namespace}/{name} was rendered by another plan than that of the plugins and settings loaded here; load its plugins with --plugin and their settings with --policy"
        );
        if args.record.is_some() {
            return Err(failed(&format!(
                "{message}: a bundle would hold what never happened"
            )));
        }
        report::warn(message);
    }
    if let Some(bundle) = &args.record {
        let written = Written {
            namespace,
            name,
            from: InputKind::Cluster,
            train_job: &live.object,
            runtime: snapshot.runtime_object(),
        };
        let recording = Recording::of(&written, &rendered);
        record::write(bundle, &loaded, vec![recording])?;
    }
    let fields = fields(&rendered, field).map_err(|error| failed(&error))?;
    let mut held = Held::new(List::of_reports(args.output));
    let text = text(args, name, namespace, fields)?;
    held.add(format_args!("TrainJob {namespace}/{name}"), &text)?;
    held.print()
}

/// What is known of that field and what is below it, or of all.
fn fields(rendered: &Rendered, field: Option<&FieldPath>) -> Result<Vec<Provenance>, NotThere> {
    match field {
        Some(field) => rendered.explain(field),
        None => Ok(rendered.provenance()),
    }
}

/// The most rows of one table, all of which have to be there before the first is printed: what has more is several tables.
const MAX_ROWS: usize = 4096;

/// A table of who set the fields of a TrainJob.
fn table(explained: &Explained<'_>) -> String {
    let title = format!("TrainJob {}/{}", explained.namespace, explained.train_job);
    let mut text = output::cleaned([title]);
    let steps = explained.fields.iter();
    let steps = steps.flat_map(|field| field.steps.iter().map(move |step| (&field.path, step)));
    let mut steps = steps.peekable();
    loop {
        let mut table = Table::new(&["field", "set by", "value", "was", "why"]);
        for (path, step) in steps.by_ref().take(MAX_ROWS) {
            let (by, why) = setter(&step.by);
            table.row([
                path.clone(),
                by,
                short(step.to.as_ref()),
                short(step.from.as_ref()),
                why,
            ]);
        }
        text += &output::cleaned(table.lines());
        if steps.peek().is_none() {
            return text;
        }
    }
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
    clean_to(&text, MOST)
}
