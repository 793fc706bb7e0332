//! TrainJobs that have come and gone leave no memory in use, whatever their kind.
//!
//! A program of its own, because it counts what the whole process allocates. All time passes on a paused clock, so that what is remembered
//! for a time is forgotten. `make soak` watches the memory of a real process.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[allow(dead_code)]
#[path = "every_api_call_can_fail/job_set.rs"]
mod job_set;
#[allow(dead_code)]
#[path = "every_api_call_can_fail/kinds.rs"]
mod kinds;
mod stub;

use std::{alloc::System, sync::Arc, time::Duration};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use self::{
    job_set::Broken,
    kinds::Kind,
    stub::{
        clock::PausedClock,
        cluster::Cluster,
        controller::{Controller, job},
    },
};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How long a step may take, on the paused clock.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Longer than an Event, a deletion or a rate limit is remembered.
const FORGOTTEN: Duration = Duration::from_secs(900);

/// How many Events are remembered before old ones are looked for.
const EVENTS: usize = 64;

/// The bytes for each TrainJob that mean nothing: a table with removed entries gets another size at random. No entry is that small.
const NOTHING: usize = 24;

/// How often each kind comes and goes until all tables have their size, and how often after that.
const FIRST: usize = 5;
const MORE: usize = 3;

/// Lets a TrainJob of this kind come and go, until nothing is left of it in the API server.
async fn comes_and_goes(kind: &Kind, cluster: &Cluster) {
    for object in &kind.objects {
        cluster.put(object.clone());
    }
    for step in &kind.steps {
        (step.happens)(cluster);
        let holds = cluster.holds_within(PATIENCE, step.leads_to).await;
        assert!(holds, "{}: {}", kind.name, step.what);
    }
    is_forgotten(cluster).await;
}

/// Lets a TrainJob come and go that cannot be reconciled.
async fn is_refused(cluster: &Cluster, namespace: &str) {
    cluster.put(job(namespace, "job", "missing", false));
    let is_told = |cluster: &Cluster| cluster.count("events") > 0;
    assert!(cluster.holds_within(PATIENCE, is_told).await);
    is_forgotten(cluster).await;
}

async fn is_forgotten(cluster: &Cluster) {
    cluster.clear();
    cluster.is_still_for(FORGOTTEN).await;
    cluster.clear();
}

/// Returns the bytes that are in use, without those of the API server.
fn in_use(cluster: &Cluster) -> usize {
    let of_the_server = cluster.forget_history();
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated - of_the_server
}

/// Lets this many TrainJobs that are refused come and go, each in its namespace. Returns the least bytes that were in use: when the Events of others were forgotten.
async fn least_in_use(cluster: &Cluster, count: usize) -> usize {
    let mut least = usize::MAX;
    for number in 0..count {
        is_refused(cluster, &format!("team-{number}")).await;
        least = least.min(in_use(cluster));
    }
    least
}

#[tokio::test(start_paused = true)]
async fn what_is_in_use_does_not_grow() {
    let cluster = Cluster::new();
    cluster.set_admission(job_set::admission);
    let job_sets = tokio::spawn(job_set::run(cluster.clone(), Broken::default()));
    let controller = Controller::start_in_process(
        cluster.in_process(),
        Arc::new(PausedClock::new()),
        kinds::PLUGINS.clone(),
    );
    // The API server's clock is the real one, so that a deadline is over at once.
    let mut kinds = kinds::all();
    kinds.retain(|kind| kind.name != "overdue");
    let mut after = Vec::with_capacity(FIRST + MORE);
    for _ in 0..FIRST + MORE {
        for kind in &kinds {
            comes_and_goes(kind, &cluster).await;
        }
        after.push(in_use(&cluster));
    }
    let grown = after[FIRST + MORE - 1].saturating_sub(after[FIRST - 1]);
    assert!(grown < MORE * kinds.len() * NOTHING, "{after:?}");
    let first = least_in_use(&cluster, 2 * EVENTS).await;
    let more = 4 * EVENTS;
    let second = least_in_use(&cluster, more).await;
    assert!(second < first + more * NOTHING, "{first}, {second}");
    job_sets.abort();
    controller.stop().await;
}
