//! What can happen to a call or to an event of a watch.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::stub::cluster::{Act, Cluster, Lost, When};

/// How long the API server is unavailable.
const OUTAGE: Duration = Duration::from_secs(45);

/// A call of a run, by its number among the calls of its verb and kind. An event that a watch delivers has the verb `event`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) verb: String,
    pub(super) kind: String,
    pub(super) nth: usize,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.verb, self.kind, self.nth)
    }
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The call, or the event, is handled so.
    Act(Act),
    /// This call and all others are refused for a while, and the watches break.
    Outage,
    /// The controller is killed before the call arrives.
    KillBefore,
    /// The controller is killed before the answer arrives.
    KillAfter,
}

/// Faults of every call, before it is executed.
const BEFORE: [Fault; 9] = [
    Fault::Act(Act::Answer(429)),
    Fault::Act(Act::Answer(500)),
    Fault::Act(Act::Answer(503)),
    Fault::Act(Act::Answer(504)),
    Fault::Act(Act::Cut),
    Fault::Act(Act::Hang),
    Fault::Act(Act::Wait(Duration::from_secs(4))),
    Fault::Outage,
    Fault::KillBefore,
];

/// Faults of answers to calls that were executed. An answer to a read is lost as if the call were not executed, unless half of it arrives.
const AFTER: [Fault; 7] = [
    Fault::Act(Act::Then(Lost::Answer(500))),
    Fault::Act(Act::Then(Lost::Answer(503))),
    Fault::Act(Act::Then(Lost::Answer(504))),
    Fault::Act(Act::Then(Lost::Hang)),
    Fault::Act(Act::Then(Lost::Cut)),
    Fault::Act(Act::Then(Lost::Tear)),
    Fault::KillAfter,
];

/// Faults of watches and their events.
const EVENT: [Fault; 6] = [
    Fault::Act(Act::Wait(Duration::from_secs(5))),
    Fault::Act(Act::Wait(Duration::from_secs(45))),
    Fault::Act(Act::Twice),
    Fault::Act(Act::Answer(410)),
    Fault::Act(Act::End),
    Fault::Act(Act::Cut),
];

/// Returns the faults of calls with this verb.
pub(super) fn of(verb: &str) -> Vec<Fault> {
    let conflict = [Fault::Act(Act::Answer(409))];
    let before = BEFORE.into_iter();
    match verb {
        "event" => EVENT.into(),
        "watch" => before.chain([Fault::Act(Act::Answer(410))]).collect(),
        "get" | "list" => before.chain([Fault::Act(Act::Then(Lost::Tear))]).collect(),
        _ => before.chain(conflict).chain(AFTER).collect(),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Act(act) => write!(f, "{act:?}"),
            other => write!(f, "{other:?}"),
        }
    }
}

/// Whether a controller may not see the deletion of a JobSet because of this fault of a call.
pub(super) fn hides_deletions(point: &Point, fault: Fault) -> bool {
    let is_of_watch = ["event", "watch", "list"].contains(&point.verb.as_str());
    is_of_watch && point.kind == "jobsets" || !matches!(fault, Fault::Act(_))
}

/// Which calls have faults.
pub(super) enum Plan {
    None,
    /// One call.
    One(Point, Fault),
    /// Every fifth call until that time, by chance.
    Storm(fastrand::Rng, Instant),
}

impl Plan {
    /// Whether the controller may be killed.
    pub(super) fn starts_again(&self) -> bool {
        match self {
            Self::None => false,
            Self::One(_, fault) => matches!(fault, Fault::KillBefore | Fault::KillAfter),
            Self::Storm(..) => true,
        }
    }
}

/// The calls of a run so far, and their faults.
pub(super) struct Disturbance {
    plan: Plan,
    pub(super) calls: Vec<Point>,
    count: BTreeMap<(String, String), usize>,
    /// Whether the fault happened.
    pub(super) happened: bool,
    outage: Option<Instant>,
}

impl Disturbance {
    /// Disturbs the calls of a cluster. The notifier gets the kills.
    pub(super) fn start(cluster: &Cluster, plan: Plan) -> (Arc<Mutex<Self>>, Arc<Notify>) {
        let disturbance = Arc::new(Mutex::new(Self {
            plan,
            calls: Vec::new(),
            count: BTreeMap::new(),
            happened: false,
            outage: None,
        }));
        let kills = Arc::new(Notify::new());
        let (disturbs, kill) = (disturbance.clone(), kills.clone());
        cluster.set_rule(move |cluster, when, call, _| {
            if when == When::Done {
                return Act::GoOn;
            }
            let fault = disturbs.lock().unwrap().next(call);
            match fault {
                None => Act::GoOn,
                Some(Fault::Act(act)) => act,
                Some(Fault::Outage) => {
                    cluster.break_watches();
                    Act::Answer(503)
                }
                Some(Fault::KillBefore) => {
                    kill.notify_one();
                    Act::Hang
                }
                Some(Fault::KillAfter) => {
                    kill.notify_one();
                    Act::Then(Lost::Hang)
                }
            }
        });
        (disturbance, kills)
    }

    /// Notes a call, and returns its fault.
    fn next(&mut self, (verb, kind): (&str, &str)) -> Option<Fault> {
        let count = self.count.entry((verb.to_owned(), kind.to_owned()));
        let nth = count.or_default();
        *nth += 1;
        let point = Point {
            verb: verb.to_owned(),
            kind: kind.to_owned(),
            nth: *nth,
        };
        self.calls.push(point.clone());
        let now = Instant::now();
        if self.outage.is_some_and(|until| now < until) && verb != "event" {
            return Some(Fault::Act(Act::Answer(503)));
        }
        let fault = match &mut self.plan {
            Plan::One(at, fault) if *at == point => Some(*fault),
            Plan::Storm(random, until) if now < *until => {
                let faults = of(verb);
                let fault = faults[random.usize(..faults.len())];
                (random.u8(..5) == 0).then_some(fault)
            }
            _ => None,
        };
        self.happened |= fault.is_some();
        if fault == Some(Fault::Outage) {
            self.outage = Some(now + OUTAGE);
        }
        fault
    }
}
