//! Checks of the pods of one pod set.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde_json::Value;
use trainyard_api::{FieldPath, size::STORED_LIMIT};
use trainyard_model::record::{
    ContainerId, Entries, Entry, EntryRef, EntryScope, Field, Owner, Record,
};

use super::host_port::HostPort;
use crate::{
    additions::{AdditionError, addition_error},
    json::get,
    problem::Problem,
};

/// Returns the name of an owner for a message.
pub(crate) type OwnerName<'a> = &'a dyn Fn(Owner) -> String;

/// The last change of each mount by a patch.
pub(super) type PatchedMounts<'a> = BTreeMap<&'a EntryRef, &'a FieldPath>;

/// The owners that removed volumes.
pub(super) type RemovedVolumes = BTreeMap<(EntryScope, Arc<str>), Owner>;

/// The maximum number of DNS search domains of a pod.
const MAX_SEARCHES: usize = 32;

/// The maximum length of the list of DNS search domains.
const MAX_SEARCH_LIST: usize = 2048;

const OTHER_NAME: &str = "rename one of them";
const OTHER_HOST_PORT: &str = "change or remove one of the host ports";
const OTHER_PATH: &str = "change the path of one of them, or remove it";

/// Checks the pods of one pod set.
pub(super) struct PodCheck<'a> {
    pub(super) record: &'a Record,
    pub(super) removed: &'a RemovedVolumes,
    pub(super) patched: &'a PatchedMounts<'a>,
    pub(super) place: String,
    pub(super) who: OwnerName<'a>,
    pub(super) problems: &'a mut Vec<Problem>,
}

impl<'a> PodCheck<'a> {
    /// Checks the pods of the pod set at this position.
    pub(super) fn pod(&mut self, position: u32) {
        self.container_names(position);
        self.port_names(position);
        self.host_ports(position);
        self.dns_searches(position);
        self.scheduling_gates(position);
        self.affinity_terms(position);
        let record = self.record;
        for list in [Field::InitContainers, Field::Containers] {
            for id in record.containers(position, list) {
                self.mounted_volumes(position, id);
                self.mount_paths(id);
            }
        }
    }

    /// Reports two values that conflict, unless both are the runtime's.
    fn clash(&mut self, what: &str, first: Owner, second: Owner, advice: &str) {
        if first == Owner::Runtime && second == Owner::Runtime {
            return;
        }
        let message = format!(
            "{what}: one is from {}, the other from {}; {advice}",
            (self.who)(first),
            (self.who)(second)
        );
        self.problems.push(Problem::Invariant {
            place: self.place.clone(),
            message,
        });
    }

    /// The names of containers and init containers are unique.
    fn container_names(&mut self, position: u32) {
        let Some(fields) = self.record.pod_set(position).map(|set| &set.fields) else {
            return;
        };
        for container in fields.all(Field::Containers).iter() {
            if let Some(init) = fields.get(Field::InitContainers, &container.key) {
                let what = format!(
                    "a container and an init container are both named `{}`",
                    container.key
                );
                self.clash(&what, container.owner, init.owner, OTHER_NAME);
            }
        }
    }

    /// The names of ports are unique in a container.
    fn port_names(&mut self, position: u32) {
        let record = self.record;
        let ids = [Field::InitContainers, Field::Containers]
            .into_iter()
            .flat_map(|list| record.containers(position, list));
        for id in ids {
            let mut named: BTreeMap<&str, Owner> = BTreeMap::new();
            for entry in entries(self.record, id, Field::Ports) {
                let name = entry
                    .datum
                    .as_json()
                    .and_then(|json| get(json, "name"))
                    .and_then(Value::as_str);
                if let Some(name) = name
                    && let Some(first) = named.insert(name, entry.owner)
                {
                    self.clash(
                        &format!("two ports of one container are named `{name}`"),
                        first,
                        entry.owner,
                        OTHER_NAME,
                    );
                }
            }
        }
    }

    /// The host ports of a pod are unique. Init containers run one after another, so each of them is checked separately.
    fn host_ports(&mut self, position: u32) {
        let record = self.record;
        for init in record.containers(position, Field::InitContainers) {
            self.host_ports_of([init]);
        }
        self.host_ports_of(record.containers(position, Field::Containers));
    }

