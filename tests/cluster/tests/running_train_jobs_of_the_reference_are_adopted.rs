//! TrainJobs that the reference runs are left alone when Trainyard takes over: their JobSets, pods, scripts, keys and PodGroups stay
//! unchanged until they complete. After a suspension, only the placement of their pods becomes that of Trainyard, such as a gang without
//! initializers, which would wait for members that do not exist yet. The same holds for TrainJobs that the reference created and never started.
//!
//! The change-over is rehearsed before it: `trainyard diff` and the shadow mode write nothing, and say in which fields the JobSets of
//! Trainyard then differ.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{
    ControlPlane, Fate, Reference, ReferenceLimits, Resource, Shared as _, Test, Trainyard, Write,
    eventually,
};
use trainyard_divergences::{
    difference::{Answer, Difference, differences},
    live::written,
};

use crate::common::{
    GANG, Handover, Namespace, Objects, counts, hold_after_initializers, is, is_running,
    is_suspended, keys, roles, runtimes,
};

/// TrainJobs of the reference, each named after its runtime.
const JOBS: [&str; 6] = [
    "own-launcher",
    "launcher-node",
    "flux",
    "jax-distributed",
    "xgboost-distributed",
    "coscheduling",
];

/// Those with a Secret, with the suffix of its name and its keys.
const SECRETS: [(&str, &str, &[&str]); 3] = [
    (
        "own-launcher",
        "mpi-ssh-auth",
        &["ssh-privatekey", "ssh-publickey"],
    ),
    (
        "launcher-node",
        "mpi-ssh-auth",
        &["ssh-privatekey", "ssh-publickey"],
    ),
    ("flux", "flux-curve", &["curve.cert"]),
];

/// How many pods are members of the gang: the initializer and two nodes, or the nodes.
const REFERENCES_GANG: u32 = 3;
const TRAINYARDS_GANG: u32 = 2;

/// TrainJobs that the reference created, in their own namespace.
struct Adopted<'a> {
    namespace: Namespace<'a>,
    /// All objects after the reference stopped.
    before: Objects,
    /// The PodGroup, which is not among them.
    group: Value,
    /// What the rehearsal said while the reference was running.
    rehearsed: Value,
    trainyard: Trainyard,
}

impl<'a> Adopted<'a> {
    /// Lets the reference create the TrainJobs, waits until they run or are suspended, and replaces the reference by Trainyard.
    async fn new(shared: &'a Handover, suspend: bool) -> Result<Self> {
        let namespace = Namespace::new(&shared.cluster).await?;
        namespace.decide_pods(hold_after_initializers);
        let reference = Reference::start(shared.plane(), ReferenceLimits::SHIPPED).await?;
        for name in JOBS {
            let trainer = json!({"numNodes": 2, "command": ["mpirun", "lmp"]});
            let spec =
                json!({"runtimeRef": {"name": name}, "trainer": trainer, "suspend": suspend});
            namespace.create(name, &spec).await?;
        }
        for name in JOBS {
            if suspend {
                // A launcher that depends on the nodes has no Job yet.
                let waits = |job: &Value| is(job, "Suspended", "True") && !counts(job).is_empty();
                namespace.until(name, "it waits", waits).await?;
            } else {
                namespace.until(name, "it runs", is_running).await?;
            }
        }
        let before = namespace.settled().await?;
        are_of_the_reference(&before)?;
        let group = group_of(&namespace).await?;
        let rehearsed = rehearse(shared.plane(), &namespace.name).await?;
        shadow(shared, &namespace).await?;
        same(&before, &namespace.objects().await?).context("the rehearsal")?;
        reference.process().kill()?;
        let trainyard =
            Trainyard::start(shared.plane(), &shared.kubeconfig, ["--leader-elect=false"]).await?;
        trainyard.until_idle().await?;
        Ok(Self {
            namespace,
            before,
            group,
            rehearsed,
            trainyard,
        })
    }

    /// Returns the current objects.
    async fn objects(&self) -> Result<Objects> {
        self.namespace.objects().await
    }

