//! The plugins in examples/plugins that are in Rust work with all shipped runtimes, and together: with each other, with DRA, and with each
//! gang scheduler.

use std::{env, fs};

use serde_json::Value;

use crate::common::{
    example_plugin,
    plugin_folder::{cases_are_as_expected, succeeded, trainyard},
    root, stderr, stdout,
};

const PLUGINS: [&str; 4] = ["dataset-cache", "kai-queue", "nccl-fabric", "ssh-launcher"];

#[test]
fn cases_are_as_expected_with_all_shipped_runtimes() {
    for name in PLUGINS {
        let folder = root().join("examples/plugins").join(name);
        let checked = trainyard(&["plugin", "check"], &folder);
        succeeded(&checked, name);
        assert!(
            !stderr(&checked).contains("warning"),
            "{}",
            stderr(&checked)
        );
        if env::var_os("UPDATE_EXPECTED").is_some() {
            succeeded(&trainyard(&["plugin", "test", "--update"], &folder), name);
        }
        let report = cases_are_as_expected(&folder, name);
        // Initializers are not nodes, and containers of other plugins are not changed.
        for missed in ["`launcher`", " pod set `node`", "container `node`"] {
            let report = report.replace("container `flux-installer` of pod set `node`", "");
            assert!(!report.contains(missed), "{missed}: {report}");
        }
    }
}

/// Returns the PolicyPlugins of all plugins as one file.
fn policy() -> String {
    let file = |name| {
        root()
            .join("examples/plugins")
            .join(name)
            .join("policy.yaml")
    };
    let texts = PLUGINS.map(|name| fs::read_to_string(file(name)).unwrap());
    texts.join("---\n")
}

/// Runs a command with all plugins and their policies on an input.
fn with_all_plugins(command: &[&str], input: &str) -> std::process::Output {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("policy.yaml"), policy()).unwrap();
    fs::write(folder.path().join("input.yaml"), input).unwrap();
    let plugins = PLUGINS.map(example_plugin);
    let mut args = command.to_vec();
    args.extend(["-f", "input.yaml", "--policy", "policy.yaml"]);
    for plugin in &plugins {
        args.extend(["--plugin", plugin]);
    }
    trainyard(&args, folder.path())
}

/// A TrainJob whose nodes have GPUs by a resource claim, with a gang scheduler, the fabric, the cache and the launcher.
const JOB: &str = r#"
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: all}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  podGroupPolicy: {GANG}
  plugins:
  - name: nccl-fabric
    config: {devices: {resource: example.com/nic, count: 8}, env: {NCCL_IB_HCA: mlx5}}
  - name: dataset-cache
    config: {dataset: imagenet, image: "registry.example.com/fetch:1", command: [fetch]}
  - name: ssh-launcher
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                resourceClaims: [{name: gpus, resourceClaimTemplateName: gpus}]
                containers: [{name: node, image: "registry.example.com/train:1"}]
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: bert, namespace: research}
spec: {runtimeRef: {name: all}, trainer: {numNodes: 4, command: [python, train.py]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus, namespace: research}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, count: 8}}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: datasets, namespace: trainyard-catalog}
data: {imagenet: "store:imagenet"}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: research}
"#;

#[test]
fn plugins_work_together_with_each_gang_scheduler_and_dra() {
    for (gang, group) in [
        ("coscheduling: {}", "scheduling.x-k8s.io/v1alpha1"),
        ("volcano: {}", "scheduling.volcano.sh/v1beta1"),
        (
            "plugin: {name: kai-queue, config: {queue: research}}",
            "scheduling.run.ai/v2alpha2",
        ),
    ] {
        let input = JOB.replace("GANG", gang);
        let output = stdout(&with_all_plugins(&["render"], &input));
        let objects: Vec<Value> = trainyard_api::yaml::read(&output)
            .into_iter()
            .map(|document| document.unwrap().value)
            .collect();
        let of_kind = |kind: &str| {
            objects
                .iter()
                .find(|object| object["kind"] == kind)
                .unwrap()
        };
        let pod_group = of_kind("PodGroup");
        assert_eq!(pod_group["apiVersion"], group);
        assert_eq!(pod_group["spec"]["minMember"], 4);
        let pods =
            &of_kind("JobSet")["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
        let node = &pods["containers"][0];
        // DRA's devices are accelerators, so the node gets network devices, and torchrun one process for each GPU.
        assert_eq!(node["resources"]["limits"]["example.com/nic"], "8");
        let env = |name: &str| {
            let mut env = node["env"].as_array().unwrap().iter();
            env.find(|env| env["name"] == name).unwrap()["value"].clone()
        };
        assert_eq!(
            (env("PET_NPROC_PER_NODE"), env("NCCL_IB_HCA")),
            ("8".into(), "mlx5".into())
        );
        assert_eq!(pods["initContainers"][0]["name"], "dataset-cache");
        let hostfile = objects
            .iter()
            .find_map(|object| object["data"]["hostfile"].as_str());
        let hosts: Vec<_> = hostfile.unwrap().lines().collect();
        assert_eq!(hosts.len(), 4);
        assert!(
            hosts.iter().all(|host| host.ends_with(" slots=8")),
            "{hosts:?}"
        );
    }
}

/// Plugins that a TrainJob does not use change nothing.
#[test]
fn examples_render_as_without_the_plugins() {
    let runtimes = stdout(&trainyard(&["runtimes", "--all"], &root()));
    let mut rendered = 0;
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let folder = entry.unwrap().path();
        if folder.ends_with("plugins") {
            continue;
        }
        let mut input = String::new();
        for file in fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            let is_input = file.extension().is_some_and(|end| end == "yaml")
                && !file.ends_with("kustomization.yaml");
            if is_input {
                input += "\n---\n";
                input += &fs::read_to_string(file).unwrap();
            }
        }
        if !input.contains("kind: ClusterTrainingRuntime") {
            input += "\n---\n";
            input += &runtimes;
        }
        let plain = tempfile::tempdir().unwrap();
        fs::write(plain.path().join("input.yaml"), &input).unwrap();
        let plain = trainyard(&["render", "-f", "input.yaml"], plain.path());
        let all = with_all_plugins(&["render"], &input);
        let name = folder.display();
        assert_eq!(stdout(&all), stdout(&plain), "{name}");
        rendered += 1;
    }
    assert!(rendered > 4, "{rendered}");
}
