//! The shadow mode: the controller follows a cluster in which the Kubeflow Trainer works, renders every TrainJob, writes nothing, and keeps
//! what differs, for metrics and a page.

mod page;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use trainyard_divergences::{
    difference::{Difference, Refusal},
    live::Listed,
    rows::Row,
};
use trainyard_model::text::clean;

use crate::queue::NamespacedName;

/// The most differences that are kept of one TrainJob. Their rows are all kept.
const MOST_KEPT: usize = 16;

/// The row of what no row lists.
pub(crate) const NO_ROW: &str = "none";

/// How Trainyard's rendering of a TrainJob compares with what the reference made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShadowOutcome {
    /// Nothing differs.
    Same,
    /// Everything that differs is listed by rows.
    Listed,
    /// Something differs without a row.
    Unlisted,
    /// Trainyard refuses the TrainJob.
    Refused,
    /// There is nothing to compare with, or it could not be read.
    NotCompared,
}

impl ShadowOutcome {
    /// All outcomes.
    pub(crate) const ALL: [Self; 5] = [
        Self::Same,
        Self::Listed,
        Self::Unlisted,
        Self::Refused,
        Self::NotCompared,
    ];

    /// Returns the value of the metrics' label.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Listed => "listed",
            Self::Unlisted => "unlisted",
            Self::Refused => "refused",
            Self::NotCompared => "not-compared",
        }
    }
}

/// What is kept of a TrainJob. Values of fields are not: the page has no authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShadowedJob {
    pub(crate) outcome: ShadowOutcome,
    /// The rows, and [`NO_ROW`] for what no row lists.
    pub(crate) rows: BTreeSet<&'static str>,
    /// A line for each difference, up to a number.
    lines: Vec<String>,
    /// The number of further differences.
    omitted: usize,
}

impl ShadowedJob {
    /// Returns a TrainJob with these differences, of which some may be refusals.
    pub(crate) fn of_differences(listed: Vec<Listed>) -> Self {
        let mut job = Self::new(ShadowOutcome::Same);
        for Listed { difference, rows } in listed {
            let outcome = match &difference {
                Difference::RefusedByTrainyard(_) => ShadowOutcome::Refused,
                _ if rows.is_empty() => ShadowOutcome::Unlisted,
                _ => ShadowOutcome::Listed,
            };
            job.outcome = job.outcome.max(outcome);
            let ids = rows.iter().map(|row| row.id);
            let ids: BTreeSet<_> = match rows.is_empty() {
                true => [NO_ROW].into_iter().collect(),
                false => ids.collect(),
            };
            job.add(format!("{}: {}", names(&ids), place(&difference)));
            job.rows.extend(ids);
        }
        job
    }

    /// Returns a TrainJob for which the reference has no JobSet. The rows may concern it.
    pub(crate) fn of_uses(rows: impl Iterator<Item = &'static Row>) -> Self {
        let mut job = Self::new(ShadowOutcome::NotCompared);
        job.rows = rows.map(|row| row.id).collect();
        let rows = match job.rows.is_empty() {
            true => "no row concerns it".to_owned(),
            false => format!("{} may concern it", names(&job.rows)),
        };
        job.add(format!("there is no JobSet to compare with; {rows}"));
        job
    }

    /// Returns a TrainJob that is not compared, with the reason.
    pub(crate) fn not_compared(why: &str) -> Self {
        let mut job = Self::new(ShadowOutcome::NotCompared);
        job.add(clean(why));
        job
    }

    fn new(outcome: ShadowOutcome) -> Self {
        Self {
            outcome,
            rows: BTreeSet::new(),
            lines: Vec::new(),
            omitted: 0,
        }
    }

    fn add(&mut self, line: String) {
        if self.lines.len() < MOST_KEPT {
            self.lines.push(line);
        } else {
            self.omitted += 1;
        }
    }
}

fn names(rows: &BTreeSet<&'static str>) -> String {
    rows.iter().copied().collect::<Vec<_>>().join(", ")
}

