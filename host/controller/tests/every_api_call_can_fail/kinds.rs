//! The kinds of TrainJobs, and what happens to each.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_model::{
    call::{Call, Fault},
    contract::handle,
    plugin::Plugin,
    plugin_info::Settings,
};
use trainyard_policies::{BUILT_INS, BuiltInParts};
use trainyard_sdk::native::NativePlugin;

use super::job_set::{complete, is, is_suspended, list, owner};
use crate::stub::{cluster::Cluster, plugin::builder};

/// What happens to a TrainJob, and what has to hold before the next thing happens.
pub(super) struct Step {
    pub(super) what: &'static str,
    pub(super) happens: Box<dyn Fn(&Cluster)>,
    pub(super) leads_to: fn(&Cluster) -> bool,
    /// What makes a restarted controller check it, if the previous one was killed before it did. A start checks no objects of a running JobSet.
    pub(super) checked_after: Option<fn(&Cluster)>,
}

/// A kind of TrainJob.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// What exists before the controller starts.
    pub(super) objects: Vec<Value>,
    pub(super) steps: Vec<Step>,
    /// Whether its JobSet is deleted. If no controller sees that, it is not known how the JobSet ended, and the TrainJob fails.
    pub(super) loses_job_set: bool,
    /// Whether it waits for a time, so that the calls at intervals come a few times more or less, and a fault at the last ones may not happen.
    pub(super) waits_for_a_time: bool,
}

/// The built-in plugins, native instead of sandboxed, and one that emits an object of each mode.
pub(super) static PLUGINS: LazyLock<Vec<Arc<dyn Plugin>>> = LazyLock::new(|| {
    let native = |(_, parts): &BuiltInParts| -> Arc<dyn Plugin> {
        Arc::new(NativePlugin::new(parts, Settings::built_in()).unwrap())
    };
    let built_in = BUILT_INS.iter().map(native);
    built_in.chain([modes()]).collect()
});

/// The annotation that is copied into the objects of [`modes`].
const NOTE: &str = "example.com/note";

/// The names of the modes in which objects are applied.
const MODES: [&str; 4] = ["once", "with-jobset", "while-suspended", "live"];

/// Emits a ConfigMap of each mode, with a note of the TrainJob.
fn modes() -> Arc<dyn Plugin> {
    fn emit(call: &mut Call) -> Result<(), Fault> {
        let objects = handle::Objects(0);
        let note = call
            .job_annotation(handle::Job(0), NOTE)?
            .unwrap_or_default();
        for mode in MODES {
            let map = call.objects_emit(objects, "v1", "ConfigMap", &format!("-{mode}"), None)?;
            call.object_set_apply(map, mode)?;
            call.object_append(map, "note", &note)?;
        }
        Ok(())
    }
    let claims = MODES.map(|mode| format!("objects[v1/ConfigMap/-{mode}]"));
    builder("modes", &claims.each_ref().map(String::as_str), |call| {
        Ok(emit(call)?)
    })
}

fn step(
    what: &'static str,
    happens: impl Fn(&Cluster) + 'static,
    leads_to: fn(&Cluster) -> bool,
) -> Step {
    Step {
        what,
        happens: Box::new(happens),
        leads_to,
        checked_after: None,
    }
}

fn train_job(cluster: &Cluster) -> Value {
    cluster.get("trainjobs", "a", "job").unwrap_or_default()
}

fn job_set(cluster: &Cluster) -> Value {
    cluster.get("jobsets", "a", "job").unwrap_or_default()
}

fn counts(job: &Value, key: &str) -> bool {
    list(job, "/status/jobsStatus").any(|it| it[key].as_i64() > Some(0))
}

/// Whether the TrainJob runs, and shows it.
fn runs(cluster: &Cluster) -> bool {
    let (job, job_set) = (train_job(cluster), job_set(cluster));
    let is_its = owner(&job_set) == job["metadata"]["uid"];
    let mut pods = list(&job_set, "/status/replicatedJobsStatus");
    let has_pods = pods.any(|it| it["active"] == 1);
    is_its
        && has_pods
        && job_set["spec"]["suspend"] == false
        && counts(&job, "active")
        && !is(&job, "Suspended")
}

