//! `trainyard replay`.

mod difference;

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use trainyard_api::{FieldPath, Object, Runtime, Source, TrainJob};
use trainyard_controller::reconcile::Snapshot;
use trainyard_model::{
    limits::Limits,
    lookup::Lookups,
    policy::Policy,
    text::{MAX_LINE, clean, clean_to},
};
use trainyard_render::{Rendered, Renderer};
use trainyard_sandbox::Loader;
use trainyard_schema::Admission;

use self::difference::{Found, first_difference};
use crate::{
    bundle::{Bundle, BundleProblem, Host, InputKind, JobEntry},
    cli::{CacheArgs, ReportFormat},
    load, output, record,
    report::{self, Failure},
};

/// What `replay` takes.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The bundle, which `render --record` or `explain --record` wrote.
    #[arg(value_name = "BUNDLE", value_hint = clap::ValueHint::FilePath)]
    bundle: PathBuf,
    /// Compare also if another version or build of trainyard recorded the bundle.
    #[arg(long)]
    any_version: bool,
    #[command(flatten)]
    cache: CacheArgs,
    /// The form of the output.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
}

/// The largest limits of a plugin call that a bundle may ask for: whoever made it may have written any.
const LARGEST: Limits = Limits {
    memory_bytes: 1 << 30,
    fuel: 100_000_000_000,
    wall_clock_ms: 60_000,
    import_bytes: 1 << 30,
    handles: 1 << 24,
    writes: 1 << 20,
    log_lines: 1 << 16,
    containers: 1 << 10,
    objects: 1 << 10,
    key_material: 1 << 10,
    kept_bytes: 1 << 24,
};

/// What came of a replay.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Replayed {
    bundle: String,
    recorded_by: Host,
    replayed_by: Host,
    same: bool,
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
    /// The object; none if the plan differs, or the number of objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    path: String,
    /// None where the field was not there.
    recorded: Option<Value>,
    /// None where the field is not there.
    now: Option<Value>,
}

pub(crate) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::from_iter([error.to_string()]);
    let mut bundle = Bundle::read(&args.bundle).map_err(|error| refused(&error))?;
    same_host(&bundle, args.any_version)?;
    let loader = load::loader(&args.cache, load::cores())?;
    let renderer = renderer(&mut bundle, &loader)?;
    let jobs = std::mem::take(&mut bundle.index.train_jobs);
    let (mut objects, mut difference) = (0, None);
    for job in &jobs {
        let recorded = bundle
            .take_json(&job.output)
            .map_err(|error| refused(&error))?;
        let rendered = rendered(&mut bundle, job, &renderer)?;
        let now = record::output(&rendered);
        objects += items(&now).len();
        difference = difference_of(job, &recorded, &rendered, &now);
        if difference.is_some() {
            break;
        }
    }
    let replayed = Replayed {
        bundle: bundle.file.clone(),
        recorded_by: bundle.index.trainyard.clone(),
        replayed_by: Host::this(),
        same: difference.is_none(),
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
    let message = "the result differs from the recorded one; the field is printed";
    Err(refused(&format!("{}: {message}", bundle.file)))
}

/// Only the same build gives the same bytes for sure.
fn same_host(bundle: &Bundle, any_version: bool) -> Result<(), Failure> {
    let (recorded, this) = (&bundle.index.trainyard, Host::this());
    if *recorded == this {
        return Ok(());
    }
    let message = format!(
        "{}: was recorded by {recorded}, and this is {this}",
        bundle.file
    );
    if any_version {
        report::warn(format!("{message}: a difference may come from that"));
        return Ok(());
    }
    Err(Failure::from_iter([format!(
        "{message}: replay it with that build, or give --any-version to compare nevertheless"
    )]))
}

/// Loads the plugins of a bundle as any plugin is loaded: screened, compiled in a process with limits, under its grants.
fn renderer(bundle: &mut Bundle, loader: &Loader) -> Result<Renderer, Failure> {
    let mut failure = Failure::default();
    let mut policies: Vec<Arc<dyn Policy>> = Vec::new();
    for entry in std::mem::take(&mut bundle.index.plugins) {
        let place = format!("{}: `{}`", bundle.file, clean(&entry.file));
        if let Err(problem) = within(entry.limits(), &LARGEST) {
            failure.add(format!("{place}: {problem}"));
            continue;
        }
        let bytes = match bundle.take(&entry.file) {
            Ok(bytes) => bytes,
            Err(error) => {
                failure.add(error);
                continue;
            }
        };
        match loader.load_foreign(bytes, |_| entry.settings()) {
            Ok(policy) if *policy.plugin().id.name == *entry.name => {
                policies.push(Arc::new(policy))
            }
            Ok(policy) => failure.add(format!(
                "{place}: holds plugin {}, but the bundle names it `{}`",
                policy.plugin().id,
                clean(&entry.name)
            )),
            Err(problem) => failure.add(format!("{place}: {problem}")),
        }
    }
    failure.or_ok(())?;
    Renderer::new(policies, bundle.index.cluster.facts()).map_err(Failure::from_iter)
}

