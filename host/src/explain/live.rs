//! Explains a live TrainJob from its snapshot, as far as its plugins are loaded.

use std::{fmt, path::Path};

use kube::Client;
use serde_json::Value;
use trainyard_api::{FieldPath, Runtime, TrainJob, runtime::Member};
use trainyard_bundle::InputKind;
use trainyard_controller::reconcile::{Live, live, live_job_set};
use trainyard_model::{
    deadline::Deadline,
    manifest::{ActiveWhen, Union},
    plan::{Generation, Plan},
};
use trainyard_render::{NoSuchField, Provenance, Rendered};

use super::{
    ExplainArgs, Explanation,
    differences::{Cause, Comparison},
    fields,
};
use crate::{
    cluster::Access,
    load::LoadedPlugins,
    output::BufferedList,
    recording::{self, RecordedInput, Recording},
    report::{self, ErrorList},
};

/// A live TrainJob, with the plugins that are loaded here.
struct LiveTrainJob {
    namespace: String,
    name: String,
    live: Live,
    client: Client,
    loaded: LoadedPlugins,
}

/// Renders a live TrainJob again from its snapshot, and explains the result.
pub(super) fn explain(
    args: &ExplainArgs,
    name: &str,
    wanted: &[&FieldPath],
) -> Result<(), ErrorList> {
    if !args.run.input.filename.is_empty() {
        return Err(["trainjob/NAME is a live TrainJob; remove -f, or select a TrainJob of the files with --train-job NAME"]
            .into_iter()
            .collect());
    }
    let loaded = LoadedPlugins::load(&args.run.load)?;
    let read = async |client, default| {
        let train_job = LiveTrainJob::read(args, name, loaded, (client, default)).await?;
        let job_set = train_job.job_set(args.record.is_some()).await?;
        Ok((train_job, job_set))
    };
    let (train_job, job_set) = args.cluster.run(Access::Read, read)?;
    let deadline = Deadline::after(args.run.input.limit.timeout);
    let (rendered, cause) = train_job.render(args.record.is_some(), &deadline)?;
    if let Some(bundle) = &args.record {
        train_job.record(bundle, &rendered)?;
    }
    let (fields, mut absent) = fields(&rendered, wanted);
    if let Some(job_set) = job_set {
        let comparison = Comparison::new(&rendered.job_set, &job_set, cause);
        let lines = differences(&comparison, wanted, &fields, &mut absent);
        lines.iter().for_each(report::warn);
    }
    ErrorList::from_iter(absent.into_iter().flatten()).or_ok(())?;
    let explained = Explanation::new(&train_job.namespace, name, &rendered, wanted, fields);
    let mut buffered = BufferedList::new(args.output.list());
    buffered.add(explained.title(), &explained.text(args.output)?)?;
    buffered.print()
}

/// Returns a line for each wanted field, or for each field if none is wanted, that differs in the cluster. Removes the errors of absent
/// fields that the cluster has.
fn differences(
    comparison: &Comparison<'_>,
    wanted: &[&FieldPath],
    fields: &[Provenance],
    absent: &mut [Option<NoSuchField>],
) -> Vec<String> {
    let mut lines = comparison.changed(fields);
    let root = FieldPath::root();
    let explained = wanted.iter().zip(&*absent);
    let explained = explained.filter_map(|(path, absent)| absent.is_none().then_some(*path));
    let all = wanted.is_empty().then_some(&root);
    lines.extend(comparison.added(explained.chain(all)));
    for absent in absent {
        let found = absent.as_ref().map(|absent| comparison.absent(absent));
        let found = found.unwrap_or_default();
        if !found.is_empty() {
            *absent = None;
        }
        lines.extend(found);
    }
    lines
}

impl LiveTrainJob {
    /// Reads the TrainJob and its snapshot. The facts of the snapshot replace the local ones.
    async fn read(
        args: &ExplainArgs,
        name: &str,
        mut loaded: LoadedPlugins,
        (client, default): (Client, String),
    ) -> Result<Self, ErrorList> {
        let namespace = args.run.input.namespace.clone().unwrap_or(default);
        let live = live(client.clone(), &namespace, name).await;
        let live = live.map_err(|error| failed(&error))?;
        if let Some(facts) = live.snapshot.facts() {
            loaded.renderer = loaded.renderer.with_facts(facts);
        }
        Ok(Self {
            namespace,
            name: name.to_owned(),
            live,
            client,
            loaded,
        })
    }

