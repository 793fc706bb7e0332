//! The page `/plugins` of the metrics server. It has no authentication, so it shows no values.

use std::{fmt::Write as _, sync::PoisonError};

use trainyard_config::policy_plugin::ShadowSummary;
use trainyard_model::text::counted;

use super::{Plugins, rollout::RevisionFacts};

/// What the page shows besides the revisions.
#[derive(Default)]
pub(super) struct Page {
    /// The last comparison: the numbers of both revisions, and the result.
    compared: Option<(u64, u64, ShadowSummary)>,
}

impl Page {
    /// Returns the page as text.
    pub(super) fn text(&self, revisions: &[RevisionFacts]) -> String {
        let mut text = String::from("PluginRevisions, beginning with the newest:\n\n");
        for it in revisions.iter().rev() {
            let stage = it
                .stage
                .map_or_else(|| "New".to_owned(), |stage| format!("{stage:?}"));
            let (name, percent, reason) = (&it.name, it.percent, &it.reason);
            let since = it
                .since
                .map_or_else(String::new, |since| format!(", since {since}"));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}: {stage} ({percent} %), {reason}{since}");
        }
        let Some((number, with, summary)) = &self.compared else {
            text.push_str("\nThis process has not compared two revisions.\n");
            return text;
        };
        let ShadowSummary {
            runtimes,
            train_jobs,
            differing,
            refused,
            differences,
        } = summary;
        let _ = writeln!(
            text,
            "\nRevision {number}, compared with revision {with}: of {} and {}, {differing} would render differently, and {refused} would be refused that revision {with} accepts.\n\nFields that differ, by the plugins that changed:\n",
            counted(*runtimes, "runtime"),
            counted(*train_jobs, "TrainJob"),
        );
        for it in differences {
            let _ = writeln!(
                text,
                "{:>7}  {}  {}  (such as {})",
                it.count, it.plugin, it.field, it.example
            );
        }
        text
    }
}

impl Plugins {
    /// Shows a comparison of two revisions.
    pub(super) fn show(&self, number: u64, with: u64, summary: &ShadowSummary) {
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        page.compared = Some((number, with, summary.clone()));
    }
}
