//! The objects that Trainyard renders for the nodes of an implementation.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    common::{stdout, trainyard_with_input},
    implementations::Name,
};

/// The directory of the hostfile in the launcher.
pub(crate) const HOSTFILE_DIR: &str = "/etc/mpi";
/// The domain name after the pod's name.
pub(crate) const DOMAIN: &str = "llm.default.svc.cluster.local";

const INPUT: &str = r"
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: mpi}
spec:
  mlPolicy: {mpi: {mpiImplementation: IMPLEMENTATION, runLauncherAsNode: AS_NODE}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template: {spec: {template: {spec: {containers: [{name: node, image: mpi, command: [sshd]}]}}}}
      - name: launcher
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {hostNetwork: HOST_NETWORK, containers: [{name: node, image: mpi, command: [mpirun]}]}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: llm}
spec:
  runtimeRef: {name: mpi}
  trainer: {numNodes: NODES, numProcPerNode: PROCESSES}
";

/// The pods that are nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nodes {
    /// Two pods other than the launcher.
    TwoOthers,
    /// The launcher and another pod.
    LauncherAndAnother,
    /// Only the launcher.
    LauncherAlone,
    /// The launcher, with the network and host name of its machine, and another pod.
    LauncherOnItsMachineAndAnother,
}

impl Nodes {
    fn count(self) -> u32 {
        if self == Self::LauncherAlone { 1 } else { 2 }
    }
}

/// A pod.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) name: String,
    /// Whether mpirun runs in it.
    pub(crate) is_launcher: bool,
    /// Whether it has the network, and therefore the host name, of its machine.
    pub(crate) is_on_its_machine: bool,
    /// Whether the pods' domain is searched for names.
    pub(crate) searches_pods: bool,
}

impl Pod {
    /// Returns the output of `hostname` in the pod.
    pub(crate) fn host_name(&self) -> &str {
        if self.is_on_its_machine {
            "machine-7"
        } else {
            &self.name
        }
    }
}

/// The rendered parts that programs read.
pub(crate) struct Rendered {
    pub(crate) nodes: Nodes,
    pub(crate) pods: Vec<Pod>,
    pub(crate) hostfile: String,
    /// The launcher's env vars.
    pub(crate) env: BTreeMap<String, String>,
    /// The files of the keys, each with its key in the Secret and its mode.
    pub(crate) keys: Vec<(String, String, u32)>,
}

impl Rendered {
    pub(crate) fn new(name: Name, nodes: Nodes, processes: u32) -> Self {
        let is_on_its_machine = nodes == Nodes::LauncherOnItsMachineAndAnother;
        let input = INPUT
            .replace("IMPLEMENTATION", name.in_runtime())
            .replace("AS_NODE", &(nodes != Nodes::TwoOthers).to_string())
            .replace("HOST_NETWORK", &is_on_its_machine.to_string())
            .replace("NODES", &nodes.count().to_string())
            .replace("PROCESSES", &processes.to_string());
        let objects = render(&input);
        let of_kind = |kind: &str| {
            objects
                .iter()
                .find(|object| object["kind"] == kind)
                .unwrap()
        };
        let jobs = of_kind("JobSet")["spec"]["replicatedJobs"]
            .as_array()
            .unwrap();
        let launcher = &jobs[1]["template"]["spec"]["template"]["spec"];
        let env = launcher["containers"][0]["env"].as_array().unwrap().iter();
        let volumes = launcher["volumes"].as_array().unwrap();
        let keys = volumes.iter().find(|volume| volume["secret"].is_object());
        let items = keys.unwrap()["secret"]["items"].as_array().unwrap().iter();
        let mode = |item: &Value| u32::try_from(item["mode"].as_u64().unwrap()).unwrap();
        Self {
            nodes,
            pods: jobs.iter().flat_map(pods).collect(),
            hostfile: text(&of_kind("ConfigMap")["data"]["hostfile"]),
            env: env
                .map(|var| (text(&var["name"]), text(&var["value"])))
                .collect(),
            keys: items
                .map(|item| (text(&item["path"]), text(&item["key"]), mode(item)))
                .collect(),
        }
    }

    /// Returns the mode of a key file.
    pub(crate) fn mode(&self, path: &str) -> u32 {
        let mut keys = self.keys.iter();
        keys.find(|(file, ..)| file == path).unwrap().2
    }

    /// Returns the pods in which processes run.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Pod> {
        let pods = self.pods.iter();
        pods.filter(|pod| !pod.is_launcher || self.nodes != Nodes::TwoOthers)
    }
}

/// Returns the pods of a replicated job, with JobSet's names.
fn pods(job: &Value) -> Vec<Pod> {
    let name = text(&job["name"]);
    let count = |value: &Value| value.as_u64().unwrap_or(1);
    let spec = &job["template"]["spec"];
    let pods = &spec["template"]["spec"];
    let searches = pods["dnsConfig"]["searches"].as_array();
    let pod = |at| Pod {
        name: format!("llm-{name}-0-{at}"),
        is_launcher: name == "launcher",
        is_on_its_machine: pods["hostNetwork"] == true,
        searches_pods: searches.is_some_and(|all| all.iter().any(|domain| domain == DOMAIN)),
    };
    // Each replicated job has at most one Job here.
    (0..count(&job["replicas"]) * count(&spec["parallelism"]))
        .map(pod)
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn render(input: &str) -> Vec<Value> {
    let output = trainyard_with_input(input, &["render", "-f", "-", "-o", "json"]);
    let printed: Value = serde_json::from_str(&stdout(&output)).unwrap();
    trainyard_api::list::unpack(printed).unwrap_or_else(|one| vec![one])
}