/// Whether no limit is larger than one that may be asked for.
fn within(limits: &Limits, largest: &Limits) -> Result<(), String> {
    let (limits, largest) = (serde_json::json!(limits), serde_json::json!(largest));
    let mut limits = limits.as_object().into_iter().flatten();
    let too_large = limits.find_map(|(name, limit)| {
        let most = largest.get(name).and_then(Value::as_u64)?;
        (limit.as_u64()? > most)
            .then(|| format!("limits.{name}: is {limit}; a replay allows at most {most}"))
    });
    too_large.map_or(Ok(()), Err)
}

/// Reads a TrainJob and its runtime as they were read when they were recorded, and renders them.
fn rendered(
    bundle: &mut Bundle,
    entry: &JobEntry,
    renderer: &Renderer,
) -> Result<Rendered, Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::from_iter([error.to_string()]);
    let job = read_job(bundle, entry)?;
    let runtime = read_runtime(bundle, entry)?;
    let lookups = bundle
        .take_json(&entry.lookups)
        .map_err(|error| refused(&error))?;
    let lookups: Lookups = serde_json::from_value(lookups).map_err(|error| {
        let (name, problem) = (clean(&entry.lookups), clean(&error.to_string()));
        refused(&bundle.error(BundleProblem::Json { name, problem }))
    })?;
    let rendered = renderer.render(&job, &runtime, &entry.namespace, &Arc::new(lookups));
    rendered.map_err(|problems| {
        let name = format!("{}: TrainJob {}", bundle.file, shown(entry));
        let lines = problems.iter().map(|problem| format!("{name}: {problem}"));
        lines.collect()
    })
}

fn read_job(bundle: &mut Bundle, entry: &JobEntry) -> Result<TrainJob, Failure> {
    let object = object(bundle, &entry.train_job)?;
    let mut admitted = Admission::default()
        .admit(object, None, &entry.namespace)
        .map_err(|error| Failure::from_iter([error]))?;
    if admitted.errors.is_empty() {
        match TrainJob::read(&admitted.object) {
            Ok(job) => return Ok(job),
            Err(errors) => admitted.refuse(&errors.0),
        }
    }
    Err(Failure::from_iter(admitted.errors))
}

fn read_runtime(bundle: &mut Bundle, entry: &JobEntry) -> Result<Arc<Runtime>, Failure> {
    if entry.from == InputKind::Cluster {
        let value = bundle.take_json(&entry.runtime);
        let value = value.map_err(|error| Failure::from_iter([error]))?;
        let place = format!("{}: `{}`", bundle.file, clean(&entry.runtime));
        let snapshot = Snapshot::new(value);
        return match snapshot {
            Ok(snapshot) => Ok(snapshot.runtime),
            Err(problem) => Err(Failure::from_iter([format!("{place}: {problem}")])),
        };
    }
    let object = object(bundle, &entry.runtime)?;
    let mut admitted = Admission::default()
        .admit(object, None, &entry.namespace)
        .map_err(|error| Failure::from_iter([error]))?;
    if admitted.errors.is_empty() {
        match Runtime::read(&admitted.object) {
            Ok(runtime) => return Ok(Arc::new(runtime)),
            Err(errors) => admitted.refuse(&errors.0),
        }
    }
    Err(Failure::from_iter(admitted.errors))
}

/// An object of a file of the bundle.
fn object(bundle: &mut Bundle, name: &str) -> Result<Object, Failure> {
    let value = bundle.take_json(name);
    let value = value.map_err(|error| Failure::from_iter([error]))?;
    let source = Source::new(format!("{}:{}", bundle.file, clean(name)), 1);
    Object::read(source, value).map_err(|errors| Failure::from_iter(errors.0))
}

fn shown(entry: &JobEntry) -> String {
    clean(&format!("{}/{}", entry.namespace, entry.name))
}

fn items(list: &Value) -> &[Value] {
    let items = list.get("items").and_then(Value::as_array);
    items.map_or(&[], Vec::as_slice)
}

/// The first thing in which a TrainJob differs from what was recorded of it.
fn difference_of(
    entry: &JobEntry,
    recorded: &Value,
    rendered: &Rendered,
    now: &Value,
) -> Option<Difference> {
    let of = |object: Option<String>, found: Found| Difference {
        train_job: shown(entry),
        object,
        path: found.path.to_string(),
        recorded: found.recorded,
        now: found.now,
    };
    let plan = rendered.whole_plan().digest;
    if plan != entry.plan {
        let found = Found {
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

/// Kind and name of an object.
fn named(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    clean(&format!("{} {}", kind.unwrap_or("?"), name.unwrap_or("?")))
}

impl Replayed {
    fn lines(&self) -> Vec<String> {
        let Some(difference) = &self.difference else {
            return vec![format!(
                "{}: the same, byte for byte: {} of {}",
                self.bundle,
                counted(self.objects, "object"),
                counted(self.train_jobs, "TrainJob")
            )];
        };
        let shown = |value: &Option<Value>| {
            value.as_ref().map_or_else(
                || "(not there)".to_owned(),
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

fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn limits_of_a_bundle_are_bounded() {
        assert_eq!(within(&Limits::default(), &LARGEST), Ok(()));
        let limits = Limits {
            memory_bytes: u64::MAX,
            ..Limits::default()
        };
        let error = within(&limits, &LARGEST).unwrap_err();
        assert!(
            error.starts_with("limits.memoryBytes: is 18446744073709551615;"),
            "{error}"
        );
    }
}
