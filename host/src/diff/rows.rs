//! The rows that were found, with what they mean.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use serde::Serialize;
use trainyard_divergences::table::{self, Kueue};

use super::objects::{Effect, NamedReport};

/// A row that was found, with what it means.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RowReport {
    /// Its ID. Empty for what no row lists.
    pub(super) id: String,
    /// The most severe effect.
    pub(super) effect: Effect,
    /// The number of TrainJobs.
    pub(super) train_jobs: usize,
    /// The number of runtimes.
    pub(super) runtimes: usize,
    #[serde(flatten)]
    pub(super) meaning: Option<Meaning>,
}

/// What a row means.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meaning {
    /// What the reference does.
    pub(super) reference: String,
    /// What Trainyard does.
    pub(super) trainyard: String,
    pub(super) why: String,
    /// What to do. `None` if nothing has to be done.
    pub(super) what_to_do: Option<&'static str>,
    /// Whether Kueue sees the difference.
    pub(super) kueue: bool,
    /// The page with the row.
    pub(super) page: String,
}

/// In which objects a row was found.
struct FoundIn {
    /// The most severe effect.
    effect: Effect,
    /// The places of the objects.
    objects: BTreeSet<usize>,
}

/// Returns the rows that were found in these objects, the most severe and most frequent first. What no row lists is counted by effect.
pub(super) fn found(objects: &[NamedReport]) -> Vec<RowReport> {
    let mut counts: BTreeMap<(&str, Option<Effect>), FoundIn> = BTreeMap::new();
    for (at, object) in objects.iter().enumerate() {
        for finding in &object.report.findings {
            let ids = finding.rows.iter().map(|id| (id.as_str(), None));
            let is_listed = !finding.rows.is_empty() || finding.effect == Effect::Warns;
            let none = (!is_listed).then_some(("", Some(finding.effect)));
            for id in ids.chain(none) {
                let found = counts.entry(id).or_insert_with(|| FoundIn {
                    effect: finding.effect,
                    objects: BTreeSet::new(),
                });
                found.effect = finding.effect.max(found.effect);
                found.objects.insert(at);
            }
        }
    }
    let mut meanings: BTreeMap<_, _> = table::read().map(meaning).collect();
    let row = |((id, _), found): ((&str, _), FoundIn)| {
        let of = found.objects.iter().filter_map(|at| objects.get(*at));
        let train_jobs = of.filter(|object| object.is_train_job()).count();
        RowReport {
            id: id.to_owned(),
            effect: found.effect,
            train_jobs,
            runtimes: found.objects.len() - train_jobs,
            meaning: meanings.remove(id),
        }
    };
    let mut rows: Vec<_> = counts.into_iter().map(row).collect();
    rows.sort_by_key(|row| {
        let severity = (row.id.is_empty(), row.effect, row.train_jobs, row.runtimes);
        (Reverse(severity), row.id.clone())
    });
    rows
}

fn meaning((page, row): (String, table::TableRow)) -> (String, Meaning) {
    let what_to_do = table::advice(&row.id).or_else(|| table::refusal(&row.id).map(|_| REFUSED));
    let meaning = Meaning {
        reference: row.reference,
        trainyard: row.trainyard,
        why: row.why,
        what_to_do,
        kueue: row.kueue != Kueue::No,
        page,
    };
    (row.id, meaning)
}

/// What to do about a refusal.
const REFUSED: &str = "Correct the field that the error names, or remove it.";
