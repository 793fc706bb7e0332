//! The page of the shadow mode, as text.

use std::fmt::Write as _;

use super::{Shadow, ShadowOutcome, ShadowedJob};
use crate::queue::NamespacedName;

/// The most TrainJobs on the page. Those that differ most come first.
const MOST_JOBS: usize = 1_000;

impl Shadow {
    /// Returns the page: the counts, and the TrainJobs that differ, the worst first.
    #[must_use]
    pub fn page(&self) -> String {
        let counts = self.counts();
        let mut text = String::from(
            "Shadow mode: how Trainyard's rendering differs from the objects in the cluster. Nothing is written.\n\n",
        );
        for outcome in ShadowOutcome::ALL {
            let count = counts.outcomes.get(&outcome).copied().unwrap_or_default();
            line(&mut text, format_args!("{count:>7}  {}", outcome.label()));
        }
        text.push_str("\nTrainJobs by row of tests/reference/divergences.md:\n\n");
        let mut rows: Vec<_> = counts.rows.iter().collect();
        rows.sort_by_key(|(row, count)| (std::cmp::Reverse(**count), **row));
        for (row, count) in rows {
            line(&mut text, format_args!("{count:>7}  {row}"));
        }
        text.push('\n');
        let jobs = self.jobs();
        let mut worst: Vec<_> = jobs
            .iter()
            .filter(|(_, job)| job.outcome != ShadowOutcome::Same)
            .collect();
        worst.sort_by_key(|(key, job)| (severity(job), *key));
        for (key, job) in worst.iter().take(MOST_JOBS) {
            of_job(&mut text, key, job);
        }
        let more = worst.len().saturating_sub(MOST_JOBS);
        if more > 0 {
            line(
                &mut text,
                format_args!("{more} more TrainJobs are not shown"),
            );
        }
        text
    }
}

/// Returns the place of an outcome on the page.
const fn severity(job: &ShadowedJob) -> u8 {
    match job.outcome {
        ShadowOutcome::Refused => 0,
        ShadowOutcome::Unlisted => 1,
        ShadowOutcome::Listed => 2,
        ShadowOutcome::NotCompared => 3,
        ShadowOutcome::Same => 4,
    }
}

fn of_job(text: &mut String, key: &NamespacedName, job: &ShadowedJob) {
    let (namespace, name, outcome) = (&key.namespace, &key.name, job.outcome.label());
    line(text, format_args!("TrainJob {namespace}/{name}: {outcome}"));
    for each in &job.lines {
        line(text, format_args!("  {each}"));
    }
    if job.omitted > 0 {
        line(text, format_args!("  and {} more", job.omitted));
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}
