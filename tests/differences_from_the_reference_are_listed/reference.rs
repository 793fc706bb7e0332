//! The reference's answers for an input, from the Go program of `tests/reference/oracle`.

use std::{path::Path, sync::OnceLock};

use serde_json::json;
use trainyard_cluster::{Oracle, RunningOracle};
use trainyard_divergences::difference::Answer;

/// The answers for an input. There are several if the reference is not deterministic.
pub(super) type Answers = Vec<Answer>;

/// How often the reference renders an input, with its plugins in two orders.
#[derive(Clone, Copy, Debug)]
pub(super) enum Runs {
    /// Once with each order.
    Few,
    /// Often enough to observe nearly all results that depend on the order of its maps.
    Many,
    /// Often enough to observe which of a container's resources it takes for GPUs: one of two may come first in every eighth run.
    Most,
}

impl Runs {
    /// As often as the answers to an input need that are checked in.
    pub(super) fn to_keep(input: &str) -> Self {
        let counts_gpus = input.contains("nvidia.com/gpumem") && input.contains(".com/gpu:");
        if counts_gpus { Self::Most } else { Self::Many }
    }

    fn number(self) -> u32 {
        match self {
            Self::Few => 2,
            Self::Many => 16,
            Self::Most => 128,
        }
    }
}

/// The running reference.
pub(super) struct Reference(RunningOracle);

impl Reference {
    /// Starts it. The first test builds it.
    pub(super) fn start() -> Self {
        static BUILT: OnceLock<Oracle> = OnceLock::new();
        let build = || Oracle::build(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
        Self(BUILT.get_or_init(build).start().unwrap())
    }

    /// Returns the answer for the documents of a text.
    pub(super) fn ask(&mut self, text: &str, runs: Runs) -> Answers {
        let question = json!({"yaml": text, "runs": runs.number()});
        let mut response = self.0.ask(&question).unwrap();
        serde_json::from_value(response["answers"].take()).unwrap()
    }
}
