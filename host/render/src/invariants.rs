//! What no pod may be, however its parts came together: the writes of several plugins are each inside their claims, and
//! still can't stand side by side.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use serde_json::Value;
use trainyard_api::FieldPath;
use trainyard_model::{
    plan,
    plugin::PluginId,
    record::{Change, ContainerId, Entry, EntryRef, EntryScope, Field, Owner, Record},
    session::{DuplicateObject, MissingObject, Session, WriteConflict},
};

use crate::{
    additions::{AdditionError, addition_error},
    journal::Journal,
    problem::Problem,
};

/// Names the owner of an entry, as a problem speaks of it.
pub(crate) type OwnerName<'a> = &'a dyn Fn(Owner) -> String;

/// Checks the frozen record, with what was written on the way to it. What the runtime's author alone wrote is not judged
/// here: the API server does that.
pub(crate) fn check<'c>(
    record: &Record,
    changes: impl Iterator<Item = &'c Change>,
    journal: &Journal,
    who: OwnerName<'_>,
) -> Vec<Problem> {
    let removed: RemovedVolumes = changes
        .filter(|change| change.entry.field == Field::Volumes && change.new.is_none())
        .map(|change| ((change.entry.scope, change.entry.key.clone()), change.owner))
        .collect();
    let patched: PatchedMounts<'_> = journal
        .by_patches()
        .filter(|(change, _)| change.entry.field == Field::Mounts)
        .map(|(change, field)| (&change.entry, field))
        .collect();
    let mut problems = Vec::new();
    for (set, position) in record.pod_sets.iter().zip(0u32..) {
        let mut pod = Pod {
            record,
            removed: &removed,
            patched: &patched,
            place: format!("pod-sets[{}]", set.name),
            who,
            problems: &mut problems,
        };
        pod.one_name_for_a_container(position);
        pod.port_names(position);
        pod.host_ports(position);
        pod.dns_searches(position);
        pod.gates(position);
        pod.affinity_terms(position);
        for list in [Field::InitContainers, Field::Containers] {
            for id in record.containers(position, list) {
                pod.mounts(position, id);
                pod.one_mount_for_a_path(id);
            }
        }
    }
    problems
}

/// What two plugins changed without a declared order, whatever their claims said: which value is left would depend on which
/// legal order the plan took.
pub(crate) fn contested(
    session: &Session,
    is_declared: impl Fn(&PluginId, &PluginId) -> bool,
) -> Vec<Problem> {
    let problem = |contested: WriteConflict| {
        let WriteConflict {
            first,
            second,
            place,
            more,
        } = contested;
        let more = match more {
            0 => String::new(),
            1 => ", and one more place".to_owned(),
            more => format!(", and {more} more places"),
        };
        Problem::Invariant {
            place: place.to_string(),
            message: format!(
                "the plugins {first} and {second} both change it{more}, and no order is declared between them: declare `after` in the manifest of one, or {}",
                plan::ordered_or_apart(&first.name, &second.name)
            ),
        }
    };
    session
        .contested(is_declared)
        .into_iter()
        .map(problem)
        .collect()
}

