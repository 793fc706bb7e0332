//! Where a place of the record stands in the JobSet's spec, by names.

use trainyard_api::FieldPath;
use trainyard_model::record::{Level, Place, PlaceScope, Record};

use crate::shape::{ListKey, Shape, shape};

/// The path below the JobSet's spec, by names; none for what stands elsewhere.
pub(crate) fn path_of(record: &Record, place: &Place) -> Option<FieldPath> {
    if place.field.level() == Level::Job {
        return None;
    }
    let (pod_set, container) = match place.scope {
        PlaceScope::Job => return None,
        PlaceScope::PodSet(at) => (at, None),
        PlaceScope::Container(id) => {
            let container = record.container(id)?;
            (container.pod_set, Some(container))
        }
    };
    let mut path = FieldPath::root()
        .field("replicatedJobs")
        .key(&*record.pod_set(pod_set)?.name)
        .field("template")
        .field("spec")
        .field("template");
    if let Some(container) = container {
        path = below(&path, shape(container.list).0).key(&*container.name);
    }
    let (keys, shape) = shape(place.field);
    let path = below(&path, keys);
    match shape {
        Shape::One => Some(path),
        Shape::Map | Shape::List(ListKey::Field(_)) => Some(path.key(&*place.key)),
        Shape::List(ListKey::Port) => {
            let number = place.key.split('/').next().unwrap_or_default();
            Some(path.key(number))
        }
        Shape::List(ListKey::Position) => Some(path.index(place.key.parse().ok()?)),
        Shape::Elsewhere => None,
    }
}

fn below(path: &FieldPath, keys: &[&str]) -> FieldPath {
    keys.iter().fold(path.clone(), |path, key| path.field(*key))
}
