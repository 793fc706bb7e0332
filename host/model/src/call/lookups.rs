//! `lookups.lookups`.

use std::sync::Arc;

use super::{Call, Fault, PlaceScope, wrong};
use crate::{
    claims::Touch,
    lookup::{LookupAnswer, LookupKey},
    record::Field,
};

impl Call {
    /// The host's answer; ends the call where it holds none yet.
    fn answer(&mut self, key: LookupKey) -> Result<LookupAnswer, Fault> {
        let claim_key = key.claim_key();
        self.meter.text(&claim_key)?;
        let (LookupKey::Object {
            api_version, kind, ..
        }
        | LookupKey::All { api_version, kind }
        | LookupKey::Served { api_version, kind }) = &key;
        if api_version == "v1" && kind == "Secret" {
            return wrong("lookups", "Secrets are never given to a plugin");
        }
        if !self.may_look_up(&claim_key, &key) {
            return Err(Fault::NotClaimed {
                touch: Touch::Read,
                path: format!("lookups[{claim_key}]"),
            });
        }
        match self.inputs.lookups.get(&key) {
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
                    Touch::Read,
                    PlaceScope::Job,
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
        _: u32,
        api_version: &str,
        kind: &str,
        name: &str,
    ) -> Result<Option<u32>, Fault> {
        let key = LookupKey::Object {
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
        };
        match self.answer(key)? {
            LookupAnswer::Object(value) => self.new_document(value, false).map(Some),
            _ => Ok(None),
        }
    }

    /// `lookups.all`
    pub fn lookups_all(
        &mut self,
        _: u32,
        api_version: &str,
        kind: &str,
    ) -> Result<Vec<u32>, Fault> {
        match self.answer(LookupKey::All {
            api_version: api_version.into(),
            kind: kind.into(),
        })? {
            LookupAnswer::All(values) => values
                .into_iter()
                .map(|value| self.new_document(Arc::clone(&value), false))
                .collect(),
            _ => Ok(Vec::new()),
        }
    }

    /// `lookups.served`
    pub fn lookups_served(&mut self, _: u32, api_version: &str, kind: &str) -> Result<bool, Fault> {
        let answer = self.answer(LookupKey::Served {
            api_version: api_version.into(),
            kind: kind.into(),
        })?;
        Ok(matches!(answer, LookupAnswer::Served(true)))
    }
}
