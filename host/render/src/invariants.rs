//! What no pod may be, however its parts came together: the writes of several plugins are each inside their claims, and
//! still can't stand side by side.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use trainyard_api::FieldPath;
use trainyard_model::record::{Change, ContainerId, Entry, Field, Owner, PlaceScope, Record};

use crate::{problem::Problem, resolve::PatchChanges};

/// Names the owner of an entry, as a problem speaks of it.
pub(crate) type Who<'a> = &'a dyn Fn(Owner) -> String;

/// Checks the frozen record, with what was written on the way to it. What the runtime's author alone wrote is not judged
/// here: the API server does that.
pub(crate) fn check<'c>(
    record: &Record,
    changes: impl Iterator<Item = &'c Change>,
    patches: &[PatchChanges],
    who: Who<'_>,
) -> Vec<Problem> {
    let removed: Removed = changes
        .filter(|change| change.place.field == Field::Volumes && change.new.is_none())
        .map(|change| ((change.place.scope, change.place.key.clone()), change.owner))
        .collect();
    let mut problems = Vec::new();
    for (set, position) in record.pod_sets.iter().zip(0u32..) {
        let mut pod = Pod {
            record,
            removed: &removed,
            patches,
            place: format!("pod-sets[{}]", set.name),
            who,
            problems: &mut problems,
        };
        pod.one_name_for_a_container(position);
        pod.port_names(position);
        for list in [Field::InitContainers, Field::Containers] {
            for id in record.containers(position, list) {
                pod.mounts(position, id);
            }
        }
    }
    problems
}

/// Who removed a volume.
type Removed = BTreeMap<(PlaceScope, Arc<str>), Owner>;

struct Pod<'a> {
    record: &'a Record,
    removed: &'a Removed,
    patches: &'a [PatchChanges],
    place: String,
    who: Who<'a>,
    problems: &'a mut Vec<Problem>,
}

impl Pod<'_> {
    fn clash(&mut self, what: &str, first: Owner, second: Owner) {
        if first == Owner::Runtime && second == Owner::Runtime {
            return;
        }
        let message = format!(
            "{what}: one is of {}, one of {}: give one of them another name",
            (self.who)(first),
            (self.who)(second)
        );
        self.problems.push(Problem::Invariant {
            place: self.place.clone(),
            message,
        });
    }

    fn one_name_for_a_container(&mut self, position: u32) {
        let Some(fields) = self.record.pod_set(position).map(|set| &set.fields) else {
            return;
        };
        for container in fields.all(Field::Containers).iter() {
            if let Some(init) = fields.get(Field::InitContainers, &container.key) {
                let what = format!(
                    "a container and an init container are both named `{}`",
                    container.key
                );
                self.clash(&what, container.owner, init.owner);
            }
        }
    }

    /// A port's name stands once in a container.
    fn port_names(&mut self, position: u32) {
        let ids: Vec<ContainerId> = [Field::InitContainers, Field::Containers]
            .into_iter()
            .flat_map(|list| self.record.containers(position, list))
            .collect();
        for id in ids {
            let mut named: BTreeMap<String, Owner> = BTreeMap::new();
            for entry in self.entries(id, Field::Ports) {
                let name = entry
                    .datum
                    .as_json()
                    .and_then(|json| json.get("name"))
                    .and_then(Value::as_str);
                if let Some(name) = name
                    && let Some(first) = named.insert(name.to_owned(), entry.owner)
                {
                    self.clash(
                        &format!("two ports of one container are named `{name}`"),
                        first,
                        entry.owner,
                    );
                }
            }
        }
    }

    /// A mount's volume exists.
    fn mounts(&mut self, position: u32, id: ContainerId) {
        let volumes = self.record.pod_set(position).map(|set| &set.fields);
        for entry in self.entries(id, Field::Mounts) {
            let volume = entry
                .datum
                .as_json()
                .and_then(|json| json.get("name"))
                .and_then(Value::as_str);
            let missing =
                volume.filter(|name| volumes.is_none_or(|v| v.get(Field::Volumes, name).is_none()));
            let Some(volume) = missing else { continue };
            let remover = self
                .removed
                .get(&(PlaceScope::PodSet(position), volume.into()));
            if remover.is_some() || entry.owner != Owner::Runtime {
                let end = match remover {
                    Some(remover) => format!(
                        "which {} removed: leave out the mount, or keep the volume",
                        (self.who)(*remover)
                    ),
                    None => {
                        "and the pod has no such volume: add one, or leave out the mount".to_owned()
                    }
                };
                let owner = (self.who)(entry.owner);
                let message = format!(
                    "{owner} mounts the volume `{volume}` at {}, {end}",
                    entry.key
                );
                self.problems.push(match self.patched(id, &entry) {
                    Some(path) => Problem::job(path, message),
                    None => Problem::Invariant {
                        place: self.place.clone(),
                        message,
                    },
                });
            }
        }
    }

    /// The TrainJob's field by which a patch set a mount.
    fn patched(&self, id: ContainerId, mount: &Entry) -> Option<FieldPath> {
        let changes = self.patches.iter().flat_map(|patch| &patch.changes);
        let mut ours = changes.filter(|change| {
            let place = &change.place;
            place.scope == PlaceScope::Container(id)
                && place.field == Field::Mounts
                && place.key == mount.key
        });
        ours.next_back()?.reason.as_deref()?.parse().ok()
    }

    fn entries(&self, id: ContainerId, field: Field) -> Vec<Entry> {
        self.record
            .fields(PlaceScope::Container(id))
            .map(|fields| fields.all(field).to_vec())
            .unwrap_or_default()
    }
}
