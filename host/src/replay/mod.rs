//! `trainyard replay`.

mod objects;
mod plugins;
mod replaced;

use std::{collections::BTreeSet, path::PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use trainyard_api::FieldPath;
use trainyard_bundle::{Bundle, BundleProblem, Host, JobEntry};
use trainyard_model::{
    deadline::Deadline,
    text::{MAX_LINE, clean, clean_to},
};
use trainyard_render::{Rendered, Renderer};

use self::{objects::rendered, replaced::PluginChange};
use crate::{
    args::{LoadArgs, ReportFormat, TimeoutArgs},
    difference::{FieldDifference, first_difference},
    load, output,
    recording::{self, this_host},
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
    /// A file, a directory, or `-` for standard input, with PolicyPlugins. With -f, --policy, --plugin or --plugin-dir, the TrainJobs are rendered
    /// with these plugins and settings, and not with those of the bundle, and the first field that differs of each TrainJob is reported. Can be
    /// repeated.
    #[arg(short, long = "filename", value_name = "FILE|DIR|-", num_args = 1.., value_hint = clap::ValueHint::AnyPath)]
    filename: Vec<PathBuf>,
    #[command(flatten)]
    load: LoadArgs,
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
    plugins: BTreeSet<String>,
    /// The plugins that are not those of the bundle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed_plugins: Vec<PluginChange>,
    train_jobs: usize,
    objects: usize,
    /// The TrainJobs that the plugins refuse.
    #[serde(skip_serializing_if = "is_zero")]
    refused: usize,
    /// The first field that differs: with the plugins of the bundle one, with others one for each TrainJob.
    differences: Vec<Difference>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
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

/// What renders the TrainJobs again.
struct Plugins {
    renderer: Renderer,
    /// How they differ from those of the bundle; `None` if they are those.
    changes: Option<Vec<PluginChange>>,
}

pub(crate) fn run(args: &ReplayArgs) -> Result<(), ErrorList> {
    let refused = |error: &dyn std::fmt::Display| ErrorList::from_iter([error.to_string()]);
    let mut bundle = Bundle::read(&args.bundle).map_err(|error| refused(&error))?;
    same_host(&bundle, args.any_version)?;
    let plugins = plugins(args, &mut bundle)?;
    let is_other = plugins.changes.is_some();
    let jobs = std::mem::take(&mut bundle.index.train_jobs);
    let mut failure = ErrorList::default();
    let mut replayed = ReplayReport {
        bundle: bundle.file.clone(),
        recorded_by: bundle.index.trainyard.clone(),
        replayed_by: this_host(),
        same: false,
        plugins: BTreeSet::new(),
        changed_plugins: plugins.changes.unwrap_or_default(),
        train_jobs: jobs.len(),
        objects: 0,
        refused: 0,
        differences: Vec::new(),
    };
    for job in &jobs {
        let compared = compare(
            args,
            &mut bundle,
            job,
            (&plugins.renderer, is_other),
            &mut replayed,
        );
        match compared {
            Ok(()) if replayed.differences.is_empty() || is_other => {}
            Ok(()) => break,
            Err(errors) if is_other => {
                replayed.refused += 1;
                failure.absorb(errors);
            }
            Err(errors) => return Err(errors),
        }
    }
    replayed.same = replayed.differences.is_empty() && replayed.refused == 0;
    match args.output {
        ReportFormat::Json => output::json(&replayed)?,
        ReportFormat::Table => output::lines(replayed.lines(is_other))?,
    }
    if !replayed.differences.is_empty() {
        let what = match is_other {
            true => "the first difference of each TrainJob",
            false => "the first difference",
        };
        failure.add(format!(
            "{}: the result differs from the recorded one; standard output has {what}",
            bundle.file
        ));
    }
    failure.or_ok(())
}

/// Loads the plugins of the command line, or else those of the bundle.
fn plugins(args: &ReplayArgs, bundle: &mut Bundle) -> Result<Plugins, ErrorList> {
    let given = &args.load.plugins;
    let is_given = !given.plugin.is_empty() || given.plugin_dir.is_some();
    if is_given || !given.policy.is_empty() || !args.filename.is_empty() {
        let (renderer, changes) = replaced::renderer(bundle, &args.load, &args.filename)?;
        return Ok(Plugins {
            renderer,
            changes: Some(changes),
        });
    }
    if args.load.signed.is_given() {
        return Err(ErrorList::from_iter([
            "--key and --signers are for the plugins of PolicyPlugins, and those of a bundle are not signed; pass PolicyPlugins with -f, or omit the flags",
        ]));
    }
    let loader = load::loader(&given.cache, load::cores())?;
    Ok(Plugins {
        renderer: plugins::renderer(bundle, &loader, args.any_version)?,
        changes: None,
    })
}

/// Renders a TrainJob again, and adds what differs to the report. With other plugins, the plan is another one anyway.
fn compare(
    args: &ReplayArgs,
    bundle: &mut Bundle,
    job: &JobEntry,
    (renderer, is_other): (&Renderer, bool),
    report: &mut ReplayReport,
) -> Result<(), ErrorList> {
    let refused = |error: &dyn std::fmt::Display| ErrorList::from_iter([error.to_string()]);
    let text = bundle.take(&job.output).map_err(|error| refused(&error))?;
    let recorded = bundle.json(&job.output, &text);
    let recorded = recorded.map_err(|error| refused(&error))?;
    let deadline = Deadline::after(args.limit.timeout);
    let rendered = rendered(bundle, job, renderer, &deadline)?;
    let active = rendered.plan.iter().map(|active| &active.plugin);
    let disabled = rendered.disabled.iter().map(|disabled| &disabled.plugin);
    let ran = active.chain(disabled).map(|plugin| plugin.id.to_string());
    report.plugins.extend(ran);
    let now = recording::output(&rendered);
    report.objects += items(&now).len();
    let plan = (!is_other)
        .then(|| difference_of_plans(job, &rendered))
        .flatten();
    let difference = plan.or_else(|| difference_of(job, &recorded, &now));
    if difference.is_none() && text != recording::text(&now) {
        let name = clean(&job.output);
        return Err(refused(&bundle.error(BundleProblem::Respelled { name })));
    }
    report.differences.extend(difference);
    Ok(())
}

/// Checks that this build recorded the bundle: only the same build guarantees the same bytes.
fn same_host(bundle: &Bundle, any_version: bool) -> Result<(), ErrorList> {
    let (recorded, this) = (&bundle.index.trainyard, this_host());
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

/// Returns the difference between a TrainJob's plan and the recorded one.
fn difference_of_plans(entry: &JobEntry, rendered: &Rendered) -> Option<Difference> {
    let plan = rendered.whole_plan().digest;
    (plan != entry.plan).then(|| Difference {
        train_job: shown(entry),
        object: None,
        path: FieldPath::of(["plan"]).to_string(),
        recorded: Some(entry.plan.as_str().into()),
        now: Some(plan.into()),
    })
}

/// Returns the first difference between a TrainJob's result and the recorded one.
fn difference_of(entry: &JobEntry, recorded: &Value, now: &Value) -> Option<Difference> {
    let of = |object: Option<String>, found: FieldDifference| Difference {
        train_job: shown(entry),
        object,
        path: found.path.to_string(),
        recorded: found.recorded,
        now: found.now,
    };
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
    fn lines(&self, is_other: bool) -> Vec<String> {
        let changed = self.changed_plugins.iter().map(PluginChange::line);
        let differences = self.differences.iter().flat_map(Difference::lines);
        let mut lines: Vec<_> = changed.chain(differences).collect();
        if self.same {
            lines.push(format!(
                "{}: the same, byte for byte: {} of {}",
                self.bundle,
                output::counted(self.objects, "object"),
                output::counted(self.train_jobs, "TrainJob")
            ));
        } else if is_other {
            lines.push(format!(
                "{}: with these plugins, {} of {} would differ, and {} would be refused",
                self.bundle,
                self.differences.len(),
                output::counted(self.train_jobs, "TrainJob"),
                self.refused
            ));
        }
        lines
    }
}

impl Difference {
    fn lines(&self) -> [String; 3] {
        let shown = |value: &Option<Value>| {
            value.as_ref().map_or_else(
                || "(absent)".to_owned(),
                |value| clean_to(&value.to_string(), MAX_LINE),
            )
        };
        let object = self.object.iter();
        let object: String = object.map(|object| format!("{object}: ")).collect();
        [
            format!("TrainJob {}: {object}{}", self.train_job, self.path),
            format!("  recorded: {}", shown(&self.recorded)),
            format!("  now:      {}", shown(&self.now)),
        ]
    }
}
