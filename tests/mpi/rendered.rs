//! What Trainyard renders for two nodes of an implementation.

use std::{
    collections::BTreeMap,
    io::Write,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::implementations::Name;

/// Where the pods have the hostfile.
pub(crate) const HOSTFILE_DIR: &str = "/etc/mpi";

const INPUT: &str = r"
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: mpi}
spec:
  mlPolicy: {mpi: {mpiImplementation: IMPLEMENTATION}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template: {spec: {template: {spec: {containers: [{name: node, image: mpi, command: [sshd]}]}}}}
      - name: launcher
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: mpi, command: [mpirun]}]}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: llm}
spec:
  runtimeRef: {name: mpi}
  trainer: {numNodes: 2, numProcPerNode: PROCESSES}
";

/// The parts of it that programs read.
pub(crate) struct Rendered {
    pub(crate) hostfile: String,
    /// The launcher's env vars.
    pub(crate) env: BTreeMap<String, String>,
    /// The files of the keys, each with its key in the Secret and its mode.
    pub(crate) keys: Vec<(String, String, u32)>,
}

impl Rendered {
    pub(crate) fn new(name: Name, processes: u32) -> Self {
        let input = INPUT
            .replace("IMPLEMENTATION", name.in_runtime())
            .replace("PROCESSES", &processes.to_string());
        let objects = render(&input);
        let of_kind = |kind: &str| {
            objects
                .iter()
                .find(|object| object["kind"] == kind)
                .unwrap()
        };
        let jobs = &of_kind("JobSet")["spec"]["replicatedJobs"];
        let pod = &jobs[1]["template"]["spec"]["template"]["spec"];
        let env = pod["containers"][0]["env"].as_array().unwrap().iter();
        let volumes = pod["volumes"].as_array().unwrap();
        let keys = volumes.iter().find(|volume| volume["secret"].is_object());
        let items = keys.unwrap()["secret"]["items"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mode = |item: &Value| u32::try_from(item["mode"].as_u64().unwrap()).unwrap();
        Self {
            hostfile: text(&of_kind("ConfigMap")["data"]["hostfile"]),
            env: env
                .map(|var| (text(&var["name"]), text(&var["value"])))
                .collect(),
            keys: items
                .map(|item| (text(&item["path"]), text(&item["key"]), mode(item)))
                .collect(),
        }
    }

    /// The mode of a file of the keys.
    pub(crate) fn mode(&self, path: &str) -> u32 {
        let mut keys = self.keys.iter();
        keys.find(|(file, ..)| file == path).unwrap().2
    }
}

fn render(input: &str) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trainyard"))
        .args(["render", "-f", "-", "-o", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = command.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = command.wait_with_output().unwrap();
    assert!(output.status.success());
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    trainyard_api::list::unpack(printed).unwrap_or_else(|one| vec![one])
}
