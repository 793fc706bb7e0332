//! For plugins whose claims, node sets, lookups, devices and resource claims overlap, and which may fail: whether a set of plugins is
//! accepted does not depend on the load order, an accepted set has one plan, and the TrainJob's bytes, errors and warnings are the same in
//! every legal order.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use proptest::{
    prelude::*,
    test_runner::{RngSeed, TestRunner},
};
use serde_json::json;
use trainyard_model::{deadline::Deadline, facts::Facts, lookup::Lookups};
use trainyard_render::{Catalog, Rendered, Renderer};

use crate::common::{
    Scripted,
    acts::{Act, Acting, acting, known, two_pod_sets},
    catalog, permutations, renderer,
};

/// How often each tested situation occurred.
#[derive(Debug, Default)]
struct Seen {
    rendered: usize,
    refused: usize,
    contested: usize,
    missing: usize,
    not_loaded: usize,
    orders: usize,
    /// Operations of rendered TrainJobs whose plugins have several legal orders.
    acts: BTreeMap<String, usize>,
    /// Pairs of such operations by two plugins.
    pairs: BTreeMap<(String, String), usize>,
}

/// Pairs of operations of which one reads what the other writes.
const MEETINGS: [(&str, &str); 14] = [
    ("SetLabel", "CopyLabel"),
    ("SetLabelOfConfig", "CopyLabel"),
    ("AddContainer", "CountContainers"),
    ("AddContainer", "SetEnvEverywhere"),
    ("AddContainer", "SetEnvOfBase"),
    ("AddContainer", "SumRequests"),
    ("AddInitContainer", "SumRequests"),
    ("SetRequest", "SumRequests"),
    ("SetNodes", "CountNodes"),
    ("SetNodes", "SumRequests"),
    ("PutDevices", "CountDevices"),
    ("PutDevices", "CountProcesses"),
    ("PutResourceClaim", "UseResourceClaim"),
    ("PutResourceClaim", "ListResourceClaims"),
];

/// The kinds of operations that no rendered TrainJob has, because they fail.
const REFUSING: usize = 2;

/// The TrainJob of some plugins, with its lookups.
struct Case {
    catalog: Catalog,
    known: Arc<Lookups>,
}

impl Case {
    fn of(plugins: &[Scripted]) -> Self {
        Self {
            catalog: catalog(&two_pod_sets(plugins)),
            known: known(),
        }
    }

    /// Returns the order of the plugins and the whole output of the renderer: the bytes, or the errors.
    fn outcome(&self, renderer: &Renderer) -> (Vec<String>, Result<String, Vec<String>>) {
        let job = &self.catalog.jobs[0];
        let deadline = Deadline::none();
        let rendered = renderer.render(
            &job.train_job,
            &job.runtime,
            "default",
            &self.known,
            &deadline,
        );
        match rendered {
            Ok(rendered) => {
                let ran = rendered.plan.iter();
                let ran = ran.map(|active| active.plugin.id.name.to_string());
                (ran.collect(), Ok(bytes(&rendered)))
            }
            Err(stopped) => (Vec::new(), Err(stopped.lines())),
        }
    }
}

fn bytes(rendered: &Rendered) -> String {
    let objects = rendered.objects.iter().map(|object| &object.value);
    let objects: Vec<_> = objects.collect();
    let warnings = rendered.warnings.iter().map(ToString::to_string);
    let warnings: Vec<_> = warnings.collect();
    json!([objects, rendered.job_set, rendered.provenance(), warnings]).to_string()
}

/// Checks that the plan, the digest and the outcome do not depend on the load order.
fn check_load_orders(
    case: &Case,
    plugins: &[Scripted],
    loaded: &Renderer,
) -> Result<(), TestCaseError> {
    let expected = case.outcome(loaded);
    let facts = Facts::default();
    for turn in 0..plugins.len() {
        let mut turned = plugins.to_vec();
        turned.rotate_left(turn);
        if turn % 2 == 0 {
            turned.reverse();
        }
        let other = renderer(&turned).unwrap();
        let (one, other_plan) = (loaded.generation(), other.generation());
        prop_assert_eq!(one.edges(), other_plan.edges());
        prop_assert_eq!(one.digest(&facts), other_plan.digest(&facts));
        prop_assert_eq!(&case.outcome(&other), &expected);
    }
    Ok(())
}

