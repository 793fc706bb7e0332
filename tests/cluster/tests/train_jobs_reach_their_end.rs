//! The controller on a real cluster: TrainJobs become JobSets, run, wait, end and go, and their status says so at every step.
#![allow(clippy::indexing_slicing)]

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::process::ExitCode;
use trainyard_cluster::{
    Api, Cluster, ControlPlane, Fate, Resource, Shared, Test, Trainyard, Write, deploy, run,
};
use trainyard_schema::documents::Kind;

/// A cluster with the controller on it, which has the account and the rights of deploy/ and no others.
struct Controlled {
    cluster: Cluster,
    controller: Trainyard,
}

impl Shared for Controlled {
    fn start() -> Result<Self> {
        let cluster = Cluster::start()?;
        let controller = cluster.plane().block_on(async {
            let runtimes = kind(Kind::ClusterTrainingRuntime)?;
            for runtime in [
                runtime("torch", &json!({"torch": {}})),
                runtime("plain", &json!({})),
                with_initializers(),
            ] {
                let api = cluster.api(&runtimes, "");
                api.create(&runtime, &Write::strict()).await?.accepted()?;
            }
            let account = deploy(cluster.plane()).await?;
            Trainyard::start(cluster.plane(), &account, ["--leader-elect"]).await
        })?;
        Ok(Self {
            cluster,
            controller,
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.cluster.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.cluster.still_runs()?;
        self.controller.process().still_runs()
    }
}

fn kind(kind: Kind) -> Result<Resource> {
    Ok(Resource::defined_by(&kind.crd()?)?)
}

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
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": [step("node", "trainer", &json!([]))]}}},
    })
}

fn with_initializers() -> Value {
    let mounts = json!([{"name": "initializer", "mountPath": "/workspace"}]);
    let mut node = step("node", "trainer", &mounts);
    node["dependsOn"] = json!([{"name": "dataset-initializer", "status": "Complete"}]);
    json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "with-initializers"},
        "spec": {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": [
            step("dataset-initializer", "dataset-initializer", &mounts), node,
        ]}}},
    })
}

/// Where the objects of one test are.
struct Place<'a> {
    shared: &'a Controlled,
    namespace: String,
    jobs: Resource,
    job_sets: Resource,
    pods: Resource,
    config_maps: Resource,
    events: Resource,
}

impl<'a> Place<'a> {
    async fn new(shared: &'a Controlled) -> Result<Self> {
        Ok(Self {
            namespace: shared.cluster.new_namespace().await?,
            shared,
            jobs: kind(Kind::TrainJob)?,
            job_sets: Resource::jobsets(),
            pods: Resource::pods(),
            config_maps: Resource::namespaced("/api/v1", "configmaps"),
            events: Resource::namespaced("/api/v1", "events"),
        })
    }

    fn api(&'a self, resource: &'a Resource) -> Api<'a> {
        self.shared.cluster.api(resource, &self.namespace)
    }

    /// What becomes of all pods of this test from now on.
    fn fate(&self, fate: Fate) {
        let kubelet = self.shared.cluster.kubelet();
        kubelet.decide(&self.namespace, move |_| fate);
    }

    async fn create(&self, name: &str, spec: &Value) -> Result<Value> {
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": name}, "spec": spec,
        });
        Ok(self
            .api(&self.jobs)
            .create(&job, &Write::strict())
            .await?
            .accepted()?)
    }

    async fn patch(&self, name: &str, spec: &Value) -> Result<Value> {
        let patch = json!({"spec": spec});
        Ok(self
            .api(&self.jobs)
            .merge(name, &patch, &Write::strict())
            .await?
            .accepted()?)
    }

    async fn until(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
        self.api(&self.jobs).until(name, what, holds).await
    }

    async fn job_set(&self, name: &str) -> Result<Value> {
        let there = |object: &Value| object.is_object();
        self.api(&self.job_sets)
            .until(name, "there is a JobSet", there)
            .await
    }

    /// Waits until so many nodes of the job run.
    async fn until_active(&self, name: &str, nodes: i64) -> Result<Value> {
        self.until(name, "it runs", |job| {
            job["status"]["jobsStatus"].as_array().is_some_and(|jobs| {
                jobs.iter()
                    .any(|one| one["name"] == "node" && one["ready"] == nodes)
            })
        })
        .await
    }

    async fn event(&self, name: &str, part: &str) -> Result<Value> {
        let about = |event: &&Value| {
            event["involvedObject"]["name"] == name
                && event["message"]
                    .as_str()
                    .is_some_and(|text| text.contains(part))
        };
        let events = self.api(&self.events);
        let found = events
            .until_all(&format!("an Event of {name} that says {part:?}"), |all| {
                all.iter().find(about).is_some()
            })
            .await?;
        found.iter().find(about).cloned().context("it is gone")
    }
}

