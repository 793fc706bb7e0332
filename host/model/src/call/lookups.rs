//! `lookups.lookups`.

use std::sync::Arc;

use super::{Call, EntryScope, Fault, wrong};
use crate::{
    claims::{KeyPattern, Verb},
    contract::handle,
    lookup::{LookupAnswer, LookupKey, Requester},
    record::Field,
};

impl Call {
    /// The host's answer; ends the call where it holds none yet.
    pub(super) fn answer(&mut self, key: LookupKey) -> Result<LookupAnswer, Fault> {
        let claim_key = key.claim_key();
        self.meter.text(&claim_key)?;
        if let Some(problem) = key.problem() {
            return wrong(problem);
        }
        if !self.may_look_up(&claim_key, &key) {
            return Err(match key {
                LookupKey::All { .. } => {
                    let prefix = KeyPattern::Prefix(claim_key.trim_end_matches('*').into());
                    self.pattern_not_claimed(EntryScope::Job, Field::Lookups, prefix)
                }
                _ => self.not_claimed(Verb::Read, EntryScope::Job, Field::Lookups, &claim_key),
            });
        }
        let asker = Requester::from(&*self.inputs.job);
        match self.inputs.lookups.get(&key) {
            Some(LookupAnswer::Object(object)) if !asker.may_see(object) => {
                wrong("the object is emitted for this TrainJob; a plugin can't look it up")
            }
            Some(answer) => Ok(answer.clone()),
            None => Err(Fault::Missing(key)),
        }
    }

    /// A claim on any object of a kind includes asking whether the kind is served.
    fn may_look_up(&mut self, claim_key: &str, key: &LookupKey) -> bool {
        let mut claimed = |text: &str| {
            self.access
                .find(
                    &self.record,
                    Verb::Read,
                    EntryScope::Job,
                    Field::Lookups,
                    Some(text),
                )
                .is_some()
        };
        match key {
            LookupKey::Served { api_version, kind } => {
                claimed(claim_key)
                    || claimed(&format!("{api_version}/{kind}/"))
                    || claimed(&format!("{api_version}/{kind}/*"))
            }
            LookupKey::All { .. } | LookupKey::Object { .. } => claimed(claim_key),
        }
    }

    /// `lookups.get`
    pub fn lookups_get(
        &mut self,
        _: handle::Lookups,
        api_version: &str,
        kind: &str,
        name: &str,
    ) -> Result<Option<handle::Document>, Fault> {
        let key = LookupKey::Object {
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
        };
        match self.answer(key.clone())? {
            LookupAnswer::Object(value) => self.new_looked_up(value, &key.into()).map(Some),
            _ => Ok(None),
        }
    }

    /// `lookups.all`
    pub fn lookups_all(
        &mut self,
        _: handle::Lookups,
        api_version: &str,
        kind: &str,
    ) -> Result<Vec<handle::Document>, Fault> {
        let key = LookupKey::All {
            api_version: api_version.into(),
            kind: kind.into(),
        };
        let of = Arc::new(key.clone());
        match self.answer(key)? {
            LookupAnswer::All(values) => values
                .into_iter()
                .map(|value| self.new_looked_up(value, &of))
                .collect(),
            _ => Ok(Vec::new()),
        }
    }

    /// `lookups.served`
    pub fn lookups_served(
        &mut self,
        _: handle::Lookups,
        api_version: &str,
        kind: &str,
    ) -> Result<bool, Fault> {
        let answer = self.answer(LookupKey::Served {
            api_version: api_version.into(),
            kind: kind.into(),
        })?;
        Ok(matches!(answer, LookupAnswer::Served(true)))
    }
}
