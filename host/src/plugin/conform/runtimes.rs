//! Counts the shipped runtimes with which the plugin was tried.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    Rendered, of_each,
    report::{Check, CheckName},
};
use crate::{output::counted, runtimes::shipped};

/// The shipped runtimes with which the cases were rendered.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShippedRuntimes {
    all: usize,
    /// The number of those with which a TrainJob was rendered or refused.
    rendered: usize,
    /// Those with which none was.
    skipped: Vec<SkippedRuntime>,
}

/// A shipped runtime with which no TrainJob was rendered.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SkippedRuntime {
    runtime: &'static str,
    reason: String,
}

impl ShippedRuntimes {
    pub(super) fn of(all: &[Rendered]) -> Self {
        let tried = all.iter().filter(|one| one.rendered + one.refused > 0);
        let rendered: BTreeSet<_> = tried.filter_map(|one| one.shipped).collect();
        let mut reasons = BTreeMap::new();
        for one in all {
            if let (Some(runtime), Some(reason)) = (one.shipped, &one.skipped) {
                reasons.entry(runtime).or_insert(reason);
            }
        }
        let skipped = reasons
            .into_iter()
            .filter(|(runtime, _)| !rendered.contains(runtime));
        Self {
            all: shipped().len(),
            rendered: rendered.len(),
            skipped: skipped
                .map(|(runtime, reason)| SkippedRuntime {
                    runtime,
                    reason: reason.clone(),
                })
                .collect(),
        }
    }

    /// Returns the check that the host ended no call with a runtime.
    pub(super) fn check(&self, all: &[Rendered]) -> Check {
        let check = of_each(CheckName::Runtimes, all, |one| &one.ended);
        if self.rendered > 0 {
            return check.also_tried(&format!("with {self}"));
        }
        let why = match self.skipped.first() {
            Some(SkippedRuntime { runtime, reason }) => format!("; {runtime}: {reason}"),
            None => String::new(),
        };
        check.or_untried(&format!("with {self}{why}"))
    }
}

impl std::fmt::Display for ShippedRuntimes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = counted(self.all, "shipped runtime");
        write!(
            f,
            "{} of {of}, {} skipped",
            self.rendered,
            self.skipped.len()
        )
    }
}
