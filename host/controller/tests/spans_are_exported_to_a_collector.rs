//! With a collector, spans of reconciles, plugin calls and API calls are exported, without any content of objects. A collector that fails or
//! hangs delays no reconcile, and what is dropped is counted. Without a collector, nothing is exported.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::prelude::*;
use trainyard_controller::{
    measured,
    metrics::Metrics,
    spans::{Endpoint, ExportLimits, Process, SpanExport, TracingSettings},
};
use trainyard_model::{
    plugin::{CallFailure, Plugin},
    value::Failure,
};

use crate::stub::{
    cluster::Cluster,
    collector::{Collector, Does, ReceivedSpan},
    controller::{Controller, job, runtime},
    metrics,
    plugin::plugin,
    progress::{HALF, StatusServer, path, put_pod, put_train_job, token, unlimited},
};

/// What no exported byte may contain.
const MARKER: &str = "marker-of-a-secret";

/// A refusal whose message quotes an object, as that of a plugin may.
fn refusal() -> CallFailure {
    CallFailure::Refused(Failure {
        message: format!("{MARKER} is wrong"),
        field: None,
    })
}

/// An export whose spans are those of this thread.
struct Export {
    export: SpanExport,
    metrics: Arc<Metrics>,
    _guard: DefaultGuard,
}

fn process() -> Process {
    Process {
        version: "1.2.3",
        pod: "trainyard-0".to_owned(),
        namespace: "kubeflow-system".to_owned(),
    }
}

impl Export {
    fn start(endpoint: Endpoint, limits: ExportLimits) -> Self {
        let settings = TracingSettings {
            endpoint: Some(endpoint),
            sampling_ratio: Some(1.0),
            limits,
        };
        let metrics = metrics();
        let export = SpanExport::start(&settings, process(), &metrics);
        let export = export.unwrap().unwrap();
        let subscriber = tracing_subscriber::registry().with(export.layer());
        Self {
            export,
            metrics,
            _guard: subscriber.set_default(),
        }
    }

    /// Returns how many spans were dropped for a reason.
    fn dropped(&self, reason: &str) -> u64 {
        let series = format!("trainyard_spans_dropped_total{{reason=\"{reason}\"}} ");
        let text = self.metrics.text().unwrap();
        let mut counts = text.lines().filter_map(|line| line.strip_prefix(&series));
        counts.next().map_or(0, |count| count.parse().unwrap())
    }
}

async fn start(cluster: &Cluster, plugins: Vec<Arc<dyn Plugin>>) -> Controller {
    let metrics = |queue: &_| Arc::new(Metrics::new(queue));
    let measure = |metrics: &Arc<Metrics>| {
        let measured = plugins.into_iter().map(|plugin| measured(plugin, metrics));
        measured.collect()
    };
    Controller::start(cluster, metrics, measure).await
}

fn of<'s>(
    spans: &'s [ReceivedSpan],
    name: &str,
    attributes: &[(&str, &str)],
) -> Vec<&'s ReceivedSpan> {
    let has = |span: &&ReceivedSpan| {
        let of_span = |key| span.attributes.get(key).map(String::as_str);
        span.name == name
            && attributes
                .iter()
                .all(|(key, value)| of_span(*key) == Some(value))
    };
    spans.iter().filter(has).collect()
}

fn one<'s>(spans: &'s [ReceivedSpan], name: &str, attributes: &[(&str, &str)]) -> &'s ReceivedSpan {
    let found = of(spans, name, attributes);
    assert_eq!(
        found.len(),
        1,
        "{name} {attributes:?}: {found:#?} of {spans:#?}"
    );
    found[0]
}

