//! The steps of a revision that does not run yet.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use trainyard_config::policy_plugin::Stage;
use trainyard_model::text::counted;

use super::{
    CandidateFacts, Comparison, Facts, Failures, LAGGING, NewStage, Next, RevisionFacts, Watched,
    is_rolling, rolling, running, stage, write,
};

/// The reasons of a revision that waits for the annotation `trainyard.dev/accept`.
pub(super) const REMOVES: &str = "RemovesPlugins";
pub(super) const REFUSES: &str = "NewRefusals";

/// The reason of a revision that is compared.
pub(crate) const COMPARES: &str = "Comparing";

/// The reason of a share that grows, and those of one that does not.
pub(crate) const PROGRESSES: &str = "Progressing";
const UNWATCHED: &str = "NotWatched";
const LAGS: &str = "ReplicasLag";
pub(super) const FAILS: &str = "NewFailures";
const UNKNOWN: &str = "FailuresNotCompared";

/// The reason of a revision that goes no further, because its PolicyPlugins have changed and cannot be another one yet.
pub(super) const OUTDATED: &str = "OthersFail";

/// The reason of a revision that runs without a comparison because what ran is lost.
pub(crate) const UNCOMPARED: &str = "NothingToCompareWith";

/// How long nobody may watch a share before its status says so. Each replica needs a moment to load it.
const UNWATCHED_FOR: Duration = Duration::from_secs(60);

/// Returns the next step of the newest revision that has not ended; `None` if there is none.
pub(super) fn next(facts: &Facts<'_>) -> Option<Next> {
    let newest = rolling(facts.revisions)?;
    let mut others = facts.revisions.iter().rev();
    let older = others.find(|it| it.number < newest.number && is_rolling(it.stage));
    if let Some(older) = older {
        let message = format!("revision {} takes its place", newest.number);
        return Some(write(
            older.number,
            Stage::Superseded,
            "Superseded",
            message,
        ));
    }
    let known = facts.candidate.as_ref();
    Some(
        Rolling {
            facts,
            revision: newest,
            known: known.filter(|known| known.number == newest.number),
        }
        .next(),
    )
}

/// A rollout.
struct Rolling<'f> {
    facts: &'f Facts<'f>,
    revision: &'f RevisionFacts,
    known: Option<&'f CandidateFacts>,
}

