//! Texts that a plugin keeps for its later phases, and the facts that it can read.

use std::sync::Arc;

use super::{Call, Fault, KeptTexts};
use crate::{
    contract::handle,
    facts::{HOST_PREFIX, HOST_VERSION},
    phase::Phase,
};

/// The charge for a kept text in addition to the bytes of text and key, so that empty texts are not free.
const PER_TEXT: usize = 32;

impl Call {
    /// `context.keep`
    pub fn context_keep(&mut self, _: handle::Context, key: &str, text: &str) -> Result<(), Fault> {
        self.meter.text(key)?;
        self.meter.text(text)?;
        if self.phase != Phase::Transform {
            return Err(Fault::WrongPhase {
                what: "keep a text",
                phase: self.phase,
            });
        }
        let before = self.kept.get(key).map_or(0, |before| cost(key, before));
        let kept = self.kept_bytes - before + cost(key, text);
        self.meter.kept(kept)?;
        self.kept_bytes = kept;
        Arc::make_mut(&mut self.kept).insert(key.to_owned(), text.into());
        Ok(())
    }

    /// `context.kept`
    pub fn context_kept(&mut self, _: handle::Context, key: &str) -> Result<Option<String>, Fault> {
        self.meter.text(key)?;
        let text = self.kept.get(key).cloned();
        self.give_some(text.as_deref())
    }

    /// `context.fact`
    pub fn context_fact(
        &mut self,
        _: handle::Context,
        name: &str,
    ) -> Result<Option<String>, Fault> {
        self.meter.text(name)?;
        if name == HOST_VERSION {
            return self.give(env!("CARGO_PKG_VERSION")).map(Some);
        }
        if name.starts_with(HOST_PREFIX) {
            let facts = self.inputs.job.host_facts.clone();
            return self.give_some(facts.get(name).map(String::as_str));
        }
        let facts = self.inputs.job.facts.clone();
        let fact = facts.get(name);
        if fact.is_some() && !self.facts.contains(name) {
            self.facts.insert(name.to_owned());
        }
        self.give_some(fact)
    }
}

/// What texts cost that an earlier call has kept.
pub(super) fn bytes_of(kept: &KeptTexts) -> usize {
    kept.iter().map(|(key, text)| cost(key, text)).sum()
}

fn cost(key: &str, text: &str) -> usize {
    key.len() + text.len() + PER_TEXT
}
