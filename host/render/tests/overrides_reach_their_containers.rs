//! A TrainJob's overrides reach their containers: the command reaches the trainer, resources the nodes, image and env both.

use serde_json::{Value, json};
use trainyard_api::FieldPath;
use trainyard_model::{call::Call, plugin::Phase};
use trainyard_render::Rendered;

use crate::common::{self, Scripted, render_edited, texts};

/// A separate launcher, like in MPI: the trainer is the launcher, and the pods of `node` are the nodes.
const RUNTIME: &str = r#"
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: runtime}
spec:
  mlPolicy: {mpi: {numProcPerNode: 1}}
  template:
    spec:
      replicatedJobs:
      - name: launcher
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: base:1, command: [mpirun], resources: {limits: {cpu: 1}}}]}}}
      - name: node
        template: {spec: {template: {spec: {containers: [{name: node, image: base:1, command: [sshd]}]}}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: job}
spec:
  runtimeRef: {name: runtime}
  trainer:
    numNodes: 4
    image: mine:2
    command: [mpirun, train]
    args: [--fast]
    env: [{name: A, value: b}]
    resourcesPerNode: {requests: {cpu: 8}, limits: {nvidia.com/gpu: 4}}
"#;

/// A policy whose `nodeSets` name these pod sets.
fn mpi(node_sets: Value) -> Scripted {
    let mut mpi = Scripted::new("mpi", &[], |_: Phase, _: &mut Call| Ok(()));
    mpi.active_when = "mlPolicy.mpi".to_owned();
    mpi.node_sets = node_sets;
    mpi.config_schema = schema();
    mpi
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"numProcPerNode": {"type": "integer"}}})
}

/// The container `node` of a replicated job.
fn container(rendered: &Rendered, replicated_job: usize) -> Value {
    let job = &rendered.job_set["spec"]["replicatedJobs"][replicated_job];
    job["template"]["spec"]["template"]["spec"]["containers"][0].clone()
}

#[test]
fn launcher_keeps_its_resources_and_runs_the_command() {
    let mpi = mpi(json!([{"podSet": "node"}]));
    let rendered = render_edited(&[mpi], |_| RUNTIME.to_owned()).unwrap();
    let (launcher, node) = (container(&rendered, 0), container(&rendered, 1));
    let env = json!([{"name": "A", "value": "b"}]);
    assert_eq!(
        launcher,
        json!({
            "name": "node", "image": "mine:2", "command": ["mpirun", "train"], "args": ["--fast"],
            "resources": {"limits": {"cpu": 1}}, "env": env,
        })
    );
    assert_eq!(
        node,
        json!({
            "name": "node", "image": "mine:2", "command": ["sshd"], "env": env,
            "resources": {"requests": {"cpu": "8"}, "limits": {"nvidia.com/gpu": "4"}},
        })
    );
}

#[test]
fn launcher_that_runs_as_node_gets_node_resources() {
    let mpi = mpi(json!([{"podSet": "node"}, {"podSet": "launcher"}]));
    let edit = |_| RUNTIME.replace("limits: {cpu: 1}", "requests: {cpu: 1}");
    let rendered = render_edited(&[mpi], edit).unwrap();
    for replicated_job in [0, 1] {
        let container = container(&rendered, replicated_job);
        assert_eq!(container["resources"]["requests"]["cpu"], "8");
        assert_eq!(container["image"], "mine:2");
    }
    assert_eq!(container(&rendered, 1)["command"], json!(["sshd"]));
    let counts = rendered.job_set["spec"]["replicatedJobs"]
        .as_array()
        .unwrap();
    let counts: Vec<_> = counts
        .iter()
        .map(|job| job["template"]["spec"]["parallelism"].as_u64())
        .collect();
    assert_eq!(counts, [Some(1), Some(3)]);
}

