//! What reading and applying a schema may cost. A vendor writes the schema, and a tenant the configuration.

use thiserror::Error;

/// Schemas within one schema, itself included.
pub const MAX_SCHEMAS: usize = 1_000;

/// Levels of schemas within schemas. A schema that a `$ref` leads to is a level below it.
pub const MAX_SCHEMA_LEVELS: usize = 64;

/// Levels of values within a configuration, and within a default.
pub const MAX_LEVELS: usize = 32;

/// Patterns of one schema.
pub const MAX_PATTERNS: usize = 64;

/// Bytes of one pattern.
pub const MAX_PATTERN: usize = 512;

/// Bytes of one compiled pattern, which bound the states that each character is matched against.
pub(super) const MAX_COMPILED_PATTERN: usize = 32 << 10;

/// What the defaults of one configuration may add: 64 for each value, and the bytes of its texts.
pub const MAX_FILLED: u64 = 1 << 20;

/// Steps of one check. A step is one value against one schema, a key, 16 bytes that are compared, or a character against a
/// 64th of the largest pattern.
pub const MAX_STEPS: u64 = 4_000_000;

/// What one byte of a text costs when it is matched against a pattern.
pub(super) const STEPS_OF_A_PATTERN: u64 = 64;

/// What a problem costs, as it is held until all branches of an `anyOf` are checked.
pub(super) const STEPS_OF_A_PROBLEM: u64 = 64;

/// The most problems that one check reports.
pub(super) const MAX_PROBLEMS: usize = 32;

/// Why a check ended early.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Exhausted {
    /// It takes too long.
    #[error("takes more than {MAX_STEPS} steps to check by the plugin's schema; shorten it")]
    Steps,
    /// It would be too large with its defaults.
    #[error(
        "gets more than {MAX_FILLED} bytes of defaults from the plugin's schema; shorten its lists and maps"
    )]
    Filled,
    /// It is too deep.
    #[error("nests deeper than {MAX_LEVELS} levels; flatten it")]
    Levels,
}

/// What a check may still cost.
#[derive(Debug)]
pub(super) struct Budget {
    steps: u64,
    filled: u64,
}

impl Budget {
    pub(super) const fn new() -> Self {
        Self {
            steps: MAX_STEPS,
            filled: MAX_FILLED,
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

/// What comparing or matching a text costs, beyond the step for the value.
pub(super) const fn of_text(text: &str) -> u64 {
    text.len() as u64 / 16
}