    /// Triggers another reconcile of each TrainJob and each JobSet by an irrelevant change.
    async fn touch(&self) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {"example.com/touched": "yes"}}});
        let reconciles = || {
            self.trainyard
                .metric("controller_runtime_reconcile_total", "")
        };
        let before = reconciles().await?;
        for name in JOBS {
            for resource in [&self.namespace.jobs, &self.namespace.job_sets] {
                let api = self.namespace.api(resource);
                api.merge(name, &patch, &Write::strict())
                    .await?
                    .accepted()?;
            }
        }
        self.trainyard.until_idle().await?;
        let count = reconciles().await? - before;
        ensure!(count >= JOBS.len() as f64, "{count} reconciles");
        Ok(())
    }

    /// Suspends or resumes all TrainJobs, and waits until the condition holds for each.
    async fn set_suspend(
        &self,
        suspend: bool,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Result<()> {
        for name in JOBS {
            self.namespace
                .patch(name, &json!({"suspend": suspend}))
                .await?;
        }
        for name in JOBS {
            self.namespace.until(name, what, &holds).await?;
        }
        Ok(())
    }

    async fn suspend(&self) -> Result<()> {
        self.set_suspend(true, "it waits", is_suspended).await?;
        let pods = self.namespace.api(&self.namespace.pods);
        // Initializers have ended.
        let has_ended = |pod: &Value| pod["status"]["phase"] == "Succeeded";
        pods.until_all("no pod runs", |pods| pods.iter().all(has_ended))
            .await?;
        Ok(())
    }

    async fn resume(&self) -> Result<()> {
        let goes_on = |job: &Value| is_running(job) && is(job, "Suspended", "False");
        self.set_suspend(false, "it goes on", goes_on).await
    }

    /// Deletes the JobSets, and waits until they are recreated.
    async fn delete_job_sets(&self) -> Result<()> {
        for name in JOBS {
            self.namespace.recreate_job_set(name).await?;
        }
        Ok(())
    }

    /// Checks that all objects of these kinds are unchanged, including their versions, except for snapshots.
    async fn are_unchanged(&self, kinds: &[&str]) -> Result<()> {
        let now = self.objects().await?;
        let of_kind = |objects: &Objects| -> Objects {
            let all = objects.iter().filter(|(key, _)| {
                let kind = key.split(' ').next().unwrap_or_default();
                kinds.contains(&kind) && !key.ends_with("-runtime-snapshot")
            });
            all.map(|(key, object)| (key.clone(), object.clone()))
                .collect()
        };
        let (before, now) = (of_kind(&self.before), of_kind(&now));
        ensure!(!before.is_empty());
        same(&before, &now)
    }

    /// Lets the TrainJobs complete, deletes them, and waits until none of their objects is left.
    async fn end(&self) -> Result<()> {
        // The SSH servers of MPI's nodes do not exit.
        self.namespace.decide_pods(|pod| {
            let is_mpi = ["own-launcher", "launcher-node"].contains(&runtimes::job_set(pod));
            let ends = !is_mpi || runtimes::replicated_job(pod) == "launcher";
            if ends { Fate::Succeed } else { Fate::Hold }
        });
        for name in JOBS {
            self.namespace.until_complete(name).await?;
        }
        self.namespace.delete_all(JOBS).await
    }

    /// Returns the UID of the gang's PodGroup, and the number of its members.
    async fn gang(&self) -> Result<(Value, Value)> {
        let group = group_of(&self.namespace).await?;
        let (metadata, spec) = (&group["metadata"], &group["spec"]);
        Ok((metadata["uid"].clone(), spec["minMember"].clone()))
    }

    /// Checks that `trainyard explain` says for a TrainJob that the reference rendered it, and what to do.
    fn is_explained(&self, plane: &ControlPlane, name: &str) -> Result<()> {
        let namespace = &self.namespace.name;
        let mut explain = Command::new(Trainyard::program()?);
        explain.args(["explain", &format!("trainjob/{name}")]);
        explain.args(["--namespace", namespace, "--kubeconfig"]);
        let output = explain.arg(plane.kubeconfig()).output()?;
        let warnings = String::from_utf8(output.stderr)?;
        ensure!(output.status.success(), "{warnings}");
        let advice = format!(
            "TrainJob {namespace}/{name} was rendered by the Kubeflow Trainer, so this explains what Trainyard would render; \
             to have Trainyard render it, suspend it and delete its JobSet"
        );
        ensure!(warnings.contains(&advice), "{warnings}");
        Ok(())
    }

    /// Returns the messages of Trainyard's Events, without the advice about these runtimes.
    async fn reported(&self) -> Result<Vec<String>> {
        let events = self.namespace.api(&self.namespace.events).items().await?;
        let ours = events
            .iter()
            .filter(|event| event["source"]["component"] == "trainjob_controller");
        Ok(ours
            .filter_map(|event| event["message"].as_str())
            .filter(|message| !ADVICE.iter().any(|advice| message.contains(advice)))
            .map(str::to_owned)
            .collect())
    }
}

