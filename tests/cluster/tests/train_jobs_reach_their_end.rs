//! The controller on a real cluster: TrainJobs become JobSets, run, wait, end and go, and their status says so at every step.
#![allow(clippy::indexing_slicing)]

use std::ffi::OsString;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Resource, Shared as _, Test, Trainyard, Write};
use trainyard_schema::documents::Kind;

use crate::common;
use crate::common::{Controlled, Namespace, Setup, conditions, is, kind};

/// Runtimes with the policy `torch`, with no policy, and with an initializer.
pub(crate) struct Runtimes;

impl Setup for Runtimes {
    fn runtimes() -> Vec<Value> {
        let torch = json!({"torch": {}});
        vec![
            runtime("torch", &torch),
            runtime("plain", &json!({})),
            with_initializers(),
        ]
    }

    fn arguments() -> Result<Vec<OsString>> {
        Ok(vec!["--leader-elect".into()])
    }
}

pub(crate) type Shared = Controlled<Runtimes>;

fn step(name: &str, ancestor: &str, mounts: &Value) -> Value {
    json!({
        "name": name,
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": ancestor}},
            "spec": {"backoffLimit": 0, "template": {"spec": {
                "containers": [{"name": name, "image": "example.com/image", "volumeMounts": mounts}],
                "volumes": [{"name": "initializer", "emptyDir": {}}],
            }}},
        },
    })
}

fn runtime(name: &str, policy: &Value) -> Value {
    let mut runtime = common::runtime();
    runtime["metadata"]["name"] = json!(name);
    runtime["spec"]["mlPolicy"] = policy.clone();
    runtime
}

fn with_initializers() -> Value {
    let mounts = json!([{"name": "initializer", "mountPath": "/workspace"}]);
    let mut node = step("node", "trainer", &mounts);
    node["dependsOn"] = json!([{"name": "dataset-initializer", "status": "Complete"}]);
    let initializer = step("dataset-initializer", "dataset-initializer", &mounts);
    let mut runtime = runtime("with-initializers", &json!({"torch": {}}));
    runtime["spec"]["template"]["spec"]["replicatedJobs"] = json!([initializer, node]);
    runtime
}

/// Type, status, reason and message of each condition, all that a TrainJob has.
fn told(job: &Value) -> Vec<[String; 4]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = job["status"]["conditions"].as_array();
    let fields = ["type", "status", "reason", "message"];
    let all = conditions.into_iter().flatten();
    all.map(|one| fields.map(|field| text(&one[field])))
        .collect()
}

/// The conditions that the reference gives a TrainJob.
const SUSPENDED: [&str; 4] = ["Suspended", "True", "Suspended", "TrainJob is suspended"];
const RESUMED: [&str; 4] = ["Suspended", "False", "Resumed", "TrainJob is resumed"];
const OVERDUE: [&str; 4] = [
    "Failed",
    "True",
    "DeadlineExceeded",
    "TrainJob exceeded its active deadline",
];

/// The status of a replicated job of one Job, with a one where that Job counts.
fn node(counted: &[&str]) -> Value {
    let mut node = json!({"name": "node"});
    for count in ["active", "failed", "ready", "succeeded", "suspended"] {
        node[count] = json!(u8::from(counted.contains(&count)));
    }
    node
}

/// Waits until the TrainJob's one replicated job counts so, and nothing else.
async fn until_counted(namespace: &Namespace<'_>, name: &str, counted: &[&str]) -> Result<Value> {
    let expected = json!([node(counted)]);
    let counts = |job: &Value| {
        let mut found = job["status"]["jobsStatus"].clone();
        for one in found.as_array_mut().into_iter().flatten() {
            for (count, value) in one.as_object_mut().into_iter().flatten() {
                if count != "name" && value.is_null() {
                    *value = json!(0);
                }
            }
        }
        found == expected
    };
    let what = format!("it counts {counted:?}");
    namespace.until(name, &what, counts).await
}

