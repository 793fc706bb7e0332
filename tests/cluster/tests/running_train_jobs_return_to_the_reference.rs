//! The way back in docs/move.md: when the reference's controller takes over from Trainyard, TrainJobs that run keep their JobSets and
//! pods until they are complete, and suspended ones run after their JobSets are deleted.
#![allow(clippy::indexing_slicing)]

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Reference, ReferenceLimits, Shared as _, Test, Trainyard, Write};

use crate::common::{
    Handover, Namespace, Objects, counts, hold_after_initializers, is, is_running,
};

/// TrainJobs, each named after its runtime.
const JOBS: [&str; 7] = [
    "torch-distributed",
    "jax-distributed",
    "xgboost-distributed",
    "own-launcher",
    "launcher-node",
    "flux",
    "coscheduling",
];

/// Creates the TrainJobs under Trainyard, waits until they run or are suspended, and replaces Trainyard by the reference.
async fn hand_back(
    shared: &Handover,
    namespace: &Namespace<'_>,
    suspend: bool,
) -> Result<(Objects, Reference)> {
    namespace.decide_pods(hold_after_initializers);
    let flags = ["--leader-elect=false"];
    let trainyard = Trainyard::start(shared.plane(), &shared.kubeconfig, flags).await?;
    for name in JOBS {
        let trainer = json!({"numNodes": 2, "command": ["mpirun", "lmp"]});
        let spec = json!({"runtimeRef": {"name": name}, "trainer": trainer, "suspend": suspend});
        namespace.create(name, &spec).await?;
    }
    for name in JOBS {
        if suspend {
            let waits = |job: &Value| is(job, "Suspended", "True") && !counts(job).is_empty();
            namespace.until(name, "it is suspended", waits).await?;
        } else {
            namespace.until(name, "it runs", is_running).await?;
        }
    }
    trainyard.until_idle().await?;
    trainyard.stop().await?;
    let before = namespace.settled().await?;
    let reference = Reference::start(shared.plane(), ReferenceLimits::SHIPPED).await?;
    Ok((before, reference))
}

/// Checks that the objects of these kinds are the same as before, with the same specs.
fn specs_are_unchanged(before: &Objects, now: &Objects, kinds: &[&str]) -> Result<()> {
    let specs = |objects: &Objects| {
        let of_kind = objects.iter().filter(|(key, _)| {
            let kind = key.split(' ').next().unwrap_or_default();
            kinds.contains(&kind)
        });
        let specs = of_kind.map(|(key, one)| {
            (
                key.clone(),
                (one["metadata"]["uid"].clone(), one["spec"].clone()),
            )
        });
        specs.collect::<BTreeMap<_, _>>()
    };
    let (before, now) = (specs(before), specs(now));
    ensure!(!before.is_empty());
    ensure!(before == now, "{before:#?} became {now:#?}");
    Ok(())
}

async fn running_train_jobs_keep_their_pods(shared: &Handover) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let namespace = Namespace::new(&shared.cluster).await?;
    let (before, reference) = hand_back(shared, &namespace, false).await?;
    let touch = json!({"metadata": {"annotations": {"example.com/touched": "yes"}}});
    for name in JOBS {
        let jobs = namespace.api(&namespace.jobs);
        jobs.merge(name, &touch, &Write::strict())
            .await?
            .accepted()?;
    }
    let now = namespace.settled().await?;
    specs_are_unchanged(&before, &now, &["JobSet", "Job", "Pod", "Service"])?;
    for name in ["own-launcher", "launcher-node"] {
        let secret = format!("Secret {name}-mpi-ssh-auth");
        ensure!(before[&secret]["data"] == now[&secret]["data"], "{name}");
    }
    namespace.complete(&JOBS).await?;
    drop(reference);
    Ok(())
}

async fn suspended_train_jobs_run_after_their_job_sets_are_deleted(
    shared: &Handover,
) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let namespace = Namespace::new(&shared.cluster).await?;
    let (_, reference) = hand_back(shared, &namespace, true).await?;
    let job_sets = namespace.api(&namespace.job_sets);
    for name in JOBS {
        namespace.recreate_job_set(name).await?;
    }
    for name in JOBS {
        namespace.patch(name, &json!({"suspend": false})).await?;
    }
    for name in JOBS {
        namespace.until(name, "it runs", is_running).await?;
        let job_set = job_sets.get(name).await?.accepted()?;
        let annotations = job_set["metadata"]["annotations"].to_string();
        ensure!(!annotations.contains("trainyard.dev"), "{annotations}");
    }
    namespace.complete(&JOBS).await?;
    drop(reference);
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Handover>> {
    vec![
        Test::new(
            "running_train_jobs_keep_their_pods",
            running_train_jobs_keep_their_pods,
        ),
        Test::new(
            "suspended_train_jobs_run_after_their_job_sets_are_deleted",
            suspended_train_jobs_run_after_their_job_sets_are_deleted,
        ),
    ]
}
