//! What stands beside a running JobSet is frozen with it: what somebody deletes is made again as it was, whatever plugins are
//! loaded by then; only live objects follow their TrainJob; and a JobSet that is deleted while it runs comes back as it was.
#![allow(clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::{Disturbed, Place, is, is_running, is_suspended, kind, runtime};
use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use trainyard_cluster::{
    Act, Call, ControlPlane, Resource, Shared, Test, Trainyard, Write, build_plugin, eventually,
};
use trainyard_schema::documents::Kind;

const DEADLINE: Duration = Duration::from_secs(3600);
const MODES: [&str; 4] = ["with-jobset", "once", "while-suspended", "live"];
const JOB: &str = "job";
const SNAPSHOT: &str = "job-runtime-snapshot";

/// A cluster, and two editions of a plugin that puts an object of each mode beside a JobSet.
pub(crate) struct Editions {
    pub(crate) cluster: Disturbed,
    pub(crate) first: PathBuf,
    pub(crate) second: PathBuf,
}

impl Shared for Editions {
    fn start() -> Result<Self> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/beside");
        let edition = |name: &str| {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("beside-{name}"));
            std::fs::create_dir_all(&folder)?;
            let component = folder.join("beside.wasm");
            build_plugin(&sources, &component, &[("TRAINYARD_TEST_EDITION", name)])?;
            anyhow::Ok(folder)
        };
        Ok(Self {
            first: edition("first")?,
            second: edition("second")?,
            cluster: Disturbed::start()?,
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.cluster.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.cluster.still_runs()
    }
}

/// A TrainJob of the name `job`, with what belongs to it.
struct Watched<'a> {
    place: Place<'a>,
    job_sets: Resource,
    config_maps: Resource,
    events: Resource,
}

impl<'a> Watched<'a> {
    /// Has it run, with these plugins.
    async fn running(shared: &'a Editions, plugins: &Value) -> Result<Self> {
        let watched = Self::created(shared, plugins).await?;
        let jobs = watched.place.api(&watched.place.jobs);
        jobs.until(JOB, "it runs", is_running).await?;
        Ok(watched)
    }