async fn torch_plain_and_initializers_complete(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let two = json!({"numNodes": 2, "image": "example.com/mine", "env": [{"name": "MINE", "value": "1"}]});
    namespace
        .create(
            "torch",
            &json!({"runtimeRef": {"name": "torch"}, "trainer": two}),
        )
        .await?;
    namespace
        .create("plain", &json!({"runtimeRef": {"name": "plain"}}))
        .await?;
    let initializer = json!({"dataset": {"storageUri": "hf://owner/data"}});
    namespace
        .create(
            "fetched",
            &json!({"runtimeRef": {"name": "with-initializers"}, "initializer": initializer}),
        )
        .await?;
    let job = namespace.until_active("torch", 1).await?;
    ensure!(conditions(&job).is_empty(), "{job:#}");
    let job_set = namespace.job_set("torch").await?;
    let owner = &job_set["metadata"]["ownerReferences"][0];
    ensure!(
        owner["uid"] == job["metadata"]["uid"] && owner["controller"] == true,
        "{job_set:#}"
    );
    let node = &job_set["spec"]["replicatedJobs"][0]["template"]["spec"];
    let container = &node["template"]["spec"]["containers"][0];
    let env: Vec<&str> = container["env"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|v| v["name"].as_str())
        .collect();
    ensure!(env.starts_with(&["MINE", "PET_NNODES"]), "{env:?}");
    ensure!(
        node["parallelism"] == 2 && container["image"] == "example.com/mine",
        "{job_set:#}"
    );
    let four_run = |pods: &[Value]| {
        let running = |pod: &&Value| pod["status"]["phase"] == "Running";
        pods.iter().filter(running).count() == 4
    };
    namespace
        .api(&namespace.pods)
        .until_all("four pods run", four_run)
        .await?;
    namespace.fate(Fate::Succeed);
    for name in ["torch", "plain", "fetched"] {
        let job = namespace.until_complete(name).await?;
        let set = namespace.job_set(name).await?;
        let theirs = told(&set);
        let theirs = theirs.iter().find(|one| one[0] == "Completed");
        let theirs = theirs.context("its JobSet is not complete")?;
        let [_, status, reason, message] = theirs.clone();
        ensure!(
            told(&job) == [["Complete".to_owned(), status, reason, message]],
            "{job:#}"
        );
        let jobs = job["status"]["jobsStatus"].as_array();
        let done = jobs.is_some_and(|jobs| jobs.iter().all(|one| one["succeeded"] == 1));
        ensure!(done, "{job:#}");
    }
    for name in ["torch", "plain"] {
        until_counted(&namespace, name, &["succeeded"]).await?;
    }
    let snapshot = namespace
        .api(&namespace.config_maps)
        .get("torch-runtime-snapshot")
        .await?
        .accepted()?;
    ensure!(
        snapshot["data"]["plan"]
            .as_str()
            .is_some_and(|plan| plan.contains("sha256:")),
        "{snapshot:#}"
    );
    Ok(())
}

async fn live_train_job_is_explained_from_its_snapshot(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let runtimes = kind(Kind::ClusterTrainingRuntime)?;
    let runtimes = shared.plane().api(&runtimes, "");
    let runtime = runtime("explained", &json!({"torch": {}}));
    runtimes
        .create(&runtime, &Write::strict())
        .await?
        .accepted()?;
    let spec = json!({"runtimeRef": {"name": "explained"}, "trainer": {"numNodes": 2}});
    namespace.create("asked", &spec).await?;
    namespace.until_active("asked", 1).await?;
    // What the JobSet was made of counts, and not what there is by now.
    let mut changed = runtimes.get("explained").await?.accepted()?;
    changed["spec"]["mlPolicy"] = json!({});
    let pod = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec";
    let image = changed.pointer_mut(&format!("{pod}/containers/0/image"));
    *image.context("no image")? = json!("example.com/another");
    runtimes
        .replace(&changed, &Write::strict())
        .await?
        .accepted()?;
    let explain = |arguments: &[&str]| {
        let mut command = std::process::Command::new(Trainyard::program()?);
        command.arg("explain").args(arguments);
        command.args(["--namespace", &namespace.name, "--kubeconfig"]);
        anyhow::Ok(command.arg(shared.plane().kubeconfig()).output()?)
    };
    let container = "spec.replicatedJobs[node].template.spec.template.spec.containers[node]";
    for (field, by, to) in [
        ("env[PET_NNODES]", json!(["plugin", "torch"]), "2"),
        ("image", json!(["runtime", null]), "example.com/image"),
    ] {
        let field = format!("{container}.{field}");
        let output = explain(&["trainjob/asked", &field, "--output=json"])?;
        let said = String::from_utf8(output.stderr)?;
        ensure!(output.status.success() && said.is_empty(), "{said}");
        let explained: Value = serde_json::from_slice(&output.stdout)?;
        let steps = explained[0]["fields"][0]["steps"].as_array();
        let [step] = steps.map(Vec::as_slice).unwrap_or_default() else {
            bail!("{explained:#}");
        };
        let found = json!([step["by"]["kind"], step["by"]["name"]]);
        ensure!(found == by && step["to"] == to, "{explained:#}");
    }
    let output = explain(&["trainjob/nobody"])?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(
        !output.status.success() && said.contains("there is no TrainJob `nobody`"),
        "{said}"
    );
    Ok(())
}