/// What the reference's runtimes lack.
const ADVICE: [&str; 2] = [
    "schedulerName: is not set, so it is `default-scheduler`",
    "volumeMounts: has no `/dev/shm`",
];

/// Returns the gang's PodGroup.
async fn group_of(namespace: &Namespace<'_>) -> Result<Value> {
    let groups = GANG.resource();
    namespace
        .api(&groups)
        .get(GANG.policy())
        .await?
        .accepted()
        .map_err(Into::into)
}

/// Returns the report of `trainyard diff` for a namespace in which the reference works. Everything that differs has a row.
async fn rehearse(plane: &ControlPlane, namespace: &str) -> Result<Value> {
    let mut diff = Command::new(Trainyard::program()?);
    diff.args([
        "diff",
        "--namespace",
        namespace,
        "--output",
        "json",
        "--kubeconfig",
    ]);
    diff.arg(plane.kubeconfig());
    let output = tokio::task::spawn_blocking(move || diff.output()).await??;
    let error = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).context(error.into_owned())?;
    ensure!(
        output.status.code() == Some(1),
        "{:?}: {report:#}",
        output.status
    );
    ensure!(report["notRead"] == json!([]), "{:#}", report["notRead"]);
    for name in JOBS {
        let job = rehearsed_job(&report, name)?;
        ensure!(job["comparedWith"] == "jobSet", "{job:#}");
    }
    Ok(report)
}

fn rehearsed_job<'r>(report: &'r Value, name: &str) -> Result<&'r Value> {
    let mut objects = report["objects"].as_array().into_iter().flatten();
    let job = objects.find(|object| object["kind"] == "TrainJob" && object["name"] == name);
    job.with_context(|| format!("{name} is not in {report:#}"))
}

/// Runs the shadow mode beside the reference, with the role that is printed for it. It finds that every TrainJob differs as listed.
async fn shadow(shared: &Handover, namespace: &Namespace<'_>) -> Result<()> {
    let plane = shared.plane();
    let kubeconfig = shadow_account(plane).await?;
    let trainyard = Trainyard::start(plane, &kubeconfig, ["--shadow"]).await?;
    let count = async |outcome: &str| {
        let label = format!("outcome=\"{outcome}\"");
        trainyard
            .metric("trainyard_shadow_train_jobs", &label)
            .await
    };
    let all = JOBS.len() as f64;
    let listed = eventually("the shadow has compared all", async || {
        let (listed, same) = (count("listed").await?, count("same").await?);
        Ok((listed + same >= all).then_some(()))
    });
    listed
        .await
        .with_context(|| format!("in {}", namespace.name))?;
    for outcome in ["unlisted", "refused", "not-compared"] {
        ensure!(count(outcome).await? == 0.0, "some are {outcome}");
    }
    trainyard.stop().await.map(drop)
}

/// Returns the kubeconfig of an account with the role of the shadow mode.
async fn shadow_account(plane: &ControlPlane) -> Result<PathBuf> {
    const NAME: &str = "trainyard-shadow";
    let role = roles::printed(&["--shadow".into()])?;
    let [role] = &role[..] else {
        anyhow::bail!("{role:#?}");
    };
    let root = "/apis/rbac.authorization.k8s.io/v1";
    let accounts = Resource::namespaced("/api/v1", "serviceaccounts");
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME}});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": NAME},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": NAME}],
    });
    let (cluster_roles, bindings) = (
        Resource::cluster_wide(root, "clusterroles"),
        Resource::cluster_wide(root, "clusterrolebindings"),
    );
    for (resource, namespace, object) in [
        (&cluster_roles, "", role),
        (&accounts, "default", &account),
        (&bindings, "", &binding),
    ] {
        let api = plane.api(resource, namespace);
        // An earlier test may have created it.
        let answer = api.create(object, &Write::strict()).await?;
        ensure!([201, 409].contains(&answer.status.as_u16()), "{answer:?}");
    }
    plane.kubeconfig_for_service_account("default", NAME).await
}

