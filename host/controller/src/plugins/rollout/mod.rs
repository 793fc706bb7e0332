//! What happens next to the revisions of the cluster's plugins. Time and all facts are arguments.
//!
//! One step is decided at a time, and each is one write, so a leader that is killed between two steps is continued by the next one. A revision
//! without a stage was created and has not begun.

mod proposal;
mod rolling;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::jiff::Timestamp;
pub(crate) use proposal::{Proposal, proposal};
pub(crate) use rolling::{COMPARES, PROGRESSES, UNCOMPARED};
use trainyard_config::policy_plugin::Stage;

use crate::declared::RolloutSettings;

/// How many revisions are kept, apart from those that are used.
const KEPT: usize = 10;

/// How long a rollout waits for replicas that have not loaded the revision. A replica that was killed cannot report that it is gone.
pub(crate) const LAGGING: Duration = Duration::from_secs(120);

/// The reason of a revision that runs because the running one was deleted.
pub(crate) const RESTORED: &str = "Restored";

/// A revision, as far as rollouts depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RevisionFacts {
    /// Its number. No two have the same.
    pub(crate) number: u64,
    /// The name of its object.
    pub(crate) name: String,
    /// The digest of its plugins.
    pub(crate) hash: String,
    /// `None` if it has not begun.
    pub(crate) stage: Option<Stage>,
    /// Its share of the namespaces.
    pub(crate) percent: u8,
    /// When its stage began.
    pub(crate) since: Option<Timestamp>,
    /// Why it is at its stage, for programs and for people.
    pub(crate) reason: String,
    pub(crate) message: String,
    /// What people ask for by annotations.
    pub(crate) asked: Asked,
    /// Whether it ran, was deleted and was created again.
    pub(crate) has_run: bool,
}

/// What people ask for by annotations of a revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// `trainyard.dev/accept`
    pub(crate) accept: bool,
    /// `trainyard.dev/accept=failures`
    pub(crate) accept_failures: bool,
    /// `trainyard.dev/roll-back`
    pub(crate) roll_back: bool,
    /// `trainyard.dev/retry`
    pub(crate) retry: bool,
}

/// What is known of a rollout.
#[derive(Clone, Debug)]
pub(crate) struct Facts<'f> {
    /// All revisions that can be read, the oldest first.
    pub(crate) revisions: &'f [RevisionFacts],
    /// The digest of the plugins that the PolicyPlugins ask for; `None` until it is known.
    pub(crate) wanted: Option<&'f str>,
    /// What is known of the newest revision that has not ended.
    pub(crate) candidate: Option<CandidateFacts>,
    /// The number of the revision whose plugins run in this process, even if it was deleted.
    pub(crate) held: Option<u64>,
    /// Whether a revision has run that was deleted.
    pub(crate) is_lost: bool,
    /// The time.
    pub(crate) now: Timestamp,
    /// The settings.
    pub(crate) settings: &'f RolloutSettings,
}

/// What is known of a revision that is rolled out.
#[derive(Clone, Debug, Default)]
pub(crate) struct CandidateFacts {
    /// Its number.
    pub(crate) number: u64,
    /// Why this release cannot load it, if so.
    pub(crate) refused: Option<String>,
    /// How its rendering compares with that of the running revision; `None` if they were not compared yet.
    pub(crate) comparison: Option<Comparison>,
    /// The plugins that are no longer active for every TrainJob, or are removed.
    pub(crate) removed: Vec<String>,
    /// The TrainJobs that fail with it, and not with the running revision.
    pub(crate) failures: Failures,
    /// Whether its PolicyPlugins have changed since, but cannot be a revision, because something is wrong with one of them.
    pub(crate) is_outdated: bool,
    /// The replicas that have not loaded it.
    pub(crate) lagging: usize,
    pub(crate) watched: Watched,
}