async fn failed_train_job_stays_failed_after_its_job_set_is_deleted(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Fail(3));
    namespace
        .create("fails", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    let failed = namespace
        .until("fails", "it failed", |job| is(job, "Failed", "True"))
        .await?;
    let job_set = namespace.job_set("fails").await?;
    let condition = |object: &Value| {
        let all = object["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        all.into_iter()
            .find(|c| c["type"] == "Failed" && c["status"] == "True")
    };
    until_counted(&namespace, "fails", &["failed"]).await?;
    ensure!(told(&failed).len() == 1, "{failed:#}");
    let (ours, theirs) = (condition(&failed), condition(&job_set));
    for field in ["reason", "message", "lastTransitionTime"] {
        ensure!(
            ours.as_ref().map(|c| &c[field]) == theirs.as_ref().map(|c| &c[field]),
            "{ours:?} {theirs:?}"
        );
    }
    namespace.fate(Fate::Succeed);
    namespace
        .api(&namespace.job_sets)
        .delete("fails")
        .await?
        .accepted()?;
    namespace
        .api(&namespace.pods)
        .until_all("its pods are gone", <[Value]>::is_empty)
        .await?;
    // Whatever would make it run again has happened by the time another TrainJob is complete.
    namespace
        .create("other", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    namespace.until_complete("other").await?;
    let after = namespace
        .api(&namespace.jobs)
        .get("fails")
        .await?
        .accepted()?;
    ensure!(
        after["status"]["conditions"] == failed["status"]["conditions"],
        "{after:#}"
    );
    let gone = namespace.api(&namespace.job_sets).get("fails").await?;
    ensure!(gone.status.as_u16() == 404, "{gone:?}");
    Ok(())
}

async fn running_train_job_is_suspended_by_one_field_and_resumed(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    namespace
        .create("waits", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    namespace.until_active("waits", 1).await?;
    let before = namespace.job_set("waits").await?;
    namespace.patch("waits", &json!({"suspend": true})).await?;
    let suspended = namespace
        .until("waits", "it is suspended", |job| {
            is(job, "Suspended", "True")
        })
        .await?;
    ensure!(told(&suspended) == [SUSPENDED], "{suspended:#}");
    until_counted(&namespace, "waits", &["suspended"]).await?;
    let after = namespace
        .api(&namespace.job_sets)
        .until("waits", "it is suspended", |set| {
            set["spec"]["suspend"] == true
        })
        .await?;
    let mut spec = after["spec"].clone();
    spec["suspend"] = before["spec"]["suspend"].clone();
    ensure!(spec == before["spec"], "{before:#} {after:#}");
    namespace
        .api(&namespace.pods)
        .until_all("its pods are gone", <[Value]>::is_empty)
        .await?;
    // What JobSet lets change of a suspended one that has run reaches its pods when it goes on.
    let patches = json!([{"manager": "example.com/queue", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
        {"name": "node", "template": {"spec": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}}},
    ]}}}}]);
    namespace
        .patch("waits", &json!({"runtimePatches": patches}))
        .await?;
    namespace.patch("waits", &json!({"suspend": false})).await?;
    let resumed = namespace
        .until("waits", "it is resumed", |job| {
            is(job, "Suspended", "False")
        })
        .await?;
    ensure!(told(&resumed) == [RESUMED], "{resumed:#}");
    until_counted(&namespace, "waits", &["active", "ready"]).await?;
    let pods = namespace.api(&namespace.pods).items().await?;
    let tolerated = |pod: &Value| {
        let all = pod["spec"]["tolerations"].as_array();
        all.is_some_and(|all| {
            all.iter()
                .any(|one| one["operator"] == "Exists" && one.get("key").is_none())
        })
    };
    ensure!(pods.iter().all(tolerated), "{pods:#?}");
    namespace.fate(Fate::Succeed);
    let done = namespace.until_complete("waits").await?;
    ensure!(is(&done, "Suspended", "False"), "{done:#}");
    Ok(())
}