/// Returns the fields of a TrainJob that the rehearsal said would differ, each with the object.
fn foretold(report: &Value, name: &str) -> Result<BTreeSet<String>> {
    let findings = rehearsed_job(report, name)?["findings"].as_array();
    let differing = findings
        .into_iter()
        .flatten()
        .filter(|finding| finding["effect"] == "differs");
    let text =
        |finding: &Value, field: &str| finding[field].as_str().unwrap_or_default().to_owned();
    Ok(differing
        .map(|finding| format!("{}: {}", text(finding, "object"), text(finding, "field")))
        .collect())
}

/// Returns the fields that have changed in the objects of a TrainJob, each with the object.
fn happened(before: &Objects, now: &Objects, name: &str) -> BTreeSet<String> {
    let answer = |objects: &Objects| {
        let is_compared = |key: &str, object: &Value| {
            let mut owners = object["metadata"]["ownerReferences"]
                .as_array()
                .into_iter()
                .flatten();
            let kind = key.split(' ').next().unwrap_or_default();
            ["JobSet", "ConfigMap", "PodGroup"].contains(&kind)
                && !key.ends_with("-runtime-snapshot")
                && owners.any(|owner| owner["kind"] == "TrainJob" && owner["name"] == name)
        };
        let objects = objects
            .iter()
            .filter(|(key, object)| is_compared(key, object));
        let with_kind = |(key, object): (&String, &Value)| {
            let mut object = object.clone();
            // The items of a list do not have their kind.
            object["kind"] = key.split(' ').next().unwrap_or_default().into();
            object["apiVersion"] = Value::Null;
            written(&object)
        };
        Answer {
            objects: objects.map(with_kind).collect(),
            ..Answer::default()
        }
    };
    let changed = differences(&answer(now), &[answer(before)]).into_iter();
    let field = |difference: Difference| match difference {
        Difference::Field { object, path, .. } => format!("{object}: {path}"),
        other => other.to_string(),
    };
    changed.map(field).collect()
}

fn same(before: &Objects, now: &Objects) -> Result<()> {
    let keys = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
    ensure!(
        keys(before) == keys(now),
        "{:?} became {:?}",
        keys(before),
        keys(now)
    );
    for (key, was) in before {
        let is = &now[key];
        ensure!(was == is, "{key} was {was:#} and is {is:#}");
    }
    Ok(())
}

/// Checks that the reference created the objects, with a Secret for each TrainJob.
fn are_of_the_reference(objects: &Objects) -> Result<()> {
    for (name, suffix, held) in SECRETS {
        let secret = objects.get(&format!("Secret {name}-{suffix}"));
        let secret = secret.with_context(|| format!("{name} has no Secret"))?;
        for key in held {
            ensure!(!keys::text(secret, key)?.is_empty(), "{secret:#}");
        }
        let data = secret["data"].as_object().context("no data")?;
        ensure!(data.len() == held.len(), "{:?}", data.keys());
    }
    for name in JOBS {
        let snapshot = &objects[&format!("ConfigMap {name}-runtime-snapshot")]["data"];
        let snapshot = snapshot.as_object().context("no snapshot")?;
        ensure!(snapshot.keys().eq(["runtime"]), "{:?}", snapshot.keys());
        let job_set = &objects[&format!("JobSet {name}")]["metadata"];
        let annotations = job_set["annotations"].to_string();
        ensure!(!annotations.contains("trainyard.dev"), "{annotations}");
    }
    let scripts = objects["ConfigMap flux-flux-entrypoint"]["data"].as_object();
    let scripts = scripts.context("no scripts")?;
    ensure!(
        scripts.keys().eq(["entrypoint.sh", "init.sh"]),
        "{:?}",
        scripts.keys()
    );
    Ok(())
}