/// The same with all of its replicated jobs.
fn all_run(cluster: &Cluster) -> bool {
    let active = |it: &Value| it["active"] == 1 || it["succeeded"] == 1;
    runs(cluster) && list(&train_job(cluster), "/status/jobsStatus").all(active)
}

/// Whether the TrainJob is suspended, and shows it.
fn waits(cluster: &Cluster) -> bool {
    let (job, job_set) = (train_job(cluster), job_set(cluster));
    is_suspended(&job_set) && is(&job, "Suspended") && !counts(&job, "active")
}

fn is_complete(cluster: &Cluster) -> bool {
    is(&train_job(cluster), "Complete")
}

/// Whether the JobSet is suspended, and pods of it have another image.
fn is_replaced(cluster: &Cluster) -> bool {
    waits(cluster) && job_set(cluster).to_string().contains("image:2")
}

/// Whether the TrainJob failed because no controller saw how its JobSet ended.
pub(super) fn has_unseen_end(cluster: &Cluster) -> bool {
    let job = train_job(cluster);
    let mut conditions = list(&job, "/status/conditions");
    conditions.any(|it| it["reason"] == "JobSetGone") && cluster.count("jobsets") == 0
}

/// Whether nothing is left of the TrainJob.
fn is_gone(cluster: &Cluster) -> bool {
    let kinds = [
        "trainjobs",
        "jobsets",
        "jobs",
        "configmaps",
        "secrets",
        "podgroups",
    ];
    kinds.iter().all(|plural| cluster.count(plural) == 0)
}

/// Whether the live object has the note of the TrainJob.
fn is_noted(cluster: &Cluster) -> bool {
    let live = cluster
        .get("configmaps", "a", "job-live")
        .unwrap_or_default();
    live["data"]["note"] == "new"
}

fn anything(_: &Cluster) -> bool {
    true
}

fn created(runtime: &str, uid: &str, spec: &Value) -> Value {
    let mut job = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"namespace": "a", "name": "job", "uid": uid},
        "spec": {"suspend": false, "runtimeRef": {"name": runtime}},
    });
    for (key, value) in spec.as_object().unwrap() {
        job["spec"][key] = value.clone();
    }
    job
}

fn create(runtime: &'static str, spec: Value, leads_to: fn(&Cluster) -> bool) -> Step {
    let job = created(runtime, "uid-of-the-train-job", &spec);
    step(
        "it is created",
        move |cluster| cluster.put(job.clone()),
        leads_to,
    )
}

fn change(what: &'static str, spec: Value, leads_to: fn(&Cluster) -> bool) -> Step {
    let patch = json!({"spec": spec});
    step(
        what,
        move |cluster| cluster.merge("trainjobs", "a", "job", &patch),
        leads_to,
    )
}

fn suspend() -> Step {
    change("it is suspended", json!({"suspend": true}), waits)
}

fn resume() -> Step {
    change("it is resumed", json!({"suspend": false}), all_run)
}

fn completes() -> Step {
    step("its pods complete", complete, is_complete)
}

/// Kueue admits it to nodes of that zone.
fn admit(zone: &str) -> Step {
    let pods = json!({"spec": {"nodeSelector": {zone: "yes"}}});
    let job = json!({"name": "node", "template": {"spec": {"template": pods}}});
    let patches = json!([{
        "manager": "kueue.x-k8s.io/manager",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
    }]);
    change(
        "it is admitted",
        json!({"suspend": false, "runtimePatches": patches}),
        all_run,
    )
}

fn delete_train_job(cluster: &Cluster) {
    cluster.delete("trainjobs", "a", "job");
}