    async fn created(shared: &'a Editions, plugins: &Value) -> Result<Self> {
        let watched = Self {
            place: Place::new(&shared.cluster.cluster, DEADLINE).await?,
            job_sets: Resource::jobsets(),
            config_maps: Resource::namespaced("/api/v1", "configmaps"),
            events: Resource::namespaced("/api/v1", "events"),
        };
        let place = &watched.place;
        let mut own = runtime();
        own["kind"] = json!("TrainingRuntime");
        own["spec"]["plugins"] = plugins.clone();
        let runtimes = kind(Kind::TrainingRuntime)?;
        let runtimes = place.api(&runtimes);
        runtimes.create(&own, &Write::strict()).await?.accepted()?;
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": JOB, "annotations": {"example.com/note": "at first"}},
            "spec": {"runtimeRef": {"kind": "TrainingRuntime", "name": "torch"}},
        });
        let jobs = place.api(&place.jobs);
        jobs.create(&job, &Write::strict()).await?.accepted()?;
        Ok(watched)
    }

    /// Has a note in the TrainJob, and this in its spec.
    async fn note(&self, note: &str, spec: &Value) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {"example.com/note": note}}, "spec": spec});
        let jobs = self.place.api(&self.place.jobs);
        jobs.merge(JOB, &patch, &Write::strict())
            .await?
            .accepted()?;
        Ok(())
    }

    async fn job_set(&self) -> Result<Value> {
        let job_sets = self.place.api(&self.job_sets);
        Ok(job_sets.get(JOB).await?.accepted()?)
    }

    /// Changes the JobSet in a way that means nothing.
    async fn touch(&self, text: &str) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {"example.com/touched": text}}});
        let job_sets = self.place.api(&self.job_sets);
        job_sets
            .merge(JOB, &patch, &Write::strict())
            .await?
            .accepted()?;
        Ok(())
    }

    /// Changes the JobSet in a way that means nothing, again and again until it came about.
    async fn touch_until<T>(
        &self,
        what: &str,
        mut came: impl AsyncFnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let mut count = 0;
        eventually(what, async || {
            count += 1;
            self.touch(&count.to_string()).await?;
            came().await
        })
        .await
    }

    /// The objects of the plugin, by mode.
    async fn objects(&self) -> Result<BTreeMap<&'static str, Value>> {
        let items = self.place.api(&self.config_maps).items().await?;
        let found = |mode: &&'static str| {
            let name = format!("{JOB}-{mode}");
            let mut items = items.iter();
            let found = items.find(|item| item["metadata"]["name"] == *name)?;
            Some((*mode, found.clone()))
        };
        Ok(MODES.iter().filter_map(found).collect())
    }

    /// Edition and note of each object, by mode.
    async fn notes(&self) -> Result<BTreeMap<&'static str, String>> {
        let objects = self.objects().await?.into_iter();
        let text = |object: &Value, key: &str| {
            let text = object["data"][key].as_str();
            text.unwrap_or_default().to_owned()
        };
        let note =
            |object: &Value| format!("{}: {}", text(object, "edition"), text(object, "note"));
        Ok(objects
            .map(|(mode, object)| (mode, note(&object)))
            .collect())
    }

    async fn until_noted(&self, mode: &str, note: &str) -> Result<BTreeMap<&'static str, String>> {
        eventually(&format!("{mode} says {note:?}"), async || {
            let notes = self.notes().await?;
            let said = notes.get(mode).is_some_and(|said| said == note);
            Ok(said.then_some(notes))
        })
        .await
    }

    async fn delete(&self, mode: &str) -> Result<()> {
        let config_maps = self.place.api(&self.config_maps);
        let name = format!("{JOB}-{mode}");
        config_maps.delete(&name).await?.accepted()?;
        Ok(())
    }

    /// Whether an Event of the TrainJob says this.
    async fn is_told(&self, part: &str) -> Result<bool> {
        let events = self.place.api(&self.events).items().await?;
        Ok(events.iter().any(|event| {
            let text = event["message"].as_str().unwrap_or_default();
            event["involvedObject"]["name"] == JOB && text.contains(part)
        }))
    }
}

fn emitting() -> Value {
    json!([{"name": "beside"}])
}

/// What a JobSet's pods run.
fn pods(job_set: &Value) -> Value {
    job_set["spec"]["replicatedJobs"].clone()
}

async fn missing_objects_are_recreated(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let watched = Watched::running(shared, &emitting()).await?;
    let (before, job_set) = (watched.objects().await?, watched.job_set().await?);
    ensure!(before.len() == MODES.len(), "{before:#?}");
    for mode in MODES {
        watched.delete(mode).await?;
    }
    watched.touch("once").await?;
    let after = eventually("all are there again", async || {
        let found = watched.objects().await?;
        Ok((found.len() == MODES.len()).then_some(found))
    })
    .await?;
    for mode in MODES {
        let (before, after) = (&before[mode], &after[mode]);
        let (was, now) = (&before["metadata"], &after["metadata"]);
        ensure!(was["uid"] != now["uid"], "{mode} was not deleted");
        ensure!(before["data"] == after["data"], "{mode}: {after:#}");
        ensure!(was["ownerReferences"] == now["ownerReferences"], "{now:#}");
    }
    let now = watched.job_set().await?;
    ensure!(now["metadata"]["uid"] == job_set["metadata"]["uid"]);
    ensure!(now["metadata"]["generation"] == job_set["metadata"]["generation"]);
    controller.kill().map(drop)
}