/// JobSet creates no Jobs then, and treats them as ready for dependent jobs.
#[test]
fn launcher_that_is_the_only_node_leaves_no_other_node() {
    let mpi = || mpi(json!([{"podSet": "node"}, {"podSet": "launcher"}]));
    let edit = |_: String| {
        let input = RUNTIME.replace("limits: {cpu: 1}", "requests: {cpu: 1}");
        input.replace("numNodes: 4", "numNodes: 1")
    };
    let rendered = render_edited(&[mpi()], edit).unwrap();
    let nodes = &rendered.job_set["spec"]["replicatedJobs"][1];
    assert_eq!(nodes["replicas"], 0);
    assert_eq!(nodes["template"]["spec"]["parallelism"], 1);
    let path = FieldPath::of(["spec", "replicatedJobs"]).key("node");
    let origin = &rendered.explain(&path.field("replicas")).unwrap()[0];
    let printed = serde_json::to_string(&origin).unwrap();
    assert!(
        printed.contains(
            "its `nodeSets` assign none of the nodes of spec.trainer.numNodes to this pod set"
        ),
        "{printed}"
    );
    // Two launchers are more nodes than one.
    let two =
        |input| edit(input).replacen("spec: {template:", "spec: {parallelism: 2, template:", 1);
    let problems = render_edited(&[mpi()], two).unwrap_err();
    assert_eq!(
        texts(&problems),
        [
            "spec.trainer.numNodes: is 1, but other pod sets already use 2 of the nodes; set at least 2"
        ]
    );
}

#[test]
fn nodes_of_the_template_exist_and_run_at_once() {
    let problems = |counts: &str, trainer: &str| {
        let torch = || {
            let mut torch = Scripted::new("torch", &[], |_: Phase, _: &mut Call| Ok(()));
            torch.active_when = "mlPolicy.torch".to_owned();
            torch.config_schema = json!({"type": "object"});
            torch
        };
        let edit = |_| {
            let input = RUNTIME.replace("{mpi: {numProcPerNode: 1}}", "{torch: {}}");
            let input = input.replace("limits: {cpu: 1}", "limits: {}");
            let spec = format!("spec: {{{counts}template:");
            let input = input.replacen("spec: {template:", &spec, 1);
            input.replace("numNodes: 4", trainer)
        };
        match render_edited(&[torch()], edit) {
            Ok(_) => Vec::new(),
            Err(problems) => texts(&problems),
        }
    };
    let of = |counts: &str| problems(counts, "");
    let path = "spec.template.spec.replicatedJobs[0].template.spec";
    let in_turn = "parallelism: 3, completions: 7, ";
    assert_eq!(
        of(in_turn),
        [format!(
            "{path}.completions: is 7, but only 3 of the pods run at once (`parallelism`), and the nodes of mlPolicy.torch wait for each other; set both to the same number, or set spec.mlPolicy.numNodes"
        )]
    );
    assert_eq!(
        of("parallelism: 0, completions: 7, "),
        [format!(
            "{path}.parallelism: is 0, but mlPolicy.torch needs at least one node; set it to at least 1, or set spec.mlPolicy.numNodes"
        )]
    );
    for counts in ["", "parallelism: 3, completions: 3, "] {
        assert_eq!(of(counts), [] as [&str; 0], "{counts}");
    }
    for trainer in ["numNodes: 1", "numNodes: 7"] {
        assert_eq!(problems(in_turn, trainer), [] as [&str; 0]);
    }
}

/// The plugin keeps the value of one var, and replaces that of another and of the runtime.
#[test]
fn reserved_vars_are_refused_unless_the_plugin_keeps_their_value() {
    let claim = ("writes", "pod-sets[*].containers[*].env[*]");
    let mut plugin = Scripted::new("p", &[claim], |phase: Phase, call: &mut Call| {
        if phase == Phase::Transform {
            let node = common::container(call, "node")?;
            for name in ["USERS", "OTHER", "A"] {
                call.container_put_env(node, name, "$(ADDED)")?;
            }
        }
        Ok(())
    });
    plugin.reserved_env = ["USERS", "OTHER", "A"].map(Into::into).to_vec();
    let edit = |input: String| {
        input.replace(
            "env: [{name: USERS,",
            "env: [{name: OTHER, value: other}, {name: USERS,",
        )
    };
    let problems = texts(&render_edited(&[plugin], edit).unwrap_err());
    let [problem] = &problems[..] else {
        panic!("{problems:?}")
    };
    assert!(
        problem.starts_with("spec.trainer.env[0].name: OTHER is set by the plugin p "),
        "{problem}"
    );
}