/// A runtime whose replicated job `node` has this policy and further fields of its spec.
fn runtime(name: &str, policy: Value, further: Value) -> Value {
    let container = json!({"name": "node", "image": "image:1", "command": ["train"], "resources": {"limits": {"cpu": 2}}});
    let mut runtime = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": [{
            "name": "node",
            "template": {
                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                "spec": {"template": {"spec": {"containers": [container]}}},
            },
        }]}}},
    });
    for (key, value) in further.as_object().unwrap() {
        runtime["spec"][key] = value.clone();
    }
    runtime
}

fn kind(name: &'static str, mut runtime: Value, steps: Vec<Step>) -> Kind {
    // The snapshot has them, so they are the same in each run.
    runtime["metadata"]["uid"] = "uid-of-the-runtime".into();
    runtime["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    Kind {
        name,
        objects: vec![runtime],
        steps,
        loses_job_set: false,
        waits_for_a_time: false,
    }
}

fn parsed(text: &str) -> Value {
    yaml::read(text).pop().unwrap().unwrap().value
}

const MPI: &str = "
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: mpi}
spec:
  mlPolicy: {numNodes: 2, mpi: {sshAuthMountPath: /home/mpiuser/.ssh}}
  template:
    spec:
      successPolicy: {operator: All, targetReplicatedJobs: [launcher]}
      replicatedJobs:
      - name: node
        template:
          spec:
            template:
              spec:
                containers: [{name: node, image: 'image:1', command: [/usr/sbin/sshd, -De]}]
      - name: launcher
        dependsOn: [{name: node, status: Ready}]
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                containers: [{name: node, image: 'image:1', command: [mpirun, train]}]
";

const INITIALIZERS: &str = "
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: initialized}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: dataset-initializer
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
          spec:
            template:
              spec:
                containers: [{name: dataset-initializer, image: 'image:1'}]
      - name: model-initializer
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: model-initializer}}
          spec:
            template:
              spec:
                containers: [{name: model-initializer, image: 'image:1'}]
      - name: node
        dependsOn: [{name: dataset-initializer, status: Complete}, {name: model-initializer, status: Complete}]
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                containers: [{name: node, image: 'image:1'}]
";

/// Those of one framework.
fn frameworks() -> Vec<Kind> {
    let torch = || runtime("torch", json!({"numNodes": 2, "torch": {}}), json!({}));
    let flux = || runtime("flux", json!({"numNodes": 2, "flux": {}}), json!({}));
    let queued = || json!({"suspend": true});
    vec![
        kind(
            "torch",
            torch(),
            vec![create("torch", json!({}), all_run), completes()],
        ),
        kind(
            "mpi",
            parsed(MPI),
            vec![
                create("mpi", queued(), waits),
                resume(),
                suspend(),
                resume(),
                completes(),
            ],
        ),
        kind(
            "flux",
            flux(),
            vec![
                create("flux", json!({}), all_run),
                suspend(),
                resume(),
                completes(),
            ],
        ),
        kind(
            "initializers",
            parsed(INITIALIZERS),
            vec![
                create("initialized", json!({}), all_run),
                suspend(),
                resume(),
                completes(),
            ],
        ),
    ]
}

