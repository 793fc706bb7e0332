//! Counts the shipped runtimes with which the plugin was tried.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Serialize;

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
    /// Counts the runtimes of renderings with shipped ones. Each has the runtime, whether a TrainJob was rendered or refused, and why one was
    /// skipped.
    pub(super) fn of<'r>(
        renderings: impl Iterator<Item = (&'static str, bool, Option<&'r str>)>,
    ) -> Self {
        let (mut rendered, mut reasons) = (BTreeSet::new(), BTreeMap::new());
        for (runtime, is_rendered, reason) in renderings {
            if is_rendered {
                rendered.insert(runtime);
            }
            if let Some(reason) = reason {
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
                    reason: reason.to_owned(),
                })
                .collect(),
        }
    }

    /// Returns why none was rendered. `None` if one was.
    pub(super) fn untried(&self) -> Option<String> {
        if self.rendered > 0 {
            return None;
        }
        Some(match self.skipped.first() {
            Some(SkippedRuntime { runtime, reason }) => format!("{self}; {runtime}: {reason}"),
            None => self.to_string(),
        })
    }
}

impl fmt::Display for ShippedRuntimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = counted(self.all, "shipped runtime");
        write!(
            f,
            "{} of {of}, {} skipped",
            self.rendered,
            self.skipped.len()
        )
    }
}
