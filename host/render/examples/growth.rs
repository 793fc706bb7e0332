//! Renders and explains one large TrainJob: `growth DIMENSION SIZE`. `make growth` counts how the number of instructions grows with the size.
//! Without arguments, it lists the dimensions.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::type_complexity,
    clippy::unwrap_used,
    missing_docs
)]

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_api::{Admitted, Inputs};
use trainyard_model::{
    call::{Call, Fault},
    contract::{VERSION, handle},
    deadline::Deadline,
    limits::Limits,
    manifest::Manifest,
    plugin::{CallOutcome, Phase, Plugin},
    plugin_info::{PluginInfo, Settings},
};
use trainyard_render::{Catalog, ClusterFacts, Renderer};

/// The dimensions in which a TrainJob, its runtime or a plugin can be large.
const DIMENSIONS: [(&str, fn(usize) -> Large); 11] = [
    ("runtime-env", |n| Large::of_container("env", n, env)),
    ("trainer-env", |n| Large {
        job: json!({"trainer": {"env": many(n, env)}}),
        ..Large::default()
    }),
    ("volumes-and-mounts", |n| Large {
        pod: json!({"volumes": many(n, |at| json!({"name": format!("v{at}"), "emptyDir": {}}))}),
        container: json!({"volumeMounts": many(n, |at| json!({"name": format!("v{at}"), "mountPath": format!("/{at}")}))}),
        ..Large::default()
    }),
    ("containers", |n| Large {
        containers: many(n, |at| json!({"name": format!("c{at}"), "image": "i"})),
        writes: |call, n| {
            each_container(call, n, |call, id, _| call.container_put_env(id, "P", "x"))
        },
        ..Large::default()
    }),
    ("init-containers", |n| Large {
        pod: json!({"initContainers": many(n, |at| json!({"name": format!("i{at}"), "image": "i"}))}),
        writes: |call, _| {
            let set = node_set(call)?;
            let added = call.pod_set_add_init_container(set, "added", "i")?;
            call.container_place_first(added)
        },
        ..Large::default()
    }),
    ("replicated-jobs", |n| Large {
        jobs: many(n, |at| {
            let pod = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
            json!({"name": format!("j{at}"), "template": {"spec": {"template": pod}}})
        }),
        patches: vec![json!({"replicatedJobs": many(n, |at| {
            json!({"name": format!("j{at}"), "template": {"metadata": {"labels": {"a": "b"}}}})
        })})],
        ..Large::default()
    }),
    ("patched-selectors", |n| {
        let patch = |patch: usize| {
            let keys = (0..n / 4).map(|at| (format!("k{patch}-{at}"), json!("x")));
            in_pod(json!({"nodeSelector": Value::Object(keys.collect())}))
        };
        Large {
            patches: (0..4).map(patch).collect(),
            ..Large::default()
        }
    }),
    ("patched-env", |n| Large {
        container: json!({"env": many(n, env)}),
        patches: vec![in_pod(
            json!({"containers": [{"name": "node", "env": many(n, |at| json!({"name": format!("E{at}"), "value": "y"}))}]}),
        )],
        ..Large::default()
    }),
    ("patched-gates", |n| Large {
        pod: json!({"schedulingGates": many(n, |at| json!({"name": format!("a/{at}")}))}),
        patches: vec![in_pod(
            json!({"schedulingGates": many(n, |at| json!({"name": format!("b/{at}")}))}),
        )],
        ..Large::default()
    }),
    ("plugin-env", |n| Large {
        container: json!({"env": many(n, |at| json!({"name": format!("R{at}"), "value": "x"}))}),
        writes: |call, n| {
            let set = node_set(call)?;
            let node = call.pod_set_container(set, "node")?.unwrap();
            (0..n).try_for_each(|at| {
                call.container_put_env(node, &format!("P{at}"), &format!("$(P{})", at + 1))
            })?;
            (0..n).try_for_each(|at| call.container_remove_env(node, &format!("R{at}")))
        },
        ..Large::default()
    }),
    ("plugin-labels", |n| Large {
        pod: json!({"nodeSelector": Value::Object((0..n).map(|at| (format!("s{at}"), json!("x"))).collect())}),
        writes: |call, n| {
            let set = node_set(call)?;
            (0..n).try_for_each(|at| call.pod_set_set_pod_label(set, &format!("l{at}"), "x"))
        },
        ..Large::default()
    }),
];

fn env(at: usize) -> Value {
    json!({"name": format!("E{at}"), "value": "x"})
}

fn many(n: usize, item: impl Fn(usize) -> Value) -> Vec<Value> {
    (0..n).map(item).collect()
}

/// Returns a patch of the trainer's pod.
fn in_pod(spec: Value) -> Value {
    json!({"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": spec}}}}]})
}

/// Returns the trainer's pod set.
fn node_set(call: &mut Call) -> Result<handle::PodSet, Fault> {
    let info = call.context_info(Call::CONTEXT)?;
    Ok(call.info_pod_set(info, "node")?.unwrap())
}

fn each_container(
    call: &mut Call,
    n: usize,
    write: impl Fn(&mut Call, handle::Container, usize) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let set = node_set(call)?;
    for at in 0..n {
        if let Some(id) = call.pod_set_container(set, &format!("c{at}"))? {
            write(call, id, at)?;
        }
    }
    Ok(())
}