/// Those with objects beside their JobSets.
fn objects() -> Vec<Kind> {
    let gang = |scheduler: &str| {
        let policy = json!({"podGroupPolicy": {scheduler: {}}});
        runtime("gang", json!({"numNodes": 2, "torch": {}}), policy)
    };
    let gang_steps = || {
        vec![
            create("gang", json!({"suspend": true}), waits),
            resume(),
            suspend(),
            resume(),
            completes(),
        ]
    };
    let modes = runtime(
        "modes",
        json!({"numNodes": 2}),
        json!({"plugins": [{"name": "modes"}]}),
    );
    let mut devices = runtime("devices", json!({"numNodes": 2, "torch": {}}), json!({}));
    let claims = r#"[{"name": "gpu", "deviceClassName": "gpu.example.com", "count": 2}]"#;
    devices["metadata"]["annotations"] = json!({"trainyard.dev/resource-claims-per-node": claims});
    let touch = |cluster: &Cluster| {
        let annotations = json!({"metadata": {"annotations": {NOTE: "new"}}});
        cluster.merge("trainjobs", "a", "job", &annotations);
    };
    vec![
        kind("coscheduling", gang("coscheduling"), gang_steps()),
        kind("volcano", gang("volcano"), gang_steps()),
        kind(
            "live",
            modes,
            vec![
                create("modes", json!({}), all_run),
                step(
                    "its live object is deleted",
                    |cluster| cluster.delete("configmaps", "a", "job-live"),
                    anything,
                ),
                Step {
                    checked_after: Some(|cluster| {
                        let restarts = |job_set: &mut Value| {
                            let before = job_set["status"]["restarts"].as_u64();
                            job_set["status"]["restarts"] = (before.unwrap_or_default() + 1).into();
                        };
                        cluster.edit("jobsets", ("a", "job"), restarts);
                    }),
                    ..step("it is annotated", touch, is_noted)
                },
                suspend(),
                resume(),
                completes(),
            ],
        ),
        kind(
            "dra",
            devices,
            vec![
                create("devices", json!({"suspend": true}), waits),
                resume(),
                completes(),
            ],
        ),
    ]
}

/// Those whose JobSets are changed, replaced or deleted.
fn changes() -> Vec<Kind> {
    let torch = || runtime("torch", json!({"numNodes": 2, "torch": {}}), json!({}));
    let queued = || json!({"suspend": true});
    let remove = |cluster: &Cluster| cluster.delete("jobsets", "a", "job");
    let again = |cluster: &Cluster| {
        delete_train_job(cluster);
        cluster.put(created("torch", "uid-of-the-next-train-job", &json!({})));
    };
    let finalized = |cluster: &Cluster| {
        let metadata = json!({"finalizers": ["example.com/keep"], "deletionTimestamp": "2026-01-01T00:00:00Z"});
        cluster.merge("trainjobs", "a", "job", &json!({"metadata": metadata}));
    };
    vec![
        kind(
            "relocated",
            torch(),
            vec![
                create("torch", queued(), waits),
                admit("east"),
                suspend(),
                admit("west"),
                completes(),
            ],
        ),
        kind(
            "replaced",
            torch(),
            vec![
                create("torch", queued(), waits),
                change(
                    "its image is changed",
                    json!({"trainer": {"image": "image:2"}}),
                    is_replaced,
                ),
                resume(),
                completes(),
            ],
        ),
        kind(
            "made again",
            torch(),
            vec![
                create("torch", json!({}), all_run),
                step("it is deleted and made again", again, all_run),
                completes(),
            ],
        ),
        Kind {
            loses_job_set: true,
            ..kind(
                "recreated",
                torch(),
                vec![
                    create("torch", json!({}), all_run),
                    step("its JobSet is deleted", remove, all_run),
                    completes(),
                ],
            )
        },
        Kind {
            waits_for_a_time: true,
            ..kind(
                "overdue",
                torch(),
                vec![
                    // After a storm of faults, it still runs before its deadline.
                    create("torch", json!({"activeDeadlineSeconds": 600}), all_run),
                    step(
                        "its deadline passes",
                        |_| {},
                        |cluster| {
                            is(&train_job(cluster), "Failed") && cluster.count("jobsets") == 0
                        },
                    ),
                ],
            )
        },
        kind(
            "deleted",
            torch(),
            vec![
                create("torch", json!({}), all_run),
                step(
                    "it is deleted, and a finalizer keeps it",
                    finalized,
                    anything,
                ),
                step("it is gone", delete_train_job, is_gone),
            ],
        ),
    ]
}

/// All kinds.
pub(super) fn all() -> Vec<Kind> {
    [frameworks(), objects(), changes()]
        .into_iter()
        .flatten()
        .collect()
}
