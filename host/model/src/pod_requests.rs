//! The requests that the scheduler counts for a pod, computed from its template.
//!
//! Three parts of Kubernetes determine them, in this order. The API server sets a missing request of a container to its limit, and
//! completes the requests of a pod with limits of its own. The `LimitRanger` admission plugin sets what is still missing, from the
//! namespace's LimitRanges. The scheduler adds up the requests like `PodRequests` in k8s.io/component-helpers. (Admission also sets the
//! overhead of a RuntimeClass, which the caller passes in the [`Pod`].)

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use thiserror::Error;

use crate::{quantity::Quantity, text::clean};

/// Amounts by resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// A text is not a valid amount of a resource.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{at}: `{}` {problem}", clean(text))]
pub struct AmountError {
    /// Its path, relative to the amounts.
    pub at: String,
    /// The text.
    pub text: String,
    problem: &'static str,
}

/// Requests and limits as written.
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
    /// Whether it is a sidecar (`restartPolicy: Always`).
    pub is_sidecar: bool,
}

/// The parts of a pod template that the scheduler counts.
#[derive(Clone, Debug, Default)]
pub struct Pod {
    /// The containers.
    pub containers: Vec<Resources>,
    /// The init containers, in order.
    pub init_containers: Vec<InitContainer>,
    /// `spec.resources`: requests and limits of the pod as a whole.
    pub resources: Resources,
    /// `spec.overhead`, or that of the RuntimeClass.
    pub overhead: Amounts,
}

/// The defaults of a namespace's LimitRanges for containers.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    requests: Amounts,
    limits: Amounts,
}

/// Parses one amount at a path. The API server rejects negative amounts.
///
/// # Errors
/// The text is not a quantity, or negative.
pub fn amount(at: &str, text: &str) -> Result<Quantity, AmountError> {
    let problem = match Quantity::parse(text) {
        None => "is not a quantity",
        Some(amount) if amount.compare(Quantity::ZERO).is_lt() => "is below 0",
        Some(amount) => return Ok(amount),
    };
    Err(AmountError {
        at: at.to_owned(),
        text: text.to_owned(),
        problem,
    })
}

/// Parses amounts by resource, such as `requests` in a pod spec.
///
/// # Errors
/// The first text that is not a valid amount.
pub fn amounts(value: Option<&Value>) -> Result<Amounts, AmountError> {
    let members = value.and_then(Value::as_object).into_iter().flatten();
    members
        .map(|(resource, value)| {
            let amount = match value {
                Value::String(text) => amount(resource, text),
                other => amount(resource, &other.to_string()),
            };
            Ok((resource.clone(), amount?))
        })
        .collect()
}

impl Resources {
    /// Parses `resources` of a pod spec or container.
    ///
    /// # Errors
    /// The first text that is not a valid amount.
    pub fn read(value: &Value) -> Result<Self, AmountError> {
        let list = |name: &str| {
            amounts(value.get(name)).map_err(|problem| AmountError {
                at: format!("{name}[{}]", problem.at),
                ..problem
            })
        };
        Ok(Self {
            requests: list("requests")?,
            limits: list("limits")?,
        })
    }

    /// The requests of the container in a pod. A default limit is also a default request (see [`Defaults::of`]), so only limits that the
    /// author wrote count here.
    fn effective(&self, defaults: &Defaults) -> Amounts {
        let mut out = self.requests.clone();
        fill(&mut out, &self.limits);
        fill(&mut out, &defaults.requests);
        out
    }
}

impl Defaults {
    /// Returns the defaults of LimitRanges, which are sorted by name. If two have a default for the same resource, the first is used; the
    /// API server does not specify which.
    ///
    /// # Errors
    /// The first text that is not a valid amount.
    pub fn of(limit_ranges: &[Arc<Value>]) -> Result<Self, AmountError> {
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

    /// One item, with the defaults of the API server, which files may lack.
    fn of_item(item: &Value) -> Result<Self, AmountError> {
        let list = |name: &str| amounts(item.get(name));
        let (mut limits, mut requests) = (list("default")?, list("defaultRequest")?);
        fill(&mut limits, &list("max")?);
        fill(&mut requests, &limits);
        fill(&mut requests, &list("min")?);
        Ok(Self { requests, limits })
    }
}

impl Pod {
    /// Parses the spec of a pod. The overhead of its RuntimeClass is not in it.
    ///
    /// # Errors
    /// The first text that is not a valid amount.
    pub fn read(spec: &Value) -> Result<Self, AmountError> {
        let list = |name: &str| {
            let items = spec.get(name).and_then(Value::as_array);
            items.into_iter().flatten()
        };
        let of = |value: &Value| Resources::read(value.get("resources").unwrap_or(&Value::Null));
        let init = |container: &Value| {
            Ok(InitContainer {
                resources: of(container)?,
                is_sidecar: container.get("restartPolicy").and_then(Value::as_str)
                    == Some("Always"),
            })
        };
        Ok(Self {
            containers: list("containers").map(of).collect::<Result<_, _>>()?,
            init_containers: list("initContainers").map(init).collect::<Result<_, _>>()?,
            resources: of(spec)?,
            overhead: amounts(spec.get("overhead"))?,
        })
    }

