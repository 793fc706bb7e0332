//! `lookups.lookups`.

use std::sync::Arc;

use super::{Call, Fault, wrong};
use crate::{
    claims::{ObjectPattern, Verb},
    contract::handle,
    lookup::{LookupAnswer, LookupKey, ObjectKey, Requester},
    text::clean,
};

impl Call {
    /// The host's answer. Ends the call if the host does not have it yet.
    pub(super) fn answer(&mut self, key: LookupKey) -> Result<LookupAnswer, Fault> {
        let asked = ObjectPattern::from(&key);
        self.meter.add_bytes(asked.len())?;
        if let Some(problem) = key.problem() {
            return wrong(format!("{}: {problem}", clean(&key.to_string())));
        }
        if !self.access.may_look_up(&key) {
            let missing = match key {
                LookupKey::All { .. } => asked.of_every_name(),
                _ => asked,
            };
            return Err(self.objects_not_claimed(Verb::Read, key.field(), missing));
        }
        let asker = Requester::from(&*self.inputs.job);
        match self.inputs.lookups.get(&key) {
            Some(LookupAnswer::Object(object))
                if !matches!(key, LookupKey::Catalog(_)) && !asker.may_see(object) =>
            {
                let problem = "the object is emitted for this TrainJob; plugins cannot look it up";
                key.answer_without_object()
                    .map_or_else(|| wrong(problem), Ok)
            }
            Some(answer) => Ok(answer.clone()),
            None => Err(Fault::Missing(key)),
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
        self.look_up(LookupKey::Object(ObjectKey::new(api_version, kind, name)))
    }

    /// `lookups.find`
    pub fn lookups_find(
        &mut self,
        _: handle::Lookups,
        api_version: &str,
        kind: &str,
        name: &str,
    ) -> Result<Option<handle::Document>, Fault> {
        self.look_up(LookupKey::Optional(ObjectKey::new(api_version, kind, name)))
    }

    /// `lookups.find-in-catalog`
    pub fn lookups_find_in_catalog(
        &mut self,
        _: handle::Lookups,
        api_version: &str,
        kind: &str,
        name: &str,
    ) -> Result<Option<handle::Document>, Fault> {
        self.look_up(LookupKey::Catalog(ObjectKey::new(api_version, kind, name)))
    }

    /// Looks up one object.
    fn look_up(&mut self, key: LookupKey) -> Result<Option<handle::Document>, Fault> {
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