/// Whether this process sees which TrainJobs fail with a revision. A share that nobody watches tells nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// It does since that time.
    Since(Timestamp),
    /// It does not, for this reason.
    No(String),
    /// It would, but the running revision lacks plugins, for this reason, so that nothing can be compared with it.
    NothingToCompareWith(String),
}

impl Default for Watched {
    fn default() -> Self {
        Self::No(String::new())
    }
}

/// How two revisions render the same TrainJobs and runtimes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Those whose objects differ.
    pub(crate) differing: u32,
    /// Those that only the newer revision refuses.
    pub(crate) refused: u32,
    /// Those that could not be rendered now, such as because the API server was unreachable.
    pub(crate) not_compared: u32,
}

/// The TrainJobs of a share that fail with the revision of the share, and not with the running one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    /// The number of these TrainJobs, and of their namespaces.
    pub(crate) train_jobs: usize,
    pub(crate) namespaces: usize,
    /// One of each of the first namespaces, as `NAMESPACE/NAME`.
    pub(crate) examples: Vec<String>,
    /// All TrainJobs of the share that can fail, because they have not started, and their namespaces.
    pub(crate) all_train_jobs: usize,
    pub(crate) all_namespaces: usize,
    /// The TrainJobs that fail, and of which it is not known whether they do with the running revision.
    pub(crate) not_compared: usize,
}

impl Failures {
    /// The fewest TrainJobs, and the share of all, that roll a revision back.
    const FEWEST: usize = 3;
    const PERCENT: usize = 5;

    /// The most examples.
    pub(crate) const EXAMPLES: usize = 5;

    /// Whether the revision is rolled back.
    pub(crate) fn are_too_many(&self) -> bool {
        let share = (self.all_train_jobs * Self::PERCENT).div_ceil(100);
        let namespaces = self.all_namespaces.clamp(1, 2);
        self.train_jobs >= Self::FEWEST.max(share) && self.namespaces >= namespaces
    }
}

/// A stage that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewStage {
    /// The number of the revision.
    pub(crate) number: u64,
    pub(crate) stage: Stage,
    pub(crate) percent: u8,
    /// A word for programs.
    pub(crate) reason: &'static str,
    /// What happened, and what to do.
    pub(crate) message: String,
    /// Whether the time of the stage begins anew.
    pub(crate) begins: bool,
}

/// What happens next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A stage is written.
    Write(NewStage),
    /// A revision that is not used any more is deleted.
    Delete(u64),
    /// The revision of this number, which ran and was deleted, is created again.
    Recreate(u64),
    /// The revision of this number is compared with the running one.
    Compare(u64),
    /// Nothing, until a fact changes or this time comes.
    Wait(Option<Timestamp>),
}

/// Returns what happens next.
pub(crate) fn next(facts: &Facts<'_>) -> Next {
    let restored = restored(facts.revisions, facts.held);
    let now = restored.or_else(|| repaired(facts.revisions));
    let now = now.or_else(|| rolling::next(facts));
    match now {
        None | Some(Next::Wait(_)) => superfluous(facts.revisions)
            .map(Next::Delete)
            .or(now)
            .unwrap_or(Next::Wait(None)),
        Some(next) => next,
    }
}

/// Returns the running revision: the newest one at that stage. While one takes the place of another, both are.
pub(crate) fn running(revisions: &[RevisionFacts]) -> Option<&RevisionFacts> {
    let mut newest_first = revisions.iter().rev();
    newest_first.find(|it| it.stage == Some(Stage::Running))
}

/// Returns the newest revision that has not ended and does not run.
pub(crate) fn rolling(revisions: &[RevisionFacts]) -> Option<&RevisionFacts> {
    let mut newest_first = revisions.iter().rev();
    newest_first.find(|it| is_rolling(it.stage))
}

const fn is_rolling(stage: Option<Stage>) -> bool {
    matches!(stage, None | Some(Stage::Shadow | Stage::Share))
}

/// Whether a revision at this stage is used, or may be.
pub(crate) fn is_live(stage: Option<Stage>) -> bool {
    is_rolling(stage) || stage == Some(Stage::Running)
}