    fn host_ports_of(&mut self, ids: impl IntoIterator<Item = ContainerId>) {
        let mut taken: BTreeMap<(u64, &str), HostPort> = BTreeMap::new();
        let record = self.record;
        let entries = ids
            .into_iter()
            .flat_map(|id| entries(record, id, Field::Ports));
        for entry in entries {
            let json = entry.datum.as_json();
            let member = |name: &str| json.and_then(|json| get(json, name));
            let text = |name: &str| member(name).and_then(Value::as_str);
            let port = member("hostPort").and_then(Value::as_u64);
            let Some(port) = port.filter(|port| *port != 0) else {
                continue;
            };
            let protocol = text("protocol").unwrap_or("TCP");
            let taken = taken.entry((port, protocol)).or_default();
            if let Some(first) = taken.take(text("hostIP").unwrap_or_default(), entry.owner) {
                let what = format!("two ports of one pod have the host port {port}/{protocol}");
                self.clash(&what, first, entry.owner, OTHER_HOST_PORT);
            }
        }
    }

    /// The DNS search domains of a pod are within Kubernetes' limits.
    fn dns_searches(&mut self, position: u32) {
        let Some(all) = self.of_pods(position, Field::DnsSearches) else {
            return;
        };
        let Some(added) = all.iter().rev().find(|entry| entry.owner != Owner::Runtime) else {
            return;
        };
        let characters = all.iter().map(|entry| entry.key.len() + 1).sum::<usize>();
        let characters = characters.saturating_sub(1);
        let too_many = match (all.len(), characters) {
            (count, _) if count > MAX_SEARCHES => {
                format!("{count} DNS search domains, but a pod may have at most {MAX_SEARCHES}")
            }
            (_, characters) if characters > MAX_SEARCH_LIST => format!(
                "DNS search domains of {characters} characters together, but a pod may have at most {MAX_SEARCH_LIST}"
            ),
            _ => return,
        };
        let message = format!(
            "has {too_many}; the last one, `{}`, is from {}; remove some",
            added.key,
            (self.who)(added.owner)
        );
        self.problem(format!("{}.dns-searches", self.place), message);
    }

    /// A pod with a node name has no scheduling gates, because it is never scheduled.
    fn scheduling_gates(&mut self, position: u32) {
        let Some(gates) = self.of_pods(position, Field::SchedulingGates) else {
            return;
        };
        let scope = EntryScope::PodSet(position);
        let node = self
            .record
            .member(scope, "nodeName")
            .and_then(Value::as_str);
        let is_new = |entry: &&Entry| entry.owner != Owner::Runtime;
        let raw = self.record.entry(scope, Field::PodRaw, "nodeName");
        let named_by = raw.map_or(Owner::Runtime, |entry| entry.owner);
        let gate = gates
            .iter()
            .find(is_new)
            .or_else(|| gates.first().filter(|_| named_by != Owner::Runtime));
        if let (Some(node), Some(gate)) = (node, gate) {
            let message = format!(
                "{} adds the scheduling gate `{}`, but {} sets the node name `{node}`; remove one of the two",
                (self.who)(gate.owner),
                gate.key,
                (self.who)(named_by)
            );
            self.problem(self.place.clone(), message);
        }
    }

    /// Required node affinity terms can be added to those of the runtime, within the maximum number of entries.
    fn affinity_terms(&mut self, position: u32) {
        const FIELD: Field = Field::AffinityTerms;
        let record = self.record;
        let Some(terms) = self.of_pods(position, FIELD) else {
            return;
        };
        let Some(addition_error) = record
            .pod_template(position)
            .and_then(|pod| addition_error(pod, FIELD, terms))
        else {
            return;
        };
        let place = format!("{}.{FIELD}", self.place);
        match addition_error {
            AdditionError::NoAlternatives { id, owner } => {
                let message = format!(
                    "{} adds a required node affinity term, but the runtime's required node affinity has no `nodeSelectorTerms` and so matches no node; add a term to it, or remove it from the runtime",
                    (self.who)(owner)
                );
                self.problem(format!("{place}[{id}]"), message);
            }
            AdditionError::TooMany {
                alternatives,
                additions,
                entries,
                most,
                owner,
            } => {
                let message = format!(
                    "plugins add {additions} required node affinity terms to each of the {alternatives} `nodeSelectorTerms` of the runtime, which makes {entries} entries, but at most {most} are allowed, because API servers write larger objects slowly; remove some (the last one is from {})",
                    (self.who)(owner)
                );
                self.problem(place, message);
            }
            AdditionError::TooLarge {
                alternatives,
                bytes,
                owner,
            } => {
                let message = format!(
                    "plugins add required node affinity terms to each of the {alternatives} `nodeSelectorTerms` of the runtime, which makes {bytes} bytes, but etcd stores at most {STORED_LIMIT}; remove some (the last one is from {})",
                    (self.who)(owner)
                );
                self.problem(place, message);
            }
        }
    }

