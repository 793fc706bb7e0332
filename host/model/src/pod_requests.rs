//! What the scheduler counts for a pod, from its template: what the API server and admission fill in, then the sum.
//!
//! Three parts of Kubernetes have a hand in it, in this order. The API server gives a container without a request its limit; the
//! `LimitRanger` admission plugin gives what is still missing, from the namespace's LimitRanges; the scheduler adds up by the rule of
//! `PodRequests` in k8s.io/component-helpers. (The overhead of a RuntimeClass is set on the pod by admission, too: whoever makes a
//! [`Pod`] here gives it with the rest.)

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use thiserror::Error;

use crate::{quantity::Quantity, text::clean};

/// Amounts by resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// A text that should be a quantity.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{at}: `{}` is not a quantity", clean(text))]
pub struct NotAQuantity {
    /// Its place, from where the amounts stand.
    pub at: String,
    /// The text.
    pub text: String,
}

/// Requests and limits, as they are written.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    /// The requests.
    pub requests: Amounts,
    /// The limits.
    pub limits: Amounts,
}

/// An init container.
#[derive(Clone, Debug, Default)]
pub struct InitContainer {
    /// Its requests and limits.
    pub resources: Resources,
    /// Whether it runs beside the containers that follow (`restartPolicy: Always`).
    pub is_sidecar: bool,
}

/// What of a pod template the scheduler counts.
#[derive(Clone, Debug, Default)]
pub struct Pod {
    /// The containers.
    pub containers: Vec<Resources>,
    /// The init containers, in their order.
    pub init_containers: Vec<InitContainer>,
    /// `spec.resources`: requests and limits of the pod as a whole.
    pub resources: Resources,
    /// `spec.overhead`, or that of the RuntimeClass.
    pub overhead: Amounts,
}

/// What the LimitRanges of a namespace give a container that does not say.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    requests: Amounts,
    limits: Amounts,
}

