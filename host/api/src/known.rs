//! What an object is to Trainyard, and whether it is the first of its name in a run.

use std::collections::{BTreeMap, btree_map::Entry};

use crate::admitted::Admitted;
use crate::error::{Located, Place};
use crate::names;
use crate::object::ObjectId;
use crate::path::FieldPath;
use crate::runtime::RuntimeKind;
use crate::trainjob::TrainJob;

/// What an object is to Trainyard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// A TrainJob.
    TrainJob,
    /// A runtime of that kind.
    Runtime(RuntimeKind),
    /// An object of a group that is not Trainyard's: plugins may look it up.
    Foreign,
}

impl Known {
    /// Tells what the object is.
    ///
    /// # Errors
    /// It is of a group of Trainyard's and of no kind or version that Trainyard knows: a mistyped one.
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
        // A version may have been forgotten: then what stands there alone is the group.
        let group = object.api_version.split('/').next().unwrap_or_default();
        if !ours.contains(&group) {
            return Ok(Self::Foreign);
        }
        Err(Box::new(Located {
            place: admitted.place().at(FieldPath::root().field("kind")),
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

/// The objects of a run by group, kind, namespace and name, each with its first place.
#[derive(Debug, Default)]
pub struct FirstPlaces(BTreeMap<(String, ObjectId), Place>);

impl FirstPlaces {
    /// Adds an object.
    ///
    /// # Errors
    /// An earlier one has its group, kind, namespace and name.
    pub fn add(&mut self, admitted: &Admitted) -> Result<(), Box<Located>> {
        let place = admitted.place();
        let Some(id) = place.object.clone() else {
            return Ok(());
        };
        match self.0.entry((admitted.object.group().to_owned(), id)) {
            Entry::Vacant(first) => {
                first.insert(place);
                Ok(())
            }
            Entry::Occupied(first) => Err(Box::new(Located {
                message: format!("is a duplicate; the first one is in {}", first.get()),
                place,
            })),
        }
    }
}
