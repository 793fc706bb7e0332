//! How TrainJobs and runtimes are rendered by two generations.

mod subjects;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    num::NonZeroUsize,
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tokio::task::spawn_blocking;
use trainyard_config::policy_plugin::{ShadowDifference, ShadowSummary};
use trainyard_divergences::difference::{Answer, Difference, differences};
use trainyard_model::text::clean_to;

use self::subjects::{AtMost, IN_ALL, OF_NAMESPACE, Subject, runtimes, train_jobs};
use super::rollout::{Comparison, Failures};
use crate::{
    fair::{FairSemaphore, Worker},
    generation::Generation,
    queue::NamespacedName,
    reconcile::{ReconcileError, Reconciler, StoppedBy, Stores},
};

/// The most fields that are kept.
const FIELDS: usize = 32;

/// The most fields that are counted.
const MOST_FIELDS: usize = 1_024;

/// The most characters of a field.
const FIELD: usize = 256;

/// The most TrainJobs and runtimes, of a namespace and in all, that are rendered although calls of plugins take as long as their limits allow.
const EXHAUSTING_OF_NAMESPACE: usize = 5;
const EXHAUSTING: usize = 20;

/// How long one rendering may take.
const LIMIT: Duration = Duration::from_secs(30);

/// How many renderings are made at once. Most of the machine is for reconciles.
const AT_ONCE: usize = 2;

/// Compares generations, apart from reconciles.
pub(super) struct Comparer {
    reconciler: Reconciler,
    places: FairSemaphore,
}

/// The TrainJobs that were checked because they fail, by their version, and whether they fail only with the newer revision.
pub(super) type Checked = HashMap<(NamespacedName, String, StoppedBy), bool>;

/// The TrainJobs and runtimes for which calls of plugins took as long as their limits allow. Calls that judge plugins have no breakers.
struct Exhausting(AtMost<Arc<str>>);

impl Exhausting {
    fn new() -> Self {
        Self(AtMost::new(EXHAUSTING_OF_NAMESPACE))
    }

    /// Whether one more of a namespace is rendered.
    fn has_room(&self, namespace: &Arc<str>) -> bool {
        self.0.has_room(namespace) && !self.is_full()
    }

    /// Whether none is rendered any more.
    fn is_full(&self) -> bool {
        self.0.count().0 >= EXHAUSTING
    }

    fn note(&mut self, namespace: &Arc<str>, both: &[Result<Vec<Value>, ReconcileError>; 2]) {
        let mut errors = both.iter().filter_map(|rendered| rendered.as_ref().err());
        if errors.any(ReconcileError::is_of_exhausted_call) {
            self.0.admits(namespace.clone());
        }
    }
}

/// How a TrainJob is rendered by two generations.
enum Pair {
    /// Neither differs, or both refuse it.
    Same,
    /// The fields of its objects that differ.
    Differs(Vec<String>),
    /// Only the newer generation refuses it.
    Refused,
    /// It could not be compared, such as because the API server is unreachable.
    NotCompared {
        /// Whether the older generation renders it.
        renders_with_old: bool,
    },
}

impl Comparer {
    pub(super) fn new(reconciler: &Reconciler) -> Self {
        Self {
            reconciler: reconciler.for_dry_runs(LIMIT).judging(),
            places: FairSemaphore::new(AT_ONCE, NonZeroUsize::MIN.saturating_add(AT_ONCE)),
        }
    }

