//! The members and resource requests of a gang of pods, as the scheduler counts them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Call, Fault, Target, raw::weight, wrong};
use crate::{
    contract::handle,
    lookup::{LookupAnswer, LookupKey, ObjectKey},
    names::{DNS_SUBDOMAIN, is_dns_subdomain},
    pod_requests::{self, AmountError, Amounts, Defaults, InitContainer, Pod, Resources},
    quantity::Quantity as Amount,
    record::{Container, ContainerId, EntryScope, Field, PodSet, Record},
    text::clean,
    value::Quantity,
};

/// The most members of a gang: PodGroups count them as 32-bit integers with a sign.
const MOST_MEMBERS: u64 = i32::MAX as u64;

/// Members of the pod spec that affect the sum, in addition to the containers.
const RESOURCES: &str = "resources";
const OVERHEAD: &str = "overhead";
const RUNTIME_CLASS: &str = "runtimeClassName";

impl Call {
    /// `info.gang-members`
    pub fn info_gang_members(
        &mut self,
        handle: handle::Info,
        names: &[String],
    ) -> Result<u32, Fault> {
        let gang = self.gang(handle, names)?;
        Ok(gang.iter().map(|(.., pods)| pods).sum())
    }

    /// `info.gang-requests`
    pub fn info_gang_requests(
        &mut self,
        handle: handle::Info,
        names: &[String],
    ) -> Result<Vec<Quantity>, Fault> {
        let gang = self.gang(handle, names)?;
        let defaults = self.container_defaults()?;
        let mut sum = Amounts::new();
        for (target, at, pods) in gang {
            let one = self.counted(target, at)?.requests(&defaults);
            pod_requests::add_times(&mut sum, &one, pods);
        }
        self.give_amounts(&sum)
    }

    /// `pod-set.pod-requests`
    pub fn pod_set_pod_requests(&mut self, handle: handle::PodSet) -> Result<Vec<Quantity>, Fault> {
        let (target, at) = self.pod_set_target(handle)?;
        let defaults = self.container_defaults()?;
        let one = self.counted(target, at)?.requests(&defaults);
        self.give_amounts(&one)
    }

    /// The pod sets of those names, each with its number of pods. There are at most [`MOST_MEMBERS`] pods.
    fn gang(
        &mut self,
        handle: handle::Info,
        names: &[String],
    ) -> Result<Vec<(Target, u32, u32)>, Fault> {
        let Target { base, .. } = Self::info_target(handle);
        let (mut gang, mut seen) = (Vec::new(), BTreeSet::new());
        for name in names {
            self.meter.text(name)?;
            let record = self.record_of(base);
            let Some((at, set)) = record
                .pod_set_named(name)
                .and_then(|at| Some((at, record.pod_set(at)?)))
            else {
                return wrong(format!("there is no pod set `{}`", clean(name)));
            };
            if !seen.insert(at) {
                return wrong(format!("duplicate pod set `{name}`"));
            }
            let scope = EntryScope::PodSet(at);
            gang.push((Target { scope, base }, at, set.pods()));
        }
        let total: u64 = gang.iter().map(|(.., pods)| u64::from(*pods)).sum();
        let largest = gang.iter().max_by_key(|(.., pods)| pods);
        match largest.and_then(|(_, at, _)| self.record_of(base).pod_set(*at)) {
            Some(set) if total > MOST_MEMBERS => Err(too_many_pods(total, set)),
            _ => Ok(gang),
        }
    }

    /// What the scheduler counts for a pod set's pods, after checking every read that it depends on. The reads cover all containers,
    /// because containers that other plugins add count, too.
    fn counted(&mut self, target: Target, at: u32) -> Result<Pod, Fault> {
        for list in [Field::Containers, Field::InitContainers] {
            for field in [Field::Requests, Field::Limits] {
                self.may_read_in_all(target, list, field)?;
            }
        }
        self.may_read_in_all(target, Field::InitContainers, Field::RestartPolicy)?;
        for member in [RESOURCES, OVERHEAD, RUNTIME_CLASS] {
            self.may_read(target, Field::PodRaw, Some(member))?;
        }
        let record = self.record_of(target.base);
        let set = record.pod_set(at).map(|set| &*set.name).unwrap_or_default();
        let place = |below: &str, problem: AmountError| Fault::Invalid {
            place: format!("pod-sets[{set}].{below}{}", problem.at),
            message: format!(
                "must be a quantity of 0 or more, such as `4` or `500m`; found `{}`",
                clean(&problem.text)
            ),
        };
        let containers = |list: Field| {
            record.containers(at, list).map(move |id| {
                let name = record.container(id).map(|c| &*c.name).unwrap_or_default();
                let read = resources(record, id);
                read.map_err(|problem| place(&format!("{list}[{name}]."), problem))
            })
        };
        let member = |name: &str| record.member(target.scope, name);
        let whole = member(RESOURCES).unwrap_or(&Value::Null);
        let overhead = pod_requests::amounts(member(OVERHEAD));
        let inits = record.containers(at, Field::InitContainers);
        let mut pod = Pod {
            containers: containers(Field::Containers).collect::<Result<_, _>>()?,
            init_containers: containers(Field::InitContainers)
                .zip(inits)
                .map(|(resources, id)| {
                    Ok(InitContainer {
                        resources: resources?,
                        is_sidecar: record.container(id).is_some_and(Container::is_sidecar),
                    })
                })
                .collect::<Result<_, Fault>>()?,
            resources: Resources::read(whole)
                .map_err(|problem| place("raw[resources].", problem))?,
            overhead: overhead.map_err(|mut problem| {
                problem.at = format!("[{}]", problem.at);
                place("raw[overhead]", problem)
            })?,
        };
        // The API server accepts only the overhead of the RuntimeClass; an empty one counts as none.
        let overhead = member(OVERHEAD).and_then(Value::as_object);
        let has_overhead = overhead.is_some_and(|overhead| !overhead.is_empty());
        let class = member(RUNTIME_CLASS)
            .and_then(Value::as_str)
            .map(str::to_owned);
        if let Some(class) = class.filter(|class| !has_overhead && !class.is_empty()) {
            let place = format!("pod-sets[{set}].raw[{RUNTIME_CLASS}]");
            pod.overhead = self.overhead_of(&class, place)?;
        }
        self.pay_for(&pod)?;
        Ok(pod)
    }

