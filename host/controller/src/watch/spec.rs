//! The spec of an object, as far as it can be decoded.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::wire::{self, Undecodable};

/// The spec of an object. If it cannot be decoded as a whole, it has the members that can be.
pub(super) struct Spec {
    pub(super) members: Value,
    /// Why the others cannot be decoded.
    pub(super) problem: Option<Undecodable>,
}

impl Spec {
    pub(super) fn of(object: &str) -> Result<Self, Undecodable> {
        #[derive(Deserialize)]
        struct Whole {
            #[serde(default)]
            spec: Value,
        }
        // The usual case.
        if let Ok(Whole { spec }) = serde_json::from_str(object) {
            return Ok(Self {
                members: spec,
                problem: None,
            });
        }
        let members = wire::members(object)?;
        let spec = members.get("spec");
        let spec = spec.ok_or_else(|| Undecodable::Field("spec".to_owned()))?;
        let (mut decoded, mut problem) = (Map::new(), None);
        for (member, value) in wire::members(spec.get())? {
            match serde_json::from_str(value.get()) {
                Ok(value) => drop(decoded.insert(member, value)),
                Err(_) => {
                    let path = wire::shown(&format!("spec.{member}"));
                    problem.get_or_insert(Undecodable::TooDeep(path));
                }
            }
        }
        // Each member alone may be within the limit.
        let problem = problem.unwrap_or_else(|| Undecodable::TooDeep("spec".to_owned()));
        Ok(Self {
            members: Value::Object(decoded),
            problem: Some(problem),
        })
    }

    /// Returns the whole spec.
    pub(super) fn whole(self) -> Result<Value, Undecodable> {
        match self.problem {
            None => Ok(self.members),
            Some(problem) => Err(problem),
        }
    }
}