    /// Compares how all runtimes, and the newest TrainJobs of each that have not started, are rendered. `changed` are the plugins that differ.
    pub(super) async fn compare(
        &self,
        stores: &Stores,
        (old, new): (&Arc<Generation>, &Arc<Generation>),
        changed: &[String],
    ) -> Compared {
        let mut subjects = runtimes(stores);
        subjects.extend(train_jobs(&self.reconciler, stores));
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
                    for field in differing.iter().collect::<HashSet<_>>() {
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

    /// Counts the TrainJobs of a share that fail with the newer generation and not with the older one. `checked` keeps what was found, until
    /// a TrainJob changes. It ends once there are too many.
    pub(super) async fn failures(
        &self,
        stores: &Stores,
        (old, new): (&Arc<Generation>, &Arc<Generation>),
        in_share: impl Fn(&str) -> bool,
        fails: impl Fn(&NamespacedName) -> Option<StoppedBy>,
        checked: &mut Checked,
    ) -> Failures {
        let [mut all, mut failing, mut worse] = [(); 3].map(|()| AtMost::new(OF_NAMESPACE));
        let mut jobs = stores.jobs.objects();
        jobs.retain(|(key, job)| in_share(&key.namespace) && self.reconciler.follows(key, job));
        jobs.sort_by(|a, b| a.0.cmp(&b.0));
        for (key, _) in &jobs {
            all.admits(key.namespace.clone());
        }
        let (all_train_jobs, all_namespaces) = all.count();
        let mut found = Failures {
            all_train_jobs,
            all_namespaces,
            ..Failures::default()
        };
        let (mut still, mut exhausting) = (Checked::new(), Exhausting::new());
        for (key, job) in jobs {
            // Each call of a plugin that hangs everywhere takes as long as its limits allow.
            if found.are_too_many() {
                break;
            }
            let namespace = key.namespace.clone();
            let Some(by) = fails(&key).filter(|_| failing.admits(namespace.clone())) else {
                continue;
            };
            let version = (key.clone(), job.resource_version(), by);
            let is_worse = match checked.get(&version) {
                Some(is_worse) => *is_worse,
                None if still.len() >= IN_ALL => continue,
                None if !exhausting.has_room(&namespace) => {
                    // A namespace alone, whose TrainJobs may fail with both, holds up nothing.
                    found.not_compared += usize::from(exhausting.is_full());
                    continue;
                }
                None => {
                    let subject = Subject {
                        name: String::new(),
                        key: key.clone(),
                        job,
                        is_runtime: false,
                    };
                    let both = self.render(&subject, (old, new)).await;
                    exhausting.note(&namespace, &both);
                    match self.is_worse(&key, by, both).await {
                        Verdict::Known(is_worse) => is_worse,
                        // It is asked again at the next check.
                        Verdict::Unknown { waits } => {
                            found.not_compared += usize::from(waits);
                            continue;
                        }
                    }
                }
            };
            still.insert(version, is_worse);
            if is_worse {
                worse.admits(namespace);
                (found.train_jobs, found.namespaces) = worse.count();
            }
        }
        *checked = still;
        found
    }

    /// Finds out whether a TrainJob that fails does so because of the newer generation.
    async fn is_worse(
        &self,
        key: &NamespacedName,
        by: StoppedBy,
        both: [Result<Vec<Value>, ReconcileError>; 2],
    ) -> Verdict {
        let [with_old, _] = &both;
        let old = with_old
            .as_ref()
            .ok()
            .filter(|_| by == StoppedBy::ApiServer);
        let old = old.cloned();
        match judge(both).await {
            Pair::Refused => Verdict::Known(true),
            Pair::Same => Verdict::Known(false),
            Pair::NotCompared { renders_with_old } => Verdict::Unknown {
                waits: renders_with_old,
            },
            // The API server refuses what was not asked of it before, unless it refuses that, too.
            Pair::Differs(_) => {
                let Some(old) = old else {
                    return Verdict::Known(false);
                };
                let worker = Worker::new(&self.places, &key.namespace);
                worker.start().await;
                match self.reconciler.are_accepted((key, &worker), &old).await {
                    Some(accepted) => Verdict::Known(accepted),
                    None => Verdict::Unknown { waits: false },
                }
            }
        }
    }

    async fn render(
        &self,
        subject: &Subject,
        (old, new): (&Arc<Generation>, &Arc<Generation>),
    ) -> [Result<Vec<Value>, ReconcileError>; 2] {
        let worker = Worker::new(&self.places, &subject.key.namespace);
        worker.start().await;
        let of = (&subject.key, &worker);
        let both = self.reconciler.try_render(of, &subject.job, [old, new]);
        both.await
    }
}

/// Whether a TrainJob fails because of the newer generation.
enum Verdict {
    Known(bool),
    /// It could not be found out.
    Unknown {
        /// Whether the share waits for it: a TrainJob that fails with the older generation, too, holds up nothing.
        waits: bool,
    },
}

async fn judge([old, new]: [Result<Vec<Value>, ReconcileError>; 2]) -> Pair {
    let renders_with_old = old.is_ok();
    match (old, new) {
        (Ok(old), Ok(new)) if old == new => Pair::Same,
        (Ok(old), Ok(new)) => Pair::Differs(fields(old, new).await),
        (Err(old), Err(new)) if !may_pass(&old) && !may_pass(&new) => Pair::Same,
        // Its calls time out in all namespaces, as this one has just done, and those of the older one do not.
        (Ok(_), Err(new)) if new.paused().is_some() => Pair::Refused,
        // Neither has got to the plugins.
        (Err(old), Err(new)) if is_of_runtime(&old) && is_of_runtime(&new) => Pair::Same,
        (Err(error), _) | (_, Err(error)) if may_pass(&error) => {
            Pair::NotCompared { renders_with_old }
        }
        (Ok(_), Err(_)) => Pair::Refused,
        (Err(_), Ok(_)) => Pair::Differs(vec!["accepted, and refused before".to_owned()]),
        (Err(_), Err(_)) => Pair::NotCompared { renders_with_old },
    }
}

/// Whether the error is that of a runtime, which is read before a plugin is called.
fn is_of_runtime(error: &ReconcileError) -> bool {
    matches!(
        error,
        ReconcileError::NoRuntime { .. } | ReconcileError::Runtime { .. }
    )
}

/// Whether the error is that of the host, of the API server or of another writer, so that it says nothing about the plugins.
fn may_pass(error: &ReconcileError) -> bool {
    matches!(
        error,
        ReconcileError::Api { .. }
            | ReconcileError::TooSlow { .. }
            | ReconcileError::Busy(_)
            | ReconcileError::Abandoned
            | ReconcileError::Internal(_)
    ) || error.is_temporary()
        || is_of_runtime(error)
}

/// Returns the fields that differ, without their values and the names of the objects.
async fn fields(old: Vec<Value>, new: Vec<Value>) -> Vec<String> {
    let compare = move || {
        let answer = |objects| Answer {
            objects,
            ..Answer::default()
        };
        let found = differences(&answer(new), &[answer(old)]);
        let fields = found.into_iter().filter_map(|difference| match difference {
            Difference::Field { object, path, .. } => {
                let kind = object.split(' ').next().unwrap_or_default();
                Some(clean_to(
                    &format!("{kind}: {}", without_names(&path)),
                    FIELD,
                ))
            }
            _ => None,
        });
        // Two keys of a map are one field.
        fields.collect::<BTreeSet<_>>()
    };
    match spawn_blocking(compare).await {
        Ok(fields) if !fields.is_empty() => fields.into_iter().collect(),
        // Such as the order of a list that has none.
        _ => vec!["in its form only".to_owned()],
    }
}

/// Returns a path without the text in brackets, which may be the tenants', such as the names of environment variables.
fn without_names(path: &str) -> String {
    let mut is_inside = false;
    let is_shown = |character: &char| {
        let was_inside = is_inside;
        is_inside = match character {
            '[' => true,
            ']' => false,
            _ => was_inside,
        };
        !(was_inside && is_inside)
    };
    path.chars().filter(is_shown).collect()
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

/// The result of a comparison.
pub(super) struct Compared {
    pub(super) summary: ShadowSummary,
    /// The runtimes and TrainJobs that could not be compared.
    pub(super) not_compared: u32,
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    fn no_runtime() -> ReconcileError {
        ReconcileError::NoRuntime {
            kind: "TrainingRuntime".to_owned(),
            name: "a".to_owned(),
        }
    }

    #[test]
    fn paths_are_shown_without_the_names_of_tenants() {
        for (path, shown) in [
            ("spec.a[node].env[SECRET].value", "spec.a[].env[].value"),
            ("spec.a[0][[x]", "spec.a[][]"),
            ("spec.a", "spec.a"),
            ("spec.a[open", "spec.a["),
        ] {
            assert_eq!(without_names(path), shown);
        }
    }

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

    #[tokio::test]
    async fn a_runtime_that_changes_between_two_renderings_is_no_refusal() {
        let refused = || ReconcileError::TrainJob(vec!["no".to_owned()]);
        let (ok, none) = (|| Ok(Vec::new()), || Err(no_runtime()));
        for (both, with_old) in [([ok(), none()], true), ([none(), ok()], false)] {
            let pair = judge(both).await;
            assert!(
                matches!(pair, Pair::NotCompared { renders_with_old } if renders_with_old == with_old)
            );
        }
        assert!(matches!(judge([none(), none()]).await, Pair::Same));
        assert!(matches!(judge([ok(), Err(refused())]).await, Pair::Refused));
        let both = judge([Err(refused()), Err(refused())]).await;
        assert!(matches!(both, Pair::Same));
    }
}
