//! A live TrainJob, explained from its snapshot, as far as its plugins are loaded.

use std::fmt;

use kube::Client;
use serde_json::Value;
use trainyard_api::{FieldPath, Runtime, runtime::Member};
use trainyard_controller::reconcile::{Live, live, live_job_set};
use trainyard_model::{
    manifest::ActiveWhen,
    plan::{Generation, Plan},
};

use super::{
    ExplainArgs, Explanation,
    differences::{Cause, Comparison},
    fields,
};
use crate::{
    args::RunArgs,
    bundle::InputKind,
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
    let pinned = pinned.map(|plan| of_loaded(plan, renderer.generation()));
    let is_kept = pinned.is_some_and(|plan| plan.is_kept_by(&now));
    if !is_kept {
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
    let cause = match (missing.is_empty(), is_kept) {
        (false, _) => Cause::MissingPlugin,
        (true, false) => Cause::OtherPlan,
        (true, true) => Cause::OtherClient,
    };
    let (fields, mut absent) = fields(&rendered, wanted);
    if !wanted.is_empty()
        && let Some(live) = runtime.block_on(job_set(client, namespace, name))
    {
        let comparison = Comparison::new(&rendered.job_set, &live, cause);
        let mut lines = comparison.changed(&fields);
        let explained = wanted.iter().zip(&absent);
        let explained = explained.filter_map(|(path, absent)| absent.is_none().then_some(*path));
        lines.extend(comparison.added(explained));
        for absent in &mut absent {
            let found = absent.as_ref().map(|absent| comparison.absent(absent));
            let found = found.unwrap_or_default();
            if !found.is_empty() {
                *absent = None;
            }
            lines.extend(found);
        }
        lines.iter().for_each(report::warn);
    }
    ErrorList::from_iter(absent.into_iter().flatten()).or_ok(())?;
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

/// The plan without the plugins that are not loaded.
fn of_loaded(plan: &Plan, generation: &Generation) -> Plan {
    let mut plan = plan.clone();
    plan.plugins
        .retain(|planned| generation.plugin(&planned.name).is_some());
    plan
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
async fn job_set(client: Client, namespace: &str, name: &str) -> Option<Value> {
    let found = live_job_set(client, namespace, name).await;
    found.unwrap_or_else(|error| {
        report::warn(format!("{error}; the fields are not compared with it"));
        None
    })
}
