//! The metrics for Prometheus.
//!
//! Names start with `trainyard_`. The metrics of controller-runtime that dashboards of the reference use (kubeflow/trainer#3653) keep their
//! names and labels.

mod admission;
mod breakers;
mod calls;
mod certificate;
mod counted_later;
mod held_text;
mod label;
mod labels;
mod load;
mod plugins;
#[cfg(target_os = "linux")]
mod process;
mod shadow;
mod spans;
mod status;
mod train_jobs;
mod watches;

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use admission::AdmissionMetrics;
use calls::CallMetrics;
pub use calls::PluginCall;
use certificate::CertificateMetrics;
pub use held_text::HeldText;
use held_text::HeldTextMetrics;
use label::{BoundedLabel, Label};
use labels::{
    ApiLabels, ControllerLabels, FailureLabels, FileLabels, KindLabels, PlanLabels, PluginLabels,
    ReasonLabels, ResultLabels,
};
use load::{QueueMetrics, TaskMetrics};
use plugins::RevisionMetrics;
use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use shadow::ShadowMetrics;
use spans::SpanMetrics;
use status::StatusMetrics;
use train_jobs::TrainJobMetrics;
pub use train_jobs::{TrainJobCounts, TrainJobLabels};
use trainyard_model::plugin_info::PluginId;

use watches::WatchMetrics;

use crate::{breaker::AllBreakers, queue::Queue, shadow::Shadow};

/// The name of the reference's TrainJob controller, which is a label of its metrics.
const CONTROLLER: &str = "trainjob_controller";

/// The media type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Seconds of a reconcile, API calls included.
const RECONCILE_SECONDS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0,
];

/// Seconds from the creation of a TrainJob to that of its JobSet. The API server's timestamps have whole seconds.
const CREATION_SECONDS: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0];

/// The metrics of a process. docs/metrics.md lists them.
pub struct Metrics {
    registry: Registry,
    reconcile_results: Family<ResultLabels, Counter>,
    reconcile_errors: Family<ControllerLabels, Counter>,
    reconcile_seconds: Family<ControllerLabels, Histogram, fn() -> Histogram>,
    reconcile_failures: Family<FailureLabels, Counter>,
    creation_seconds: Histogram,
    calls: CallMetrics,
    breakers: AllBreakers,
    plugins_loaded: Family<PluginLabels, Gauge>,
    plan: Family<PlanLabels, Gauge>,
    plugins_refused: Family<FileLabels, Gauge>,
    api_calls: Family<ApiLabels, Counter>,
    /// The bound on its label `kind`.
    api_kinds: BoundedLabel,
    events_dropped: Family<ReasonLabels, Counter>,
    objects_unreadable: Family<KindLabels, Gauge>,
    leader: Gauge,
    lease_unavailable: Gauge,
    train_jobs: TrainJobMetrics,
    shadow: ShadowMetrics,
    /// The page of the shadow mode.
    page: OnceLock<Arc<Shadow>>,
    held_text: HeldTextMetrics,
    admission: AdmissionMetrics,
    status: StatusMetrics,
    spans: SpanMetrics,
    certificate: CertificateMetrics,
    watches: WatchMetrics,
    revisions: RevisionMetrics,
    /// Returns the page about the plugins of the cluster.
    plugins_page: OnceLock<PageText>,
}

/// Returns the text of a page; `None` if it is not shown any more.
type PageText = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to do until something changes.
    Success,
    /// Nothing is left to do until a known time, such as a deadline.
    RequeueAfter,
    /// It failed with an error of this kind, and is retried.
    Error(&'static str),
}