/// The parts of a TrainJob with its runtime and plugin.
struct Large {
    /// Additional fields of the container `node`.
    container: Value,
    /// Additional containers of its pod.
    containers: Vec<Value>,
    /// Additional fields of its pod spec.
    pod: Value,
    /// Additional replicated jobs.
    jobs: Vec<Value>,
    /// Additional fields of the TrainJob's spec.
    job: Value,
    /// The JobSet specs of its patches.
    patches: Vec<Value>,
    /// The writes of the plugin.
    writes: fn(&mut Call, usize) -> Result<(), Fault>,
}

impl Default for Large {
    fn default() -> Self {
        Self {
            container: json!({}),
            containers: Vec::new(),
            pod: json!({}),
            jobs: Vec::new(),
            job: json!({}),
            patches: Vec::new(),
            writes: |_, _| Ok(()),
        }
    }
}

impl Large {
    fn of_container(list: &str, n: usize, item: impl Fn(usize) -> Value) -> Self {
        Self {
            container: json!({ list: many(n, item) }),
            ..Self::default()
        }
    }

    /// Returns the objects as JSON, which is also YAML.
    fn input(&self) -> String {
        let node = merged(json!({"name": "node", "image": "i"}), &self.container);
        let containers: Vec<_> = [node].into_iter().chain(self.containers.clone()).collect();
        let pod = merged(json!({ "containers": containers }), &self.pod);
        let label = json!({"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"});
        let node = json!({
            "name": "node",
            "template": {"metadata": {"labels": label}, "spec": {"template": {"spec": pod}}},
        });
        let jobs: Vec<_> = [node].into_iter().chain(self.jobs.clone()).collect();
        let runtime = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
            "metadata": {"name": "runtime"},
            "spec": {"plugins": [{"name": "writer"}], "template": {"spec": {"replicatedJobs": jobs}}},
        });
        let patches = self.patches.iter().enumerate().map(|(at, spec)| {
            json!({"manager": format!("example.com/{at}"), "trainingRuntimeSpec": {"template": {"spec": spec}}})
        });
        let patches: Vec<_> = patches.collect();
        let spec = json!({"runtimeRef": {"name": "runtime"}, "runtimePatches": patches});
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": "job"}, "spec": merged(spec, &self.job),
        });
        format!("{runtime}\n---\n{job}\n")
    }
}

fn merged(mut object: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

/// A plugin with this many writes.
struct Writer {
    plugin: Arc<PluginInfo>,
    writes: fn(&mut Call, usize) -> Result<(), Fault>,
    size: usize,
}

impl Plugin for Writer {
    fn info(&self) -> &Arc<PluginInfo> {
        &self.plugin
    }

    fn run(&self, _: Phase, mut call: Box<Call>) -> CallOutcome {
        let end = (self.writes)(&mut call, self.size).map_err(Into::into);
        CallOutcome {
            call,
            end,
            fuel: None,
        }
    }
}

fn writer(writes: fn(&mut Call, usize) -> Result<(), Fault>, size: usize) -> Arc<dyn Plugin> {
    let reserved: Vec<_> = (0..size).map(|at| format!("R{at}")).collect();
    let manifest = json!({
        "name": "writer", "version": "1.0.0", "contract": VERSION, "activeWhen": "plugins",
        "phases": ["transform"], "reservedEnv": reserved,
        "claims": {
            "creates": ["pod-sets[*].init-containers[*]"],
            "writes": ["pod-sets[*].containers[*].env[*]", "pod-sets[*].pod-labels[*]"],
        },
    });
    let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
    let settings = Settings {
        limits: Limits {
            writes: u64::MAX,
            handles: u64::MAX,
            import_bytes: u64::MAX,
            ..Limits::default()
        },
        ..Settings::built_in()
    };
    Arc::new(Writer {
        plugin: Arc::new(PluginInfo::new(manifest, "native", settings).unwrap()),
        writes,
        size,
    })
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dimension, size] = arguments.as_slice() else {
        return DIMENSIONS.iter().for_each(|(name, _)| println!("{name}"));
    };
    let size = size.parse().unwrap();
    let (_, large) = DIMENSIONS
        .iter()
        .find(|(name, _)| name == dimension)
        .unwrap();
    let large = large(size);
    let objects = Inputs::read_text("input.yaml", &large.input())
        .objects
        .into_iter();
    let (catalog, errors) = Catalog::new(objects.map(|object| Admitted::new(object, "default")));
    assert!(errors.is_empty(), "{}", errors[0]);
    let renderer = Renderer::new([writer(large.writes, size)], ClusterFacts::default()).unwrap();
    counted(&renderer, &catalog);
}

/// The function whose instructions are counted.
#[inline(never)]
fn counted(renderer: &Renderer, catalog: &Catalog) {
    let job = &catalog.jobs[0];
    let (lookups, deadline) = (Arc::default(), Deadline::none());
    let rendered = renderer.render(&job.train_job, &job.runtime, "default", &lookups, &deadline);
    let rendered = rendered.unwrap_or_else(|stopped| panic!("{:?}", stopped.lines()));
    assert!(!rendered.provenance().is_empty());
    let last = "spec.replicatedJobs[node].template.spec.template.spec.containers[node].image";
    assert_eq!(rendered.explain(&last.parse().unwrap()).unwrap().len(), 1);
}