/// Returns where something differs, without the values.
fn place(difference: &Difference) -> String {
    let text = match difference {
        Difference::Field { object, path, .. } => format!("{object}: {path}"),
        Difference::RefusedByTrainyard(refusal) | Difference::RefusedByReference(refusal) => {
            let Refusal { object, field, .. } = refusal;
            format!("refused: {object}: {field}")
        }
        Difference::Dropped(text) | Difference::Unwarned(text) => text.clone(),
    };
    clean(&text)
}

/// How many TrainJobs have which outcome, and show which row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShadowCounts {
    /// By outcome.
    pub outcomes: BTreeMap<ShadowOutcome, u64>,
    /// By row. There are as many as divergences.md has, and one for what no row lists.
    pub rows: BTreeMap<&'static str, u64>,
}

/// What was found of each TrainJob.
#[derive(Debug, Default)]
pub struct Shadow(Mutex<BTreeMap<NamespacedName, ShadowedJob>>);

impl Shadow {
    /// Sets what was found of a TrainJob; `None` if it is gone, or another controller manages it.
    pub(crate) fn set(&self, key: &NamespacedName, job: Option<ShadowedJob>) {
        let mut jobs = self.jobs();
        match job {
            Some(job) => _ = jobs.insert(key.clone(), job),
            None => _ = jobs.remove(key),
        }
    }

    /// Counts the TrainJobs.
    pub(crate) fn counts(&self) -> ShadowCounts {
        let mut counts = ShadowCounts {
            outcomes: ShadowOutcome::ALL.map(|outcome| (outcome, 0)).into(),
            ..ShadowCounts::default()
        };
        for job in self.jobs().values() {
            *counts.outcomes.entry(job.outcome).or_default() += 1;
            for row in &job.rows {
                *counts.rows.entry(row).or_default() += 1;
            }
        }
        counts
    }

    fn jobs(&self) -> MutexGuard<'_, BTreeMap<NamespacedName, ShadowedJob>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;
    use trainyard_divergences::listing::all;

    use super::*;

    fn field(path: &str, rows: Vec<&'static Row>) -> Listed {
        Listed {
            difference: Difference::Field {
                object: "JobSet a/b".to_owned(),
                path: path.to_owned(),
                reference: Some(json!("secret of the reference")),
                trainyard: None,
            },
            rows,
        }
    }

    #[test]
    fn the_worst_difference_is_the_outcome() {
        let row = all().next().unwrap();
        let outcome = |listed| ShadowedJob::of_differences(listed).outcome;
        assert_eq!(outcome(vec![]), ShadowOutcome::Same);
        assert_eq!(outcome(vec![field("a", vec![row])]), ShadowOutcome::Listed);
        let both = vec![field("a", vec![]), field("b", vec![row])];
        assert_eq!(outcome(both), ShadowOutcome::Unlisted);
    }

    #[test]
    fn counts_and_page_are_bounded_and_have_no_values() {
        let shadow = Shadow::default();
        let row = all().next().unwrap();
        for at in 0..3_000 {
            let key = NamespacedName::new("team", format!("job-{at}"));
            let fields = (0..100).map(|at| field(&format!("spec.a{at}"), vec![row]));
            let job = ShadowedJob::of_differences(fields.collect());
            shadow.set(&key, Some(job));
        }
        let counts = shadow.counts();
        assert_eq!(counts.rows, BTreeMap::from([(row.id, 3_000)]));
        assert_eq!(counts.outcomes.len(), ShadowOutcome::ALL.len());
        let page = shadow.page();
        assert!(page.len() < 2 << 20, "{}", page.len());
        assert!(
            page.contains("and 84 more") && page.contains("TrainJob team/job-0: listed"),
            "{page}"
        );
        assert!(!page.contains("secret of the reference"));
        shadow.set(&NamespacedName::new("team", "job-0"), None);
        assert_eq!(shadow.counts().rows.get(row.id), Some(&2_999));
    }
}
