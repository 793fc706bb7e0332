//! The limits of parsing and applying a schema. Neither the vendor, who writes the schema, nor the user, who writes the configuration, is
//! trusted.

use thiserror::Error;

/// The most schemas within one schema, including itself.
pub const MAX_SCHEMAS: usize = 1_000;

/// The most levels of nested schemas. The target of a `$ref` is one level below it.
pub const MAX_SCHEMA_LEVELS: usize = 64;

/// The most levels of nested values in a configuration or a default.
pub const MAX_LEVELS: usize = 32;

/// The most patterns in one schema.
pub const MAX_PATTERNS: usize = 64;

/// The most bytes of one pattern.
pub const MAX_PATTERN: usize = 512;

/// The most bytes of one compiled pattern, which bounds the work per character.
pub(super) const MAX_COMPILED_PATTERN: usize = 32 << 10;

/// The most bytes that defaults add to one configuration: 64 for each value, and the bytes of its strings.
pub const MAX_FILLED: u64 = 1 << 20;

/// The most steps of one check. A step is one value against one schema, one key, a comparison of 16 bytes, or a 64th of matching one
/// character against the largest pattern.
pub const MAX_STEPS: u64 = 4_000_000;

/// The steps of matching one byte against a pattern.
pub(super) const STEPS_OF_A_PATTERN: u64 = 64;

/// The steps of a problem, which is kept until all branches of an `anyOf` are checked.
pub(super) const STEPS_OF_A_PROBLEM: u64 = 64;

/// The most problems that one check of a configuration reports.
const MAX_PROBLEMS: usize = 32;

/// The most unknown keys of one object that are reported for a configuration.
const MAX_KEYS: usize = 10;

/// Why a check ended early.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Exhausted {
    /// Too many steps.
    #[error("takes more than {MAX_STEPS} steps to check with the plugin's schema; shorten it")]
    Steps,
    /// Too many bytes of defaults.
    #[error(
        "gets more than {MAX_FILLED} bytes of defaults from the plugin's schema; shorten its lists and maps"
    )]
    Filled,
    /// Nested too deeply.
    #[error("nests deeper than {MAX_LEVELS} levels; flatten it")]
    Levels,
}

/// The remaining budget of a check.
#[derive(Debug)]
pub(super) struct Budget {
    steps: u64,
    filled: u64,
    /// The most problems that are reported.
    pub(super) problems: usize,
    /// The most unknown keys of one object that are reported.
    pub(super) keys: usize,
}

impl Budget {
    pub(super) const fn new() -> Self {
        Self {
            steps: MAX_STEPS,
            filled: MAX_FILLED,
            problems: MAX_PROBLEMS,
            keys: MAX_KEYS,
        }
    }

    /// For files whose size is bounded, and schemas of Trainyard itself: the work is linear in the size, and all errors are reported.
    pub(super) const fn unlimited() -> Self {
        Self {
            steps: u64::MAX,
            filled: u64::MAX,
            problems: usize::MAX,
            keys: usize::MAX,
        }
    }

    pub(super) fn steps(&mut self, steps: u64) -> Result<(), Exhausted> {
        self.steps = self.steps.checked_sub(steps).ok_or(Exhausted::Steps)?;
        Ok(())
    }

    /// Charges for a value that a default adds.
    pub(super) fn fill(&mut self, size: u64) -> Result<(), Exhausted> {
        self.filled = self.filled.checked_sub(size).ok_or(Exhausted::Filled)?;
        self.steps(size / 64)
    }
}

/// The steps of comparing or matching a string, in addition to the step for the value.
pub(super) const fn of_text(text: &str) -> u64 {
    text.len() as u64 / 16
}