async fn foreign_object_is_left_unchanged(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let watched = Watched::running(shared, &emitting()).await?;
    watched.delete("once").await?;
    watched.delete("live").await?;
    let foreign = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "job-once"}, "data": {"mine": "yes"},
    });
    let config_maps = watched.place.api(&watched.config_maps);
    config_maps
        .create(&foreign, &Write::strict())
        .await?
        .accepted()?;
    watched.touch("once").await?;
    eventually("it is told, and the other is made again", async || {
        let told = watched.is_told("ConfigMap `job-once` is not this TrainJob's");
        let whole = watched.objects().await?.contains_key("live");
        Ok((told.await? && whole).then_some(()))
    })
    .await?;
    let found = config_maps.get("job-once").await?.accepted()?;
    ensure!(found["data"] == foreign["data"], "{found:#}");
    ensure!(found["metadata"].get("ownerReferences").is_none());
    controller.kill().map(drop)
}

async fn objects_change_according_to_their_mode(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let watched = Watched::running(shared, &emitting()).await?;
    let expected = |while_suspended: &str, live: &str| {
        let first = |note: &str| format!("first: {note}");
        let notes = ["at first", "at first", while_suspended, live].map(first);
        MODES.into_iter().zip(notes).collect::<BTreeMap<_, _>>()
    };
    ensure!(watched.notes().await? == expected("at first", "at first"));
    // The live object is the last that is seen to.
    watched.note("running", &json!({})).await?;
    let notes = watched.until_noted("live", "first: running").await?;
    ensure!(notes == expected("at first", "running"), "{notes:?}");
    watched.note("suspended", &json!({"suspend": true})).await?;
    let notes = watched.until_noted("live", "first: suspended").await?;
    let is_last = watched.until_noted("while-suspended", "first: suspended");
    ensure!(
        is_last.await? == notes && notes == expected("suspended", "suspended"),
        "{notes:?}"
    );
    watched.note("resumed", &json!({"suspend": false})).await?;
    let jobs = watched.place.api(&watched.place.jobs);
    let goes_on = |job: &Value| is_running(job) && is(job, "Suspended", "False");
    jobs.until(JOB, "it goes on", goes_on).await?;
    let notes = watched.notes().await?;
    ensure!(notes == expected("resumed", "resumed"), "{notes:?}");
    // Somebody else's change of a live object counts as a difference.
    let patch = json!({"data": {"note": "of somebody"}});
    let config_maps = watched.place.api(&watched.config_maps);
    config_maps
        .merge("job-live", &patch, &Write::strict())
        .await?
        .accepted()?;
    watched.touch("once").await?;
    let notes = watched.until_noted("live", "first: resumed").await?;
    ensure!(notes == expected("resumed", "resumed"), "{notes:?}");
    controller.kill().map(drop)
}

async fn plugin_update_does_not_reach_running_train_jobs(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let watched = Watched::running(shared, &emitting()).await?;
    let (before, job_set) = (watched.notes().await?, watched.job_set().await?);
    controller.kill()?;

    let controller = cluster.controller_with(&shared.second).await?;
    watched.delete("once").await?;
    let pinned = "the plan of this TrainJob is pinned to beside";
    watched
        .touch_until("it is told", async || {
            Ok(watched.is_told(pinned).await?.then_some(()))
        })
        .await?;
    let mut without = before.clone();
    without.remove("once");
    ensure!(watched.notes().await? == without);
    let now = watched.job_set().await?;
    ensure!(now["spec"] == job_set["spec"], "{now:#}");
    // Nor does it where somebody suspends the JobSet: it goes on as it was.
    let now = suspended_until_it_goes_on(&watched).await?;
    ensure!(pods(&now) == pods(&job_set), "{now:#}");
    ensure!(now["metadata"]["uid"] == job_set["metadata"]["uid"]);
    controller.kill()?;

    let controller = cluster.controller_with(&shared.first).await?;
    let after = watched
        .touch_until("it is made again", async || {
            let notes = watched.notes().await?;
            Ok((notes.len() == MODES.len()).then_some(notes))
        })
        .await?;
    ensure!(after == before, "{after:?}");
    controller.kill().map(drop)
}