#[test]
fn errors_of_runtime_train_job_and_plugin_are_reported_at_once() {
    let mut mpi = Scripted::new("mpi", &[], |phase: Phase, call: &mut Call| {
        if phase == Phase::Transform {
            call.context_error(
                Call::CONTEXT,
                "is not for mpirun",
                Some("spec.trainer.args"),
            )?;
        }
        Ok(())
    });
    mpi.active_when = "mlPolicy.mpi".to_owned();
    mpi.config_schema = schema();
    mpi.node_sets = json!([{"podSet": "node"}]);
    mpi.reserved_env = vec![
        json!({"names": ["A"], "when": {"at": "/numProcPerNode", "in": ["1"]}}),
        json!({"names": ["B"], "when": {"at": "/kind", "in": ["x"]}}),
    ];
    mpi.config_schema = json!({"type": "object", "properties": {
        "numProcPerNode": {"type": "integer"}, "kind": {"type": "string", "default": "x"}}});
    let edit = |_| {
        RUNTIME
            .replace(
                "- name: launcher\n",
                "- name: launcher\n        replicas: 2\n",
            )
            .replace(
                "env: [{name: A, value: b}]",
                "env: [{name: A, value: b}, {name: B, value: b}]",
            )
            .replace("cpu: 8}", "cpu: many}")
    };
    let problems = texts(&render_edited(&[mpi], edit).unwrap_err());
    let fields: Vec<_> = problems
        .iter()
        .filter_map(|problem| problem.split_once(": "))
        .map(|(field, _)| field)
        .collect();
    assert_eq!(
        fields,
        [
            "spec.template.spec.replicatedJobs[0].replicas",
            "spec.trainer.resourcesPerNode.requests[cpu]",
            "spec.trainer.env[1].name",
            "spec.trainer.args",
        ],
        "{problems:?}"
    );
}

#[test]
fn node_without_its_container_is_reported() {
    let mpi = mpi(json!([{"podSet": "node"}]));
    let edit = |_| {
        RUNTIME.replace(
            "[{name: node, image: base:1, command: [sshd]}]",
            "[{name: worker, image: base:1}]",
        )
    };
    let problems = render_edited(&[mpi], edit).unwrap_err();
    assert_eq!(
        texts(&problems),
        [
            "spec.trainer: cannot be applied: replicated job `node` of the runtime, whose pods are the nodes, has no container `node`"
        ]
    );
}

/// A default that the API server sets is not an explicit value.
#[test]
fn number_of_processes_is_explicit_if_a_user_set_it() {
    let explicit = |text: &str| {
        let seen = std::sync::Arc::new(std::sync::Mutex::new(None));
        let reported = seen.clone();
        let mut mpi = Scripted::new("mpi", &[], move |_: Phase, call: &mut Call| {
            let job = call.context_job(Call::CONTEXT)?;
            *reported.lock().unwrap() = Some(call.job_processes_per_node(job)?);
            Ok(())
        });
        mpi.active_when = "mlPolicy.mpi".to_owned();
        mpi.config_schema = schema();
        mpi.node_sets = json!([{"podSet": "node"}]);
        let edit = |_| RUNTIME.replace("numProcPerNode: 1", text);
        render_edited(&[mpi], edit).unwrap();
        seen.lock().unwrap().unwrap()
    };
    assert_eq!(explicit("numProcPerNode: 1"), None);
    assert_eq!(explicit("numProcPerNode: 2"), Some(2));
}
