//! What a plugin keeps for its later phases, and what the host knows.

use super::{Call, Fault, wrong};
use crate::contract::handle;

impl Call {
    /// `context.keep`
    pub fn context_keep(&mut self, _: handle::Context, _: &str, _: &str) -> Result<(), Fault> {
        wrong("not written yet")
    }

    /// `context.kept`
    pub fn context_kept(&mut self, _: handle::Context, _: &str) -> Result<Option<String>, Fault> {
        wrong("not written yet")
    }

    /// `context.fact`
    pub fn context_fact(&mut self, _: handle::Context, _: &str) -> Result<Option<String>, Fault> {
        wrong("not written yet")
    }
}