/// Returns the UID of a JobSet, and its spec without the placement of the pods, which follows Trainyard: the labels of a gang, and the
/// architecture of Flux's default image.
fn run_by(objects: &Objects, name: &str) -> Value {
    let job_set = &objects[&format!("JobSet {name}")];
    let mut spec = job_set["spec"].clone();
    for job in spec["replicatedJobs"].as_array_mut().into_iter().flatten() {
        let pods = &mut job["template"]["spec"]["template"];
        pods["metadata"] = Value::Null;
        if let Some(spec) = pods["spec"].as_object_mut() {
            spec.remove("nodeSelector");
        }
    }
    json!({
        "uid": job_set["metadata"]["uid"], "replicatedJobs": spec["replicatedJobs"],
        "network": spec["network"], "successPolicy": spec["successPolicy"],
    })
}

/// Returns the replicated jobs whose pods have the label of the gang.
fn in_gang(objects: &Objects) -> Vec<&str> {
    let spec = &objects[&format!("JobSet {}", GANG.policy())]["spec"];
    let jobs = spec["replicatedJobs"].as_array().into_iter().flatten();
    let has_label = |job: &&Value| {
        let metadata = &job["template"]["spec"]["template"]["metadata"];
        metadata["labels"]["scheduling.x-k8s.io/pod-group"].is_string()
    };
    jobs.filter(has_label)
        .filter_map(|job| job["name"].as_str())
        .collect()
}

async fn running_train_jobs_are_left_alone(shared: &Handover) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let adopted = Adopted::new(shared, false).await?;
    let after = adopted.objects().await?;
    same(&adopted.before, &after)?;
    let gang = adopted.gang().await?;
    ensure!(gang.1 == REFERENCES_GANG, "{gang:?}");
    let before = in_gang(&adopted.before);
    ensure!(before.len() == 2, "{before:?}");
    adopted.touch().await?;
    ensure!(adopted.gang().await? == gang);
    adopted
        .are_unchanged(&["Job", "Pod", "ConfigMap", "Secret", "Service"])
        .await?;
    let touched = adopted.objects().await?;
    for name in JOBS {
        ensure!(run_by(&touched, name) == run_by(&adopted.before, name));
        let (was, is) = (
            &after[&format!("TrainJob {name}")],
            &touched[&format!("TrainJob {name}")],
        );
        ensure!(was["status"] == is["status"], "{is:#}");
        // Its snapshot is also as the reference created it.
        let snapshot = format!("ConfigMap {name}-runtime-snapshot");
        ensure!(after[&snapshot] == touched[&snapshot], "{snapshot}");
    }
    let reported = adopted.reported().await?;
    ensure!(reported.is_empty(), "{reported:#?}");
    adopted.is_explained(shared.plane(), "jax-distributed")?;
    adopted.end().await
}

async fn suspended_train_job_resumes_with_its_keys(shared: &Handover) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let adopted = Adopted::new(shared, false).await?;
    let (uid, _) = adopted.gang().await?;
    for _ in 0..2 {
        adopted.suspend().await?;
        adopted.are_unchanged(&["ConfigMap", "Secret"]).await?;
        adopted.resume().await?;
        adopted.are_unchanged(&["ConfigMap", "Secret"]).await?;
        ensure!(adopted.gang().await? == (uid.clone(), TRAINYARDS_GANG.into()));
    }
    let now = adopted.objects().await?;
    ensure!(in_gang(&now) == ["node"], "{:?}", in_gang(&now));
    for name in JOBS {
        ensure!(
            run_by(&now, name) == run_by(&adopted.before, name),
            "{name}"
        );
        // Only the mark in the snapshot is Trainyard's.
        let snapshot = format!("ConfigMap {name}-runtime-snapshot");
        let (was, is) = (&adopted.before[&snapshot], &now[&snapshot]);
        ensure!(was["data"] == is["data"] && was["metadata"]["uid"] == is["metadata"]["uid"]);
        let mark = &is["metadata"]["annotations"]["trainyard.dev/started"];
        ensure!(*mark == "true" && is["immutable"] == true, "{is:#}");
    }
    let reported = adopted.reported().await?;
    ensure!(reported.is_empty(), "{reported:#?}");
    adopted.end().await
}