async fn queued_train_job_accepts_changed_patches(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    let patches = |zone: &str, tolerations: Value| {
        json!([{"manager": "example.com/queue", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
            {"name": "node", "template": {"spec": {"template": {"spec": {
                "nodeSelector": {"zone": zone}, "tolerations": tolerations,
            }}}}},
        ]}}}}])
    };
    let spec = json!({"runtimeRef": {"name": "torch"}, "suspend": true, "runtimePatches": patches("a", json!([]))});
    namespace.create("queued", &spec).await?;
    let zone = |set: &Value| {
        set.pointer("/spec/replicatedJobs/0/template/spec/template/spec/nodeSelector/zone")
            .cloned()
    };
    let before = namespace
        .api(&namespace.job_sets)
        .until("queued", "it is there", |set| zone(set) == Some(json!("a")))
        .await?;
    namespace
        .until("queued", "it is suspended", |job| {
            is(job, "Suspended", "True")
        })
        .await?;
    namespace
        .patch(
            "queued",
            &json!({"runtimePatches": patches("b", json!([{"operator": "Exists"}]))}),
        )
        .await?;
    let changed = namespace
        .api(&namespace.job_sets)
        .until("queued", "it has changed", |set| {
            zone(set) == Some(json!("b"))
        })
        .await?;
    let pods = &changed["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
    ensure!(
        pods["tolerations"] == json!([{"operator": "Exists"}])
            && changed["spec"]["suspend"] == true,
        "{changed:#}"
    );
    namespace
        .patch(
            "queued",
            &json!({"suspend": false, "runtimePatches": patches("c", json!([]))}),
        )
        .await?;
    let resumed = namespace
        .api(&namespace.job_sets)
        .until("queued", "it goes on", |set| {
            set["spec"]["suspend"] == false
        })
        .await?;
    ensure!(zone(&resumed) == Some(json!("c")), "{resumed:#}");
    ensure!(
        resumed["metadata"]["uid"] == before["metadata"]["uid"],
        "it was deleted and made again: {resumed:#}"
    );
    let tolerations = &resumed["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        ["tolerations"];
    ensure!(
        tolerations.as_array().is_none_or(Vec::is_empty),
        "{resumed:#}"
    );
    Ok(())
}

async fn train_job_fails_at_its_deadline(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    namespace
        .create(
            "slow",
            &json!({"runtimeRef": {"name": "plain"}, "activeDeadlineSeconds": 2}),
        )
        .await?;
    let job = namespace
        .until("slow", "it failed", |job| is(job, "Failed", "True"))
        .await?;
    ensure!(told(&job) == [OVERDUE], "{job:#}");
    namespace
        .api(&namespace.job_sets)
        .until_all("its JobSet is gone", <[Value]>::is_empty)
        .await?;
    namespace
        .api(&namespace.pods)
        .until_all("its pods are gone", <[Value]>::is_empty)
        .await?;
    let after = namespace
        .api(&namespace.jobs)
        .get("slow")
        .await?
        .accepted()?;
    ensure!(
        after["status"]["conditions"] == job["status"]["conditions"],
        "{after:#}"
    );
    Ok(())
}

async fn deletion_leaves_nothing_behind(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    namespace
        .create("gone", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    namespace.until_active("gone", 1).await?;
    namespace
        .api(&namespace.jobs)
        .delete("gone")
        .await?
        .accepted()?;
    namespace
        .api(&namespace.jobs)
        .until_all("the TrainJob is gone", <[Value]>::is_empty)
        .await?;
    namespace
        .api(&namespace.job_sets)
        .until_all("its JobSet is gone", <[Value]>::is_empty)
        .await?;
    namespace
        .api(&namespace.pods)
        .until_all("its pods are gone", <[Value]>::is_empty)
        .await?;
    let none = [
        Resource::jobs(),
        Resource::namespaced("/api/v1", "services"),
        Resource::namespaced("/api/v1", "secrets"),
    ];
    for resource in &none {
        let api = namespace.api(resource);
        api.until_all("none is left", <[Value]>::is_empty).await?;
    }
    let snapshot = "its snapshot is gone, and only the cluster's own certificates are left";
    namespace
        .api(&namespace.config_maps)
        .until_all(snapshot, |maps| {
            maps.iter()
                .all(|map| map["metadata"]["name"] == "kube-root-ca.crt")
        })
        .await?;
    Ok(())
}

/// Somebody's finalizer keeps a TrainJob that is deleted: its JobSet goes only when it goes.
async fn terminating_train_job_is_still_suspended_and_finished(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let jobs = namespace.api(&namespace.jobs);
    let finalizer = |kept: bool| json!({"metadata": {"finalizers": kept.then_some("example.com/keep").into_iter().collect::<Vec<_>>()}});
    for name in ["preempted", "completes"] {
        let spec = json!({"runtimeRef": {"name": "torch"}});
        namespace.create(name, &spec).await?;
        let kept = jobs.merge(name, &finalizer(true), &Write::strict()).await?;
        kept.accepted()?;
        namespace.until_active(name, 1).await?;
        jobs.delete(name).await?.accepted()?;
    }
    let suspend = json!({"spec": {"suspend": true}});
    let suspended = jobs.merge("preempted", &suspend, &Write::strict()).await?;
    suspended.accepted()?;
    let waits = |job: &Value| is(job, "Suspended", "True");
    namespace.until("preempted", "it waits", waits).await?;
    let job_sets = namespace.api(&namespace.job_sets);
    let is_suspended = |job_set: &Value| job_set["spec"]["suspend"] == true;
    job_sets
        .until("preempted", "it is suspended", is_suspended)
        .await?;
    namespace.fate(Fate::Succeed);
    namespace.until_complete("completes").await?;
    // It is not unsuspended again.
    let resume = json!({"spec": {"suspend": false}});
    let resumed = jobs.merge("preempted", &resume, &Write::strict()).await?;
    resumed.accepted()?;
    let goes_on = |job: &Value| is(job, "Suspended", "False");
    namespace
        .until("preempted", "that is heard", goes_on)
        .await?;
    let now = job_sets.get("preempted").await?.accepted()?;
    ensure!(is_suspended(&now), "{now:#}");
    for name in ["preempted", "completes"] {
        let freed = jobs
            .merge(name, &finalizer(false), &Write::strict())
            .await?;
        freed.accepted()?;
    }
    jobs.until_all("both are gone", <[Value]>::is_empty)
        .await
        .map(drop)
}

async fn runtime_of_another_kind_is_not_supported(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    let reference = json!({"apiGroup": "example.com", "kind": "OtherRuntime", "name": "torch"});
    let spec = json!({"runtimeRef": reference});
    namespace.create("other", &spec).await?;
    let failed = |job: &Value| is(job, "Failed", "True");
    let job = namespace.until("other", "it failed", failed).await?;
    let told = told(&job);
    let [[kind, status, reason, message]] = told.as_slice() else {
        bail!("{job:#}");
    };
    ensure!(
        (&**kind, &**status, &**reason) == ("Failed", "True", "TrainingRuntimeNotSupported"),
        "{job:#}"
    );
    ensure!(message.contains("OtherRuntime.example.com"), "{message}");
    ensure!(common::counts(&job).is_empty(), "{job:#}");
    // Whatever would be made of it is made by the time another TrainJob is complete.
    namespace.fate(Fate::Succeed);
    let plain = json!({"runtimeRef": {"name": "torch"}});
    namespace.create("plain", &plain).await?;
    namespace.until_complete("plain").await?;
    for resource in [
        &namespace.job_sets,
        &namespace.config_maps,
        &Resource::jobs(),
    ] {
        let items = namespace.api(resource).items().await?;
        let is_of_it = |item: &Value| {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            name.starts_with("other")
        };
        ensure!(!items.iter().any(is_of_it), "{items:#?}");
    }
    Ok(())
}

/// The runtime guide has the group that runtimes had in early proposals.
async fn runtime_with_the_documented_api_group_runs(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    let reference = json!({"apiGroup": "kubeflow.org", "name": "torch"});
    namespace
        .create("guide", &json!({"runtimeRef": reference}))
        .await?;
    namespace.until_complete("guide").await.map(drop)
}

/// What the API server's schema can't say of an old form, the controller says; the CRD refuses what is too large for it.
async fn conversion_of_old_forms_is_bounded(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    let spec = |targets: usize, pods: &Value| {
        let target = |at| json!({"name": format!("job-{at}")});
        let targets: Vec<_> = (0..targets).map(target).collect();
        let one = json!({"targetJobs": targets, "spec": pods});
        json!({"runtimeRef": {"name": "torch"}, "podTemplateOverrides": [one]})
    };
    let refused = namespace.create("targets", &spec(101, &json!({}))).await;
    let error = refused.err().map(|error| format!("{error:#}"));
    ensure!(
        error
            .as_ref()
            .is_some_and(|error| error.contains("Too many")),
        "{error:?}"
    );
    let host = json!({"hostNetwork": true});
    namespace.create("host", &spec(1, &host)).await?;
    let field = "unknown field \"spec.podTemplateOverrides[0].spec.hostNetwork\"";
    namespace.event("host", field).await?;
    let selector = json!({"nodeSelector": {"a": "x".repeat(20_000)}});
    namespace.create("copies", &spec(100, &selector)).await?;
    namespace.event("copies", "bytes of JSON").await?;
    let job_sets = namespace.api(&namespace.job_sets).items().await?;
    ensure!(job_sets.is_empty(), "{job_sets:#?}");
    Ok(())
}

async fn missing_runtime_is_reported_and_awaited(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    let spec = json!({"runtimeRef": {"kind": "TrainingRuntime", "name": "late"}});
    namespace.create("early", &spec).await?;
    let event = namespace
        .event("early", "there is no TrainingRuntime `late`")
        .await?;
    ensure!(
        event["type"] == "Warning" && event["reason"] == "TrainJobResourcesCreationFailed",
        "{event:#}"
    );
    ensure!(event["firstTimestamp"].is_string(), "{event:#}");
    let job = namespace
        .api(&namespace.jobs)
        .get("early")
        .await?
        .accepted()?;
    ensure!(conditions(&job).is_empty(), "{job:#}");
    // Suspending works all the same.
    namespace.patch("early", &json!({"suspend": true})).await?;
    namespace
        .until("early", "it is suspended", |job| {
            is(job, "Suspended", "True")
        })
        .await?;
    namespace.patch("early", &json!({"suspend": false})).await?;
    let mut late = runtime("late", &json!({"torch": {}}));
    late["kind"] = json!("TrainingRuntime");
    let runtimes = kind(Kind::TrainingRuntime)?;
    namespace
        .api(&runtimes)
        .create(&late, &Write::strict())
        .await?
        .accepted()?;
    namespace.until_complete("early").await?;
    Ok(())
}

async fn warning_is_reported_and_the_train_job_continues(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    let gone = json!({"replicatedJobs": [{"name": "gone", "template": {"spec": {"template": {"spec": {
        "nodeSelector": {"zone": "a"},
    }}}}}]});
    let patches = json!([{
        "manager": "kueue.x-k8s.io/manager",
        "trainingRuntimeSpec": {"template": {"spec": gone}},
    }]);
    let spec = json!({"runtimeRef": {"name": "torch"}, "runtimePatches": patches});
    namespace.create("warned", &spec).await?;
    let event = namespace.event("warned", "spec.runtimePatches[0]").await?;
    ensure!(event["reason"] == "TrainJobWarning", "{event:#}");
    namespace.until_complete("warned").await?;
    Ok(())
}

async fn foreign_job_set_is_left_unchanged(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let theirs = json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "taken"},
        "spec": {"suspend": true, "replicatedJobs": [
            {"name": "theirs", "template": {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}},
        ]},
    });
    let before = namespace
        .api(&namespace.job_sets)
        .create(&theirs, &Write::strict())
        .await?
        .accepted()?;
    namespace
        .create("taken", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    namespace
        .event("taken", "JobSet `taken` is not this TrainJob's")
        .await?;
    let after = namespace
        .api(&namespace.job_sets)
        .get("taken")
        .await?
        .accepted()?;
    ensure!(
        after["spec"] == before["spec"] && after["metadata"].get("ownerReferences").is_none(),
        "{after:#}"
    );
    namespace
        .api(&namespace.jobs)
        .delete("taken")
        .await?
        .accepted()?;
    namespace
        .api(&namespace.jobs)
        .until_all("the TrainJob is gone", <[Value]>::is_empty)
        .await?;
    let after = namespace.api(&namespace.job_sets).get("taken").await?;
    ensure!(after.status.is_success(), "{after:?}");
    Ok(())
}

