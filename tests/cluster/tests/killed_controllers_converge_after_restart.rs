//! If the controller is killed before or after any API call of a reconcile, it converges after the next start: every TrainJob has the same
//! objects as without the interruption, with no duplicates and no orphans.
//!
//! Kills at each call of each kind of TrainJob are tried in process (host/controller/tests/every_api_call_can_fail). The two cases here prove
//! that test true: the one with the most writes, and the one in which time passes while no process runs.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Result, ensure};
use serde_json::Value;
use trainyard_cluster::{Act, Call, Test, Trainyard, eventually};

use crate::common::{Case, Disturbed, Scenario};

/// The deadline of the overdue TrainJob, which is long enough for it to run first.
const DEADLINE: Duration = Duration::from_secs(12);

/// The time at which the controller is killed: before or after the call with this number.
#[derive(Clone, Copy, Debug)]
struct Kill {
    call: usize,
    answered: bool,
}

/// How far a kill is.
#[derive(Debug, Default)]
struct Killing {
    /// Its call has come.
    is_chosen: AtomicBool,
    is_done: AtomicBool,
}

impl Killing {
    fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Relaxed)
    }
}

/// The TrainJobs of one case, each in its own namespace.
struct Rounds<'a> {
    shared: &'a Disturbed,
    case: Case,
    controller: Arc<Trainyard>,
    /// The scenarios of the previous rounds, which are watched until the last round ends.
    over: Vec<Scenario<'a>>,
}

/// The calls of an undisturbed controller, and the resulting objects.
struct Undisturbed {
    calls: Vec<String>,
    objects: Value,
}

impl<'a> Rounds<'a> {
    async fn undisturbed(&mut self) -> Result<Undisturbed> {
        let scenario = self.prepared().await?;
        self.shared.proxy.forget().await;
        self.happen(&scenario).await?;
        let objects = scenario.settled(&[self.case]).await?;
        scenario.creations.assert_created_once().await?;
        Ok(Undisturbed {
            calls: self.calls(&scenario).await,
            objects,
        })
    }

    /// Kills the controller at this time, starts it again, and waits until the objects are as undisturbed. Returns the call; `None` if this
    /// round had no call with this number.
    async fn killed(&mut self, kill: Kill, undisturbed: &Value) -> Result<Option<String>> {
        let scenario = self.prepared().await?;
        let killing = Arc::new(Killing::default());
        self.shared.proxy.forget().await;
        self.happen_with(&scenario, Some((kill, Arc::clone(&killing))))
            .await?;
        let done = "the controller is killed, or at its end";
        eventually(done, async || {
            let over = killing.is_done() || scenario.is(undisturbed).await?;
            Ok(over.then_some(()))
        })
        .await?;
        let calls = self.calls(&scenario).await;
        // A controller at its end may still write a status: from here on, no call kills it.
        self.shared.proxy.forget().await;
        let around = if killing.is_chosen.load(Ordering::Relaxed) {
            let killed = async || Ok(killing.is_done().then_some(()));
            eventually("the controller is killed", killed).await?;
            self.controller = self.shared.controller().await?;
            calls.last().cloned()
        } else {
            None
        };
        scenario.until_it_is(undisturbed).await?;
        self.over.push(scenario);
        Ok(around)
    }

    /// Creates a scenario with a TrainJob before its change.
    async fn prepared(&self) -> Result<Scenario<'a>> {
        let scenario = Scenario::new(&self.shared.cluster, DEADLINE).await?;
        self.case.prepare(&scenario).await?;
        // Earlier calls must not be counted.
        scenario.unchanged_for(Duration::from_millis(700)).await?;
        Ok(scenario)
    }

    async fn happen(&mut self, scenario: &Scenario<'_>) -> Result<()> {
        self.happen_with(scenario, None).await
    }

    async fn happen_with(
        &mut self,
        scenario: &Scenario<'_>,
        kill: Option<(Kill, Arc<Killing>)>,
    ) -> Result<()> {
        if self.case == Case::Overdue {
            // The deadline expires while no controller runs.
            self.controller.kill()?;
            tokio::time::sleep(scenario.deadline).await;
            self.controller = self.shared.starting_controller()?;
        }
        if let Some((kill, killing)) = kill {
            let rule = rule(kill, &scenario.name, &self.controller, killing);
            self.shared.proxy.set_rule(rule).await;
        }
        self.case.happen(scenario).await
    }

    /// Returns the calls for this scenario, without the parts that differ between runs.
    async fn calls(&self, scenario: &Scenario<'_>) -> Vec<String> {
        let calls = self.shared.proxy.calls().await;
        let calls = calls.iter().filter(|call| is_in(call, &scenario.name));
        let text = |call: &Call| {
            let path = call.path.replace(&scenario.name, "NAMESPACE");
            format!("{} {path}", call.method)
        };
        calls.map(text).collect()
    }
}

/// Returns whether a call is for an object of this namespace. Watches and lists are for all namespaces.
fn is_in(call: &Call, namespace: &str) -> bool {
    call.path.contains(&format!("/namespaces/{namespace}/"))
}

fn rule(
    kill: Kill,
    namespace: &str,
    controller: &Arc<Trainyard>,
    killing: Arc<Killing>,
) -> impl FnMut(&Call) -> Act + Send + 'static {
    let (namespace, controller) = (namespace.to_owned(), Arc::clone(controller));
    let mut calls = 0;
    move |call| {
        calls += usize::from(is_in(call, &namespace));
        if calls != kill.call || !is_in(call, &namespace) {
            return Act::Forward;
        }
        killing.is_chosen.store(true, Ordering::Relaxed);
        let (controller, killing) = (Arc::clone(&controller), Arc::clone(&killing));
        let end = move || {
            // The next start shows the result.
            let _ = controller.kill();
            killing.is_done.store(true, Ordering::Relaxed);
        };
        if kill.answered {
            Act::cut_after(end)
        } else {
            Act::cut_before(end)
        }
    }
}

async fn converges(shared: &Disturbed, case: Case) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let mut rounds = Rounds {
        controller: shared.controller().await?,
        shared,
        case,
        over: Vec::new(),
    };
    let undisturbed = rounds.undisturbed().await?;
    ensure!(!undisturbed.calls.is_empty(), "{case:?}: no call");
    for answered in [false, true] {
        let mut around = BTreeSet::new();
        for call in 1..=undisturbed.calls.len() {
            let kill = Kill { call, answered };
            let round = rounds.killed(kill, &undisturbed.objects).await;
            let round = round.map_err(|error| {
                let calls = &undisturbed.calls;
                error.context(format!("{case:?}, {kill:?} of {calls:#?}"))
            })?;
            around.extend(round);
        }
        // The number of status writes differs between runs, but each kind of call occurred.
        let all: BTreeSet<_> = undisturbed.calls.iter().cloned().collect();
        ensure!(all.is_subset(&around), "{case:?}: {around:#?} of {all:#?}");
    }
    rounds.controller.until_idle().await?;
    for scenario in &rounds.over {
        let stayed = scenario.has_stayed(&undisturbed.objects).await;
        stayed.map_err(|error| error.context(format!("{case:?} in {}", scenario.name)))?;
    }
    rounds.controller.kill()?;
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Disturbed>> {
    let test = |case: Case| {
        let name = format!("a_train_job_that_is_{}", case.name());
        Test::new(name, async move |shared: &Disturbed| {
            converges(shared, case).await
        })
    };
    [Case::Created, Case::Overdue].map(test).into()
}