impl Outcome {
    /// Returns the kind of the error, or else the value of the metric's label `result`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Error(kind) => kind,
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Returns the metrics of a process whose controller uses that queue.
    #[must_use]
    pub fn new(queue: &Queue) -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            reconcile_results: Family::default(),
            reconcile_errors: Family::default(),
            reconcile_seconds: Family::new_with_constructor(|| Histogram::new(RECONCILE_SECONDS)),
            reconcile_failures: Family::default(),
            creation_seconds: Histogram::new(CREATION_SECONDS),
            calls: CallMetrics::default(),
            breakers: AllBreakers::default(),
            plugins_loaded: Family::default(),
            plan: Family::default(),
            plugins_refused: Family::default(),
            api_calls: Family::default(),
            api_kinds: BoundedLabel::default(),
            events_dropped: Family::default(),
            objects_unreadable: Family::default(),
            leader: Gauge::default(),
            lease_unavailable: Gauge::default(),
            train_jobs: TrainJobMetrics::default(),
            shadow: ShadowMetrics::default(),
            page: OnceLock::new(),
            held_text: HeldTextMetrics::default(),
            admission: AdmissionMetrics::default(),
            status: StatusMetrics::default(),
            spans: SpanMetrics::default(),
            certificate: CertificateMetrics::default(),
            watches: WatchMetrics::default(),
            revisions: RevisionMetrics::default(),
            plugins_page: OnceLock::new(),
        };
        metrics.register_reconciles();
        metrics.register_plugins();
        metrics.register_process();
        metrics.admission.register(&mut metrics.registry);
        metrics.status.register(&mut metrics.registry);
        metrics.spans.register(&mut metrics.registry);
        metrics.certificate.register(&mut metrics.registry);
        metrics.revisions.register(&mut metrics.registry);
        metrics
            .registry
            .register_collector(Box::new(QueueMetrics(queue.clone())));
        metrics.registry.register_collector(Box::new(TaskMetrics));
        let train_jobs = Box::new(metrics.train_jobs.clone());
        metrics.registry.register_collector(train_jobs);
        let shadow = Box::new(metrics.shadow.clone());
        metrics.registry.register_collector(shadow);
        let held_text = Box::new(metrics.held_text.clone());
        metrics.registry.register_collector(held_text);
        let watches = Box::new(metrics.watches.clone());
        metrics.registry.register_collector(watches);
        #[cfg(target_os = "linux")]
        metrics
            .registry
            .register_collector(Box::new(process::ProcessMetrics));
        // These series exist from the start, because a rate over a missing series has no value.
        for result in ["success", "requeue_after", "error"] {
            let _ = metrics.reconcile_results.get_or_create(&ResultLabels {
                controller: CONTROLLER,
                result,
            });
        }
        // Likewise, an alert on an increase would miss the first of these.
        for kind in ["internal", "panic"] {
            let _ = metrics
                .reconcile_failures
                .get_or_create(&FailureLabels { kind });
        }
        let reason = "full";
        let _ = metrics
            .events_dropped
            .get_or_create(&ReasonLabels { reason });
        metrics
    }

    fn register_reconciles(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "controller_runtime_reconcile",
            "Reconciles by result",
            self.reconcile_results.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_errors",
            "Reconciles that failed",
            self.reconcile_errors.clone(),
        );
        registry.register_with_unit(
            "controller_runtime_reconcile_time",
            "The duration of reconciles",
            Unit::Seconds,
            self.reconcile_seconds.clone(),
        );
        registry.register(
            "trainyard_reconcile_failures",
            "Reconciles that failed, by the kind of the error: no_runtime, render, api and others",
            self.reconcile_failures.clone(),
        );
        registry.register_with_unit(
            "trainyard_job_set_creation",
            "The time from the creation of a TrainJob to that of its JobSet, without TrainJobs that were suspended or had to be corrected",
            Unit::Seconds,
            self.creation_seconds.clone(),
        );
    }

    fn register_plugins(&mut self) {
        let registry = &mut self.registry;
        self.calls.register(registry);
        registry.register_collector(Box::new(self.breakers.clone()));
        registry.register(
            "trainyard_plugin_loaded",
            "1 for each plugin of the running generation",
            self.plugins_loaded.clone(),
        );
        registry.register(
            "trainyard_plan_info",
            "1, with the digest of the loaded plugins, their settings and their order",
            self.plan.clone(),
        );
        registry.register(
            "trainyard_plugin_refused",
            "1 for each plugin file that was skipped",
            self.plugins_refused.clone(),
        );
    }

    fn register_process(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "trainyard_api_calls",
            "Calls to the Kubernetes API, by verb, kind and status code; without an answer the code is <error>",
            self.api_calls.clone(),
        );
        registry.register(
            "trainyard_events_dropped",
            "Events that were not written",
            self.events_dropped.clone(),
        );
        registry.register(
            "trainyard_objects_unreadable",
            "Objects that cannot be decoded, by kind",
            self.objects_unreadable.clone(),
        );
        registry.register(
            "trainyard_leader",
            "1 if this process reconciles TrainJobs, as the leader or alone, and 0 if it waits",
            self.leader.clone(),
        );
        registry.register(
            "trainyard_lease_unavailable",
            "1 if this process cannot take the Lease although no other replica of Trainyard leads, or cannot tell",
            self.lease_unavailable.clone(),
        );
    }

    /// Counts a reconcile.
    pub fn reconciled(&self, outcome: Outcome, took: Duration) {
        let controller = CONTROLLER;
        let result = match outcome {
            Outcome::Success | Outcome::RequeueAfter => outcome.name(),
            Outcome::Error(kind) => {
                self.reconcile_errors
                    .get_or_create(&ControllerLabels { controller })
                    .inc();
                self.reconcile_failures
                    .get_or_create(&FailureLabels { kind })
                    .inc();
                "error"
            }
        };
        self.reconcile_results
            .get_or_create(&ResultLabels { controller, result })
            .inc();
        self.reconcile_seconds
            .get_or_create(&ControllerLabels { controller })
            .observe(took.as_secs_f64());
    }

    /// Counts a JobSet that was created that long after its TrainJob.
    pub fn job_set_created(&self, delay: Duration) {
        self.creation_seconds.observe(delay.as_secs_f64());
    }

    /// Notes that the API server sent something of a watched kind, or that its watch begins.
    pub fn watch_heard(&self, kind: &'static str) {
        self.watches.heard(kind);
    }

    /// Counts a plugin call.
    pub fn plugin_called(&self, call: &PluginCall<'_>) {
        self.calls.count(call);
    }

    /// Notes that a plugin is loaded whose calls are counted.
    pub(crate) fn plugin_loaded(&self, plugin: &PluginId) {
        self.calls.note_loaded(plugin);
    }

    /// Notes that such a plugin was dropped.
    pub(crate) fn plugin_dropped(&self, plugin: &PluginId) {
        self.calls.note_dropped(plugin);
    }

    /// The breakers of all loaded plugins.
    pub(crate) const fn breakers(&self) -> &AllBreakers {
        &self.breakers
    }

    /// Shows the plugins of the running generation, in place of those that were shown before, and the digest of their plan.
    pub fn set_plugins<'p>(&self, plan: &str, plugins: impl IntoIterator<Item = &'p PluginId>) {
        self.plugins_loaded.clear();
        for id in plugins {
            self.plugins_loaded
                .get_or_create(&PluginLabels {
                    plugin: Label::new(&id.name),
                    version: Label::new(&id.version),
                    digest: Label::new(&id.digest),
                })
                .set(1);
        }
        self.plan.clear();
        let digest = Label::new(plan);
        self.plan.get_or_create(&PlanLabels { digest }).set(1);
    }

    /// Notes that a plugin's file was skipped.
    pub fn plugin_refused(&self, file: &str) {
        self.plugins_refused
            .get_or_create(&FileLabels {
                file: Label::new(file),
            })
            .set(1);
    }

    /// Counts a call to the API server. Without an answer, there is no code.
    pub(crate) fn api_called(&self, verb: &'static str, kind: &str, code: Option<u16>) {
        self.api_calls
            .get_or_create(&ApiLabels {
                verb,
                kind: self.api_kinds.label(kind),
                code: match code {
                    None => Label::new("<error>"),
                    Some(code) => Label::new(&code.to_string()),
                },
            })
            .inc();
    }

    /// Counts Events that were not written.
    pub(crate) fn events_dropped(&self, reason: &'static str, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        if count > 0 {
            self.events_dropped
                .get_or_create(&ReasonLabels { reason })
                .inc_by(count);
        }
    }

    /// Sets how many objects of a kind cannot be decoded.
    pub fn set_unreadable(&self, kind: &'static str, count: usize) {
        self.objects_unreadable
            .get_or_create(&KindLabels { kind })
            .set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts a request to a webhook.
    pub fn admitted(&self, webhook: &'static str, verdict: &'static str, took: Duration) {
        self.admission.count(webhook, verdict, took);
    }

    /// Shows what the shadow mode finds, in metrics and on its page. Call it once.
    pub fn show_shadow(&self, shadow: &Arc<Shadow>) {
        let counted = Arc::clone(shadow);
        self.shadow.count_with(move || counted.counts());
        let _ = self.page.set(Arc::clone(shadow));
    }

    /// Returns the page of the shadow mode; `None` if the controller does not run in it.
    #[must_use]
    pub fn shadow_page(&self) -> Option<String> {
        self.page.get().map(|shadow| shadow.page())
    }

    /// Sets the stage of the newest PluginRevision, and its reason.
    pub fn set_revision_stage(&self, stage: Option<(&str, &str)>) {
        self.revisions.set_stage(stage);
    }

    /// Sets how many replicas have not loaded a PluginRevision that is in use.
    pub(crate) fn set_replicas_behind(&self, replicas: usize) {
        self.revisions.set_behind(replicas);
    }

    /// Sets the plugins of the running PluginRevision that are skipped.
    pub fn plugins_not_loaded<'p>(&self, plugins: impl Iterator<Item = &'p str>) {
        self.revisions.set_not_loaded(plugins);
    }

    /// Sets the PolicyPlugins that are not used as they say, with the reason.
    pub fn set_inactive_policies<'p>(&self, plugins: impl Iterator<Item = (&'p str, &'p str)>) {
        self.revisions.set_inactive(plugins);
    }

    /// Shows a page about the plugins of the cluster. Call it once.
    pub(crate) fn show_plugins(&self, page: impl Fn() -> Option<String> + Send + Sync + 'static) {
        let _ = self.plugins_page.set(Box::new(page));
    }

    /// Returns the page about the plugins of the cluster; `None` if they are not declared there.
    #[must_use]
    pub fn plugins_page(&self) -> Option<String> {
        self.plugins_page.get()?()
    }

    /// Counts a request of a pod that reports progress.
    pub fn status_updated(&self, code: u16) {
        self.status.count(code);
    }

    /// Counts spans that were not exported.
    pub fn spans_dropped(&self, reason: &'static str, count: usize) {
        self.spans.count_dropped(reason, count);
    }

    /// Sets when the certificate expires that is served.
    pub(crate) fn set_certificate_expiration(&self, time: SystemTime) {
        self.certificate.set_expiration(time);
    }

    /// Counts a change of the Secret with the certificate, or of a webhook configuration.
    pub fn certificate_changed(&self, change: &'static str) {
        self.certificate.count(change);
    }

    /// Sets how TrainJobs are counted when metrics are read; `None` if this process is not the one that counts them.
    pub fn count_train_jobs_with(
        &self,
        count: impl Fn() -> Option<TrainJobCounts> + Send + Sync + 'static,
    ) {
        self.train_jobs.count_with(count);
    }

    /// Sets how the text that is held is counted when metrics are read.
    pub fn count_held_text_with(&self, count: impl Fn() -> Vec<HeldText> + Send + Sync + 'static) {
        self.held_text.count_with(count);
    }

    /// Sets whether this process reconciles TrainJobs.
    pub fn set_leader(&self, leader: bool) {
        self.leader.set(i64::from(leader));
    }

    /// Sets whether the Lease cannot be taken.
    pub(crate) fn set_lease_unavailable(&self, unavailable: bool) {
        self.lease_unavailable.set(i64::from(unavailable));
    }

    /// Returns all metrics in the text format of OpenMetrics ([`CONTENT_TYPE`]).
    ///
    /// # Errors
    /// None in practice: writing to memory does not fail.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
