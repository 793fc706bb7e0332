//! The requests of a pod, as Kubernetes documents them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use trainyard_model::quantity::Quantity;

/// Amounts by resource.
pub(super) type Amounts = BTreeMap<String, Quantity>;

pub(super) fn amounts(value: &Value) -> Amounts {
    let members = value.as_object().into_iter().flatten();
    let parsed = |(resource, amount): (&String, &Value)| {
        let text = amount.as_str().map_or(amount.to_string(), str::to_owned);
        (resource.clone(), Quantity::parse(&text).unwrap())
    };
    members.map(parsed).collect()
}

/// Returns amounts as text, such as `cpu=4 memory=8Gi`.
pub(super) fn text(amounts: &Amounts) -> String {
    let each = amounts
        .iter()
        .map(|(resource, amount)| format!("{resource}={amount}"));
    each.collect::<Vec<_>>().join(" ")
}

/// Adds amounts several times.
pub(super) fn add(to: &mut Amounts, more: &Amounts, times: u64) {
    let times = u32::try_from(times).unwrap();
    for (resource, amount) in more {
        let sum = to.get(resource).copied().unwrap_or(Quantity::ZERO);
        to.insert(resource.clone(), sum.plus(amount.times(times)));
    }
}

/// Returns the larger amount of each resource.
fn larger(some: &Amounts, others: &Amounts) -> Amounts {
    let resources: BTreeSet<_> = some.keys().chain(others.keys()).collect();
    let most = |resource: &String| {
        let largest = amount(some, resource).max(amount(others, resource));
        (resource.clone(), largest)
    };
    resources.into_iter().map(most).collect()
}

fn amount(amounts: &Amounts, resource: &str) -> Quantity {
    amounts.get(resource).copied().unwrap_or(Quantity::ZERO)
}

fn is_at_least(some: &Amounts, others: &Amounts) -> bool {
    let mut others = others.iter();
    others.all(|(resource, other)| amount(some, resource).compare(*other).is_ge())
}

pub(super) fn is_equal(some: &Amounts, others: &Amounts) -> bool {
    is_at_least(some, others) && is_at_least(others, some)
}

/// The objects of a cluster on which requests depend.
pub(super) struct Cluster<'d> {
    pub(super) documents: &'d [Value],
    pub(super) namespace: &'d Value,
}

impl Cluster<'_> {
    /// Returns the requests that LimitRanges give containers without their own. Of several ranges, the first one by name counts.
    fn defaults(&self) -> Amounts {
        let is_its = |one: &&Value| {
            one["kind"] == "LimitRange" && one["metadata"]["namespace"] == *self.namespace
        };
        let mut ranges: Vec<_> = self.documents.iter().filter(is_its).collect();
        ranges.sort_by_key(|range| range["metadata"]["name"].to_string());
        let items = ranges
            .iter()
            .flat_map(|range| range["spec"]["limits"].as_array().into_iter().flatten())
            .filter(|item| item["type"] == "Container");
        let mut all = Amounts::new();
        for item in items {
            for list in ["defaultRequest", "default", "max", "min"] {
                for (resource, amount) in amounts(&item[list]) {
                    all.entry(resource).or_insert(amount);
                }
            }
        }
        all
    }

    /// Returns the requests of a pod.
    pub(super) fn requests(&self, pod: &Value) -> Amounts {
        let mut sum = of_containers(pod, &self.defaults());
        // A pod's own requests are completed before LimitRanges are read.
        for (resource, amount) in of_pod(pod, &of_containers(pod, &Amounts::new())) {
            sum.insert(resource, amount);
        }
        let overhead = amounts(&pod["overhead"]);
        let is_class = |one: &&Value| {
            one["kind"] == "RuntimeClass" && one["metadata"]["name"] == pod["runtimeClassName"]
        };
        let class = self.documents.iter().find(is_class);
        match class.filter(|_| overhead.is_empty()) {
            Some(class) => add(&mut sum, &amounts(&class["overhead"]["podFixed"]), 1),
            None => add(&mut sum, &overhead, 1),
        }
        sum
    }
}

/// Returns what the containers of a pod need at most at the same time.
fn of_containers(pod: &Value, defaults: &Amounts) -> Amounts {
    let list = |name: &str| pod[name].as_array().into_iter().flatten();
    let mut sidecars = Amounts::new();
    let mut most = Amounts::new();
    for init in list("initContainers") {
        let mut now = sidecars.clone();
        add(&mut now, &of_container(init, defaults), 1);
        most = larger(&most, &now);
        if init["restartPolicy"] == "Always" {
            sidecars = now;
        }
    }
    let mut running = sidecars;
    for container in list("containers") {
        add(&mut running, &of_container(container, defaults), 1);
    }
    larger(&most, &running)
}

/// Returns the requests of a container. A limit, or else a default, counts for a resource without a request.
fn of_container(container: &Value, defaults: &Amounts) -> Amounts {
    let mut all = defaults.clone();
    all.extend(amounts(&container["resources"]["limits"]));
    all.extend(amounts(&container["resources"]["requests"]));
    all
}

/// Returns the requests of the pod as a whole, which replace those of its containers. A limit counts for a resource that neither the pod
/// nor a container requests; for huge pages, only the pod's limits count.
fn of_pod(pod: &Value, of_containers: &Amounts) -> Amounts {
    let is_pages = |resource: &str| resource.starts_with("hugepages-");
    let mut all = amounts(&pod["resources"]["limits"]);
    all.retain(|resource, _| is_pages(resource) || !of_containers.contains_key(resource));
    all.extend(amounts(&pod["resources"]["requests"]));
    all.retain(|resource, _| is_pages(resource) || ["cpu", "memory"].contains(&&**resource));
    all
}
