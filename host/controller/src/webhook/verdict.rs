//! What a webhook answers.

use json_patch::Patch;
use trainyard_model::text::{clean, clean_to};

use crate::reconcile::{Blame, DryRunResult};

/// The most warnings of an answer. The API server shows no more than 4096 bytes of all webhooks together.
const MOST_WARNINGS: usize = 16;

/// The most characters of the message of a refusal.
const MESSAGE: usize = 16 << 10;

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Verdict {
    /// Why the object is refused; `None` if it is admitted.
    pub(super) denial: Option<String>,
    /// Warnings for its author.
    pub(super) warnings: Vec<String>,
    /// Whether something could not be checked, of which a warning says what.
    pub(super) unchecked: bool,
    /// The changes of a mutating webhook.
    pub(super) patch: Option<Patch>,
}

impl Verdict {
    /// Refuses an object with these sentences; admits it if there are none.
    pub(super) fn of_errors(sentences: &[String], warnings: Vec<String>) -> Self {
        let denial = (!sentences.is_empty()).then(|| clean_to(&sentences.join("; "), MESSAGE));
        Self {
            denial,
            warnings: bounded(warnings),
            ..Self::default()
        }
    }

    /// Admits an object that could not be checked, with the reason.
    pub(super) fn unchecked(why: &str) -> Self {
        Self {
            warnings: bounded(vec![not_checked(why)]),
            unchecked: true,
            ..Self::default()
        }
    }

    /// Returns the verdict about a TrainJob. An update that is refused because of its runtime alone is admitted: the runtime was there when
    /// the TrainJob was created.
    pub(super) fn of_dry_run(result: DryRunResult, is_update: bool) -> Self {
        let DryRunResult {
            mut warnings,
            error,
        } = result;
        let Some(error) = error else {
            return Self::of_errors(&[], warnings);
        };
        let is_runtime_gone = error.is_without_runtime() && is_update;
        let Blame { author, mut others } = error.blame();
        let denials = if is_runtime_gone {
            others.extend(author);
            Vec::new()
        } else {
            author
        };
        let unchecked = !others.is_empty();
        // The first of them is why the rest of the TrainJob could not be checked.
        warnings.splice(0..0, others.iter().map(|why| not_checked(why)));
        Self {
            unchecked: unchecked && denials.is_empty(),
            ..Self::of_errors(&denials, warnings)
        }
    }

    /// Returns the word for metrics.
    pub(super) const fn word(&self) -> &'static str {
        match (&self.denial, self.unchecked) {
            (Some(_), _) => "denied",
            (None, true) => "unchecked",
            (None, false) => "allowed",
        }
    }
}

fn not_checked(why: &str) -> String {
    format!("not checked completely; the controller reports it on the TrainJob if it lasts: {why}")
}

fn bounded(mut warnings: Vec<String>) -> Vec<String> {
    if warnings.len() > MOST_WARNINGS {
        let rest = warnings.split_off(MOST_WARNINGS - 1);
        warnings.push(format!("and {} more warnings", rest.len()));
    }
    warnings.iter().map(|warning| clean(warning)).collect()
}