/// Checks that each object is emitted by one plugin.
///
/// # Errors
/// Each two plugins that emitted the same object.
pub(crate) fn emitted_once(session: &Session) -> Result<(), Vec<Problem>> {
    let problem = |twice: DuplicateObject| Problem::Invariant {
        place: format!("{} {}", twice.kind, twice.name),
        message: format!(
            "the plugins {} and {} both emit it: choose another suffix in one of them, or exclude one",
            twice.first, twice.second
        ),
    };
    let problems: Vec<_> = session.emitted_twice().into_iter().map(problem).collect();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// Checks that what stands on a plugin's own ConfigMaps and Secrets stands on those that it emitted.
///
/// # Errors
/// Each volume and env var whose object its plugin did not emit under that name.
pub(crate) fn own_data_is_emitted(session: &Session) -> Result<(), Vec<Problem>> {
    let problem = |missing: MissingObject| Problem::Invariant {
        place: missing.place.to_string(),
        message: missing.to_string(),
    };
    let problems: Vec<_> = session.not_emitted().into_iter().map(problem).collect();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// The last change of each mount by a patch.
type PatchedMounts<'a> = BTreeMap<&'a EntryRef, &'a FieldPath>;

/// Who removed a volume.
type RemovedVolumes = BTreeMap<(EntryScope, Arc<str>), Owner>;

/// The most DNS search domains of a pod, and the most characters of their list.
const MAX_SEARCHES: usize = 32;
const MAX_SEARCH_LIST: usize = 2048;

const OTHER_NAME: &str = "give one of them another name";
const OTHER_HOST_PORT: &str = "give one of them another host port, or none";
const OTHER_PATH: &str = "mount one of them elsewhere, or remove it";

/// Who has a host port, by the machine's addresses.
#[derive(Default)]
struct HostPort {
    /// At some address.
    somewhere: Option<Owner>,
    /// At all of them.
    everywhere: Option<Owner>,
    at: BTreeMap<String, Owner>,
}

impl HostPort {
    /// Takes it at an address, and gives the owner of a port that has it there. No address, and one that stands for all of a
    /// family, is every address, as the scheduler and what opens the port have it.
    fn take(&mut self, address: &str, owner: Owner) -> Option<Owner> {
        let ip: Option<IpAddr> = address.parse().ok();
        if address.is_empty() || ip.is_some_and(|ip| ip.is_unspecified()) {
            let met = self.somewhere;
            keep(&mut self.everywhere, owner);
            keep(&mut self.somewhere, owner);
            return met;
        }
        let address = ip.map_or_else(|| address.to_owned(), |ip| ip.to_string());
        let mut met = self.at.get(&address).copied();
        if let Some(owner) = self.everywhere {
            keep(&mut met, owner);
        }
        let mut at = met;
        keep(&mut at, owner);
        self.at.extend(at.map(|owner| (address, owner)));
        keep(&mut self.somewhere, owner);
        met
    }
}

/// Keeps an owner beside those before it. What the runtime has twice is not judged, so that another owner is worth more.
fn keep(slot: &mut Option<Owner>, owner: Owner) {
    if matches!(slot, None | Some(Owner::Runtime)) {
        *slot = Some(owner);
    }
}

struct Pod<'a> {
    record: &'a Record,
    removed: &'a RemovedVolumes,
    patched: &'a PatchedMounts<'a>,
    place: String,
    who: OwnerName<'a>,
    problems: &'a mut Vec<Problem>,
}

impl Pod<'_> {
    fn clash(&mut self, what: &str, first: Owner, second: Owner, advice: &str) {
        if first == Owner::Runtime && second == Owner::Runtime {
            return;
        }
        let message = format!(
            "{what}: one is from {}, the other from {}: {advice}",
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
                self.clash(&what, container.owner, init.owner, OTHER_NAME);
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
                        OTHER_NAME,
                    );
                }
            }
        }
    }

    /// A port of the machine leads to one port of the pod. Init containers run one after the other, so that theirs meet
    /// within one only.
    fn host_ports(&mut self, position: u32) {
        let record = self.record;
        for init in record.containers(position, Field::InitContainers) {
            self.one_port_for_a_host_port([init]);
        }
        self.one_port_for_a_host_port(record.containers(position, Field::Containers));
    }

    fn one_port_for_a_host_port(&mut self, ids: impl IntoIterator<Item = ContainerId>) {
        let mut taken: BTreeMap<(u64, String), HostPort> = BTreeMap::new();
        let entries: Vec<Entry> = ids
            .into_iter()
            .flat_map(|id| self.entries(id, Field::Ports))
            .collect();
        for entry in entries {
            let json = entry.datum.as_json();
            let member = |name: &str| json.and_then(|json| json.get(name));
            let text = |name: &str| member(name).and_then(Value::as_str);
            let port = member("hostPort").and_then(Value::as_u64);
            let Some(port) = port.filter(|port| *port != 0) else {
                continue;
            };
            let protocol = text("protocol").unwrap_or("TCP").to_owned();
            let what = format!("two ports of one pod have the host port {port}/{protocol}");
            let taken = taken.entry((port, protocol)).or_default();
            if let Some(first) = taken.take(text("hostIP").unwrap_or_default(), entry.owner) {
                self.clash(&what, first, entry.owner, OTHER_HOST_PORT);
            }
        }
    }

    /// The search domains of a pod fit into its `resolv.conf`.
    fn dns_searches(&mut self, position: u32) {
        let all = self.of_pods(position, Field::DnsSearches);
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

    /// A pod that names its node is never scheduled, so that no gate can hold it back.
    fn gates(&mut self, position: u32) {
        let scope = EntryScope::PodSet(position);
        let node = self
            .record
            .member(scope, "nodeName")
            .and_then(Value::as_str);
        let gates = self.of_pods(position, Field::SchedulingGates);
        let is_new = |entry: &&Entry| entry.owner != Owner::Runtime;
        let raw = self.record.entry(scope, Field::PodRaw, "nodeName");
        let named_by = raw.map_or(Owner::Runtime, |entry| entry.owner);
        let gate = gates
            .iter()
            .find(is_new)
            .or_else(|| gates.first().filter(|_| named_by != Owner::Runtime));
        if let (Some(node), Some(gate)) = (node, gate) {
            let message = format!(
                "{} adds the scheduling gate `{}`, and the pods have the node name `{node}` of {}; remove one of the two",
                (self.who)(gate.owner),
                gate.key,
                (self.who)(named_by)
            );
            self.problem(self.place.clone(), message);
        }
    }

    /// What plugins require of nodes has a place in the affinity, and is not too much for it.
    fn affinity_terms(&mut self, position: u32) {
        const FIELD: Field = Field::AffinityTerms;
        let record = self.record;
        let Some(set) = record.pod_set(position) else {
            return;
        };
        let Some(addition_error) = record
            .pod_template(position)
            .and_then(|pod| addition_error(pod, FIELD, set.fields.all(FIELD)))
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
                    "has {additions} required terms of node affinities for each of the {alternatives} `nodeSelectorTerms` of the runtime; that is {entries} entries, but at most {most} are allowed, because API servers write larger objects slowly; the last one is from {}; remove some",
                    (self.who)(owner)
                );
                self.problem(place, message);
            }
        }
    }

    fn of_pods(&self, position: u32, field: Field) -> Vec<Entry> {
        let set = self.record.pod_set(position);
        set.map(|set| set.fields.all(field).to_vec())
            .unwrap_or_default()
    }

    fn problem(&mut self, place: String, message: String) {
        self.problems.push(Problem::Invariant { place, message });
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

    /// One thing is mounted at a path. Strategic merge tells mounts apart by how their paths are written; a node does not.
    fn one_mount_for_a_path(&mut self, id: ContainerId) {
        let mut mounted: BTreeMap<String, Entry> = BTreeMap::new();
        for entry in self.entries(id, Field::Mounts) {
            let path = Field::Mounts.compared(&entry.key).into_owned();
            let Some(first) = mounted.get(&path) else {
                mounted.insert(path, entry);
                continue;
            };
            let what = format!(
                "two mounts of one container are at `{path}` (`{}` and `{}`)",
                first.key, entry.key
            );
            let patched = [&entry, first]
                .into_iter()
                .find_map(|mount| self.patched(id, mount));
            let (first, second) = (first.owner, entry.owner);
            match patched {
                Some(path) => self.problems.push(Problem::job(
                    path,
                    format!(
                        "{what}: one is from {}, the other from {}: {OTHER_PATH}",
                        (self.who)(first),
                        (self.who)(second)
                    ),
                )),
                None => self.clash(&what, first, second, OTHER_PATH),
            }
        }
    }

    /// The TrainJob's field by which a patch set a mount.
    fn patched(&self, id: ContainerId, mount: &Entry) -> Option<FieldPath> {
        let place = EntryRef {
            scope: EntryScope::Container(id),
            field: Field::Mounts,
            key: mount.key.clone(),
        };
        self.patched.get(&place).copied().cloned()
    }

    fn entries(&self, id: ContainerId, field: Field) -> Vec<Entry> {
        self.record
            .fields(EntryScope::Container(id))
            .map(|fields| fields.all(field).to_vec())
            .unwrap_or_default()
    }
}
