//! A problem or warning of a field in the runtime's template names the TrainJob's field if a patch or an override of the TrainJob set it.

use trainyard_model::{contract::handle, plugin::Phase};
use trainyard_render::{InputObject, Problem, Renderer};

use crate::common::{Scripted, catalog, refused, render_job, renderer};

const INPUT: &str = r"
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: runtime}
spec:
  plugins: [{name: a}]
  template:
    metadata: {labels: {team: ml}}
    spec:
      replicatedJobs:
      - name: first
        template: {spec: {template: {spec: {containers: [{name: first, image: i}]}}}}
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                securityContext: {fsGroup: 7}
                containers: [{name: node, image: i, env: [{name: A, value: runtime}, {name: KEPT, value: runtime}]}]
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: job}
spec:
  runtimeRef: {name: runtime}
  trainer: {image: mine}
  runtimePatches:
  - manager: example.com/labels
    trainingRuntimeSpec: {template: {metadata: {labels: {cost: low}}}}
  - manager: example.com/pods
    trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {
      nodeSelector: {pool: gpu}, tolerations: [{key: gpu}], securityContext: {runAsUser: 0},
      containers: [{name: node, env: [{name: A, value: patched}], securityContext: {runAsUser: 0}}]}}}}}]}}}
";

/// The pods of the runtime, and of the patch.
const PODS: &str = "spec.template.spec.replicatedJobs[node].template.spec.template.spec";
const PATCH: &str = "spec.runtimePatches[1].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec";

/// Reports the field in the phase as a warning or an error.
fn reports(field: &str, is_error: bool, in_phase: Phase) -> Scripted {
    let field = field.to_owned();
    Scripted::new("a", &[], move |phase, call| {
        let (ctx, field) = (handle::Context(0), Some(&*field));
        match (phase == in_phase, is_error) {
            (true, true) => call.context_error(ctx, "is wrong", field),
            (true, false) => call.context_warn(ctx, "is odd", field),
            _ => Ok(()),
        }
    })
}

fn reported(field: &str) -> (InputObject, String) {
    let catalog = catalog(INPUT);
    let job = &catalog.jobs[0];
    let render = |renderer: &Renderer| render_job(renderer, job);
    let of = |is_error, phase| renderer(&[reports(field, is_error, phase)]).unwrap();
    let warnings = render(&of(false, Phase::Check)).unwrap().warnings;
    let [warning] = &*warnings else {
        panic!("{warnings:?}")
    };
    let reported = (warning.about, warning.field.clone().unwrap());
    for phase in [Phase::Transform, Phase::Check] {
        let problems = refused(render(&of(true, phase)).unwrap_err());
        let [problem @ Problem::Refused { .. }] = &*problems else {
            panic!("{problems:?}")
        };
        let of_error = (problem.about(), problem.field().unwrap().into_owned());
        assert_eq!(of_error, reported, "{field} in {phase}");
    }
    reported
}

#[test]
fn fields_of_patches_are_the_train_jobs() {
    let metadata = "spec.runtimePatches[0].trainingRuntimeSpec.template.metadata";
    let positions = PODS.replace("[node]", "[1]");
    for (field, patched) in [
        (
            "spec.template.metadata.labels[cost]".to_owned(),
            format!("{metadata}.labels[cost]"),
        ),
        (
            format!("{PODS}.nodeSelector[pool]"),
            format!("{PATCH}.nodeSelector[pool]"),
        ),
        (
            format!("{positions}.nodeSelector.pool"),
            format!("{PATCH}.nodeSelector[pool]"),
        ),
        // A parent that only the patch has, and what is in a list that it replaced.
        (
            format!("{PODS}.nodeSelector"),
            format!("{PATCH}.nodeSelector"),
        ),
        (
            format!("{PODS}.tolerations[0].key"),
            format!("{PATCH}.tolerations[0].key"),
        ),
        (
            format!("{PODS}.securityContext.runAsUser"),
            format!("{PATCH}.securityContext.runAsUser"),
        ),
        (
            format!("{PODS}.containers[node].env[A]"),
            format!("{PATCH}.containers[0].env[0]"),
        ),
        (
            format!("{positions}.containers[0].env[0].value"),
            format!("{PATCH}.containers[0].env[0].value"),
        ),
        (
            "pod-sets[node].containers[node].raw[securityContext/runAsUser]".to_owned(),
            format!("{PATCH}.containers[0].securityContext.runAsUser"),
        ),
    ] {
        assert_eq!(
            reported(&field),
            (InputObject::TrainJob, patched),
            "{field}"
        );
    }
}

#[test]
fn fields_of_overrides_are_the_train_jobs() {
    let image = format!("{PODS}.containers[node].image");
    let expected = (InputObject::TrainJob, "spec.trainer.image".to_owned());
    assert_eq!(reported(&image), expected);
}

#[test]
fn other_fields_are_the_runtimes() {
    for field in [
        "spec.template.metadata.labels[team]".to_owned(),
        "spec.template.metadata.labels".to_owned(),
        PODS.to_owned(),
        format!("{PODS}.securityContext"),
        format!("{PODS}.securityContext.fsGroup"),
        format!("{PODS}.containers[node].env[KEPT]"),
        format!("{PODS}.containers[node].resources"),
        "spec.mlPolicy.torch".to_owned(),
    ] {
        assert_eq!(reported(&field), (InputObject::Runtime, field.clone()));
    }
}
