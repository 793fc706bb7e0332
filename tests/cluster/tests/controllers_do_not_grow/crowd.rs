//! TrainJobs that are created in namespaces that come and go.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use anyhow::Result;
use fastrand::Rng;
use futures_util::{StreamExt as _, future::try_join_all, stream::FuturesUnordered};
use http::StatusCode;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};
use trainyard_cluster::Resource;

use super::{
    Soak,
    life::{self, Life},
    patiently,
    tenant::Tenant,
};

/// The number of namespaces at a time.
const NAMESPACES: usize = 3;
/// The time between two TrainJobs of a namespace.
const EVERY: Duration = Duration::from_secs(12);
/// The greatest number of TrainJobs in a namespace.
const AT_ONCE: usize = 10;
/// How long a namespace gets new TrainJobs.
const TIME: Duration = Duration::from_secs(300);
/// The number of TrainJobs that are deleted with their namespace.
const LAST: usize = 3;

/// Lets TrainJobs come and go until the run is over and all are gone.
pub(super) async fn come_and_go(soak: &Soak<'_>, rng: &mut Rng) -> Result<()> {
    let tenants = (0..NAMESPACES).map(|_| {
        let mut rng = rng.fork();
        async move {
            while !soak.is_full() {
                stay(soak, &mut rng).await?;
            }
            Ok(())
        }
    });
    try_join_all(tenants).await.map(drop)
}

/// Creates a namespace, its TrainJobs, and deletes it.
async fn stay(soak: &Soak<'_>, rng: &mut Rng) -> Result<()> {
    let tenant = Tenant::new(&soak.shared.cluster).await?;
    let until = soak.until.min(Instant::now() + TIME);
    let (mut lives, mut number) = (FuturesUnordered::new(), 0);
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let comes = Instant::now() < until && lives.len() < AT_ONCE;
        tokio::select! {
            _ = ticks.tick(), if comes => {
                number += 1;
                soak.alive.fetch_add(1, Ordering::Relaxed);
                lives.push(Life::new(soak, &tenant, number, rng.fork()).live());
            }
            Some(()) = lives.next() => {
                soak.alive.fetch_sub(1, Ordering::Relaxed);
            }
            else => break,
        }
    }
    drop(lives);
    if let Err(error) = tenant.until_nothing_is_left().await {
        soak.failed(format!("{error:#}"));
    }
    goes(soak, &tenant).await
}

/// Deletes the namespace with TrainJobs that are at their beginning.
async fn goes(soak: &Soak<'_>, tenant: &Tenant<'_>) -> Result<()> {
    let namespace = &tenant.namespace;
    for number in 0..LAST {
        let spec = json!({"runtimeRef": {"name": life::QUICK[number]}});
        namespace.create(&format!("last-{number}"), &spec).await?;
    }
    let namespaces = Resource::namespaces();
    let namespaces = soak.shared.cluster.api(&namespaces, "");
    namespaces.delete(&namespace.name).await?.accepted()?;
    let what = format!("{} is gone", namespace.name);
    let gone = patiently(&what, async || {
        let answer = namespaces.get(&namespace.name).await?;
        Ok((answer.status == StatusCode::NOT_FOUND).then_some(()))
    });
    if let Err(error) = gone.await {
        soak.failed(format!("{error:#}"));
    }
    Ok(())
}
