//! `trainyard replay`.

mod objects;
mod plugins;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use trainyard_api::FieldPath;
use trainyard_model::{
    deadline::Deadline,
    text::{MAX_LINE, clean, clean_to},
};
use trainyard_render::Rendered;

use self::{objects::rendered, plugins::renderer};
use crate::{
    args::{CacheArgs, ReportFormat, TimeoutArgs},
    bundle::{Bundle, BundleProblem, Host, JobEntry},
    difference::{FieldDifference, first_difference},
    load, output, recording,
    report::{self, ErrorList},
};

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The bundle, written by `render --record` or `explain --record`.
    #[arg(value_name = "BUNDLE", value_hint = clap::ValueHint::FilePath)]
    bundle: PathBuf,
    /// Compare even if another version or build of Trainyard recorded the bundle.
    #[arg(long)]
    any_version: bool,
    #[command(flatten)]
    limit: TimeoutArgs,
    #[command(flatten)]
    cache: CacheArgs,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
}

/// The result of a replay.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReplayReport {
    bundle: String,
    recorded_by: Host,
    replayed_by: Host,
    same: bool,
    /// The plugins that ran, each with its digest.
    plugins: Vec<String>,
    train_jobs: usize,
    objects: usize,
    /// The first field that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Difference>,
}

/// A field that differs.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Difference {
    train_job: String,
    /// The object. `None` if the plan or the number of objects differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    path: String,
    /// `None` if the field did not exist.
    recorded: Option<Value>,
    /// `None` if the field does not exist.
    now: Option<Value>,
}

pub(crate) fn run(args: &ReplayArgs) -> Result<(), ErrorList> {
    let refused = |error: &dyn std::fmt::Display| ErrorList::from_iter([error.to_string()]);
    let mut bundle = Bundle::read(&args.bundle).map_err(|error| refused(&error))?;
    same_host(&bundle, args.any_version)?;
    let loader = load::loader(&args.cache, load::cores())?;
    let (renderer, plugins) = renderer(&mut bundle, &loader, args.any_version)?;
    let jobs = std::mem::take(&mut bundle.index.train_jobs);
    let (mut objects, mut difference) = (0, None);
    for job in &jobs {
        let text = bundle.take(&job.output).map_err(|error| refused(&error))?;
        let recorded = bundle
            .json(&job.output, &text)
            .map_err(|error| refused(&error))?;
        let rendered = rendered(
            &mut bundle,
            job,
            &renderer,
            &Deadline::after(args.limit.timeout),
        )?;
        let now = recording::output(&rendered);
        objects += items(&now).len();
        difference = difference_of(job, &recorded, &rendered, &now);
        if difference.is_some() {
            break;
        }
        if text != recording::text(&now) {
            let name = clean(&job.output);
            return Err(refused(&bundle.error(BundleProblem::Respelled { name })));
        }
    }
    let replayed = ReplayReport {
        bundle: bundle.file.clone(),
        recorded_by: bundle.index.trainyard.clone(),
        replayed_by: Host::this(),
        same: difference.is_none(),
        plugins,
        train_jobs: jobs.len(),
        objects,
        difference,
    };
    match args.output {
        ReportFormat::Json => output::json(&replayed)?,
        ReportFormat::Table => output::lines(replayed.lines())?,
    }
    if replayed.same {
        return Ok(());
    }
    let message =
        "the result differs from the recorded one; standard output has the first difference";
    Err(refused(&format!("{}: {message}", bundle.file)))
}

/// Checks that this build recorded the bundle: only the same build guarantees the same bytes.
fn same_host(bundle: &Bundle, any_version: bool) -> Result<(), ErrorList> {
    let (recorded, this) = (&bundle.index.trainyard, Host::this());
    if *recorded == this {
        return Ok(());
    }
    let message = format!(
        "{}: was recorded by {recorded}, but this is {this}",
        bundle.file
    );
    if any_version {
        report::warn(format!("{message}; a difference may be due to that"));
        return Ok(());
    }
    Err(ErrorList::from_iter([format!(
        "{message}; replay it with that build, or use --any-version to compare anyway"
    )]))
}

fn shown(entry: &JobEntry) -> String {
    clean(&format!("{}/{}", entry.namespace, entry.name))
}

fn items(list: &Value) -> &[Value] {
    let items = list.get("items").and_then(Value::as_array);
    items.map_or(&[], Vec::as_slice)
}

/// Returns the first difference between a TrainJob's result and the recorded one.
fn difference_of(
    entry: &JobEntry,
    recorded: &Value,
    rendered: &Rendered,
    now: &Value,
) -> Option<Difference> {
    let of = |object: Option<String>, found: FieldDifference| Difference {
        train_job: shown(entry),
        object,
        path: found.path.to_string(),
        recorded: found.recorded,
        now: found.now,
    };
    let plan = rendered.whole_plan().digest;
    if plan != entry.plan {
        let found = FieldDifference {
            path: FieldPath::of(["plan"]),
            recorded: Some(entry.plan.as_str().into()),
            now: Some(plan.into()),
        };
        return Some(of(None, found));
    }
    let pairs = items(recorded).iter().zip(items(now));
    for (recorded, now) in pairs {
        if let Some(found) = first_difference(&FieldPath::root(), recorded, now) {
            return Some(of(Some(named(recorded)), found));
        }
    }
    first_difference(&FieldPath::root(), recorded, now).map(|found| of(None, found))
}

/// Returns the kind and name of an object.
fn named(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    clean(&format!("{} {}", kind.unwrap_or("?"), name.unwrap_or("?")))
}

impl ReplayReport {
    fn lines(&self) -> Vec<String> {
        let Some(difference) = &self.difference else {
            return vec![format!(
                "{}: the same, byte for byte: {} of {}",
                self.bundle,
                output::counted(self.objects, "object"),
                output::counted(self.train_jobs, "TrainJob")
            )];
        };
        let shown = |value: &Option<Value>| {
            value.as_ref().map_or_else(
                || "(absent)".to_owned(),
                |value| clean_to(&value.to_string(), MAX_LINE),
            )
        };
        let object = difference.object.iter();
        let object: String = object.map(|object| format!("{object}: ")).collect();
        vec![
            format!(
                "TrainJob {}: {object}{}",
                difference.train_job, difference.path
            ),
            format!("  recorded: {}", shown(&difference.recorded)),
            format!("  now:      {}", shown(&difference.now)),
        ]
    }
}
