//! Renders cases in each legal order of their plugins.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use trainyard_api::Object;

use super::{
    Rendered,
    report::{Check, CheckName},
    scenarios::Scenario,
};
use crate::{
    output::counted,
    plugin::cases::{Cases, Prepared, Rendering, Run, Variant},
    report::ErrorList,
};

/// The most orders of the plugins of a TrainJob that are tried: all of four plugins.
const MOST_ORDERS: usize = 24;

type Names = Vec<Arc<str>>;

/// Renders each case with each runtime in every legal order of the active plugins, as it is and in the scenarios with more plugins, and
/// compares the results.
pub(super) fn check(
    cases: &Cases,
    few: &[&Prepared<'_>],
    scenarios: &[Scenario],
) -> Result<Check, ErrorList> {
    let edits = scenarios.iter().filter(|one| one.adds_plugins).map(Some);
    let (mut failures, mut orders) = (Vec::new(), 0);
    for scenario in [None].into_iter().chain(edits) {
        let edit = |objects: &mut Vec<Object>| {
            if let Some(scenario) = scenario {
                scenario.apply(objects);
            }
        };
        let one = Variant {
            renderer: None,
            edit: &edit,
        };
        let runs: Vec<_> = few
            .iter()
            .flat_map(|case| Run::of_case(case, &one))
            .collect();
        let keep =
            |run: &Run<'_>, rendering: Rendering<'_>| Rendered::new(run, &rendering, &cases.plugin);
        let usual = cases.render_runs(&runs, keep)?;
        for (preferred, of_order) in preferences(&runs, &usual) {
            let renderer = cases.renderer().preferring(preferred);
            let renderer = renderer.map_err(ErrorList::from_iter)?;
            let variant = Variant {
                renderer: Some(&renderer),
                edit: &edit,
            };
            let again: Vec<_> = of_order
                .iter()
                .map(|(run, _)| Run {
                    variant: &variant,
                    ..**run
                })
                .collect();
            let results = cases.render_runs(&again, keep)?;
            for ((_, usual), other) in of_order.iter().zip(results) {
                if usual.plans == other.plans {
                    continue;
                }
                orders += 1;
                if usual.files != other.files {
                    let plan = other.plans.first().map(|plan| plan.join(", "));
                    let scenario = scenario.map(|one| format!(", {}", one.name));
                    failures.push(format!(
                        "{}{}: the result differs in the order {}",
                        usual.name,
                        scenario.unwrap_or_default(),
                        plan.unwrap_or_default()
                    ));
                }
            }
        }
    }
    if orders == 0 {
        let why = "no other order is legal";
        return Ok(Check::unneeded(CheckName::Orders, why));
    }
    let tried = counted(orders, "other order");
    Ok(Check::new(CheckName::Orders, tried, failures))
}

/// Returns each order of the plugins of TrainJobs, with the renderings that have these plugins.
fn preferences<'r>(
    runs: &'r [Run<'r>],
    usual: &'r [Rendered],
) -> BTreeMap<Names, Vec<(&'r Run<'r>, &'r Rendered)>> {
    let mut all: BTreeMap<Names, Vec<_>> = BTreeMap::new();
    for (run, rendered) in runs.iter().zip(usual) {
        let plans: BTreeSet<&Names> = rendered
            .plans
            .iter()
            .filter(|plan| plan.len() > 1)
            .collect();
        for plan in plans {
            for order in permutations(plan) {
                all.entry(order).or_default().push((run, rendered));
            }
        }
    }
    all
}

/// Returns up to [`MOST_ORDERS`] orders of these names, other than this one.
fn permutations(names: &Names) -> Vec<Names> {
    let mut all: Vec<Names> = vec![Vec::new()];
    for name in names {
        let longer = all.iter().flat_map(|order| {
            (0..=order.len()).map(|at| {
                let mut order = order.clone();
                order.insert(at, name.clone());
                order
            })
        });
        all = longer.take(MOST_ORDERS).collect();
    }
    all.retain(|order| order != names);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_orders_of_four_plugins_are_tried() {
        let names: Names = ["a", "b", "c", "d"].map(Arc::from).to_vec();
        let orders: BTreeSet<_> = permutations(&names).into_iter().collect();
        assert_eq!(orders.len(), 23);
        let more: Names = (0..9).map(|n| Arc::from(n.to_string())).collect();
        let some = permutations(&more);
        assert!(some.len() >= MOST_ORDERS - 1 && some.iter().all(|order| order.len() == 9));
    }
}
