//! How all runtimes and the newest TrainJobs are rendered, before a revision gets to a share of the namespaces.

use std::{collections::BTreeMap, sync::Arc};

use trainyard_config::policy_plugin::{ShadowDifference, ShadowSummary};

use super::{
    Comparer, Exhausting,
    pair::{Pair, judge},
    subjects::{in_turns, runtimes, train_jobs},
};
use crate::{generation::Generation, plugins::rollout::Comparison, reconcile::Stores};

/// The most fields that are kept.
const FIELDS: usize = 32;

/// The most fields that are counted.
const MOST_FIELDS: usize = 1_024;

/// The result of a comparison.
pub(crate) struct Compared {
    pub(crate) summary: ShadowSummary,
    /// The runtimes and TrainJobs that could not be compared.
    pub(crate) not_compared: u32,
}

impl From<&Compared> for Comparison {
    fn from(compared: &Compared) -> Self {
        Self {
            differing: compared.summary.differing,
            refused: compared.summary.refused,
            not_compared: compared.not_compared,
        }
    }
}

impl Comparer {
    /// Compares how all runtimes, and the newest TrainJobs of each that have not started, are rendered. `changed` are the plugins that differ.
    pub(crate) async fn compare(
        &self,
        stores: &Stores,
        (old, new): (&Arc<Generation>, &Arc<Generation>),
        changed: &[String],
    ) -> Compared {
        let of_train_jobs = train_jobs(&self.reconciler, stores);
        let subjects = runtimes(stores).into_iter().chain(of_train_jobs);
        let subjects = in_turns(subjects.map(|it| (it.key.namespace.clone(), it)));
        let (mut summary, mut not_compared) = (ShadowSummary::default(), 0);
        let mut fields: BTreeMap<String, ShadowDifference> = BTreeMap::new();
        let mut exhausting = Exhausting::new();
        for subject in subjects {
            let namespace = &subject.key.namespace;
            if !exhausting.has_room(namespace) {
                not_compared += 1;
                continue;
            }
            let both = self.render(&subject, (old, new)).await;
            exhausting.note(namespace, &both);
            match &judge(both).await {
                Pair::NotCompared { .. } => {
                    not_compared += 1;
                    continue;
                }
                Pair::Same => {}
                Pair::Refused => {
                    summary.refused += 1;
                    note(&mut fields, "refused", changed, &subject.name);
                }
                Pair::Differs(differing) => {
                    summary.differing += 1;
                    for field in differing {
                        note(&mut fields, field, changed, &subject.name);
                    }
                }
            }
            match subject.is_runtime {
                true => summary.runtimes += 1,
                false => summary.train_jobs += 1,
            }
        }
        let mut fields: Vec<_> = fields.into_values().collect();
        fields.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.field.cmp(&b.field)));
        fields.truncate(FIELDS);
        summary.differences = fields;
        Compared {
            summary,
            not_compared,
        }
    }
}

/// Counts a field that differs. No more than [`MOST_FIELDS`] are counted.
fn note(
    fields: &mut BTreeMap<String, ShadowDifference>,
    field: &str,
    changed: &[String],
    example: &str,
) {
    if fields.len() >= MOST_FIELDS && !fields.contains_key(field) {
        return;
    }
    let known = fields.entry(field.to_owned());
    let difference = known.or_insert_with(|| ShadowDifference {
        plugin: changed.join(", "),
        field: field.to_owned(),
        count: 0,
        example: example.to_owned(),
    });
    difference.count += 1;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn the_fields_that_are_counted_are_bounded() {
        let mut fields = BTreeMap::new();
        for number in 0..3_000 {
            note(&mut fields, &format!("{number:04}"), &[], "a");
            note(&mut fields, "0000", &[], "a");
        }
        assert_eq!(fields.len(), MOST_FIELDS);
        assert_eq!(fields["0000"].count, 3_001);
    }
}
