//! Log lines of a plugin call name the plugin and the phase, at the controller's log level.

use std::sync::Arc;

use serde_json::json;
use tracing::Level;
use trainyard_api::{Admitted, Inputs};
use trainyard_controller::{
    measured,
    metrics::Metrics,
    queue::{Backoff, Queue},
};
use trainyard_model::{
    call::Call,
    contract::VERSION,
    deadline::Deadline,
    manifest::Manifest,
    plugin::Phase,
    plugin_info::{PluginInfo, Settings},
};
use trainyard_render::{Catalog, ClusterFacts, Renderer};

use crate::stub::{function_plugin::FunctionPlugin, log::CapturedLog};

const INPUT: &str = "
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: runtime}
spec:
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: base}]}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: job}
spec: {runtimeRef: {name: runtime}}
";

#[test]
fn log_lines_of_a_call_name_plugin_and_phase() {
    let manifest = json!({
        "name": "talks", "version": "1.0.0", "contract": VERSION, "activeWhen": "always",
        "phases": ["transform", "check"], "claims": {},
    });
    let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
    let plugin = PluginInfo::new(manifest, "native", Settings::built_in()).unwrap();
    let metrics = Arc::new(Metrics::new(&Queue::new(Backoff::default())));
    // As the host logs the text of a plugin.
    let logs = |_: Phase, _: &mut Call| {
        tracing::info!("it says so");
        Ok(())
    };
    let plugin = measured(
        Arc::new(FunctionPlugin::new(Arc::new(plugin), logs)),
        &metrics,
    );
    let renderer = Renderer::new([plugin], ClusterFacts::default()).unwrap();
    let objects = Inputs::read_text("input.yaml", INPUT).objects.into_iter();
    let (catalog, errors) = Catalog::new(objects.map(|object| Admitted::new(object, "default")));
    assert!(errors.is_empty(), "{}", errors[0]);
    let job = &catalog.jobs[0];

    let log = CapturedLog::start(Level::INFO);
    let (lookups, deadline) = (Arc::default(), Deadline::none());
    let rendered = renderer.render(&job.train_job, &job.runtime, "default", &lookups, &deadline);
    assert!(rendered.is_ok());
    let printed = log.lines_with("it says so");
    assert_eq!(printed.len(), 2, "{printed:#?}");
    for (line, phase) in printed.iter().zip(["transform", "check"]) {
        let span = format!("plugin call{{plugin=talks 1.0.0 (native) phase={phase}}}");
        assert!(line.contains(&span), "{line}");
    }
}
