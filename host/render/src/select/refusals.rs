//! The problems of a TrainJob's overrides for plugins.

use trainyard_api::FieldPath;

use crate::problem::Problem;

/// The most problems that are described. An annotation has room for thousands of names.
const MOST: usize = 16;

/// The problems of a TrainJob's overrides for plugins, of which only the first are described.
#[derive(Default)]
pub(super) struct Refusals {
    problems: Vec<Problem>,
    omitted: usize,
}

impl Refusals {
    pub(super) fn add(&mut self, problem: impl FnOnce() -> Problem) {
        if self.problems.len() < MOST {
            self.problems.push(problem());
        } else {
            self.omitted += 1;
        }
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.problems;
        if self.omitted > 0 {
            let message = format!(
                "{} more names and values of plugins are refused; correct the first {MOST}",
                self.omitted
            );
            problems.push(Problem::job(
                FieldPath::of(["metadata", "annotations"]),
                message,
            ));
        }
        problems
    }
}
