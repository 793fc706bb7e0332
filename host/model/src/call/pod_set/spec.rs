//! Placement, DNS settings and file ownership of a pod set's pods.

use super::*;
use crate::names::{is_dns_subdomain, is_qualified_name};

/// The largest group id in Kubernetes.
const MAX_GROUP: i64 = i32::MAX as i64;

/// Whether the scheduler must or should respect a term, in an affinity and in the name of an [`AffinityList`].
const WHEN: [(&str, &str); 2] = [
    ("required", "requiredDuringSchedulingIgnoredDuringExecution"),
    (
        "preferred",
        "preferredDuringSchedulingIgnoredDuringExecution",
    ),
];

impl Call {
    /// `pod-set.hostlist`
    pub fn pod_set_hostlist(&mut self, handle: handle::PodSet) -> Result<String, Fault> {
        let set = self.pod_set(handle)?;
        let (jobs, last) = (set.replicas, set.count.saturating_sub(1));
        let pods = match last {
            0 => "0".to_owned(),
            last => format!("[0-{last}]"),
        };
        let prefix = format!("{}-{}-", self.record.job_name, set.name);
        let longest = prefix.len() + pods.len() + 12;
        self.meter
            .clone()
            .add_bytes(longest.saturating_mul(jobs as usize))?;
        let hosts: Vec<_> = (0..jobs)
            .map(|job| format!("{prefix}{job}-{pods}"))
            .collect();
        self.give(&hosts.join(","))
    }

    /// `pod-set.add-scheduling-gate`
    pub fn pod_set_add_scheduling_gate(
        &mut self,
        handle: handle::PodSet,
        name: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        if !is_qualified_name(name) {
            return wrong(
                "the name is not the qualified name of a gate, such as `example.com/quota`",
            );
        }
        self.add(
            target,
            Field::SchedulingGates,
            name,
            json!({ "name": name }).into(),
        )
    }

    /// `pod-set.add-toleration`
    pub fn pod_set_add_toleration(
        &mut self,
        handle: handle::PodSet,
        id: &str,
        json: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        let toleration = self.object_argument(json)?;
        terms::toleration(&toleration).or_else(wrong)?;
        self.set_with_id(target, Field::Tolerations, id, toleration)
    }

    /// `pod-set.add-affinity-term`
    pub fn pod_set_add_affinity_term(
        &mut self,
        handle: handle::PodSet,
        id: &str,
        at: &str,
        json: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        self.meter.text(at)?;
        let Some(list) = AffinityList::named(at) else {
            return wrong(
                "the list must be `nodeAffinity`, `podAffinity` or `podAntiAffinity`, then `/required` or `/preferred`",
            );
        };
        let term = self.object_argument(json)?;
        list.check(&term).or_else(wrong)?;
        let mut terms = Value::Array(vec![term]);
        if list.narrows() {
            terms = object_with("nodeSelectorTerms", terms);
        }
        let affinity = object_with(list.of, object_with(list.when, terms));
        self.set_with_id(target, Field::AffinityTerms, id, affinity)
    }

    /// `pod-set.dns-searches`
    pub fn pod_set_dns_searches(&mut self, handle: handle::PodSet) -> Result<Vec<String>, Fault> {
        let (target, at) = self.pod_set_target(handle)?;
        self.may_read(target, Field::DnsSearches, None)?;
        let set = self.record_of(target.base).pod_set(at);
        let domains = set.map(|set| {
            let all = set.fields.all(Field::DnsSearches).iter();
            all.map(|entry| entry.key.to_string()).collect()
        });
        self.give_all(domains.unwrap_or_default())
    }

    /// `pod-set.add-dns-search`
    pub fn pod_set_add_dns_search(
        &mut self,
        handle: handle::PodSet,
        domain: &str,
    ) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        let name = domain.strip_suffix('.').unwrap_or(domain);
        if !is_dns_subdomain(name) {
            return wrong("the domain is not a DNS name, such as `team.svc.cluster.local`");
        }
        // For a resolver, a dot at the end makes no difference.
        let dotted = format!("{name}.");
        let there = self
            .record
            .entry(target.scope, Field::DnsSearches, &dotted)
            .is_some();
        let key = if there { &dotted } else { name };
        self.add(target, Field::DnsSearches, key, name.into())
    }

    /// `pod-set.fs-group`
    pub fn pod_set_fs_group(&mut self, handle: handle::PodSet) -> Result<Option<i64>, Fault> {
        self.integer(handle, Field::FsGroup)
    }

    /// `pod-set.set-fs-group`
    pub fn pod_set_set_fs_group(&mut self, handle: handle::PodSet, gid: i64) -> Result<(), Fault> {
        let (target, _) = self.pod_set_target(handle)?;
        if !(0..=MAX_GROUP).contains(&gid) {
            return wrong(format!("the group must be from 0 to {MAX_GROUP}"));
        }
        self.set(target, Field::FsGroup, "", Some(Datum::Integer(gid)))
    }

    /// Adds a value to a set unless it is already in it.
    pub(in crate::call) fn add(
        &mut self,
        target: Target,
        field: Field,
        key: &str,
        value: Datum,
    ) -> Result<(), Fault> {
        self.meter.text(key)?;
        self.may_write(target, Verb::Write, field, key)?;
        if self.record.entry(target.scope, field, key).is_none() {
            self.put(target.scope, field, key, Some(value));
        }
        Ok(())
    }

    fn set_with_id(
        &mut self,
        target: Target,
        field: Field,
        id: &str,
        value: Value,
    ) -> Result<(), Fault> {
        if !is_dns_label(id) {
            return wrong("the id must be a DNS label: at most 63 of a-z, 0-9 and `-`");
        }
        self.set(target, field, id, Some(value.into()))
    }

    fn object_argument(&mut self, json: &str) -> Result<Value, Fault> {
        match self.json_argument(json)? {
            object @ Value::Object(_) => Ok(object),
            _ => wrong("the text is not a valid JSON object"),
        }
    }
}

/// One of the six lists of an affinity.
struct AffinityList {
    of: &'static str,
    when: &'static str,
}

impl AffinityList {
    fn named(name: &str) -> Option<Self> {
        let (of, when) = name.split_once('/')?;
        let kinds = ["nodeAffinity", "podAffinity", "podAntiAffinity"];
        let of = kinds.into_iter().find(|kind| *kind == of)?;
        let (_, when) = WHEN.into_iter().find(|(short, _)| *short == when)?;
        Some(Self { of, when })
    }

    /// Whether its terms are alternatives, each of which an added term narrows. In the other required lists, all terms apply.
    fn narrows(&self) -> bool {
        self.of == "nodeAffinity" && self.is_required()
    }

    fn is_required(&self) -> bool {
        self.when.starts_with("required")
    }

    fn check(&self, term: &Value) -> Result<(), String> {
        match (self.of, self.is_required()) {
            ("nodeAffinity", true) => terms::required_of_nodes(term),
            ("nodeAffinity", false) => terms::preferred_of_nodes(term),
            (_, true) => terms::required_of_pods(term),
            (_, false) => terms::preferred_of_pods(term),
        }
    }
}