fn count(seen: &mut Seen, acting: &[Acting]) {
    let kinds: Vec<BTreeSet<String>> = acting
        .iter()
        .map(|one| one.acts.iter().map(|act| act.kind()).collect())
        .collect();
    for (at, own) in kinds.iter().enumerate() {
        for kind in own {
            *seen.acts.entry(kind.clone()).or_default() += 1;
            let others = kinds.iter().enumerate().filter(|(other, _)| *other != at);
            for other in others.flat_map(|(_, kinds)| kinds) {
                let pair = (kind.clone(), other.clone());
                *seen.pairs.entry(pair).or_default() += 1;
            }
        }
    }
}

fn check(acting: &[Acting], seen: &mut Seen) -> Result<(), TestCaseError> {
    let plugins: Vec<_> = acting.iter().map(|one| one.plugin.clone()).collect();
    let loaded = match renderer(&plugins) {
        Ok(renderer) => renderer,
        Err(errors) => {
            let mut turned = plugins.clone();
            turned.reverse();
            prop_assert_eq!(renderer(&turned).err(), Some(errors));
            seen.not_loaded += 1;
            return Ok(());
        }
    };
    let case = Case::of(&plugins);
    check_load_orders(&case, &plugins, &loaded)?;
    let edges = loaded.generation().edges();
    let is_legal = |order: &Vec<String>| {
        let at = |name: &str| order.iter().position(|one| one == name);
        edges.iter().all(|edge| at(&edge.first) < at(&edge.then))
    };
    let orders = permutations(plugins.len()).into_iter();
    let orders = orders.map(|order| order.iter().map(|at| plugins[*at].name.clone()).collect());
    let orders: Vec<Vec<String>> = orders.filter(is_legal).collect();
    let mut expected = None;
    for order in &orders {
        let names = order.iter().map(|name| name.as_str().into());
        let (plan, bytes) = case.outcome(&renderer(&plugins).unwrap().with_preference(names));
        if bytes.is_ok() {
            prop_assert_eq!(&plan, order, "the order that is tested is the one that ran");
        }
        let expected = expected.get_or_insert_with(|| bytes.clone());
        prop_assert_eq!(&bytes, &*expected, "{:?}", order);
        seen.orders += 1;
    }
    match expected.unwrap() {
        Ok(_) => {
            seen.rendered += 1;
            if orders.len() > 1 {
                count(seen, acting);
            }
        }
        Err(problems) => {
            seen.refused += 1;
            let has = |text: &str| problems.iter().any(|problem| problem.contains(text));
            seen.contested += usize::from(has("have no declared order"));
            seen.missing += usize::from(has("`m1`"));
        }
    }
    Ok(())
}

impl Seen {
    /// Whether each kind of outcome, operation and pair occurred.
    fn is_all(&self) -> bool {
        let outcomes = [
            self.rendered,
            self.refused,
            self.not_loaded,
            self.contested,
            self.missing,
        ];
        let has = |(one, other): &(&str, &str)| {
            let pair = ((*one).to_owned(), (*other).to_owned());
            self.pairs.contains_key(&pair)
        };
        outcomes.iter().all(|count| *count >= 5)
            && self.acts.len() == Act::KINDS - REFUSING
            && self.acts.values().all(|count| *count >= 5)
            && MEETINGS.iter().all(has)
            && self.orders > 2 * (self.rendered + self.refused)
    }
}

/// Continues until every situation occurred, because the sets are random.
#[test]
fn outcome_is_the_same_in_every_load_order_and_legal_order() {
    let seen = RefCell::new(Seen::default());
    let config = ProptestConfig {
        cases: 250,
        source_file: Some(file!()),
        ..ProptestConfig::default()
    };
    for turn in 0..10 {
        let check = |acting: Vec<Acting>| check(&acting, &mut seen.borrow_mut());
        let mut config = config.clone();
        if let RngSeed::Fixed(seed) = config.rng_seed {
            config.rng_seed = RngSeed::Fixed(seed.wrapping_add(turn));
        }
        TestRunner::new(config).run(&acting(), check).unwrap();
        if seen.borrow().is_all() {
            return;
        }
    }
    panic!("what is to be tested did not come up: {:#?}", seen.borrow());
}