    /// Renders it with the loaded plugins. Plugins and settings that differ from those in the snapshot are a warning, or an error if the result
    /// `is_recorded`. Also returns the likely cause of differences from the cluster.
    fn render(
        &self,
        is_recorded: bool,
        deadline: &Deadline,
    ) -> Result<(Rendered, Cause), ErrorList> {
        let title = format!("TrainJob {}/{}", self.namespace, self.name);
        let snapshot = &self.live.snapshot;
        let renderer = &self.loaded.renderer;
        let generation = renderer.generation();
        let missing = missing(&self.live, generation);
        let (mut job, mut runtime) = (self.live.job.clone(), snapshot.runtime.as_ref().clone());
        if !is_recorded {
            keep_loaded_overrides(&mut job, generation);
        }
        if !missing.is_empty() {
            if is_recorded {
                let missing = missing.join("; ");
                return Err(failed(&format!(
                    "{title}: {missing}; no bundle was written"
                )));
            }
            let lines = missing.iter();
            lines.for_each(|line| report::warn(format!("{title}: {line}")));
            keep_loaded(&mut runtime, generation);
        }
        let rendered = renderer
            .render(&job, &runtime, &self.namespace, &snapshot.lookups, deadline)
            .map_err(|stopped| ErrorList::from_iter(stopped.lines()))?;
        let message = match &snapshot.plan {
            None => Some(format!(
                "{title} was rendered by the Kubeflow Trainer, so this explains what Trainyard would render; to have Trainyard render it, suspend it and delete its JobSet"
            )),
            Some(plan) => {
                let is_kept = of_loaded(plan, generation).is_kept_by(&rendered.whole_plan());
                (!is_kept).then(|| format!(
                    "{title} was rendered with other plugins or settings than those loaded here; load its plugins with --plugin and their settings with --policy"
                ))
            }
        };
        let cause = match (&snapshot.plan, &message) {
            _ if !missing.is_empty() => Cause::MissingPlugin,
            (None, _) => Cause::KubeflowTrainer,
            (Some(_), Some(_)) => Cause::OtherPlan,
            (Some(_), None) if snapshot.started => Cause::HasRun,
            (Some(_), None) => Cause::OtherClient,
        };
        if let Some(message) = message {
            if is_recorded {
                return Err(failed(&format!("{message}; no bundle was written")));
            }
            report::warn(message);
        }
        Ok((rendered, cause))
    }

    /// Writes a bundle.
    fn record(&self, bundle: &Path, rendered: &Rendered) -> Result<(), ErrorList> {
        let input = RecordedInput {
            namespace: &self.namespace,
            name: &self.name,
            from: InputKind::Cluster,
            train_job: &self.live.object,
            runtime: self.live.snapshot.runtime_object(),
        };
        let recording = Recording::of(&input, rendered);
        recording::write(bundle, &self.loaded, vec![recording])
    }

    /// Returns the JobSet in the cluster. Warns if it cannot be read. A snapshot that another client changed is a warning, or an error if the
    /// result `is_recorded`.
    async fn job_set(&self, is_recorded: bool) -> Result<Option<Value>, ErrorList> {
        let found = live_job_set(self.client.clone(), &self.namespace, &self.name).await;
        let found = found.unwrap_or_else(|error| {
            report::warn(format!("{error}; the fields are not compared with it"));
            None
        });
        let checked = found.as_ref().map(|found| self.live.check_snapshot(found));
        match checked.unwrap_or(Ok(())) {
            Ok(()) => {}
            Err(changed) if is_recorded => {
                return Err(failed(&format!("{changed}; no bundle was written")));
            }
            Err(changed) => report::warn(changed.to_string()),
        }
        Ok(found)
    }
}

fn failed(error: &dyn fmt::Display) -> ErrorList {
    ErrorList::from_iter([error.to_string()])
}

/// Returns a message for each plugin of the TrainJob's plan that is not loaded.
fn missing(live: &Live, generation: &Generation) -> Vec<String> {
    let plan = live.snapshot.plan.iter();
    let planned = plan.flat_map(|plan| &plan.plugins);
    let missing = planned.filter(|planned| generation.plugin(&planned.name).is_none());
    let line = missing.map(|planned| {
        format!(
            "the plugin {} {} ({}) is not loaded, so the fields that it set are not explained; load its file with --plugin",
            planned.name, planned.version, planned.digest
        )
    });
    line.collect()
}

/// Returns the plan without the plugins that are not loaded.
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
    let is_activated = |wanted: &ActiveWhen| {
        let mut plugins = generation.plugins();
        plugins.any(|plugin| plugin.manifest.active_when == *wanted)
    };
    let is_handled = |union: Union, member: &Member| match member {
        Member::Plugin(plugin) => is_loaded(&plugin.name),
        Member::Key(policy) => is_activated(&ActiveWhen::Key(union, policy.key.clone())),
    };
    if let Some(policy) = &mut runtime.ml_policy {
        let handled = |member: &Member| is_handled(Union::MlPolicy, member);
        policy.member = policy.member.take().filter(handled);
    }
    let handled = |member: &Member| is_handled(Union::PodGroupPolicy, member);
    runtime.pod_group_policy = runtime.pod_group_policy.take().filter(handled);
}

/// Removes the overrides for plugins that are not loaded here, or not with the operator's settings, from a TrainJob. The controller has checked
/// them.
fn keep_loaded_overrides(job: &mut TrainJob, generation: &Generation) {
    let plugin = |name: &str| generation.plugin(name);
    let is_exempting =
        |name: &str| plugin(name).is_some_and(|it| !it.settings.exemptions.is_empty());
    job.plugins.disabled.retain(|name| is_exempting(name));
    job.plugins
        .parameters
        .retain(|name, _| plugin(name).is_some());
}