    /// The requests that the scheduler counts for one pod: those of the containers and sidecars, or of an init container with the sidecars
    /// before it if these are larger; requests of the pod as a whole take precedence; and the overhead is added.
    #[must_use]
    pub fn requests(&self, defaults: &Defaults) -> Amounts {
        let mut out = self.of_containers(|container| container.effective(defaults));
        out.extend(self.asked_as_a_whole());
        add(&mut out, &self.overhead);
        out
    }

    /// `spec.resources.requests` as completed by the API server, before `LimitRanger` runs, for a pod with limits: by the requests of the
    /// containers, else by the limits.
    fn asked_as_a_whole(&self) -> Amounts {
        let Resources {
            requests: mut asked,
            mut limits,
        } = self.resources.clone();
        if !(asked.is_empty() && limits.is_empty()) {
            let mut pages = self.of_containers(|container| container.limits.clone());
            pages.retain(|resource, _| is_hugepages(resource));
            fill(&mut limits, &pages);
        }
        if !limits.is_empty() {
            let mut by_containers = self.of_containers(|c| c.effective(&Defaults::default()));
            // For huge pages, requests of containers do not complete the pod's request.
            by_containers.retain(|resource, _| !is_hugepages(resource));
            fill(&mut asked, &by_containers);
            fill(&mut asked, &limits);
        }
        asked.retain(|resource, _| is_of_pods(resource));
        asked
    }

    /// The largest amounts of containers that run at the same time.
    fn of_containers(&self, amounts: impl Fn(&Resources) -> Amounts) -> Amounts {
        let mut running = Amounts::new();
        for container in &self.containers {
            add(&mut running, &amounts(container));
        }
        let (mut sidecars, mut most) = (Amounts::new(), Amounts::new());
        for init in &self.init_containers {
            let own = amounts(&init.resources);
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

/// Adds amounts several times.
pub fn add_times(to: &mut Amounts, more: &Amounts, times: u32) {
    for (resource, amount) in more {
        let sum = to.entry(resource.clone()).or_insert(Quantity::ZERO);
        *sum = sum.plus(amount.times(times));
    }
}

fn add(to: &mut Amounts, more: &Amounts) {
    add_times(to, more, 1);
}

/// Keeps the larger amount of each resource.
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

/// Whether a pod as a whole can request the resource.
fn is_of_pods(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || is_hugepages(resource)
}

/// Whether the resource is huge pages of one size.
#[must_use]
pub fn is_hugepages(resource: &str) -> bool {
    resource.starts_with("hugepages-")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pod(spec: &Value) -> Pod {
        Pod::read(spec).unwrap()
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

    /// As `SetDefaults_Pod` of the API server, which completes a pod's own requests before `LimitRanger` sees the pod.
    #[test]
    fn pod_level_requests_are_completed_before_limit_ranges() {
        let ranges = [limit_range(
            json!([{"type": "Container", "defaultRequest": {"cpu": 1, "memory": "1Gi"}}]),
        )];
        let none = json!([{}]);
        let some = json!([asks("requests", json!({"cpu": 2})), {}]);
        for (containers, resources, sum) in [
            (
                &none,
                json!({"limits": {"cpu": 8}}),
                json!({"cpu": "8", "memory": "1Gi"}),
            ),
            (
                &some,
                json!({"limits": {"memory": "4Gi"}}),
                json!({"cpu": "2", "memory": "4Gi"}),
            ),
            (
                &some,
                json!({"limits": {"cpu": 8}, "requests": {"cpu": 6}}),
                json!({"cpu": "6", "memory": "2Gi"}),
            ),
            // Without a limit of the pod nothing is completed.
            (
                &some,
                json!({"requests": {"memory": "4Gi"}}),
                json!({"cpu": "3", "memory": "4Gi"}),
            ),
        ] {
            let spec = json!({"containers": containers, "resources": resources});
            check(spec, &ranges, sum);
        }
        // Huge pages of a container are a limit of the pod where it has any resources of its own.
        let pages = json!(
            [asks("limits", json!({"cpu": 2, "hugepages-2Mi": "2Mi"})), {
            }]
        );
        let spec = json!({"containers": pages, "resources": {"requests": {"memory": "4Gi"}}});
        let sum = json!({"cpu": "2", "hugepages-2Mi": "2Mi", "memory": "4Gi"});
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
    fn a_text_that_is_no_amount_is_named() {
        let problem = Resources::read(&json!({"limits": {"cpu": "a\u{1b}b"}})).unwrap_err();
        let text = problem.to_string();
        assert!(text.starts_with("limits[cpu]: `a"), "{text}");
        assert!(text.ends_with("` is not a quantity") && !text.contains('\u{1b}'));
        for (below, problem) in [
            (json!("-2"), "`-2`"),
            (json!(-1), "`-1`"),
            (json!("-1n"), "`-1n`"),
        ] {
            let text = Resources::read(&json!({"requests": {"cpu": below}})).unwrap_err();
            let expected = format!("requests[cpu]: {problem} is below 0");
            assert_eq!(text.to_string(), expected);
        }
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
