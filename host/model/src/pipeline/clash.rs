//! The conflicts between plugins of one TrainJob that only their calls show, in words.

use std::fmt;

use crate::{
    plan::Generation,
    session::{DuplicateObject, Session, WriteConflict},
};

/// A conflict between two plugins of one TrainJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// The path in the record, or the object.
    pub place: String,
    /// What is wrong with it, and what the plugins' authors or the operator can do.
    pub message: String,
}

impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Returns the places that two plugins changed without a declared order, because the result would depend on the order of the plan.
#[must_use]
pub fn clashing_writes(session: &Session, generation: &Generation) -> Vec<Clash> {
    let clash = |conflict: WriteConflict| {
        let WriteConflict {
            first,
            second,
            place,
            more,
        } = conflict;
        let more = match more {
            0 => String::new(),
            1 => ", and one more place".to_owned(),
            more => format!(", and {more} more places"),
        };
        let ways_out = generation.ways_out(&first.name, &second.name);
        Clash {
            place: place.to_string(),
            message: format!(
                "the plugins {first} and {second} both change it{more}, but have no declared order; {}",
                ways_out.of_author_or_operator()
            ),
        }
    };
    session
        .find_write_conflicts(|a, b| generation.is_declared(&a.name, &b.name))
        .into_iter()
        .map(clash)
        .collect()
}

/// Returns the objects that two plugins emitted.
#[must_use]
pub fn clashing_objects(session: &Session) -> Vec<Clash> {
    let clash = |twice: DuplicateObject| Clash {
        place: format!("{} {}", twice.kind, twice.name),
        message: format!(
            "the plugins {} and {} both emit it; use another suffix in one of them, or exclude one",
            twice.first, twice.second
        ),
    };
    let found = session.find_duplicate_objects();
    found.into_iter().map(clash).collect()
}