// All tasks of a test run on its thread, whose spans are exported.
#[tokio::test]
async fn spans_have_parents_and_attributes_and_no_content_of_objects() {
    let collector = Collector::default();
    let export = Export::start(collector.serve().await, ExportLimits::default());
    let cluster = Cluster::new();
    let mut of_plugins = runtime("runtime", &["quota"]);
    let node = &mut of_plugins["spec"]["template"]["spec"]["replicatedJobs"][0]["template"];
    node["metadata"]["labels"] = json!({"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"});
    let container = &mut node["spec"]["template"]["spec"]["containers"][0];
    container["env"] = json!([{"name": "TOKEN", "value": MARKER}]);
    cluster.put(of_plugins);
    cluster.put(runtime("refusing", &["refuses"]));
    let mut good = job("a", "good", "runtime", false);
    good["spec"]["trainer"] = json!({"env": [{"name": "PASSWORD", "value": MARKER}]});
    good["metadata"]["annotations"] = json!({"note": MARKER});
    cluster.put(good);
    cluster.put(job("a", "bad", "refusing", false));
    let refuse = |_: &mut _| Err(refusal());
    let plugins = vec![
        plugin("quota", &[], |_| Ok(())),
        plugin("refuses", &[], refuse),
    ];
    let controller = start(&cluster, plugins).await;
    let is_done = |cluster: &Cluster| {
        let bad = cluster.get("trainjobs", "a", "bad").unwrap();
        cluster.count("jobsets") == 1 && !bad["metadata"]["annotations"].is_null()
    };
    cluster
        .until("one has a JobSet, the other an error", is_done)
        .await;
    let written = cluster.get("jobsets", "a", "good").unwrap().to_string();
    assert!(written.contains(MARKER), "{written}");
    controller.stop().await;
    export.export.finish().await;

    let bytes = collector.bytes();
    assert!(
        !bytes
            .windows(MARKER.len())
            .any(|bytes| bytes == MARKER.as_bytes())
    );
    let resource = collector.resource();
    for (key, value) in [
        ("service.name", "trainyard-controller"),
        ("service.version", "1.2.3"),
        ("k8s.pod.name", "trainyard-0"),
        ("k8s.namespace.name", "kubeflow-system"),
    ] {
        assert_eq!(resource[key], value);
    }

    let spans = collector.spans();
    let transform = one(&spans, "plugin call", &[("plugin", "quota 1.0.0 (native)")]);
    assert_eq!(
        (
            &*transform.attributes["phase"],
            &*transform.attributes["outcome"]
        ),
        ("transform", "ok")
    );
    let parent = |span: &ReceivedSpan| {
        let parent = spans.iter().find(|it| it.id == span.parent);
        let parent = parent.unwrap_or_else(|| panic!("{span:?} has no parent"));
        assert_eq!(parent.trace, span.trace);
        parent
    };
    let phase = parent(transform);
    assert_eq!(
        (&*phase.name, &*phase.attributes["phase"]),
        ("phase", "transform")
    );
    let reconcile = parent(phase);
    assert_eq!(reconcile.name, "reconcile");
    assert!(reconcile.parent.is_empty() && !reconcile.has_failed);
    let uid = &cluster.get("trainjobs", "a", "good").unwrap()["metadata"]["uid"];
    for (key, value) in [
        ("namespace", "a"),
        ("job", "good"),
        ("uid", uid.as_str().unwrap()),
    ] {
        assert_eq!(reconcile.attributes[key], value);
    }
    assert!(
        reconcile.attributes["plan"].starts_with("sha256:"),
        "{reconcile:?}"
    );
    for name in ["resolve", "check", "assemble"] {
        let phases = of(&spans, "phase", &[("phase", name)]);
        assert!(
            phases.iter().any(|phase| phase.parent == reconcile.id),
            "{name}"
        );
    }
    let applied = of(
        &spans,
        "api call",
        &[("verb", "apply"), ("kind", "jobsets")],
    );
    assert!(
        applied.iter().any(|call| call.parent == reconcile.id),
        "{applied:#?}"
    );
    for call in of(&spans, "api call", &[]) {
        for key in ["verb", "kind", "code"] {
            assert!(call.attributes.contains_key(key), "{call:?}");
        }
    }

    let refused = of(&spans, "plugin call", &[("outcome", "refused")]);
    assert!(
        !refused.is_empty() && refused.iter().all(|call| call.has_failed),
        "{refused:#?}"
    );
    let failed = parent(parent(refused[0]));
    assert_eq!(
        (&*failed.attributes["job"], &*failed.attributes["outcome"]),
        ("bad", "render")
    );
    assert!(failed.has_failed);
}

#[tokio::test]
async fn collector_that_hangs_or_fails_delays_no_reconcile() {
    const JOBS: usize = 20;
    let collector = Collector::default();
    collector.set(Does::Hang);
    let limits = ExportLimits {
        queue: 8,
        batch: 4,
        delay: Duration::ZERO,
        // Longer than the test: every span but those of one batch and of the queue is dropped.
        timeout: Duration::from_secs(3600),
        last: Duration::ZERO,
    };
    let export = Export::start(collector.serve().await, limits);
    let cluster = Cluster::new();
    cluster.put(runtime("runtime", &["quota"]));
    for number in 0..JOBS {
        cluster.put(job("a", &format!("job-{number}"), "runtime", false));
    }
    let controller = start(&cluster, vec![plugin("quota", &[], |_| Ok(()))]).await;
    cluster
        .until("each has a JobSet", |cluster| {
            cluster.count("jobsets") == JOBS
        })
        .await;
    controller.stop().await;
    assert_eq!((collector.requests(), collector.spans().len()), (1, 0));
    // Each reconcile has at least a span of its own, of a plugin call and of an API call.
    let dropped = export.dropped("full");
    assert!(dropped > 3 * JOBS as u64 - 12, "{dropped}");
    assert_eq!(export.dropped("error"), 0);
    export.export.finish().await;
}