/// Reads amounts by resource, as `requests` in a pod spec.
///
/// # Errors
/// The first text that is not a quantity.
pub fn amounts(value: Option<&Value>) -> Result<Amounts, NotAQuantity> {
    let members = value.and_then(Value::as_object).into_iter().flatten();
    members
        .map(|(resource, amount)| {
            let text = match amount {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            match Quantity::parse(&text) {
                Some(amount) => Ok((resource.clone(), amount)),
                None => Err(NotAQuantity {
                    at: resource.clone(),
                    text,
                }),
            }
        })
        .collect()
}

impl Resources {
    /// Reads `resources` of a pod spec or container.
    ///
    /// # Errors
    /// The first text that is not a quantity.
    pub fn read(value: &Value) -> Result<Self, NotAQuantity> {
        let list = |name: &str| {
            amounts(value.get(name)).map_err(|problem| NotAQuantity {
                at: format!("{name}[{}]", problem.at),
                ..problem
            })
        };
        Ok(Self {
            requests: list("requests")?,
            limits: list("limits")?,
        })
    }

    /// What the container asks for once it is in a pod. A default of a limit is one of the request as well (see
    /// [`Defaults::of`]), so that limits count only where the author wrote them.
    fn effective(&self, defaults: &Defaults) -> Amounts {
        let mut out = self.requests.clone();
        fill(&mut out, &self.limits);
        fill(&mut out, &defaults.requests);
        out
    }
}

impl Defaults {
    /// What LimitRanges give, which come by name. Of two that say something of one resource the first wins; the API server's choice
    /// is open.
    ///
    /// # Errors
    /// The first text in one of them that is not a quantity.
    pub fn of(limit_ranges: &[Arc<Value>]) -> Result<Self, NotAQuantity> {
        let mut all = Self::default();
        for range in limit_ranges {
            let items = range.pointer("/spec/limits").and_then(Value::as_array);
            let mut own = Self::default();
            for item in items.into_iter().flatten() {
                if item.get("type").and_then(Value::as_str) == Some("Container") {
                    let item = Self::of_item(item)?;
                    own.requests.extend(item.requests);
                    own.limits.extend(item.limits);
                }
            }
            fill(&mut all.requests, &own.requests);
            fill(&mut all.limits, &own.limits);
        }
        Ok(all)
    }

    /// One item, with what the API server fills in when it stores the LimitRange: files may lack it.
    fn of_item(item: &Value) -> Result<Self, NotAQuantity> {
        let list = |name: &str| amounts(item.get(name));
        let (mut limits, mut requests) = (list("default")?, list("defaultRequest")?);
        fill(&mut limits, &list("max")?);
        fill(&mut requests, &limits);
        fill(&mut requests, &list("min")?);
        Ok(Self { requests, limits })
    }
}

impl Pod {
    /// What the scheduler counts for one pod: the containers and sidecars together, or more where an init container with the
    /// sidecars before it needs more; what is asked for the pod as a whole in its place; and the overhead.
    #[must_use]
    pub fn requests(&self, defaults: &Defaults) -> Amounts {
        let mut out = self.of_containers(defaults);
        let whole = &self.resources;
        for (resource, limit) in &whole.limits {
            // Of huge pages, what containers ask for does not stand in for the pod's request.
            if is_of_pods(resource) && (is_hugepages(resource) || !out.contains_key(resource)) {
                out.insert(resource.clone(), *limit);
            }
        }
        let asked = whole.requests.iter();
        out.extend(
            asked
                .filter(|(resource, _)| is_of_pods(resource))
                .map(|(resource, amount)| (resource.clone(), *amount)),
        );
        add(&mut out, &self.overhead);
        out
    }

    fn of_containers(&self, defaults: &Defaults) -> Amounts {
        let mut running = Amounts::new();
        for container in &self.containers {
            add(&mut running, &container.effective(defaults));
        }
        let (mut sidecars, mut most) = (Amounts::new(), Amounts::new());
        for init in &self.init_containers {
            let own = init.resources.effective(defaults);
            let mut meanwhile = sidecars.clone();
            add(&mut meanwhile, &own);
            if init.is_sidecar {
                add(&mut running, &own);
                sidecars.clone_from(&meanwhile);
            }
            raise(&mut most, &meanwhile);
        }
        raise(&mut running, &most);
        running
    }
}

/// Adds amounts that many times.
pub fn add_times(to: &mut Amounts, more: &Amounts, times: u32) {
    for (resource, amount) in more {
        let sum = to.entry(resource.clone()).or_insert(Quantity::ZERO);
        *sum = sum.plus(amount.times(times));
    }
}

fn add(to: &mut Amounts, more: &Amounts) {
    add_times(to, more, 1);
}

/// Takes the larger amount of each resource.
fn raise(to: &mut Amounts, other: &Amounts) {
    for (resource, amount) in other {
        to.entry(resource.clone())
            .and_modify(|most| *most = most.max(*amount))
            .or_insert(*amount);
    }
}

/// Adds what is missing.
fn fill(to: &mut Amounts, from: &Amounts) {
    for (resource, amount) in from {
        to.entry(resource.clone()).or_insert(*amount);
    }
}

/// Whether it can be asked for a pod as a whole.
fn is_of_pods(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || is_hugepages(resource)
}

fn is_hugepages(resource: &str) -> bool {
    resource.starts_with("hugepages-")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// A pod spec as Kubernetes has it, read as the host reads the record.
    fn pod(spec: &Value) -> Pod {
        let read = |container: &Value| {
            Resources::read(container.get("resources").unwrap_or(&Value::Null)).unwrap()
        };
        let list = |name: &str| {
            let items = spec.get(name).and_then(Value::as_array);
            items.into_iter().flatten()
        };
        Pod {
            containers: list("containers").map(read).collect(),
            init_containers: list("initContainers")
                .map(|init| InitContainer {
                    resources: read(init),
                    is_sidecar: init.get("restartPolicy") == Some(&json!("Always")),
                })
                .collect(),
            resources: read(spec),
            overhead: amounts(spec.get("overhead")).unwrap(),
        }
    }

    fn written(amounts: &Amounts) -> Value {
        let members = amounts.iter();
        members
            .map(|(resource, amount)| (resource.clone(), json!(amount.to_string())))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    fn limit_range(limits: Value) -> Arc<Value> {
        Arc::new(json!({"spec": {"limits": limits}}))
    }

    #[track_caller]
    fn check(spec: Value, limit_ranges: &[Arc<Value>], expected: Value) {
        let defaults = Defaults::of(limit_ranges).unwrap();
        assert_eq!(written(&pod(&spec).requests(&defaults)), expected, "{spec}");
    }

    fn asks(list: &str, amounts: Value) -> Value {
        json!({"resources": {list: amounts}})
    }

    fn sidecar(amounts: Value) -> Value {
        json!({"restartPolicy": "Always", "resources": {"requests": amounts}})
    }

    #[test]
    fn containers_are_added_up_and_a_limit_is_a_request() {
        let containers = json!([
            {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": 2, "nvidia.com/gpu": 8}}},
            asks("requests", json!({"cpu": 1, "memory": "512Mi"})),
            {},
        ]);
        let sum = json!({"cpu": "1500m", "memory": "1536Mi", "nvidia.com/gpu": "8"});
        check(json!({"containers": containers}), &[], sum);
        check(json!({"containers": [{}]}), &[], json!({}));
    }

    #[test]
    fn the_largest_init_container_counts_where_it_needs_more() {
        let containers = json!([asks("requests", json!({"cpu": 2, "memory": "1Gi"}))]);
        let inits = json!([
            asks("requests", json!({"cpu": 1, "memory": "4Gi"})),
            asks("requests", json!({"cpu": "1500m", "memory": "2Gi"})),
        ]);
        let most = json!({"cpu": "2", "memory": "4Gi"});
        check(
            json!({"containers": containers, "initContainers": inits}),
            &[],
            most,
        );
    }

    /// The example of the Kubernetes enhancement for sidecars.
    #[test]
    fn a_sidecar_counts_beside_the_containers_and_the_init_containers_after_it() {
        let spec = json!({
            "containers": [asks("requests", json!({"cpu": 1})), asks("requests", json!({"cpu": 3}))],
            "initContainers": [
                asks("requests", json!({"cpu": 5})), sidecar(json!({"cpu": 1})),
                asks("requests", json!({"cpu": 10})), sidecar(json!({"cpu": 2})),
            ],
        });
        check(spec, &[], json!({"cpu": "11"}));
        let after = json!({
            "containers": [asks("requests", json!({"cpu": 4}))],
            "initContainers": [asks("requests", json!({"cpu": 7})), sidecar(json!({"cpu": 2}))],
        });
        check(after, &[], json!({"cpu": "7"}));
        let before = json!({
            "containers": [asks("requests", json!({"cpu": 4}))],
            "initContainers": [sidecar(json!({"cpu": 2})), asks("requests", json!({"cpu": 7}))],
        });
        check(before, &[], json!({"cpu": "9"}));
    }

    #[test]
    fn the_overhead_is_added_last() {
        let spec = json!({
            "containers": [asks("requests", json!({"cpu": 1}))],
            "initContainers": [asks("requests", json!({"cpu": 2}))],
            "overhead": {"cpu": "250m", "memory": "120Mi"},
        });
        check(spec, &[], json!({"cpu": "2250m", "memory": "120Mi"}));
    }

    #[test]
    fn what_is_asked_for_the_pod_stands_in_for_its_containers() {
        let containers = json!([asks(
            "requests",
            json!({"cpu": 3, "memory": "1Gi", "nvidia.com/gpu": 1})
        )]);
        for (resources, sum) in [
            (
                json!({"requests": {"cpu": 8, "nvidia.com/gpu": 7}}),
                json!({"cpu": "8", "memory": "1Gi", "nvidia.com/gpu": "1"}),
            ),
            // A limit of the pod counts where no container asks for the resource.
            (
                json!({"limits": {"cpu": 8, "hugepages-2Mi": "4Mi"}}),
                json!({"cpu": "3", "hugepages-2Mi": "4Mi", "memory": "1Gi", "nvidia.com/gpu": "1"}),
            ),
        ] {
            check(
                json!({"containers": containers, "resources": resources}),
                &[],
                sum,
            );
        }
        let pages = json!([asks("limits", json!({"hugepages-2Mi": "2Mi"}))]);
        let spec = json!({"containers": pages, "resources": {"limits": {"hugepages-2Mi": "8Mi"}}});
        check(spec, &[], json!({"hugepages-2Mi": "8Mi"}));
    }

    #[test]
    fn limit_ranges_fill_in_what_a_container_does_not_say() {
        let ranges = [
            limit_range(json!([
                {"type": "Pod", "max": {"cpu": 64}},
                {"type": "Container", "default": {"cpu": 4}, "defaultRequest": {"memory": "1Gi"}},
            ])),
            limit_range(
                json!([{"type": "Container", "defaultRequest": {"cpu": 1, "ephemeral-storage": "1G"}}]),
            ),
        ];
        let spec = json!({
            "containers": [{}, asks("requests", json!({"cpu": "100m"})), asks("limits", json!({"memory": "2Gi"}))],
            "initContainers": [asks("requests", json!({"memory": "9Gi"}))],
        });
        let sum = json!({"cpu": "8100m", "ephemeral-storage": "3G", "memory": "9Gi"});
        check(spec, &ranges, sum);
    }

    /// As `SetDefaults_LimitRangeItem` of the API server: files may hold a LimitRange that no server has seen.
    #[test]
    fn a_limit_range_is_completed_as_the_api_server_does() {
        let of = "Container";
        for (item, sum) in [
            (json!({"type": of, "max": {"cpu": 2}}), json!({"cpu": "2"})),
            (json!({"type": of, "min": {"cpu": 1}}), json!({"cpu": "1"})),
            (
                json!({"type": of, "min": {"cpu": 1}, "max": {"cpu": 4}, "default": {"cpu": 2}}),
                json!({"cpu": "2"}),
            ),
            (
                json!({"type": of, "default": {"cpu": 2}, "defaultRequest": {"cpu": 1}}),
                json!({"cpu": "1"}),
            ),
        ] {
            let spec = json!({"containers": [{}]});
            check(spec, &[limit_range(json!([item]))], sum);
        }
    }

    #[test]
    fn a_text_that_is_not_a_quantity_is_named() {
        let problem = Resources::read(&json!({"limits": {"cpu": "a\u{1b}b"}})).unwrap_err();
        let text = problem.to_string();
        assert!(text.starts_with("limits[cpu]: `a"), "{text}");
        assert!(text.ends_with("` is not a quantity") && !text.contains('\u{1b}'));
    }

    #[test]
    fn what_is_beyond_a_quantity_stays_at_its_end() {
        let containers = vec![asks("requests", json!({"memory": "8E"})); 20];
        let spec = json!({"containers": containers, "overhead": {"memory": "8E"}});
        let mut gang = Amounts::new();
        for _ in 0..1000 {
            let one = pod(&spec).requests(&Defaults::default());
            add_times(&mut gang, &one, u32::MAX);
        }
        assert_eq!(written(&gang), json!({"memory": "9223372036854775807"}));
    }

    /// An init container as (CPUs, whether it is a sidecar).
    type Init = (u32, bool);

    /// The most that runs at once, found by going through the pod's life step by step.
    fn most_at_once(containers: &[u32], inits: &[Init]) -> u32 {
        let sidecars = |until: usize| -> u32 {
            let started = inits.iter().take(until);
            started.filter(|init| init.1).map(|init| init.0).sum()
        };
        let starting = inits.iter().enumerate();
        let starting = starting.map(|(at, init)| sidecars(at) + init.0).max();
        let running = sidecars(inits.len()) + containers.iter().sum::<u32>();
        running.max(starting.unwrap_or(0))
    }

    proptest! {
        #[test]
        fn a_pod_asks_for_the_most_that_runs_at_once(
            containers in prop::collection::vec(0..9u32, 1..4),
            inits in prop::collection::vec((0..20u32, any::<bool>()), 0..6),
            overhead in 0..3u32,
        ) {
            let cpus = |cpus: &u32| asks("requests", json!({"cpu": cpus}));
            let init = |(cpus, is_sidecar): &Init| match is_sidecar {
                true => sidecar(json!({"cpu": cpus})),
                false => asks("limits", json!({"cpu": cpus})),
            };
            let spec = json!({
                "containers": containers.iter().map(cpus).collect::<Vec<_>>(),
                "initContainers": inits.iter().map(init).collect::<Vec<_>>(),
                "overhead": {"cpu": overhead},
            });
            let asked = pod(&spec).requests(&Defaults::default());
            let most = most_at_once(&containers, &inits) + overhead;
            prop_assert_eq!(asked.get("cpu").unwrap().ceil(), Some(i64::from(most)));
        }
    }
}
