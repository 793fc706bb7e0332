//! A rendering that exceeds its deadline stops before its next step, and the error names the step.

use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use trainyard_model::deadline::Deadline;
use trainyard_render::{ClusterFacts, Problem, Rendered, Renderer};

use crate::common::{Scripted, catalog, refused};

const SECOND: Duration = Duration::from_secs(1);

/// A TrainJob with this many patches, on a runtime that activates `a` and `b`.
fn input(patches: u32) -> String {
    let mut text = "
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: runtime}
spec:
  plugins: [{name: a}, {name: b}]
  template: {spec: {replicatedJobs: [
    {name: node, template: {spec: {template: {spec: {containers: [{name: node, image: image}]}}}}},
  ]}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: job}
spec:
  runtimeRef: {name: runtime}
  runtimePatches:
"
    .to_owned();
    for at in 0..patches {
        let job =
            format!("{{name: node, template: {{metadata: {{labels: {{key-{at}: value}}}}}}}}");
        writeln!(
            text,
            "  - {{manager: example.com/m{at}, trainingRuntimeSpec: {{template: {{spec: {{replicatedJobs: [{job}]}}}}}}}}"
        )
        .unwrap();
    }
    text
}

/// Renders with a clock that advances by a second per reading. Also returns the number of readings.
fn render(patches: u32, limit: Duration) -> (Result<Rendered, Vec<Problem>>, u64) {
    let catalog = catalog(&input(patches));
    let plugins = ["a", "b"].map(|name| Scripted::new(name, &[], |_, _| Ok(())).plugin());
    let renderer = Renderer::new(plugins, ClusterFacts::default()).unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let clock = asked.clone();
    let deadline = Deadline::by_clock(limit, move || {
        SECOND * u32::try_from(clock.fetch_add(1, Ordering::Relaxed) + 1).unwrap()
    });
    let job = &catalog.jobs[0];
    let lookups = Arc::default();
    let rendered = renderer.render(&job.train_job, &job.runtime, "default", &lookups, &deadline);
    (rendered.map_err(refused), asked.load(Ordering::Relaxed))
}

#[test]
fn rendering_stops_at_any_step() {
    let (rendered, steps) = render(3, SECOND * 10_000);
    rendered.unwrap();
    let mut printed = Vec::new();
    for step in 0..steps {
        let (rendered, asked) = render(3, SECOND * u32::try_from(step).unwrap());
        let problems = rendered.unwrap_err();
        // It ends at the very step: nothing is asked again.
        assert_eq!((asked, problems.len()), (step + 1, 1));
        let Problem::Overdue { step, .. } = &problems[0] else {
            panic!("{:?}", problems[0]);
        };
        assert!(problems[0].is_transient());
        printed.push(step.clone());
    }
    let calls = ["transform", "build", "check"].map(|phase| {
        ["a", "b"]
            .map(|name| format!("plugin {name} 1.0.0 (native) was about to be called in {phase}"))
    });
    for call in calls.iter().flatten() {
        assert!(printed.contains(call), "{call}: {printed:#?}");
    }
    let patch = "spec.runtimePatches[2].trainingRuntimeSpec.template was merged".to_owned();
    assert!(printed.contains(&patch), "{printed:#?}");
    render(3, SECOND * u32::try_from(steps).unwrap()).0.unwrap();
}

#[test]
fn every_patch_is_a_step() {
    let steps = |patches| render(patches, SECOND * 10_000).1;
    assert_eq!(steps(16), steps(0) + 16);
}

#[test]
fn message_names_the_limit_and_the_remedy() {
    let problem = &render(1, Duration::ZERO).0.unwrap_err()[0];
    let printed = "rendering did not end within 0 ms; last step: the runtime's template was read; make the TrainJob and its \
                runtime smaller, or raise `controller.renderTimeout` in the controller's configuration or `--timeout` on the command line";
    assert_eq!(problem.to_string(), printed);
}