    fn of_pods(&self, position: u32, field: Field) -> Option<&'a Entries> {
        Some(self.record.pod_set(position)?.fields.all(field)).filter(|entries| !entries.is_empty())
    }

    fn problem(&mut self, place: String, message: String) {
        self.problems.push(Problem::Invariant { place, message });
    }

    /// The volumes of mounts exist.
    fn mounted_volumes(&mut self, position: u32, id: ContainerId) {
        let volumes = self.record.pod_set(position).map(|set| &set.fields);
        for entry in entries(self.record, id, Field::Mounts) {
            let volume = entry
                .datum
                .as_json()
                .and_then(|json| get(json, "name"))
                .and_then(Value::as_str);
            let missing =
                volume.filter(|name| volumes.is_none_or(|v| v.get(Field::Volumes, name).is_none()));
            let Some(volume) = missing else { continue };
            let remover = self
                .removed
                .get(&(EntryScope::PodSet(position), volume.into()));
            if remover.is_some() || entry.owner != Owner::Runtime {
                let end = match remover {
                    Some(remover) => format!(
                        "which {} removed; remove the mount, or keep the volume",
                        (self.who)(*remover)
                    ),
                    None => {
                        "but the pod has no such volume; add one, or remove the mount".to_owned()
                    }
                };
                let owner = (self.who)(entry.owner);
                let message = format!(
                    "{owner} mounts the volume `{volume}` at {}, {end}",
                    entry.key
                );
                self.problems.push(match self.patched(id, entry) {
                    Some(path) => Problem::job(path, message),
                    None => Problem::Invariant {
                        place: self.place.clone(),
                        message,
                    },
                });
            }
        }
    }

    /// The paths of mounts are unique. Strategic merge compares them as text, but a node normalizes them.
    fn mount_paths(&mut self, id: ContainerId) {
        let mut mounted: BTreeMap<Cow<'_, str>, &Entry> = BTreeMap::new();
        for entry in entries(self.record, id, Field::Mounts) {
            let path = Field::Mounts.compared(&entry.key);
            let Some(first) = mounted.get(&path).copied() else {
                mounted.insert(path, entry);
                continue;
            };
            let what = format!(
                "two mounts of one container are at `{path}` (`{}` and `{}`)",
                first.key, entry.key
            );
            let patched = [entry, first]
                .into_iter()
                .find_map(|mount| self.patched(id, mount));
            let (first, second) = (first.owner, entry.owner);
            match patched {
                Some(path) => self.problems.push(Problem::job(
                    path,
                    format!(
                        "{what}: one is from {}, the other from {}; {OTHER_PATH}",
                        (self.who)(first),
                        (self.who)(second)
                    ),
                )),
                None => self.clash(&what, first, second, OTHER_PATH),
            }
        }
    }

    /// Returns the TrainJob's field by which a patch set a mount.
    fn patched(&self, id: ContainerId, mount: &Entry) -> Option<FieldPath> {
        let place = EntryRef {
            scope: EntryScope::Container(id),
            field: Field::Mounts,
            key: mount.key.clone(),
        };
        self.patched.get(&place).copied().cloned()
    }
}

/// Returns the entries of a field of a container.
fn entries(record: &Record, id: ContainerId, field: Field) -> impl Iterator<Item = &Entry> {
    let fields = record.fields(EntryScope::Container(id));
    fields
        .into_iter()
        .flat_map(move |fields| fields.all(field).iter())
}
