//! The role of an object in a run, and duplicate objects.

use std::collections::{BTreeMap, btree_map::Entry};

use crate::{
    admitted::Admitted,
    location::{Located, Location, ObjectId},
    names,
    path::FieldPath,
    runtime::RuntimeKind,
    trainjob::TrainJob,
};

/// The role of an object in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectRole {
    TrainJob,
    /// A runtime of this kind.
    Runtime(RuntimeKind),
    /// An object of another API group, which plugins can look up.
    Foreign,
}

impl ObjectRole {
    /// Returns the role of an object.
    ///
    /// # Errors
    /// Its API group is one of Trainyard's, but its kind or version is unknown.
    pub fn of(admitted: &Admitted) -> Result<Self, Box<Located>> {
        let object = &admitted.object;
        if TrainJob::is(object) {
            return Ok(Self::TrainJob);
        }
        if let Some(kind) = RuntimeKind::of(object) {
            return Ok(Self::Runtime(kind));
        }
        let ours = [
            names::TRAINER_GROUP,
            names::TRAINYARD_GROUP,
            names::OLD_GROUP,
        ];
        // An apiVersion without a slash may be a group whose version is missing.
        let group = object.api_version.split('/').next().unwrap_or_default();
        if !ours.contains(&group) {
            return Ok(Self::Foreign);
        }
        Err(Box::new(Located {
            location: admitted.location().at(FieldPath::root().field("kind")),
            message: format!(
                "the kind `{}` of `{}` is unknown; use {}, {} or {} of {}",
                object.kind,
                object.api_version,
                names::TRAIN_JOB,
                names::TRAINING_RUNTIME,
                names::CLUSTER_TRAINING_RUNTIME,
                names::TRAINER_API_VERSION
            ),
        }))
    }
}

/// The objects of a run by group, kind, namespace and name, each with its first location.
#[derive(Debug, Default)]
pub struct FirstLocations(BTreeMap<(String, ObjectId), Location>);

impl FirstLocations {
    /// Adds an object.
    ///
    /// # Errors
    /// An earlier object has the same group, kind, namespace and name.
    pub fn add(&mut self, admitted: &Admitted) -> Result<(), Box<Located>> {
        let location = admitted.location();
        let Some(id) = location.object.clone() else {
            return Ok(());
        };
        match self.0.entry((admitted.object.group().to_owned(), id)) {
            Entry::Vacant(first) => {
                first.insert(location);
                Ok(())
            }
            Entry::Occupied(first) => Err(Box::new(Located {
                message: format!("is a duplicate; the first one is in {}", first.get()),
                location,
            })),
        }
    }
}
