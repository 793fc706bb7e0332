//! The accelerators and the CPUs of a node.

use std::collections::BTreeMap;

use serde_json::Value;
use trainyard_model::{
    quantity::Quantity,
    record::{Accelerators, SHARES},
};

use super::container;
use crate::seen::Seen;

/// What a node has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Devices {
    /// Its extended resources that are accelerators.
    pub(crate) of_resources: u64,
    /// Those of them that are GPUs.
    pub(crate) gpus: u64,
    /// Whether it has a share of an accelerator, and no whole one.
    pub(crate) is_share: bool,
    /// The accelerators in its resource claims. `None` if their number is not known.
    pub(crate) of_claims: Option<u64>,
    /// Its CPUs.
    pub(crate) cpus: u64,
}

impl Devices {
    /// Returns those of container `node` of a replicated job that Trainyard made.
    pub(crate) fn of(seen: &Seen<'_>, job: &Value) -> Self {
        let node = container(job, "containers", "node");
        let amounts = amounts(&node["resources"]);
        let sum = |is_counted: &dyn Fn(&str) -> bool| {
            let counted = amounts.iter().filter(|(name, _)| is_counted(name));
            counted.map(|(_, amount)| amount).sum::<u64>()
        };
        let is_accelerator = |name: &str| is_accelerator(name, seen.accelerators);
        let of_resources = sum(&is_accelerator);
        Self {
            of_resources,
            gpus: sum(&|name| is_accelerator(name) && name.contains("gpu")),
            is_share: of_resources == 0 && sum(&|name| SHARES.contains(&name)) > 0,
            of_claims: of_claims(seen, job, node),
            cpus: amounts.get("cpu").copied().unwrap_or(0),
        }
    }

    /// Returns the number of accelerators: of the resources, or else of the claims. `None` if it is not known.
    pub(crate) fn accelerators(&self) -> Option<u64> {
        match self.of_resources {
            0 if self.is_share => None,
            0 => self.of_claims,
            known => Some(known),
        }
    }
}

/// Returns whether Trainyard counts a resource. A share of a device does not count, even if one of the operator's names matches it.
pub(crate) fn is_accelerator(resource: &str, accelerators: &Accelerators) -> bool {
    let is_named = |name: &str| match name.strip_suffix('*') {
        Some(start) => resource.starts_with(start),
        None => name == resource,
    };
    !SHARES.contains(&resource) && accelerators.names().any(is_named)
}

/// Returns the requests of a container, rounded up. A limit counts for a resource without a request.
fn amounts(resources: &Value) -> BTreeMap<&str, u64> {
    let lists = ["limits", "requests"].into_iter();
    let members = lists.flat_map(|list| resources[list].as_object().into_iter().flatten());
    let amount = |value: &Value| {
        let amount = Quantity::read(value)?.ceil()?;
        u64::try_from(amount).ok()
    };
    members
        .map(|(name, value)| (name.as_str(), amount(value).unwrap_or(0)))
        .collect()
}

/// Returns whether a container uses a claim whose object is not known, because comparisons in a cluster do not read it. What follows from
/// the number of its devices can be anything.
pub(crate) fn is_uncountable(seen: &Seen<'_>) -> bool {
    let uses =
        |job: &'_ Value| container(job, "containers", "node")["resources"]["claims"].is_array();
    let is_known = |kind: &str| {
        let mut objects = seen.documents.iter().chain(seen.made);
        objects.any(|object| {
            object["kind"]
                .as_str()
                .is_some_and(|it| it.starts_with(kind))
        })
    };
    seen.made_jobs().any(uses) && !is_known("ResourceClaim")
}

/// Returns the accelerators of the claims that a container uses.
fn of_claims(seen: &Seen<'_>, job: &Value, node: &Value) -> Option<u64> {
    let of_pod = &job["template"]["spec"]["template"]["spec"]["resourceClaims"];
    let used = node["resources"]["claims"].as_array().into_iter().flatten();
    used.map(|used| {
        let mut claims = of_pod.as_array().into_iter().flatten();
        let claim = claims.find(|claim| claim["name"] == used["name"])?;
        let (kind, name, at) = match claim["resourceClaimTemplateName"].as_str() {
            Some(name) => ("ResourceClaimTemplate", name, "/spec/spec/devices/requests"),
            None => (
                "ResourceClaim",
                claim["resourceClaimName"].as_str()?,
                "/spec/devices/requests",
            ),
        };
        let mut objects = seen.documents.iter().chain(seen.made);
        let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        let requests = objects.find(is_it)?.pointer(at)?.as_array()?;
        let counted = requests
            .iter()
            .filter(|request| used["request"].is_null() || used["request"] == request["name"]);
        counted.map(count).sum::<Option<u64>>()
    })
    .sum()
}

/// Returns the number of accelerators of a request.
fn count(request: &Value) -> Option<u64> {
    let exactly = &request["exactly"];
    let class = exactly["deviceClassName"].as_str().unwrap_or_default();
    let is_of_network = ["nic", "rdma", "channel"]
        .iter()
        .any(|word| class.contains(word));
    let mode = exactly["allocationMode"].as_str().unwrap_or("ExactCount");
    match mode {
        _ if is_of_network => Some(0),
        "ExactCount" => Some(exactly["count"].as_u64().unwrap_or(1)),
        _ => None,
    }
}