/// Type, status and reason of each condition.
fn conditions(job: &Value) -> Vec<[String; 3]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = job["status"]["conditions"].as_array();
    let three = |c: &Value| [text(&c["type"]), text(&c["status"]), text(&c["reason"])];
    conditions
        .map(|all| all.iter().map(three).collect())
        .unwrap_or_default()
}

fn is(job: &Value, kind: &str, status: &str) -> bool {
    conditions(job)
        .iter()
        .any(|c| c[0] == kind && c[1] == status)
}

async fn torch_plain_and_initializers_complete(shared: &Controlled) -> Result<()> {
    let place = Place::new(shared).await?;
    place.fate(Fate::Hold);
    let two = json!({"numNodes": 2, "image": "example.com/mine", "env": [{"name": "MINE", "value": "1"}]});
    place
        .create(
            "torch",
            &json!({"runtimeRef": {"name": "torch"}, "trainer": two}),
        )
        .await?;
    place
        .create("plain", &json!({"runtimeRef": {"name": "plain"}}))
        .await?;
    let initializer = json!({"dataset": {"storageUri": "hf://owner/data"}});
    place
        .create(
            "fetched",
            &json!({"runtimeRef": {"name": "with-initializers"}, "initializer": initializer}),
        )
        .await?;
    let job = place.until_active("torch", 1).await?;
    ensure!(conditions(&job).is_empty(), "{job:#}");
    let job_set = place.job_set("torch").await?;
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
    place
        .api(&place.pods)
        .until_all("four pods run", four_run)
        .await?;
    place.fate(Fate::Succeed);
    for name in ["torch", "plain", "fetched"] {
        let job = place
            .until(name, "it is complete", |job| is(job, "Complete", "True"))
            .await?;
        ensure!(conditions(&job).len() == 1, "{job:#}");
        let jobs = job["status"]["jobsStatus"].as_array();
        let done = jobs.is_some_and(|jobs| jobs.iter().all(|one| one["succeeded"] == 1));
        ensure!(done, "{job:#}");
    }
    let snapshot = place
        .api(&place.config_maps)
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

async fn a_live_job_is_explained_from_its_snapshot(shared: &Controlled) -> Result<()> {
    let place = Place::new(shared).await?;
    place.fate(Fate::Hold);
    let spec = json!({"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 2}});
    place.create("asked", &spec).await?;
    place.until_active("asked", 1).await?;
    let explain = |arguments: &[&str]| {
        let mut command = std::process::Command::new(Trainyard::program()?);
        command.arg("explain").args(arguments);
        command.args(["--namespace", &place.namespace, "--kubeconfig"]);
        anyhow::Ok(command.arg(shared.plane().kubeconfig()).output()?)
    };
    let field =
        "spec.replicatedJobs[node].template.spec.template.spec.containers[node].env[PET_NNODES]";
    let output = explain(&["trainjob/asked", field])?;
    let (text, said) = (
        String::from_utf8(output.stdout)?,
        String::from_utf8(output.stderr)?,
    );
    ensure!(output.status.success() && said.is_empty(), "{said}");
    ensure!(
        text.contains("torch") && text.contains("PET_NNODES"),
        "{text}"
    );
    let output = explain(&["trainjob/nobody"])?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(
        !output.status.success() && said.contains("there is no TrainJob `nobody`"),
        "{said}"
    );
    Ok(())
}

async fn a_failed_job_stays_failed_when_its_job_set_is_gone(shared: &Controlled) -> Result<()> {
    let place = Place::new(shared).await?;
    place.fate(Fate::Fail(3));
    place
        .create("fails", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    let failed = place
        .until("fails", "it failed", |job| is(job, "Failed", "True"))
        .await?;
    let job_set = place.job_set("fails").await?;
    let condition = |object: &Value| {
        let all = object["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        all.into_iter()
            .find(|c| c["type"] == "Failed" && c["status"] == "True")
    };
    let (ours, theirs) = (condition(&failed), condition(&job_set));
    for field in ["reason", "message", "lastTransitionTime"] {
        ensure!(
            ours.as_ref().map(|c| &c[field]) == theirs.as_ref().map(|c| &c[field]),
            "{ours:?} {theirs:?}"
        );
    }
    place.fate(Fate::Succeed);
    place
        .api(&place.job_sets)
        .delete("fails")
        .await?
        .accepted()?;
    place
        .api(&place.pods)
        .until_all("its pods are gone", <[Value]>::is_empty)
        .await?;
    // Whatever would make it run again has happened by the time another TrainJob is complete.
    place
        .create("other", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    place
        .until("other", "it is complete", |job| is(job, "Complete", "True"))
        .await?;
    let after = place.api(&place.jobs).get("fails").await?.accepted()?;
    ensure!(
        after["status"]["conditions"] == failed["status"]["conditions"],
        "{after:#}"
    );
    let gone = place.api(&place.job_sets).get("fails").await?;
    ensure!(gone.status.as_u16() == 404, "{gone:?}");
    Ok(())
}

async fn a_running_job_is_suspended_by_one_field_and_resumed(shared: &Controlled) -> Result<()> {
    let place = Place::new(shared).await?;
    place.fate(Fate::Hold);
    place
        .create("waits", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    place.until_active("waits", 1).await?;
    let before = place.job_set("waits").await?;
    place.patch("waits", &json!({"suspend": true})).await?;
    let suspended = place
        .until("waits", "it is suspended", |job| {
            is(job, "Suspended", "True")
        })
        .await?;
    ensure!(
        conditions(&suspended) == [["Suspended", "True", "Suspended"].map(str::to_owned)],
        "{suspended:#}"
    );
    let after = place
        .api(&place.job_sets)
        .until("waits", "it is suspended", |set| {
            set["spec"]["suspend"] == true
        })
        .await?;
    let mut spec = after["spec"].clone();
    spec["suspend"] = before["spec"]["suspend"].clone();
    ensure!(spec == before["spec"], "{before:#} {after:#}");
    place
        .api(&place.pods)
        .until_all("its pods are gone", <[Value]>::is_empty)
        .await?;
    // What JobSet lets change of a suspended one that has run reaches its pods when it goes on.
    let patches = json!([{"manager": "example.com/queue", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
        {"name": "node", "template": {"spec": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}}},
    ]}}}}]);
    place
        .patch("waits", &json!({"runtimePatches": patches}))
        .await?;
    place.patch("waits", &json!({"suspend": false})).await?;
    let resumed = place
        .until("waits", "it is resumed", |job| {
            is(job, "Suspended", "False")
        })
        .await?;
    ensure!(
        conditions(&resumed) == [["Suspended", "False", "Resumed"].map(str::to_owned)],
        "{resumed:#}"
    );
    place.until_active("waits", 1).await?;
    let pods = place.api(&place.pods).items().await?;
    let tolerated = |pod: &Value| {
        let all = pod["spec"]["tolerations"].as_array();
        all.is_some_and(|all| {
            all.iter()
                .any(|one| one["operator"] == "Exists" && one.get("key").is_none())
        })
    };
    ensure!(pods.iter().all(tolerated), "{pods:#?}");
    place.fate(Fate::Succeed);
    let done = place
        .until("waits", "it is complete", |job| is(job, "Complete", "True"))
        .await?;
    ensure!(is(&done, "Suspended", "False"), "{done:#}");
    Ok(())
}

async fn a_job_that_never_ran_takes_changed_patches(shared: &Controlled) -> Result<()> {
    let place = Place::new(shared).await?;
    let patches = |zone: &str, tolerations: Value| {
        json!([{"manager": "example.com/queue", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
            {"name": "node", "template": {"spec": {"template": {"spec": {
                "nodeSelector": {"zone": zone}, "tolerations": tolerations,
            }}}}},
        ]}}}}])
    };
    let spec = json!({"runtimeRef": {"name": "torch"}, "suspend": true, "runtimePatches": patches("a", json!([]))});
    place.create("queued", &spec).await?;
    let zone = |set: &Value| {
        set.pointer("/spec/replicatedJobs/0/template/spec/template/spec/nodeSelector/zone")
            .cloned()
    };
    place
        .api(&place.job_sets)
        .until("queued", "it is there", |set| zone(set) == Some(json!("a")))
        .await?;
    place
        .until("queued", "it is suspended", |job| {
            is(job, "Suspended", "True")
        })
        .await?;
    place
        .patch(
            "queued",
            &json!({"runtimePatches": patches("b", json!([{"operator": "Exists"}]))}),
        )
        .await?;
    let changed = place
        .api(&place.job_sets)
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
    place
        .patch(
            "queued",
            &json!({"suspend": false, "runtimePatches": patches("c", json!([]))}),
        )
        .await?;
    let resumed = place
        .api(&place.job_sets)
        .until("queued", "it goes on", |set| {
            set["spec"]["suspend"] == false
        })
        .await?;
    ensure!(zone(&resumed) == Some(json!("c")), "{resumed:#}");
    let tolerations = &resumed["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        ["tolerations"];
    ensure!(
        tolerations.as_array().is_none_or(Vec::is_empty),
        "{resumed:#}"
    );
    Ok(())
}