/// What the operator allows a plugin is a part of the plan, as the plugin itself is.
async fn plugin_settings_change_does_not_reach_running_train_jobs(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let watched = Watched::running(shared, &emitting()).await?;
    let (before, job_set) = (watched.notes().await?, watched.job_set().await?);
    controller.kill()?;

    let policy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("beside-limits.yaml");
    let limits = "apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\nplugins:\n- name: beside\n  limits: {logLines: 7}\n";
    std::fs::write(&policy, limits)?;
    let controller = cluster
        .controller_under(&shared.first, Some(&policy))
        .await?;
    watched.delete("once").await?;
    watched
        .touch_until("it is told which settings changed", async || {
            let told = watched
                .is_told("these have changed: the limits of `beside`")
                .await?;
            Ok(told.then_some(()))
        })
        .await?;
    ensure!(!watched.notes().await?.contains_key("once"));
    let now = suspended_until_it_goes_on(&watched).await?;
    ensure!(pods(&now) == pods(&job_set), "{now:#}");
    ensure!(now["metadata"]["uid"] == job_set["metadata"]["uid"]);
    controller.kill()?;

    let controller = cluster.controller_with(&shared.first).await?;
    let after = watched
        .touch_until("it is made again", async || {
            let notes = watched.notes().await?;
            Ok((notes.len() == MODES.len()).then_some(notes))
        })
        .await?;
    ensure!(after == before, "{after:?}");
    controller.kill().map(drop)
}

/// Changes the JobSet's `spec.suspend` by hand, and waits until it goes on.
async fn suspended_until_it_goes_on(watched: &Watched<'_>) -> Result<Value> {
    let job_sets = watched.place.api(&watched.job_sets);
    let suspended = json!({"spec": {"suspend": true}});
    let suspended = job_sets.merge(JOB, &suspended, &Write::strict()).await?;
    let suspended = suspended.accepted()?["metadata"]["generation"].as_u64();
    let goes_on = |job_set: &Value| {
        job_set["spec"]["suspend"] == false
            && job_set["metadata"]["generation"].as_u64() > suspended
    };
    job_sets.until(JOB, "it goes on", goes_on).await
}

/// No status says that it ran: it was never written.
async fn unreported_start_is_recognized(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let refuse = |call: &Call| match call.path.contains("/trainjobs/job/status") {
        true => Act::conflict(),
        false => Act::Forward,
    };
    cluster.proxy.set_rule(refuse).await;
    let controller = cluster.controller_with(&shared.first).await?;
    let watched = Watched::created(shared, &emitting()).await?;
    let job_sets = watched.place.api(&watched.job_sets);
    let runs = |job_set: &Value| job_set["status"]["replicatedJobsStatus"][0]["ready"] == 1;
    let before = job_sets.until(JOB, "it runs", runs).await?;
    let notes = watched.notes().await?;
    controller.kill()?;
    let job = watched.place.api(&watched.place.jobs).get(JOB).await?;
    let job = job.accepted()?;
    ensure!(job["status"].get("jobsStatus").is_none(), "{job:#}");

    let suspended = json!({"spec": {"suspend": true}});
    let suspended = job_sets.merge(JOB, &suspended, &Write::strict()).await?;
    let suspended = suspended.accepted()?["metadata"]["generation"].as_u64();
    cluster.proxy.forget().await;
    let controller = cluster.controller_with(&shared.second).await?;
    let goes_on = |job_set: &Value| {
        job_set["spec"]["suspend"] == false
            && job_set["metadata"]["generation"].as_u64() > suspended
    };
    let now = job_sets.until(JOB, "it goes on", goes_on).await?;
    ensure!(pods(&now) == pods(&before), "{now:#}");
    ensure!(now["metadata"]["uid"] == before["metadata"]["uid"]);
    ensure!(watched.notes().await? == notes);
    controller.kill().map(drop)
}

