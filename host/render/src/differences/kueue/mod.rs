//! What Kueue computes for a TrainJob with a queue, compared with its pods.
//!
//! Kueue does not read the JobSet: it renders the TrainJob with the reference's code that it contains (`view`).

mod row;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use trainyard_api::{Runtime, TrainJob, names};
use trainyard_model::{
    lookup::{LookupKey, Lookups, ObjectKey},
    pod_requests::{Amounts, Defaults},
    quantity::Quantity,
    text::listed,
};

use self::{
    row::Row,
    view::{PodNeeds, needs},
};
use super::{Rendering, warning};
use crate::problem::Warning;

/// The page with the rows.
const PAGE: &str = "docs/kueue.md";

/// The kind whose objects have default requests.
const LIMIT_RANGE: &str = "LimitRange";

/// The maximum number of differences that a warning lists.
const MOST_FACTS: usize = 6;

/// Returns a warning for each row that explains a difference; none for a TrainJob without a queue.
pub(super) fn warnings(rendering: &Rendering<'_>) -> Vec<Warning> {
    if !is_queued(rendering.job) {
        return Vec::new();
    }
    let mut by_row: BTreeMap<&str, (&Row, Vec<String>)> = BTreeMap::new();
    let mut add = |row: &'static Row, fact: String| {
        let (_, facts) = by_row.entry(row.id).or_insert_with(|| (row, Vec::new()));
        facts.push(fact);
    };
    let refused = row::never_admitted(rendering);
    match refused {
        Some((row, reason)) => add(row, reason),
        None => {
            compare(rendering, &mut add);
            if let Some((row, reason)) = row::never_started(rendering) {
                add(row, reason);
            }
        }
    }
    let warnings = by_row.into_values();
    warnings.map(|(row, facts)| of_row(row, &facts)).collect()
}

/// Returns the lookups of what the warnings depend on: LimitRanges and ResourceClaimTemplates; none for a TrainJob without a queue.
pub(crate) fn lookups(job: &TrainJob, runtime: &Runtime) -> Vec<LookupKey> {
    if !is_queued(job) {
        return Vec::new();
    }
    let ranges = LookupKey::All {
        api_version: "v1".to_owned(),
        kind: LIMIT_RANGE.to_owned(),
    };
    let templates = row::claim_templates(runtime).map(|name| {
        LookupKey::Object(ObjectKey::new(
            "resource.k8s.io/v1",
            row::CLAIM_TEMPLATE,
            name,
        ))
    });
    std::iter::once(ranges).chain(templates).collect()
}

fn is_queued(job: &TrainJob) -> bool {
    let queue = job.metadata.labels.get(names::QUEUE_LABEL);
    queue.is_some_and(|queue| !queue.is_empty())
}

fn of_row(row: &Row, facts: &[String]) -> Warning {
    let message = format!("Kueue {}; {}", listed(facts, MOST_FACTS), row.advice);
    let field = row.field.map(str::to_owned);
    warning(row.about, field, &message, row.id, PAGE)
}

/// Adds each difference between the pods and what Kueue computes.
fn compare(rendering: &Rendering<'_>, add: &mut impl FnMut(&'static Row, String)) {
    let ranges = limit_ranges(rendering.known);
    let theirs = view::job_set(rendering, &ranges);
    let (Some(ours), Some(theirs)) = (needs(rendering.job_set, &ranges), needs(&theirs, &ranges))
    else {
        return;
    };
    for ours in &ours {
        let Some(theirs) = theirs.iter().find(|theirs| theirs.name == ours.name) else {
            continue;
        };
        let name = &ours.name;
        if ours.count != theirs.count {
            let fact = format!(
                "counts {} of the replicated job `{name}` instead of {}",
                pods(theirs.count),
                ours.count
            );
            add(row::of_count(rendering, name), fact);
        }
        if ours.count > 0 && theirs.count > 0 {
            compare_requests(rendering, ours, theirs, add);
        }
        compare_claims(rendering, ours, theirs, add);
    }
}

fn compare_claims(
    rendering: &Rendering<'_>,
    ours: &PodNeeds,
    theirs: &PodNeeds,
    add: &mut impl FnMut(&'static Row, String),
) {
    let name = &ours.name;
    for claim in theirs.claims.keys() {
        if !ours.claims.contains_key(claim) {
            let fact = format!(
                "counts the resource claim `{claim}` for the pods of `{name}`, which do not have it"
            );
            add(&row::CLAIMS_EXCLUDED, fact);
        }
    }
    for (claim, source) in &ours.claims {
        let fact = match theirs.claims.get(claim) {
            None => format!("does not count the resource claim `{claim}` of the pods of `{name}`"),
            Some(other) if other != source => {
                format!("counts {other} for the resource claim `{claim}` of `{name}`")
            }
            Some(_) => continue,
        };
        add(row::of_claim(rendering, claim), fact);
    }
}

fn compare_requests(
    rendering: &Rendering<'_>,
    ours: &PodNeeds,
    theirs: &PodNeeds,
    add: &mut impl FnMut(&'static Row, String),
) {
    let resources = ours.requests.keys().chain(theirs.requests.keys());
    let resources: BTreeSet<_> = resources.collect();
    for resource in resources {
        let of = |amounts: &Amounts| amounts.get(resource).copied().unwrap_or(Quantity::ZERO);
        let (ours_of, theirs_of) = (of(&ours.requests), of(&theirs.requests));
        if ours_of.compare(theirs_of).is_ne() {
            let fact = format!(
                "counts {theirs_of} {resource} for each pod of `{}` instead of {ours_of}",
                ours.name
            );
            add(row::of_request(rendering, &ours.name, resource), fact);
        }
    }
}

fn pods(count: u64) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} pod{s}")
}

/// Returns the defaults of the namespace's LimitRanges, if they are known.
fn limit_ranges(known: &Lookups) -> Defaults {
    let ranges = known.listed(LIMIT_RANGE).unwrap_or_default();
    Defaults::of(ranges).unwrap_or_default()
}
