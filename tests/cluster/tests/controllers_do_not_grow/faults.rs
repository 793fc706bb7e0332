//! Faults of the API server, of the network and of the controller's processes.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use anyhow::Result;
use fastrand::Rng;
use http::StatusCode;
use kube::core::response::Status;
use serde_json::json;
use trainyard_cluster::{Act, Call, Write};
use trainyard_schema::documents::Kind;

use super::{PAUSE, Soak};
use crate::common;

/// The leader is killed only this long after the start and before the end: the memory of a process shows nothing until it has run for long.
const EDGE: Duration = Duration::from_secs(180);
/// The range of the time between two faults.
const BETWEEN: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(20)];
/// The longest outage in milliseconds, which is shorter than the time after which a leader gives up.
const OUTAGE: u64 = 5000;
/// The number of calls or watches that are answered with an error.
const ERRORS: usize = 20;

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Some calls are answered with 409, 429 or 500.
    Errors,
    /// Watches end, and their resource version has expired.
    ExpiredWatches,
    /// A write is not forwarded, and every connection is cut.
    LostWrite,
    /// A write is forwarded, but not answered, and every connection is cut.
    LostAnswer,
    /// No data is forwarded for some seconds.
    Hang,
    /// Every connection is cut, and none is accepted for some seconds.
    Outage,
    /// The process that does not lead is killed.
    StandbyKilled,
    /// The process that leads is killed.
    LeaderKilled,
    /// A runtime is changed, which TrainJobs follow that have not started.
    RuntimeChanged,
}

impl Fault {
    const ALL: [Self; 9] = [
        Self::Errors,
        Self::ExpiredWatches,
        Self::LostWrite,
        Self::LostAnswer,
        Self::Hang,
        Self::Outage,
        Self::StandbyKilled,
        Self::LeaderKilled,
        Self::RuntimeChanged,
    ];
}

/// Makes one fault after another, each as often, until the run is over.
pub(super) async fn shake(soak: &Soak<'_>, mut rng: Rng) -> Result<()> {
    let between = soak.until.saturating_duration_since(Instant::now()) / 60;
    let between = between.clamp(BETWEEN[0], BETWEEN[1]);
    let mut left = Vec::new();
    while !soak.is_full() {
        tokio::time::sleep(between).await;
        let fault = match left.pop() {
            Some(fault) => fault,
            None => {
                left.extend(Fault::ALL);
                rng.shuffle(&mut left);
                continue;
            }
        };
        if matches!(fault, Fault::LeaderKilled) && !is_at_an_edge(soak) {
            continue;
        }
        // The calls that the proxy records are not needed.
        soak.shared.proxy.forget().await;
        soak.records.add("fault", &format!("{fault:?}"), 1.0)?;
        happen(soak, fault, &mut rng).await?;
        restart(soak)?;
    }
    soak.shared.proxy.forget().await;
    // The last TrainJobs need a leader, too.
    while !soak.is_over.load(Ordering::Relaxed) {
        restart(soak)?;
        tokio::time::sleep(PAUSE).await;
    }
    restart(soak)
}

fn restart(soak: &Soak<'_>) -> Result<()> {
    for number in soak.replicas.restart()? {
        let process = number.to_string();
        soak.records.add("lost the Lease", &process, 1.0)?;
    }
    Ok(())
}

fn is_at_an_edge(soak: &Soak<'_>) -> bool {
    let left = soak.until.saturating_duration_since(Instant::now());
    soak.records.seconds() < EDGE.as_secs_f64() || left < EDGE
}

async fn happen(soak: &Soak<'_>, fault: Fault, rng: &mut Rng) -> Result<()> {
    let proxy = &soak.shared.proxy;
    let outage = Duration::from_millis(rng.u64(..OUTAGE));
    match fault {
        Fault::Errors => proxy.set_rule(errors(rng.fork())).await,
        Fault::ExpiredWatches => {
            proxy.set_rule(expired()).await;
            proxy.refuse().await;
            proxy.serve().await?;
        }
        Fault::LostWrite => proxy.next_writes(1, || Act::cut_before(|| {})).await,
        Fault::LostAnswer => proxy.next_writes(1, || Act::cut_after(|| {})).await,
        Fault::Hang => {
            proxy.hang();
            tokio::time::sleep(outage).await;
            proxy.serve().await?;
        }
        Fault::Outage => {
            proxy.refuse().await;
            tokio::time::sleep(outage).await;
            proxy.serve().await?;
        }
        Fault::StandbyKilled => soak.replicas.kill(0.0).await.map(drop)?,
        Fault::LeaderKilled => soak.replicas.kill(1.0).await.map(drop)?,
        Fault::RuntimeChanged => {
            let runtimes = common::kind(Kind::ClusterTrainingRuntime)?;
            let runtimes = soak.shared.cluster.api(&runtimes, "");
            let annotations = json!({"example.com/seed": rng.u32(..).to_string()});
            let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
            let answer = runtimes.merge("torch", &patch, &Write::strict()).await?;
            answer.accepted().map(drop)?;
        }
    }
    Ok(())
}

/// Answers some of the next calls with an error, but none of the Lease, which a leader may lose by that.
fn errors(mut rng: Rng) -> impl FnMut(&Call) -> Act + Send + 'static {
    let mut left = ERRORS;
    move |call| {
        if left == 0 || call.path.contains("/leases") || rng.bool() {
            return Act::Forward;
        }
        left -= 1;
        match rng.u8(..3) {
            0 if call.write.is_some() => Act::conflict(),
            0 | 1 => Act::too_many_requests(1),
            _ => answer("InternalError", StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

fn expired() -> impl FnMut(&Call) -> Act + Send + 'static {
    let mut left = ERRORS;
    move |call| {
        if left == 0 || !call.path.contains("watch=true") {
            return Act::Forward;
        }
        left -= 1;
        answer("Expired", StatusCode::GONE)
    }
}

fn answer(reason: &str, code: StatusCode) -> Act {
    let status = Status::failure("the proxy answers with an error", reason);
    Act::Answer(status.with_code(code.as_u16()).boxed())
}