/// Its plugin is gone: what its own patches ask for still reaches its pods, as far as JobSet lets it.
async fn placement_follows_patches_without_the_plugin(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let watched = Watched::running(shared, &emitting()).await?;
    let before = watched.job_set().await?;
    watched.note("suspended", &json!({"suspend": true})).await?;
    let jobs = watched.place.api(&watched.place.jobs);
    jobs.until(JOB, "it is suspended", is_suspended).await?;
    controller.kill()?;

    let controller = cluster.controller().await?;
    let pods = json!({
        "nodeSelector": {"zone": "b"},
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone"},
        ]}},
    });
    let job = json!({"name": "node", "template": {"spec": {"template": {"spec": pods}}}});
    let patch = json!({
        "manager": "example.com/queue",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
    });
    let spec = json!({"suspend": false, "runtimePatches": [patch]});
    watched.note("resumed", &spec).await?;
    let job_sets = watched.place.api(&watched.job_sets);
    let goes_on = |job_set: &Value| job_set["spec"]["suspend"] == false;
    let now = job_sets.until(JOB, "it goes on", goes_on).await?;
    let at = "/spec/replicatedJobs/0/template/spec/template/spec";
    let (was, is) = (before.pointer(at), now.pointer(at));
    let (was, is) = (was.context("no pods")?, is.context("no pods")?);
    ensure!(is["nodeSelector"] == json!({"zone": "b"}), "{is:#}");
    ensure!(is["containers"] == was["containers"], "{is:#}");
    ensure!(now["metadata"]["uid"] == before["metadata"]["uid"]);
    let event = watched
        .place
        .event(JOB, "the plan of this TrainJob is pinned to beside");
    let event = event.await?;
    ensure!(event["reason"] == "TrainJobWarning", "{event:#}");
    controller.kill().map(drop)
}

/// What a snapshot that can't be used is told to lead to: it is deleted, and made again; and without its runtime it goes on too.
async fn deleted_snapshot_is_recreated(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let watched = Watched::running(shared, &emitting()).await?;
    let before = watched.job_set().await?;
    let config_maps = watched.place.api(&watched.config_maps);
    config_maps.delete(SNAPSHOT).await?.accepted()?;
    let now = suspended_until_it_goes_on(&watched).await?;
    ensure!(pods(&now) == pods(&before), "{now:#}");
    let there = |map: &Value| map.is_object();
    let again = config_maps
        .until(SNAPSHOT, "it is made again", there)
        .await?;
    ensure!(again["immutable"] == true, "{again:#}");
    ensure!(
        again["data"]["plan"]
            .as_str()
            .is_some_and(|plan| plan.contains("beside"))
    );

    let runtimes = kind(Kind::TrainingRuntime)?;
    let runtimes = watched.place.api(&runtimes);
    runtimes.delete("torch").await?.accepted()?;
    runtimes
        .until_all("it is gone", <[Value]>::is_empty)
        .await?;
    config_maps.delete(SNAPSHOT).await?.accepted()?;
    let now = suspended_until_it_goes_on(&watched).await?;
    ensure!(pods(&now) == pods(&before), "{now:#}");
    controller.kill().map(drop)
}

async fn deleted_running_job_set_is_recreated_from_the_pinned_plan(
    shared: &Editions,
) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let watched = Watched::running(shared, &emitting()).await?;
    let job_sets = watched.place.api(&watched.job_sets);
    let before = watched.job_set().await?;
    controller.kill()?;

    let controller = cluster.controller_with(&shared.second).await?;
    job_sets.delete(JOB).await?.accepted()?;
    eventually("it is told", async || {
        let told = watched.is_told("the plan of this TrainJob is pinned to beside");
        Ok(told.await?.then_some(()))
    })
    .await?;
    ensure!(job_sets.items().await?.is_empty());
    controller.kill()?;

    let controller = cluster.controller_with(&shared.first).await?;
    let is_new = |job_set: &Value| {
        job_set.is_object() && job_set["metadata"]["uid"] != before["metadata"]["uid"]
    };
    let again = job_sets.until(JOB, "it is made again", is_new).await?;
    ensure!(pods(&again) == pods(&before), "{again:#}");
    let snapshot = watched.place.api(&watched.config_maps);
    let snapshot = snapshot.get(SNAPSHOT).await?.accepted()?;
    let annotations = &snapshot["metadata"]["annotations"];
    ensure!(
        annotations["trainyard.dev/started"] == "true",
        "{snapshot:#}"
    );
    controller.kill().map(drop)
}

