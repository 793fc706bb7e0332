//! Every call of a controller can fail in every way, and every event of its watches can be late, come twice or be lost. Each kind of
//! TrainJob still ends with the same objects, none is created twice, and no transition of a status is illegal.
//!
//! A kind runs undisturbed first, which records the calls. Then it runs again for each call and each fault of it. All runs are in this
//! process with a paused clock, so that timeouts and backoffs take no time. `make test` runs a sample, which `FAULTS_SEED` repeats;
//! `FAULTS_ALL=1` runs all, as `make test-faults` does, `FAULTS_KIND` selects a kind, and `FAULTS_CASE` the calls and faults
//! whose text has this part. [`sabotage`] proves that faults in the controller
//! are found.

mod faults;
mod history;
mod job_set;
mod kinds;
mod sabotage;

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant as RealInstant},
};

use tokio::time::Instant;

use self::{
    faults::{Disturbance, Fault, Plan, Point},
    history::Summary,
    job_set::Broken,
    kinds::Kind,
    sabotage::Sabotage,
};
use crate::stub::{
    clock::PausedClock,
    cluster::{Act, Cluster, Lost},
    controller::Controller,
};

/// How long a step may take, on the paused clock.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// How long nothing changes at the end. One failed call is retried earlier. An annotation that could not be removed is tried again after ten
/// minutes.
const STILL: Duration = Duration::from_secs(120);
const STILL_AFTER_STORM: Duration = Duration::from_secs(700);

/// How many runs of each kind `make test` makes, and how many storms.
const RUNS: usize = 30;
const STORMS: usize = 2;

/// How many storms `make test-faults` makes of each kind.
const ALL_STORMS: usize = 100;

/// How long a storm of faults lasts.
const STORM: Duration = Duration::from_secs(60);

/// The result of a run.
struct Ran {
    objects: BTreeMap<String, String>,
    summary: Summary,
    calls: Vec<Point>,
    happened: bool,
    has_unseen_end: bool,
}

/// Runs a kind of TrainJob with these faults, and with one in the controller.
fn run(
    kind: &Kind,
    plan: impl FnOnce() -> Plan,
    sabotage: Option<Sabotage>,
) -> Result<Ran, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(run_now(kind, plan, sabotage))
}

async fn run_now(
    kind: &Kind,
    plan: impl FnOnce() -> Plan,
    sabotage: Option<Sabotage>,
) -> Result<Ran, String> {
    let cluster = Cluster::new();
    kind.objects
        .iter()
        .for_each(|object| cluster.put(object.clone()));
    cluster.set_admission(job_set::admission);
    let broken = Broken::default();
    let others = tokio::spawn(job_set::run(cluster.clone(), broken.clone()));
    let plan = plan();
    let starts_again = plan.starts_again();
    let still = match plan {
        Plan::Storm(..) => STILL_AFTER_STORM,
        _ => STILL,
    };
    let (disturbance, kills) = Disturbance::start(&cluster, plan);
    let clock = Arc::new(PausedClock::new());
    let start = || {
        let server = sabotage.map_or_else(|| cluster.in_process(), |it| it.between(&cluster));
        Controller::start_in_process(server, clock.clone(), kinds::PLUGINS.clone())
    };
    let mut controller = start();
    let mut steps = pin!(steps(kind, &cluster, starts_again, still));
    let ended = loop {
        tokio::select! {
            ended = &mut steps => break ended,
            () = kills.notified() => {
                controller.kill().await;
                controller = start();
            }
        }
    };
    controller.kill().await;
    others.abort();
    ended?;
    let broken = std::mem::take(&mut *broken.lock().unwrap());
    if !broken.is_empty() {
        return Err(broken.join("; "));
    }
    let disturbance = disturbance.lock().unwrap();
    Ok(Ran {
        objects: history::objects(&cluster),
        summary: history::read(&cluster)?,
        calls: disturbance.calls.clone(),
        happened: disturbance.happened,
        has_unseen_end: kind.loses_job_set && kinds::has_unseen_end(&cluster),
    })
}

/// Runs the steps of a kind, with a controller that may have to start again.
async fn steps(
    kind: &Kind,
    cluster: &Cluster,
    starts_again: bool,
    still: Duration,
) -> Result<(), String> {
    let unseen = |cluster: &Cluster| kind.loses_job_set && kinds::has_unseen_end(cluster);
    for step in &kind.steps {
        if unseen(cluster) {
            break;
        }
        (step.happens)(cluster);
        let over = |cluster: &Cluster| (step.leads_to)(cluster) || unseen(cluster);
        let mut holds = cluster.holds_within(PATIENCE, over).await;
        if let (false, true, Some(again)) = (holds, starts_again, step.checked_after) {
            again(cluster);
            holds = cluster.holds_within(PATIENCE, over).await;
        }
        if !holds {
            let objects = history::objects(cluster);
            let errors: Vec<_> = cluster
                .all("events")
                .iter()
                .map(|it| it["message"].to_string())
                .collect();
            return Err(format!(
                "it does not go on after: {}; {errors:?}; {objects:#?}",
                step.what
            ));
        }
    }
    cluster.is_still_for(still).await;
    Ok(())
}

