//! After outages of the API server, and with other writers of the same objects, the objects are the same as without them, and none was
//! created twice. Every call and every fault of it is tried in process (host/controller/tests/every_api_call_can_fail). Here are those that have
//! a socket, a process or a second controller, which prove that the API server of that test behaves like a real one.
//!
//! These tests kill the API server, so they do not share a program with others.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;
use tokio::sync::OnceCell;
use trainyard_cluster::{Test, eventually};

use crate::common::{Case, Disturbed, Scenario};

/// The deadline of the overdue TrainJob, which expires while the API server is unavailable.
const DEADLINE: Duration = Duration::from_secs(20);
/// How long the API server is unavailable.
const AWAY: Duration = Duration::from_secs(30);

/// Returns the objects without a disturbance.
static UNDISTURBED: OnceCell<Value> = OnceCell::const_new();

async fn undisturbed(shared: &Disturbed) -> Result<&'static Value> {
    let objects = async || {
        let controller = shared.controller().await?;
        let scenario = prepared(shared).await?;
        happen(&scenario).await?;
        let objects = scenario.settled(&Case::ALL).await?;
        controller.kill()?;
        Ok(objects)
    };
    UNDISTURBED.get_or_try_init(objects).await
}

/// Creates a scenario with one TrainJob of each case.
async fn prepared(shared: &Disturbed) -> Result<Scenario<'_>> {
    let scenario = Scenario::new(&shared.cluster, DEADLINE).await?;
    // The one with a deadline comes last, because its time is limited.
    for case in Case::ALL.into_iter().filter(|case| *case != Case::Overdue) {
        case.prepare(&scenario).await?;
    }
    Case::Overdue.prepare(&scenario).await?;
    Ok(scenario)
}

async fn happen(scenario: &Scenario<'_>) -> Result<()> {
    for case in Case::ALL {
        case.happen(scenario).await?;
    }
    Ok(())
}

/// Makes the change of every case under the disturbance `shake`, and waits until the objects are as without it.
async fn waited_out(
    shared: &Disturbed,
    shake: impl AsyncFnOnce(&Scenario<'_>) -> Result<()>,
) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let expected = undisturbed(shared).await?;
    let controller = shared.controller().await?;
    shared.proxy.forget().await;
    let scenario = prepared(shared).await?;
    shake(&scenario).await?;
    scenario.until_it_is(expected).await?;
    scenario.stays(expected, &controller).await?;
    controller.process().still_runs()?;
    controller.kill()?;
    Ok(())
}

async fn api_server_restart_is_survived(shared: &Disturbed) -> Result<()> {
    waited_out(shared, async |scenario| {
        happen(scenario).await?;
        shared.cluster.plane().kill_api_server()?;
        tokio::time::sleep(Duration::from_secs(5)).await;
        shared.cluster.plane().start_api_server().await?;
        // The API server is ready before it serves every kind.
        let served = async || Ok(scenario.objects().await.ok());
        eventually("all kinds are served", served).await?;
        shared.cluster.restart_controller_manager().await
    })
    .await
}

async fn hanging_connections_are_survived(shared: &Disturbed) -> Result<()> {
    waited_out(shared, async |scenario| {
        shared.proxy.hang();
        happen(scenario).await?;
        tokio::time::sleep(AWAY).await;
        shared.proxy.serve().await
    })
    .await
}

async fn second_controller_is_survived(shared: &Disturbed) -> Result<()> {
    waited_out(shared, async |scenario| {
        let second = shared.direct_controller().await?;
        happen(scenario).await?;
        scenario.settled(&Case::ALL).await?;
        second.process().still_runs()?;
        second.kill()?;
        Ok(())
    })
    .await
}

pub(crate) fn tests() -> Vec<Test<Disturbed>> {
    tests![
        api_server_restart_is_survived,
        hanging_connections_are_survived,
        second_controller_is_survived,
    ]
}