async fn nothing_is_read_without_emitted_objects(shared: &Editions) -> Result<()> {
    let cluster = &shared.cluster;
    let _turn = cluster.turn.lock().await;
    let controller = cluster.controller_with(&shared.first).await?;
    let watched = Watched::running(shared, &json!([])).await?;
    let path = format!("/namespaces/{}/", watched.place.name);
    let reads = async || {
        let calls = cluster.proxy.calls().await;
        let is_read = |call: &&Call| call.method == Method::GET && call.path.contains(&path);
        calls.iter().filter(is_read).cloned().collect::<Vec<_>>()
    };
    changed_and_reconciled(&watched, &controller, "a").await?;
    ensure!(reads().await.is_empty(), "{:#?}", reads().await);
    controller.kill()?;

    // What stands beside the JobSet is asked for once, and not before something changes.
    let controller = cluster.controller_with(&shared.first).await?;
    controller.until_idle().await?;
    ensure!(reads().await.is_empty(), "{:#?}", reads().await);
    changed_and_reconciled(&watched, &controller, "b").await?;
    changed_and_reconciled(&watched, &controller, "c").await?;
    let reads = reads().await;
    ensure!(reads.len() == 1, "{reads:#?}");
    let read = reads.first().context("no read")?;
    ensure!(
        read.path.contains("/configmaps/job-runtime-snapshot"),
        "{read:?}"
    );
    controller.kill().map(drop)
}

const RECONCILED: &str = "controller_runtime_reconcile_total";

/// Changes the TrainJob and its JobSet, and waits until the controller has seen to each.
async fn changed_and_reconciled(
    watched: &Watched<'_>,
    controller: &Trainyard,
    text: &str,
) -> Result<()> {
    for job_set in [true, false] {
        let before = controller.metric(RECONCILED, "").await?;
        if job_set {
            watched.touch(text).await?;
        } else {
            watched.note(text, &json!({})).await?;
        }
        eventually("it is reconciled", async || {
            let now = controller.metric(RECONCILED, "").await?;
            Ok((now > before).then_some(()))
        })
        .await?;
    }
    controller.until_idle().await
}

pub(crate) fn tests() -> Vec<Test<Editions>> {
    vec![
        Test::new(
            "missing_objects_are_recreated",
            missing_objects_are_recreated,
        ),
        Test::new(
            "foreign_object_is_left_unchanged",
            foreign_object_is_left_unchanged,
        ),
        Test::new(
            "objects_change_according_to_their_mode",
            objects_change_according_to_their_mode,
        ),
        Test::new(
            "plugin_update_does_not_reach_running_train_jobs",
            plugin_update_does_not_reach_running_train_jobs,
        ),
        Test::new(
            "plugin_settings_change_does_not_reach_running_train_jobs",
            plugin_settings_change_does_not_reach_running_train_jobs,
        ),
        Test::new(
            "unreported_start_is_recognized",
            unreported_start_is_recognized,
        ),
        Test::new(
            "placement_follows_patches_without_the_plugin",
            placement_follows_patches_without_the_plugin,
        ),
        Test::new(
            "deleted_snapshot_is_recreated",
            deleted_snapshot_is_recreated,
        ),
        Test::new(
            "deleted_running_job_set_is_recreated_from_the_pinned_plan",
            deleted_running_job_set_is_recreated_from_the_pinned_plan,
        ),
        Test::new(
            "nothing_is_read_without_emitted_objects",
            nothing_is_read_without_emitted_objects,
        ),
    ]
}