/// Returns how a run differs from an undisturbed one.
fn difference(expected: &Ran, ran: &Ran) -> Option<String> {
    for (id, object) in &expected.objects {
        let found = ran.objects.get(id).map_or("", String::as_str);
        if found != object {
            return Some(format!(
                "{id} differs: {}",
                history::text_difference(object, found)
            ));
        }
    }
    let more = ran
        .objects
        .keys()
        .find(|id| !expected.objects.contains_key(*id));
    let more = more.map(|id| format!("there is {id}, which there is not when nothing fails"));
    more.or_else(|| expected.summary.difference(&ran.summary))
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs one kind with its faults.
fn survives(name: &str) {
    let all_kinds = kinds::all();
    if let Ok(only) = std::env::var("FAULTS_KIND") {
        assert!(all_kinds.iter().any(|kind| kind.name == only), "{only}");
        if only != name {
            return;
        }
    }
    let kind = all_kinds.into_iter().find(|kind| kind.name == name);
    let kind = kind.unwrap();
    let seed = number("FAULTS_SEED").or_else(|| number("PROPTEST_RNG_SEED"));
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    let began = RealInstant::now();
    let undisturbed = run(&kind, || Plan::None, None)
        .unwrap_or_else(|error| panic!("{name}, undisturbed: {error}"));
    let points = &undisturbed.calls;
    let cases = points.iter().flat_map(|point| {
        faults::of(&point.verb)
            .into_iter()
            .map(move |fault| (point, fault))
    });
    let mut cases: Vec<(&Point, Fault)> = cases.collect();
    let all = cases.len();
    if let Ok(only) = std::env::var("FAULTS_CASE") {
        cases.retain(|(point, fault)| format!("{point}, {fault}").contains(&only));
        assert!(
            !cases.is_empty(),
            "{name} has no call and fault like {only}"
        );
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let storms = match number("FAULTS_ALL") {
        Some(_) => ALL_STORMS,
        None => {
            random.shuffle(&mut cases);
            cases.truncate(RUNS);
            STORMS
        }
    };
    let (mut wrong, mut missed, mut unseen) = (Vec::new(), 0, 0);
    let mut check = |what: String, hides: bool, ran: Result<Ran, String>| match ran {
        Err(error) => wrong.push(format!("{what}: {error}")),
        Ok(ran) if ran.has_unseen_end && hides => unseen += 1,
        Ok(ran) => {
            missed += usize::from(!ran.happened);
            wrong.extend(
                difference(&undisturbed, &ran).map(|difference| format!("{what}: {difference}")),
            );
        }
    };
    for (point, fault) in &cases {
        let plan = || Plan::One((*point).clone(), *fault);
        let hides = faults::hides_deletions(point, *fault);
        check(format!("{point}, {fault}"), hides, run(&kind, plan, None));
    }
    for at in 0..storms {
        let storm = random.u64(..);
        let plan = || Plan::Storm(fastrand::Rng::with_seed(storm), Instant::now() + STORM);
        check(format!("storm {at}"), true, run(&kind, plan, None));
    }
    let time = began.elapsed();
    eprintln!(
        "FAULTS_SEED={seed} {name}: {} calls, {all} faults, {} runs and {storms} storms in {time:.1?}, {missed} missed, {unseen} with an unseen end",
        points.len(),
        cases.len(),
    );
    let most = match kind.waits_for_a_time {
        true => (cases.len() + storms) / 4,
        false => 0,
    };
    assert!(missed <= most, "{missed} faults did not happen");
    let is_common = unseen * 5 > cases.len() + storms;
    assert!(!is_common, "{unseen} runs had an unseen end");
    let count = wrong.len();
    wrong.truncate(12);
    assert!(
        wrong.is_empty(),
        "{name}: {count} runs are wrong\n{}",
        wrong.join("\n\n")
    );
}

macro_rules! kinds {
    ($($test:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $test() {
                survives($name);
            }
        )*

        #[test]
        fn every_kind_is_run() {
            let names = [$($name),*];
            assert_eq!(kinds::all().iter().map(|kind| kind.name).collect::<Vec<_>>(), names);
        }
    };
}

kinds! {
    torch: "torch",
    mpi: "mpi",
    flux: "flux",
    initializers: "initializers",
    coscheduling: "coscheduling",
    volcano: "volcano",
    live_objects: "live",
    dra: "dra",
    relocated: "relocated",
    replaced: "replaced",
    made_again: "made again",
    recreated: "recreated",
    overdue: "overdue",
    deleted: "deleted",
}

/// Returns how a run with a fault in the controller, and one in a call, differs from an undisturbed one of a right controller.
fn found(name: &str, sabotage: Sabotage, point: (&str, &str, usize), act: Act) -> String {
    let kind = kinds::all()
        .into_iter()
        .find(|kind| kind.name == name)
        .unwrap();
    let undisturbed = run(&kind, || Plan::None, None).unwrap();
    let plan = || {
        let (verb, kind, nth) = point;
        let point = Point {
            verb: verb.to_owned(),
            kind: kind.to_owned(),
            nth,
        };
        Plan::One(point, Fault::Act(act))
    };
    match run(&kind, plan, Some(sabotage)) {
        Err(error) => error,
        Ok(ran) => difference(&undisturbed, &ran).unwrap_or_default(),
    }
}

#[test]
fn a_secret_that_is_written_after_its_job_set_is_found() {
    let found = found(
        "mpi",
        Sabotage::SecretLast,
        ("get", "nothing", 1),
        Act::GoOn,
    );
    assert!(found.contains("JobSets were created beside"), "{found}");
}

#[test]
fn an_ignored_conflict_is_found() {
    let found = found(
        "torch",
        Sabotage::IgnoresConflicts,
        ("patch", "trainjobs", 1),
        Act::Answer(409),
    );
    assert!(
        found.contains("it does not go on after: it is created"),
        "{found}"
    );
}

#[test]
fn a_retry_that_creates_a_second_object_is_found() {
    let lost = Act::Then(Lost::Answer(503));
    let found = found(
        "mpi",
        Sabotage::CreatesTwice,
        ("create", "secrets", 1),
        lost,
    );
    assert!(
        found.contains("there is secrets job-mpi-ssh-auth-2"),
        "{found}"
    );
}