/// Returns the step after the running revision was deleted: the previous one runs again, or else the one that was deleted, which is held in
/// memory. What is rolled out has only been tried in a share, and built-in plugins alone are not what anybody asked for.
pub(crate) fn restored(revisions: &[RevisionFacts], held: Option<u64>) -> Option<Next> {
    if running(revisions).is_some() {
        return None;
    }
    let mut newest_first = revisions.iter().rev();
    let ran = newest_first
        .find(|it| it.stage == Some(Stage::Previous) || it.stage.is_none() && it.has_run);
    let Some(ran) = ran else {
        // One that exists has ended, such as by a rollback.
        let exists = |held: &u64| revisions.iter().any(|it| it.number == *held);
        return held.filter(|held| !exists(held)).map(Next::Recreate);
    };
    let message = match ran.stage {
        None => {
            "it ran and was deleted, and no earlier one is kept, so the controller created it again; to use other plugins, change the PolicyPlugins"
        }
        _ => {
            "no revision ran, because the running one was deleted, so the one before it runs again; a change that was lost is rolled out anew"
        }
    };
    Some(write(
        ran.number,
        Stage::Running,
        RESTORED,
        message.to_owned(),
    ))
}

/// Returns the step that leaves one revision running: the one before a running one that is rolled back, else the newest.
fn repaired(revisions: &[RevisionFacts]) -> Option<Next> {
    let newest = running(revisions)?;
    let older = |stage: Stage| {
        let older = revisions
            .iter()
            .rev()
            .filter(|it| it.number < newest.number);
        let mut at_stage = older.filter(move |it| it.stage == Some(stage));
        at_stage.find(move |it| stage == Stage::Running || !it.asked.roll_back)
    };
    let (number, also_running) = (newest.number, older(Stage::Running));
    if !newest.asked.roll_back {
        let older = also_running?;
        return Some(write(
            older.number,
            Stage::Previous,
            "Replaced",
            format!("revision {number} runs in its place"),
        ));
    }
    if let Some(older) = also_running {
        let older = older.number;
        return Some(write(
            number,
            Stage::RolledBack,
            "Requested",
            format!(
                "rolled back to revision {older} by the annotation trainyard.dev/roll-back; to try it again, set its annotation trainyard.dev/retry, or change a PolicyPlugin"
            ),
        ));
    }
    if let Some(previous) = older(Stage::Previous) {
        return Some(write(
            previous.number,
            Stage::Running,
            "RolledBackTo",
            format!("revision {number} is rolled back by the annotation trainyard.dev/roll-back"),
        ));
    }
    let reason = "NothingToRollBackTo";
    (newest.reason != reason).then(|| {
        let message = "no earlier revision is kept, so it keeps running; change the PolicyPlugins instead, and remove the annotation trainyard.dev/roll-back";
        Next::Write(NewStage {
            begins: false,
            ..stage(number, Stage::Running, reason, message.to_owned())
        })
    })
}

/// Returns the oldest revision that is not kept.
fn superfluous(revisions: &[RevisionFacts]) -> Option<u64> {
    let live = revisions.iter().filter(|it| is_live(it.stage));
    let previous = revisions
        .iter()
        .rev()
        .find(|it| it.stage == Some(Stage::Previous));
    let last = revisions.iter().rev().take(KEPT);
    let kept: BTreeSet<_> = live
        .chain(previous)
        .chain(last)
        .map(|it| it.number)
        .collect();
    let mut numbers = revisions.iter().map(|it| it.number);
    numbers.find(|number| !kept.contains(number))
}

fn stage(number: u64, stage: Stage, reason: &'static str, message: String) -> NewStage {
    NewStage {
        number,
        stage,
        percent: match stage {
            Stage::Running => 100,
            _ => 0,
        },
        reason,
        message,
        begins: true,
    }
}

fn write(number: u64, to: Stage, reason: &'static str, message: String) -> Next {
    Next::Write(stage(number, to, reason, message))
}