    /// The defaults of the namespace's LimitRanges.
    fn container_defaults(&mut self) -> Result<Defaults, Fault> {
        let key = LookupKey::All {
            api_version: "v1".to_owned(),
            kind: "LimitRange".to_owned(),
        };
        let LookupAnswer::All(ranges) = self.answer(key.clone())? else {
            return Ok(Defaults::default());
        };
        self.note_read(&key, "/spec/limits")?;
        for range in &ranges {
            let limits = range.pointer("/spec/limits");
            self.meter.add_bytes(limits.map_or(0, weight))?;
        }
        Defaults::of(&ranges)
            .or_else(|problem| wrong(format!("a LimitRange of the namespace: {problem}")))
    }

    /// The overhead of the pods of a RuntimeClass, which a place of the record names.
    fn overhead_of(&mut self, class: &str, place: String) -> Result<Amounts, Fault> {
        const AT: &str = "/overhead/podFixed";
        if !is_dns_subdomain(class) {
            let message = format!(
                "must be the name of a RuntimeClass: {DNS_SUBDOMAIN}; found `{}`",
                clean(class)
            );
            return Err(Fault::Invalid { place, message });
        }
        let key = LookupKey::Object(ObjectKey::new("node.k8s.io/v1", "RuntimeClass", class));
        let LookupAnswer::Object(object) = self.answer(key.clone())? else {
            return Ok(Amounts::new());
        };
        self.note_read(&key, AT)?;
        self.meter.add_bytes(object.pointer(AT).map_or(0, weight))?;
        pod_requests::amounts(object.pointer(AT)).or_else(|problem| {
            wrong(format!(
                "the overhead of the RuntimeClass `{class}`: {problem}"
            ))
        })
    }

    /// Charges for the amounts that are added up.
    fn pay_for(&mut self, pod: &Pod) -> Result<(), Fault> {
        let inits = pod.init_containers.iter().map(|init| &init.resources);
        let all = pod.containers.iter().chain(inits).chain([&pod.resources]);
        let amounts = all
            .map(|r| r.requests.len() + r.limits.len())
            .sum::<usize>();
        self.meter
            .add_bytes((amounts + pod.overhead.len()) * size_of::<Amount>())
    }

    fn give_amounts(&mut self, amounts: &Amounts) -> Result<Vec<Quantity>, Fault> {
        let amounts: Vec<_> = amounts
            .iter()
            .map(|(resource, amount)| Quantity {
                resource: resource.clone(),
                amount: amount.to_string(),
            })
            .collect();
        let bytes = amounts
            .iter()
            .map(|q| q.resource.len() + q.amount.len() + 16);
        self.meter.add_bytes(bytes.sum())?;
        Ok(amounts)
    }
}

/// The error for a gang that is too large, with the number of its largest pod set.
fn too_many_pods(total: u64, largest: &PodSet) -> Fault {
    let PodSet {
        name,
        count,
        replicas,
        counts_nodes,
        ..
    } = largest;
    let (place, found) = match counts_nodes {
        true => ("spec.trainer.numNodes".to_owned(), count),
        false if replicas > count => (format!("pod-sets[{name}].{}", Field::Replicas), replicas),
        false => (format!("pod-sets[{name}].{}", Field::Count), count),
    };
    let message = format!(
        "is {found}, so at least {total} pods would start together; reduce it, because a PodGroup has at most {MOST_MEMBERS} members"
    );
    Fault::Invalid { place, message }
}

/// The resource requests of a container.
fn resources(record: &Record, id: ContainerId) -> Result<Resources, AmountError> {
    let list = |field: Field| -> Result<Amounts, AmountError> {
        let fields = record.fields(EntryScope::Container(id));
        let entries = fields
            .into_iter()
            .flat_map(|fields| fields.all(field).iter());
        entries
            .map(|entry| {
                let text = entry.datum.as_text().unwrap_or_default();
                let at = format!("{field}[{}]", entry.key);
                Ok((entry.key.to_string(), pod_requests::amount(&at, text)?))
            })
            .collect()
    };
    Ok(Resources {
        requests: list(Field::Requests)?,
        limits: list(Field::Limits)?,
    })
}