impl Rolling<'_> {
    fn next(&self) -> Next {
        let RevisionFacts { number, hash, .. } = self.revision;
        if self.revision.asked.roll_back {
            let message = "rolled back by the annotation trainyard.dev/roll-back; to try it again, set its annotation trainyard.dev/retry, or change a PolicyPlugin";
            return write(*number, Stage::RolledBack, "Requested", message.to_owned());
        }
        if self.facts.wanted.is_some_and(|wanted| wanted != hash) {
            let message = "the PolicyPlugins ask for other plugins now".to_owned();
            return write(*number, Stage::Superseded, "Superseded", message);
        }
        let Some(running) = running(self.facts.revisions) else {
            let (reason, message) = match self.facts.is_lost || self.revision.stage.is_some() {
                false => (
                    "First",
                    "no other revision has run, so there is nothing to compare it with",
                ),
                true => (
                    UNCOMPARED,
                    "the running revision was deleted, no earlier one is kept, and the leader does not have its plugins in memory, so this one runs in all namespaces without a comparison",
                ),
            };
            return write(*number, Stage::Running, reason, message.to_owned());
        };
        if let Some(why) = self.known.and_then(|known| known.refused.as_ref()) {
            return write(*number, Stage::Refused, "NotLoaded", why.clone());
        }
        match self.revision.stage {
            Some(Stage::Shadow) => self.shadow(running),
            Some(Stage::Share) => self.share(running),
            _ => {
                let message = format!("compared with revision {}", running.number);
                write(*number, Stage::Shadow, COMPARES, message)
            }
        }
    }

    fn shadow(&self, running: &RevisionFacts) -> Next {
        let RevisionFacts {
            number,
            asked,
            ref name,
            ..
        } = *self.revision;
        let Some((known, comparison)) = self.known.and_then(|it| Some((it, it.comparison?))) else {
            return Next::Compare(number);
        };
        if !asked.accept && !known.removed.is_empty() {
            return self.wait(
                None,
                REMOVES,
                format!(
                    "{} {} no longer active for every TrainJob as before; to go on, run `kubectl annotate pluginrevision {name} trainyard.dev/accept=`, or restore the PolicyPlugin",
                    known.removed.join(", "),
                    if known.removed.len() == 1 { "is" } else { "are" },
                ),
            );
        }
        if !asked.accept && comparison.refused > 0 {
            return self.wait(
                None,
                REFUSES,
                format!(
                    "refuses {} of the compared TrainJobs and runtimes that revision {} accepts; correct the PolicyPlugins, or run `kubectl annotate pluginrevision {name} trainyard.dev/accept=` to go on, with the value `failures` if TrainJobs may also fail in its shares",
                    comparison.refused, running.number
                ),
            );
        }
        if comparison == Comparison::default() {
            let message = format!(
                "no TrainJob or runtime renders differently than with revision {}",
                running.number
            );
            return write(number, Stage::Running, "NoDifference", message);
        }
        let mut why = format!(
            "{} of the compared TrainJobs and runtimes would render differently",
            comparison.differing.saturating_add(comparison.refused)
        );
        if comparison.not_compared > 0 {
            why += &format!(", and {} could not be compared", comparison.not_compared);
        }
        self.widen(0, &why)
    }

    /// Stays at its stage, which says why, until a fact changes or that time comes.
    fn wait(&self, until: Option<Timestamp>, reason: &'static str, message: String) -> Next {
        let RevisionFacts {
            number, percent, ..
        } = *self.revision;
        let now = self.revision.stage.unwrap_or(Stage::Shadow);
        match self.revision.reason == reason && self.revision.message == message {
            true => Next::Wait(until),
            false => Next::Write(NewStage {
                percent,
                begins: false,
                ..stage(number, now, reason, message)
            }),
        }
    }

    fn share(&self, running: &RevisionFacts) -> Next {
        let RevisionFacts {
            number,
            percent,
            since,
            asked,
            ref name,
            ..
        } = *self.revision;
        let known = self.known.cloned().unwrap_or_default();
        if !asked.accept_failures && known.failures.are_too_many() {
            let message = format!(
                "{} of {} TrainJobs of its share fail with it and not with revision {}; correct a PolicyPlugin, or set its annotation trainyard.dev/retry to try it again, and trainyard.dev/accept=failures on the revision that this creates to go on in spite of them",
                known.failures.train_jobs, known.failures.all_train_jobs, running.number
            );
            return write(number, Stage::RolledBack, "Failures", message);
        }
        // Neither an earlier leader, whose memory of failures is lost, nor the clock alone proves a share.
        // A time in the future was written by another clock.
        let since = since.filter(|since| *since <= self.facts.now);
        let watched = match known.watched {
            Watched::Since(watched) => watched,
            Watched::NothingToCompareWith(_) if asked.accept_failures => Timestamp::MIN,
            Watched::NothingToCompareWith(why) => {
                let how = format!(
                    "; make it available, or run `kubectl annotate --overwrite pluginrevision {name} trainyard.dev/accept=failures` to go on"
                );
                return self.unwatched(since, &(why + &how));
            }
            Watched::No(why) => return self.unwatched(since, &why),
        };
        let since = since.map_or(watched, |since| since.max(watched));
        let ends = after(since, self.facts.settings.interval);
        let at_last = after(since, self.facts.settings.interval.saturating_add(LAGGING));
        if self.facts.now < ends {
            let message = format!("it has {percent} % of the namespaces until {ends}");
            // What it waited for has come.
            return match &*self.revision.reason {
                UNWATCHED | LAGS | FAILS | UNKNOWN | OUTDATED => {
                    self.wait(Some(ends), PROGRESSES, message)
                }
                _ => Next::Wait(Some(ends)),
            };
        }
        if known.lagging > 0 && self.facts.now < at_last {
            let message = format!(
                "it keeps {percent} % of the namespaces, and waits until {at_last} for {} to load it; the status of revision {} has all replicas",
                counted(known.lagging, "replica"),
                running.number
            );
            return self.wait(Some(at_last), LAGS, message);
        }
        if !asked.accept_failures && known.failures.train_jobs > 0 {
            return self.wait(None, FAILS, self.fails(&known.failures, running));
        }
        let unknown = known.failures.not_compared;
        if !asked.accept_failures && unknown > 0 {
            let message = format!(
                "it keeps {percent} % of the namespaces, because {} could not be compared with revision {}, such as because calls of a plugin exceed their time, or the API server does not answer; correct the PolicyPlugins, or run `kubectl annotate --overwrite pluginrevision {name} trainyard.dev/accept=failures` to go on",
                counted(unknown, "failing TrainJob"),
                running.number
            );
            return self.wait(None, UNKNOWN, message);
        }
        let why = match unknown > 0 || known.failures.train_jobs > 0 {
            true => "the annotation trainyard.dev/accept=failures accepts the TrainJobs that fail",
            false => "no TrainJob of the share fails because of it",
        };
        self.widen(percent, why)
    }

    /// Returns which TrainJobs fail because of the revision, and how to go on.
    fn fails(&self, failures: &Failures, running: &RevisionFacts) -> String {
        let RevisionFacts { percent, name, .. } = self.revision;
        format!(
            "it keeps {percent} % of the namespaces, because it makes {} of {} fail and revision {} does not, such as {}; correct the PolicyPlugins or these TrainJobs, or run `kubectl annotate --overwrite pluginrevision {name} trainyard.dev/accept=failures` to go on",
            counted(failures.train_jobs, "TrainJob"),
            counted(failures.namespaces, "namespace"),
            running.number,
            failures.examples.join(", ")
        )
    }

    /// Waits until this process sees which TrainJobs fail, and then says why it does not.
    fn unwatched(&self, since: Option<Timestamp>, why: &str) -> Next {
        let says = since.map(|since| after(since, UNWATCHED_FOR));
        if says.is_some_and(|says| self.facts.now < says) {
            return Next::Wait(says);
        }
        let message = format!(
            "it keeps {} % of the namespaces, because the leader cannot watch which TrainJobs fail with it: {why}",
            self.revision.percent
        );
        self.wait(None, UNWATCHED, message)
    }

    /// Goes to the next share after one, or to all namespaces, unless somebody has changed a PolicyPlugin of it.
    fn widen(&self, after: u8, why: &str) -> Next {
        let number = self.revision.number;
        if self.known.is_some_and(|known| known.is_outdated) {
            let message = "the PolicyPlugins ask for other plugins now, but something is wrong with one of them, as its conditions say; correct it, or roll this revision back";
            return self.wait(None, OUTDATED, message.to_owned());
        }
        let mut steps = self.facts.settings.steps.iter().copied();
        match steps.find(|step| *step > after && *step < 100) {
            Some(percent) => Next::Write(NewStage {
                percent,
                ..stage(
                    number,
                    Stage::Share,
                    PROGRESSES,
                    format!("{why}; it has {percent} % of the namespaces"),
                )
            }),
            None => write(number, Stage::Running, "Completed", why.to_owned()),
        }
    }
}

fn after(time: Timestamp, wait: Duration) -> Timestamp {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    time.saturating_add(wait).unwrap_or(Timestamp::MAX)
}
