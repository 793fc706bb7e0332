//! The order of a gang with hundreds of replicated jobs is found within the instructions that a plugin has.

use std::{fmt::Write as _, fs};

use crate::common::{stderr, stdout, trainyard};

/// Returns a TrainJob whose runtime has nodes and a chain of replicated jobs after them, each of which waits for the one before it.
fn chain(policy: &str, jobs: usize) -> String {
    let mut text = format!(
        "apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {{name: chain}}
spec:
  podGroupPolicy: {{{policy}: {{}}}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
          spec: {{template: {{spec: {{containers: [{{name: node, image: 'a:1'}}]}}}}}}
"
    );
    let mut before = "node".to_owned();
    for at in 0..jobs {
        let name = format!("helper-{at}");
        write!(
            text,
            "      - name: {name}
        dependsOn: [{{name: {before}, status: Ready}}]
        template: {{spec: {{template: {{spec: {{containers: [{{name: helper, image: 'a:1'}}]}}}}}}}}
"
        )
        .unwrap();
        before = name;
    }
    text + "---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bert, namespace: ml}
spec: {runtimeRef: {name: chain}, trainer: {numNodes: 4}}
"
}

#[test]
fn four_hundred_jobs_in_a_chain_are_one_group() {
    for (policy, mark) in [
        ("coscheduling", "scheduling.x-k8s.io/pod-group: bert"),
        ("volcano", "scheduling.k8s.io/group-name: bert"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.yaml"), chain(policy, 400)).unwrap();
        let output = trainyard(folder.path(), &["render", "-f", "a.yaml"]);
        assert!(output.status.success(), "{policy}: {}", stderr(&output));
        assert_eq!(stdout(&output).matches(mark).count(), 401, "{policy}");
    }
}