async fn a_job_ends_at_its_deadline(shared: &Controlled) -> Result<()> {
    let place = Place::new(shared).await?;
    place.fate(Fate::Hold);
    place
        .create(
            "slow",
            &json!({"runtimeRef": {"name": "plain"}, "activeDeadlineSeconds": 2}),
        )
        .await?;
    let job = place
        .until("slow", "it failed", |job| is(job, "Failed", "True"))
        .await?;
    ensure!(
        conditions(&job) == [["Failed", "True", "DeadlineExceeded"].map(str::to_owned)],
        "{job:#}"
    );
    place
        .api(&place.job_sets)
        .until_all("its JobSet is gone", <[Value]>::is_empty)
        .await?;
    place
        .api(&place.pods)
        .until_all("its pods are gone", <[Value]>::is_empty)
        .await?;
    let after = place.api(&place.jobs).get("slow").await?.accepted()?;
    ensure!(
        after["status"]["conditions"] == job["status"]["conditions"],
        "{after:#}"
    );
    Ok(())
}

async fn deletion_leaves_nothing_behind(shared: &Controlled) -> Result<()> {
    let place = Place::new(shared).await?;
    place.fate(Fate::Hold);
    place
        .create("gone", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    place.until_active("gone", 1).await?;
    place.api(&place.jobs).delete("gone").await?.accepted()?;
    place
        .api(&place.jobs)
        .until_all("the TrainJob is gone", <[Value]>::is_empty)
        .await?;
    place
        .api(&place.job_sets)
        .until_all("its JobSet is gone", <[Value]>::is_empty)
        .await?;
    place
        .api(&place.pods)
        .until_all("its pods are gone", <[Value]>::is_empty)
        .await?;
    let snapshot = "its snapshot is gone, and only the cluster's own certificates are left";
    place
        .api(&place.config_maps)
        .until_all(snapshot, |maps| {
            maps.iter()
                .all(|map| map["metadata"]["name"] == "kube-root-ca.crt")
        })
        .await?;
    Ok(())
}

async fn a_missing_runtime_is_told_and_waited_for(shared: &Controlled) -> Result<()> {
    let place = Place::new(shared).await?;
    place.fate(Fate::Succeed);
    let spec = json!({"runtimeRef": {"kind": "TrainingRuntime", "name": "late"}});
    place.create("early", &spec).await?;
    let event = place
        .event("early", "there is no TrainingRuntime `late`")
        .await?;
    ensure!(
        event["type"] == "Warning" && event["reason"] == "TrainJobResourcesCreationFailed",
        "{event:#}"
    );
    ensure!(event["firstTimestamp"].is_string(), "{event:#}");
    let job = place.api(&place.jobs).get("early").await?.accepted()?;
    ensure!(conditions(&job).is_empty(), "{job:#}");
    // Suspending works all the same.
    place.patch("early", &json!({"suspend": true})).await?;
    place
        .until("early", "it is suspended", |job| {
            is(job, "Suspended", "True")
        })
        .await?;
    place.patch("early", &json!({"suspend": false})).await?;
    let mut late = runtime("late", &json!({"torch": {}}));
    late["kind"] = json!("TrainingRuntime");
    let runtimes = kind(Kind::TrainingRuntime)?;
    place
        .api(&runtimes)
        .create(&late, &Write::strict())
        .await?
        .accepted()?;
    place
        .until("early", "it is complete", |job| is(job, "Complete", "True"))
        .await?;
    Ok(())
}

async fn a_warning_is_told_and_the_job_goes_on(shared: &Controlled) -> Result<()> {
    let place = Place::new(shared).await?;
    place.fate(Fate::Succeed);
    let gone = json!({"replicatedJobs": [{"name": "gone", "template": {"spec": {"template": {"spec": {
        "nodeSelector": {"zone": "a"},
    }}}}}]});
    let patches = json!([{
        "manager": "kueue.x-k8s.io/manager",
        "trainingRuntimeSpec": {"template": {"spec": gone}},
    }]);
    let spec = json!({"runtimeRef": {"name": "torch"}, "runtimePatches": patches});
    place.create("warned", &spec).await?;
    let event = place.event("warned", "spec.runtimePatches[0]").await?;
    ensure!(event["reason"] == "TrainJobWarning", "{event:#}");
    place
        .until("warned", "it is complete", |job| {
            is(job, "Complete", "True")
        })
        .await?;
    Ok(())
}

async fn a_job_set_of_somebody_else_is_not_touched(shared: &Controlled) -> Result<()> {
    let place = Place::new(shared).await?;
    place.fate(Fate::Hold);
    let theirs = json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "taken"},
        "spec": {"suspend": true, "replicatedJobs": [
            {"name": "theirs", "template": {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}},
        ]},
    });
    let before = place
        .api(&place.job_sets)
        .create(&theirs, &Write::strict())
        .await?
        .accepted()?;
    place
        .create("taken", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    place
        .event("taken", "JobSet `taken` is not this TrainJob's")
        .await?;
    let after = place.api(&place.job_sets).get("taken").await?.accepted()?;
    ensure!(
        after["spec"] == before["spec"] && after["metadata"].get("ownerReferences").is_none(),
        "{after:#}"
    );
    place.api(&place.jobs).delete("taken").await?.accepted()?;
    place
        .api(&place.jobs)
        .until_all("the TrainJob is gone", <[Value]>::is_empty)
        .await?;
    let after = place.api(&place.job_sets).get("taken").await?;
    ensure!(after.status.is_success(), "{after:?}");
    Ok(())
}

