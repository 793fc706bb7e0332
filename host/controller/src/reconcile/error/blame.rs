//! Who can correct the cause of an error, for admission: only errors of the TrainJob itself refuse it.

use trainyard_render::{InputObject, Problem};

use super::{ReconcileError, Refused};

/// The sentences of an error by who can correct it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Blame {
    /// Those that the TrainJob's author can correct.
    pub(crate) author: Vec<String>,
    /// Those about the runtime, a plugin, an object that does not exist yet, or the load of the controller or the API server. The controller
    /// reports them on the TrainJob until they are corrected.
    pub(crate) others: Vec<String>,
}

impl ReconcileError {
    /// Returns who can correct it.
    pub(crate) fn blame(&self) -> Blame {
        match self {
            Self::TrainJob(sentences) => Blame {
                author: sentences.clone(),
                others: Vec::new(),
            },
            // The reference refuses it, too.
            Self::NoRuntime { kind, name } => Blame {
                author: vec![format!(
                    "spec.runtimeRef.name: there is no {kind} `{name}`; create it first, or reference one that exists"
                )],
                others: Vec::new(),
            },
            Self::Render(refused) => refused.blame(),
            other => Blame {
                author: Vec::new(),
                others: other.sentences(),
            },
        }
    }
}

impl Refused {
    fn blame(&self) -> Blame {
        let mut blame = Blame::default();
        for problem in self.stopped.problems() {
            let sentence = problem.for_event(&self.job, &self.runtime);
            if is_of_author(problem) {
                blame.author.push(sentence);
            } else {
                blame.others.push(sentence);
            }
        }
        let lookups = self.stopped.lookups().iter();
        blame.others.extend(lookups.map(ToString::to_string));
        blame
    }
}

/// Whether the TrainJob's author can correct a problem. A plugin whose call failed, or that is not loaded, is the operator's.
fn is_of_author(problem: &Problem) -> bool {
    match problem {
        Problem::Call(_)
        | Problem::NotLoaded { .. }
        | Problem::PluginSkipped(_)
        | Problem::TooManyLookups(_)
        | Problem::Overdue { .. } => false,
        Problem::Field { .. }
        | Problem::Refused { .. }
        | Problem::Plan(_)
        | Problem::Invariant { .. } => problem.about() == InputObject::TrainJob,
    }
}