#[tokio::test]
async fn spans_that_a_collector_refuses_are_counted_and_later_ones_arrive() {
    let collector = Collector::default();
    collector.set(Does::Fail);
    let limits = ExportLimits {
        delay: Duration::ZERO,
        ..ExportLimits::default()
    };
    let export = Export::start(collector.serve().await, limits);
    let cluster = Cluster::new();
    cluster.put(runtime("runtime", &[]));
    cluster.put(job("a", "one", "runtime", false));
    let controller = start(&cluster, Vec::new()).await;
    let is_refused =
        |cluster: &Cluster| cluster.count("jobsets") == 1 && export.dropped("error") > 0;
    cluster.until("spans are refused", is_refused).await;
    assert!(collector.spans().is_empty());
    collector.set(Does::Accept);
    cluster.put(job("a", "two", "runtime", false));
    let arrived = |_: &Cluster| !of(&collector.spans(), "reconcile", &[("job", "two")]).is_empty();
    cluster.until("later spans arrive", arrived).await;
    controller.stop().await;
    export.export.finish().await;
}

/// Anybody can send requests with any path, and pods of the cluster with their own tokens.
#[tokio::test]
async fn only_authorized_status_requests_leave_spans() {
    let collector = Collector::default();
    let export = Export::start(collector.serve().await, ExportLimits::default());
    let cluster = Cluster::new();
    put_train_job(&cluster, "team", "job");
    let server = StatusServer::start(&cluster, unlimited()).await;
    put_pod(&cluster, "team", "pod", "job");
    let path = path("team", "job");
    assert_eq!(server.post(&path, MARKER, HALF).await.0, 403);
    let token = token(&cluster, "team", "pod", "job");
    assert_eq!(server.post(&path, &token, HALF).await.0, 200);
    assert_eq!(server.post(&path, &token, "text").await.0, 422);
    server.stop().await;
    export.export.finish().await;
    let spans = collector.spans();
    for (count, code) in [(0, "403"), (1, "200"), (1, "422")] {
        let attributes = [("namespace", "team"), ("job", "job"), ("code", code)];
        assert_eq!(
            of(&spans, "status request", &attributes).len(),
            count,
            "{code}"
        );
    }
}

#[tokio::test]
async fn nothing_runs_without_an_endpoint() {
    let settings = TracingSettings::default();
    let export = SpanExport::start(&settings, process(), &metrics()).unwrap();
    assert!(export.is_none());
}

/// The rest of the program takes the URL, and not with the path that is added to it.
#[tokio::test]
async fn an_endpoint_that_the_exporter_refuses_is_an_error() {
    let endpoint = format!("http://otel/{}", "a".repeat(65_520));
    let settings = TracingSettings {
        endpoint: Some(endpoint.parse().unwrap()),
        ..TracingSettings::default()
    };
    let refused = SpanExport::start(&settings, process(), &metrics());
    let text = refused.err().unwrap().to_string();
    assert_eq!(
        text.replace(&endpoint, "URL"),
        "cannot export spans to URL: invalid exporter configuration: endpoint: invalid endpoint 'URL/v1/traces': uri too long; correct this URL, or the environment variables OTEL_EXPORTER_OTLP_*"
    );
}

/// No trace is sampled, so nothing is sent, although there is a collector.
#[tokio::test]
async fn sampling_ratio_of_zero_exports_nothing() {
    let collector = Collector::default();
    let settings = TracingSettings {
        endpoint: Some(collector.serve().await),
        sampling_ratio: Some(0.0),
        limits: ExportLimits::default(),
    };
    let export = SpanExport::start(&settings, process(), &metrics());
    let export = export.unwrap().unwrap();
    let subscriber = tracing_subscriber::registry().with(export.layer());
    let guard = subscriber.set_default();
    let cluster = Cluster::new();
    cluster.put(runtime("runtime", &[]));
    cluster.put(job("a", "job", "runtime", false));
    let controller = start(&cluster, Vec::new()).await;
    cluster
        .until("it has a JobSet", |cluster| cluster.count("jobsets") == 1)
        .await;
    controller.stop().await;
    drop(guard);
    export.finish().await;
    assert_eq!(collector.requests(), 0);
}