async fn train_job_of_another_manager_is_left_alone(shared: &Shared) -> Result<()> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    let spec = json!({"runtimeRef": {"name": "torch"}, "managedBy": "kueue.x-k8s.io/multikueue"});
    namespace.create("theirs", &spec).await?;
    namespace
        .create("ours", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    namespace.until_complete("ours").await?;
    let theirs = namespace
        .api(&namespace.jobs)
        .get("theirs")
        .await?
        .accepted()?;
    ensure!(theirs.get("status").is_none(), "{theirs:#}");
    ensure!(
        namespace
            .api(&namespace.job_sets)
            .get("theirs")
            .await?
            .status
            .as_u16()
            == 404
    );
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Shared>> {
    vec![
        Test::new(
            "torch_plain_and_initializers_complete",
            torch_plain_and_initializers_complete,
        ),
        Test::new(
            "live_train_job_is_explained_from_its_snapshot",
            live_train_job_is_explained_from_its_snapshot,
        ),
        Test::new(
            "failed_train_job_stays_failed_after_its_job_set_is_deleted",
            failed_train_job_stays_failed_after_its_job_set_is_deleted,
        ),
        Test::new(
            "running_train_job_is_suspended_by_one_field_and_resumed",
            running_train_job_is_suspended_by_one_field_and_resumed,
        ),
        Test::new(
            "queued_train_job_accepts_changed_patches",
            queued_train_job_accepts_changed_patches,
        ),
        Test::new(
            "train_job_fails_at_its_deadline",
            train_job_fails_at_its_deadline,
        ),
        Test::new(
            "deletion_leaves_nothing_behind",
            deletion_leaves_nothing_behind,
        ),
        Test::new(
            "terminating_train_job_is_still_suspended_and_finished",
            terminating_train_job_is_still_suspended_and_finished,
        ),
        Test::new(
            "runtime_of_another_kind_is_not_supported",
            runtime_of_another_kind_is_not_supported,
        ),
        Test::new(
            "runtime_with_the_documented_api_group_runs",
            runtime_with_the_documented_api_group_runs,
        ),
        Test::new(
            "conversion_of_old_forms_is_bounded",
            conversion_of_old_forms_is_bounded,
        ),
        Test::new(
            "missing_runtime_is_reported_and_awaited",
            missing_runtime_is_reported_and_awaited,
        ),
        Test::new(
            "warning_is_reported_and_the_train_job_continues",
            warning_is_reported_and_the_train_job_continues,
        ),
        Test::new(
            "foreign_job_set_is_left_unchanged",
            foreign_job_set_is_left_unchanged,
        ),
        Test::new(
            "train_job_of_another_manager_is_left_alone",
            train_job_of_another_manager_is_left_alone,
        ),
    ]
}