async fn a_job_of_another_manager_is_left_alone(shared: &Controlled) -> Result<()> {
    let place = Place::new(shared).await?;
    place.fate(Fate::Succeed);
    let spec = json!({"runtimeRef": {"name": "torch"}, "managedBy": "kueue.x-k8s.io/multikueue"});
    place.create("theirs", &spec).await?;
    place
        .create("ours", &json!({"runtimeRef": {"name": "torch"}}))
        .await?;
    place
        .until("ours", "it is complete", |job| is(job, "Complete", "True"))
        .await?;
    let theirs = place.api(&place.jobs).get("theirs").await?.accepted()?;
    ensure!(theirs.get("status").is_none(), "{theirs:#}");
    ensure!(
        place
            .api(&place.job_sets)
            .get("theirs")
            .await?
            .status
            .as_u16()
            == 404
    );
    Ok(())
}

fn main() -> ExitCode {
    run::<Controlled>(vec![
        Test::new(
            "torch_plain_and_initializers_complete",
            torch_plain_and_initializers_complete,
        ),
        Test::new(
            "a_live_job_is_explained_from_its_snapshot",
            a_live_job_is_explained_from_its_snapshot,
        ),
        Test::new(
            "a_failed_job_stays_failed_when_its_job_set_is_gone",
            a_failed_job_stays_failed_when_its_job_set_is_gone,
        ),
        Test::new(
            "a_running_job_is_suspended_by_one_field_and_resumed",
            a_running_job_is_suspended_by_one_field_and_resumed,
        ),
        Test::new(
            "a_job_that_never_ran_takes_changed_patches",
            a_job_that_never_ran_takes_changed_patches,
        ),
        Test::new("a_job_ends_at_its_deadline", a_job_ends_at_its_deadline),
        Test::new(
            "deletion_leaves_nothing_behind",
            deletion_leaves_nothing_behind,
        ),
        Test::new(
            "a_missing_runtime_is_told_and_waited_for",
            a_missing_runtime_is_told_and_waited_for,
        ),
        Test::new(
            "a_warning_is_told_and_the_job_goes_on",
            a_warning_is_told_and_the_job_goes_on,
        ),
        Test::new(
            "a_job_set_of_somebody_else_is_not_touched",
            a_job_set_of_somebody_else_is_not_touched,
        ),
        Test::new(
            "a_job_of_another_manager_is_left_alone",
            a_job_of_another_manager_is_left_alone,
        ),
    ])
}
