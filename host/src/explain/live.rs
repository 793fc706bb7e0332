//! A live TrainJob, explained from its snapshot, as far as its plugins are loaded.

use std::fmt;

use kube::Client;
use serde_json::Value;
use trainyard_api::{
    FieldPath, Runtime,
    merge::{JOB_SET, Names},
    path::Segment,
    runtime::Member,
};
use trainyard_controller::reconcile::{Live, live, live_job_set};
use trainyard_model::{manifest::ActiveWhen, plan::Generation};
use trainyard_render::{NoSuchField, Provenance};

use super::{ExplainArgs, Explanation, fields};
use crate::{
    bundle::InputKind,
    cli::RunArgs,
    cluster,
    load::LoadedPlugins,
    output::BufferedList,
    record::{self, RecordedInput, Recording},
    report::{self, ErrorList},
};

/// Renders a live TrainJob once more from its snapshot, and explains that.
pub(super) fn explain(
    args: &ExplainArgs,
    name: &str,
    wanted: &[&FieldPath],
) -> Result<(), ErrorList> {
    let RunArgs { input, load, .. } = &args.run;
    if !input.filename.is_empty() {
        return Err(["trainjob/NAME is a live TrainJob; remove -f, or select a TrainJob of the files with --train-job NAME"]
            .into_iter()
            .collect());
    }
    let mut loaded = LoadedPlugins::load(load)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (namespace, client, live) = runtime.block_on(async {
        let config = args.cluster.config().await?;
        let given = input.namespace.clone();
        let namespace = given.unwrap_or_else(|| config.default_namespace.clone());
        let client = cluster::client(config).map_err(|error| failed(&error))?;
        let live = live(client.clone(), &namespace, name).await;
        let live = live.map_err(|error| failed(&error))?;
        Ok::<_, ErrorList>((namespace, client, live))
    })?;
    let (namespace, snapshot) = (&*namespace, &live.snapshot);
    let title = format!("TrainJob {namespace}/{name}");
    if let Some(facts) = snapshot.facts() {
        loaded.renderer = loaded.renderer.with_facts(facts);
    }
    let renderer = &loaded.renderer;
    let missing = missing(&live, renderer.generation());
    let mut from = snapshot.runtime.as_ref().clone();
    if !missing.is_empty() {
        if args.record.is_some() {
            let why = format!(
                "{title}: {}; its bundle would hold what never happened",
                missing.join("; ")
            );
            return Err(failed(&why));
        }
        missing
            .iter()
            .for_each(|line| report::warn(format!("{title}: {line}")));
        keep_loaded(&mut from, renderer.generation());
    }
    let rendered = renderer.render(&live.job, &from, namespace, &snapshot.lookups);
    let rendered = rendered.map_err(|stopped| ErrorList::from_iter(stopped.lines()))?;
    let now = rendered.whole_plan();
    let pinned = snapshot.plan.as_ref();
    if missing.is_empty() && !pinned.is_some_and(|plan| plan.is_kept_by(&now)) {
        let message = format!(
            "{title} was rendered with other plugins or settings than those loaded here; load its plugins with --plugin and their settings with --policy"
        );
        if args.record.is_some() {
            return Err(failed(&format!("{message}; no bundle was written")));
        }
        report::warn(message);
    }
    if let Some(bundle) = &args.record {
        let written = RecordedInput {
            namespace,
            name,
            from: InputKind::Cluster,
            train_job: &live.object,
            runtime: snapshot.runtime_object(),
        };
        let recording = Recording::of(&written, &rendered);
        record::write(bundle, &loaded, vec![recording])?;
    }
    let (fields, mut missing) = fields(&rendered, wanted);
    if !missing.is_empty() {
        let job_set = runtime.block_on(job_set(client, namespace, name));
        let differences = differences(&fields, &mut missing, &job_set);
        differences.iter().for_each(report::warn);
    }
    ErrorList::from_iter(missing.into_iter().flatten()).or_ok(())?;
    let explained = Explanation {
        train_job: name,
        namespace,
        fields,
    };
    let mut buffered = BufferedList::new(args.output.list());
    buffered.add(explained.title(), &explained.text(args.output)?)?;
    buffered.print()
}

fn failed(error: &dyn fmt::Display) -> ErrorList {
    ErrorList::from_iter([error.to_string()])
}

/// The plugins of the TrainJob's plan that are not loaded, a sentence each.
fn missing(live: &Live, generation: &Generation) -> Vec<String> {
    let plan = live.snapshot.plan.iter();
    let planned = plan.flat_map(|plan| &plan.plugins);
    let missing = planned.filter(|planned| generation.plugin(&planned.name).is_none());
    let line = missing.map(|planned| {
        format!(
            "the plugin {} {} ({}) is not loaded, and what it set is not explained; give its file with --plugin",
            planned.name, planned.version, planned.digest
        )
    });
    line.collect()
}

/// Removes the plugins that are not loaded from a runtime.
fn keep_loaded(runtime: &mut Runtime, generation: &Generation) {
    let is_loaded = |name: &str| generation.plugin(name).is_some();
    runtime.plugins.retain(|plugin| is_loaded(&plugin.name));
    let is_handled = |member: &Member| match member {
        Member::Plugin(plugin) => is_loaded(&plugin.name),
        Member::Key { key, .. } => {
            let wanted = ActiveWhen::MlPolicy((*key).to_owned());
            let mut plugins = generation.plugins();
            plugins.any(|plugin| plugin.manifest.active_when == wanted)
        }
    };
    if let Some(policy) = &mut runtime.ml_policy {
        policy.member = policy.member.take().filter(is_handled);
    }
}

/// The JobSet in the cluster. Without it, fields can't be compared with it.
async fn job_set(client: Client, namespace: &str, name: &str) -> Value {
    match live_job_set(client, namespace, name).await {
        Ok(Some(job_set)) => job_set,
        Ok(None) => Value::Null,
        Err(error) => {
            report::warn(format!("{error}; the fields are not compared with it"));
            Value::Null
        }
    }
}

/// Where the JobSet in the cluster differs from what was explained. A wanted field that only the cluster has is not missing.
fn differences(
    fields: &[Provenance],
    missing: &mut [Option<NoSuchField>],
    job_set: &Value,
) -> Vec<String> {
    if job_set.is_null() {
        return Vec::new();
    }
    let names = Names::new(job_set, &JOB_SET);
    let of = |path: &FieldPath| value_at(job_set, &names.by_positions(path));
    let by_whom = "which a plugin that is not loaded, or another client, has set";
    let mut lines = Vec::new();
    for field in fields {
        let Some(path) = field.named() else { continue };
        let explained = field.steps.last().and_then(|step| step.to.as_ref());
        if let Some(found) = of(path).filter(|found| Some(*found) != explained) {
            lines.push(format!("{path}: is {found} in the cluster, {by_whom}"));
        }
    }
    for wanted in missing {
        let found = wanted
            .as_ref()
            .and_then(|wanted| Some((&wanted.path, of(&wanted.path)?)));
        if let Some((path, found)) = found {
            lines.push(format!("{path}: is {found} in the cluster, {by_whom}"));
            *wanted = None;
        }
    }
    lines
}

/// The value at a path with positions.
fn value_at<'v>(value: &'v Value, path: &FieldPath) -> Option<&'v Value> {
    let mut segments = path.segments().iter();
    segments.try_fold(value, |value, segment| match segment {
        Segment::Index(at) => value.get(at),
        Segment::Field(name) | Segment::Key(name) => value.get(name),
    })
}