/// A suspended JobSet may have run before, so it starts as the reference created it.
async fn queued_train_job_starts_unchanged(shared: &Handover) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let adopted = Adopted::new(shared, true).await?;
    same(&adopted.before, &adopted.objects().await?)?;
    adopted.resume().await?;
    adopted.are_unchanged(&["ConfigMap", "Secret"]).await?;
    ensure!(adopted.gang().await?.1 == TRAINYARDS_GANG);
    let now = adopted.objects().await?;
    ensure!(in_gang(&now) == ["node"], "{:?}", in_gang(&now));
    for name in JOBS {
        let (was, is) = (run_by(&adopted.before, name), run_by(&now, name));
        ensure!(was == is, "{name} was {was:#} and is {is:#}");
    }
    let reported = adopted.reported().await?;
    ensure!(reported.is_empty(), "{reported:#?}");
    adopted.end().await
}

/// A suspended TrainJob is rendered by Trainyard from then on.
async fn deleted_job_set_is_rendered_again_with_its_keys(shared: &Handover) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let adopted = Adopted::new(shared, true).await?;
    adopted.delete_job_sets().await?;
    adopted.resume().await?;
    adopted.are_unchanged(&["Secret"]).await?;
    let now = adopted.objects().await?;
    let flux = &now["ConfigMap flux-flux-entrypoint"]["data"];
    ensure!(flux["settings.sh"].is_string(), "{flux:#}");
    adopted.end().await
}

/// The fields of the JobSets, ConfigMaps and PodGroups that the rehearsal named are those that Trainyard then renders differently.
async fn rehearsal_says_what_then_happens(shared: &Handover) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let adopted = Adopted::new(shared, true).await?;
    let report = &adopted.rehearsed;
    let objects = report["objects"].as_array().into_iter().flatten();
    let jobs = objects.filter(|object| object["kind"] == "TrainJob");
    let outcomes: BTreeMap<_, _> = jobs
        .map(|job| (job["name"].to_string(), job["outcome"].clone()))
        .collect();
    ensure!(outcomes.len() == JOBS.len(), "{outcomes:?}");
    let is_listed = |outcome: &Value| *outcome == "listed" || *outcome == "same";
    ensure!(outcomes.values().all(is_listed), "{outcomes:?}");
    adopted.delete_job_sets().await?;
    adopted.trainyard.until_idle().await?;
    let key = format!("PodGroup {}", GANG.policy());
    let (mut before, mut now) = (adopted.before.clone(), adopted.objects().await?);
    before.insert(key.clone(), adopted.group.clone());
    now.insert(key, group_of(&adopted.namespace).await?);
    let mut wrong = Vec::new();
    let mut count = 0;
    for name in JOBS {
        let (said, is) = (foretold(report, name)?, happened(&before, &now, name));
        count += is.len();
        if said != is {
            let not_said: Vec<_> = is.difference(&said).collect();
            let not_so: Vec<_> = said.difference(&is).collect();
            wrong.push(format!(
                "{name}: not foretold: {not_said:#?}; did not happen: {not_so:#?}"
            ));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    ensure!(count > 20, "only {count} fields changed");
    adopted.resume().await?;
    adopted.end().await
}

/// Trainyard cannot recreate the reference's Secret, so it creates its own with the next JobSet.
async fn missing_secret_is_created_with_trainyards_job_set(shared: &Handover) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let adopted = Adopted::new(shared, false).await?;
    adopted.suspend().await?;
    let secrets = keys::secrets();
    let secrets = adopted.namespace.api(&secrets);
    for (name, suffix, _) in SECRETS {
        secrets
            .delete(&format!("{name}-{suffix}"))
            .await?
            .accepted()?;
    }
    adopted.resume().await?;
    let left = secrets.items().await?;
    ensure!(left.is_empty(), "{left:#?}");
    adopted.suspend().await?;
    adopted.delete_job_sets().await?;
    adopted.resume().await?;
    for (name, suffix, held) in SECRETS {
        let secret = secrets.get(&format!("{name}-{suffix}")).await?.accepted()?;
        for key in held {
            keys::text(&secret, key)?;
        }
        let before = &adopted.before[&format!("Secret {name}-{suffix}")];
        ensure!(secret["data"] != before["data"], "{name} has the old keys");
    }
    adopted.end().await
}

pub(crate) fn tests() -> Vec<Test<Handover>> {
    tests![
        running_train_jobs_are_left_alone,
        suspended_train_job_resumes_with_its_keys,
        queued_train_job_starts_unchanged,
        deleted_job_set_is_rendered_again_with_its_keys,
        rehearsal_says_what_then_happens,
        missing_secret_is_created_with_trainyards_job_set,
    ]
}
