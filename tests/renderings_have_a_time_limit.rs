//! `--timeout` limits how long the rendering of one TrainJob may take on the command line.

use crate::common::{stderr, trainyard_with_input};

const INPUT: &str = "
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: runtime}
spec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [{name: node, image: i}]}}}}}]}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: job}
spec: {runtimeRef: {name: runtime}}
";

#[test]
fn commands_that_render_stop_at_the_limit() {
    for command in ["render", "validate", "explain"] {
        let output = trainyard_with_input(INPUT, &[command, "-f", "-", "--timeout", "1ns"]);
        assert_eq!(output.status.code(), Some(1), "{command}");
        let error = stderr(&output);
        let wanted = "TrainJob default/job: rendering did not end within 0 ms; ";
        assert!(error.contains(wanted), "{command}: {error}");
        assert!(error.contains("`--timeout`"), "{command}: {error}");
        let output = trainyard_with_input(INPUT, &[command, "-f", "-", "--timeout", "10m"]);
        assert_eq!(output.status.code(), Some(0), "{command}");
    }
}

#[test]
fn limit_is_a_positive_duration() {
    let long = format!("{}h", "9".repeat(30));
    for wrong in ["0s", "-1s", "soon", &long] {
        let limit = format!("--timeout={wrong}");
        let output = trainyard_with_input(INPUT, &["render", "-f", "-", &limit]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        let error = stderr(&output);
        assert!(error.contains("must be a positive duration"), "{error}");
    }
}
