//! Which TrainJobs of a share of the namespaces fail because of the newer generation.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use super::{
    Comparer, Exhausting,
    pair::{Pair, Rendered, judge},
    subjects::{AtMost, IN_ALL, OF_NAMESPACE, Subject, in_turns},
};
use crate::{
    fair::Worker,
    generation::Generation,
    plugins::rollout::Failures,
    queue::NamespacedName,
    reconcile::{Acceptance, StoppedBy, Stores},
};

/// The TrainJobs that were checked because they fail, by their version, and whether they fail only with the newer revision.
pub(crate) type Checked = HashMap<(NamespacedName, String, StoppedBy), bool>;

/// Whether a TrainJob fails because of the newer generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Known(bool),
    /// It could not be found out.
    Unknown {
        /// Whether the share waits for it: a TrainJob that fails with the older generation, too, holds up nothing.
        waits: bool,
    },
}

/// What one check renders at most.
struct Budget {
    rendered: usize,
    exhausting: Exhausting,
}

impl Budget {
    fn new() -> Self {
        Self {
            rendered: 0,
            exhausting: Exhausting::new(),
        }
    }

    /// Returns the verdict on a TrainJob of a namespace that is not rendered; `None` if it is.
    fn exceeded(&self, namespace: &Arc<str>) -> Option<Verdict> {
        // The next check renders it.
        if self.rendered >= IN_ALL {
            return Some(Verdict::Unknown { waits: true });
        }
        // A namespace alone, whose TrainJobs may fail with both, holds up nothing.
        let waits = self.exhausting.is_full();
        let has_room = self.exhausting.has_room(namespace);
        (!has_room).then_some(Verdict::Unknown { waits })
    }

    fn note(&mut self, namespace: &Arc<str>, both: &Rendered) {
        self.rendered += 1;
        self.exhausting.note(namespace, both);
    }
}

impl Comparer {
    /// Counts the TrainJobs of a share that fail with the newer generation and not with the older one. `checked` keeps what was found, until
    /// a TrainJob changes. It ends once there are too many.
    pub(crate) async fn failures(
        &self,
        stores: &Stores,
        (old, new): (&Arc<Generation>, &Arc<Generation>),
        in_share: impl Fn(&str) -> bool,
        fails: impl Fn(&NamespacedName) -> Option<StoppedBy>,
        checked: &mut Checked,
    ) -> Failures {
        let [mut all, mut worse] = [(); 2].map(|()| AtMost::new(OF_NAMESPACE));
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
        let (mut still, mut budget) = (Checked::new(), Budget::new());
        for (key, job, by) in failing(jobs, fails) {
            // Each call of a plugin that hangs everywhere takes as long as its limits allow.
            if found.are_too_many() {
                break;
            }
            let namespace = key.namespace.clone();
            let version = (key.clone(), job.resource_version(), by);
            let verdict = match (checked.get(&version), budget.exceeded(&namespace)) {
                (Some(is_worse), _) => Verdict::Known(*is_worse),
                (None, Some(verdict)) => verdict,
                (None, None) => {
                    let subject = Subject {
                        name: String::new(),
                        key: key.clone(),
                        job,
                        is_runtime: false,
                    };
                    let both = self.render(&subject, (old, new)).await;
                    budget.note(&namespace, &both);
                    self.is_worse(&key, by, both).await
                }
            };
            let is_worse = match verdict {
                Verdict::Known(is_worse) => is_worse,
                // It is asked again at the next check.
                Verdict::Unknown { waits } => {
                    found.not_compared += usize::from(waits);
                    continue;
                }
            };
            still.insert(version, is_worse);
            if is_worse {
                worse.admits(namespace);
                let before = found.namespaces;
                (found.train_jobs, found.namespaces) = worse.count();
                if found.namespaces > before && before < Failures::EXAMPLES {
                    found
                        .examples
                        .push(format!("{}/{}", key.namespace, key.name));
                }
            }
        }
        *checked = still;
        found
    }

    /// Finds out whether a TrainJob that fails does so because of the newer generation.
    async fn is_worse(&self, key: &NamespacedName, by: StoppedBy, both: Rendered) -> Verdict {
        let of_both = match &both {
            [Ok(old), Ok(new)] if by == StoppedBy::ApiServer => Some((old.clone(), new.clone())),
            _ => None,
        };
        match judge(both).await {
            Pair::Refused => Verdict::Known(true),
            Pair::Same => Verdict::Known(false),
            Pair::NotCompared { renders_with_old } => Verdict::Unknown {
                waits: renders_with_old,
            },
            Pair::Differs(_) => match of_both {
                None => Verdict::Known(false),
                Some((old, new)) => self.is_refused_now(key, &old, &new).await,
            },
        }
    }

    /// Finds out whether the API server refuses what the newer generation renders, and not what the older one does. The failure alone proves
    /// neither: it may be that of another TrainJob, which had the name before, or of something that has changed since.
    async fn is_refused_now(&self, key: &NamespacedName, old: &[Value], new: &[Value]) -> Verdict {
        let worker = Worker::new(&self.places, &key.namespace);
        worker.start().await;
        match self.reconciler.are_accepted((key, &worker), new).await {
            Acceptance::Refused => {}
            // It fails with the older generation, too, as long as the quota is full.
            Acceptance::OverQuota => return Verdict::Unknown { waits: false },
            // Its next reconcile shows whether it still fails.
            Acceptance::Accepted | Acceptance::NotTold => return Verdict::Unknown { waits: true },
        }
        match self.reconciler.are_accepted((key, &worker), old).await {
            Acceptance::Accepted => Verdict::Known(true),
            Acceptance::Refused => Verdict::Known(false),
            Acceptance::OverQuota => Verdict::Unknown { waits: false },
            Acceptance::NotTold => Verdict::Unknown { waits: true },
        }
    }
}

/// Returns the TrainJobs that fail, with what stops them; at most [`OF_NAMESPACE`] of a namespace. Namespaces take turns, and those that do not
/// fail have none.
fn failing<J>(
    jobs: Vec<(NamespacedName, J)>,
    fails: impl Fn(&NamespacedName) -> Option<StoppedBy>,
) -> impl Iterator<Item = (NamespacedName, J, StoppedBy)> {
    let mut of_namespace = AtMost::new(OF_NAMESPACE);
    let failing = jobs.into_iter().filter_map(move |(key, job)| {
        let namespace = key.namespace.clone();
        let by = fails(&key).filter(|_| of_namespace.admits(namespace.clone()))?;
        Some((namespace, (key, job, by)))
    });
    in_turns(failing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_waits_for_train_jobs_that_the_next_check_renders() {
        let (namespace, mut budget) = ("a".into(), Budget::new());
        for _ in 0..IN_ALL {
            assert_eq!(budget.exceeded(&namespace), None);
            budget.note(&namespace, &[Ok(Vec::new()), Ok(Vec::new())]);
        }
        let waits = Some(Verdict::Unknown { waits: true });
        assert_eq!(budget.exceeded(&namespace), waits);
        assert_eq!(Budget::new().exceeded(&namespace), None);
    }

    #[test]
    fn train_jobs_that_do_not_fail_delay_no_other_ones_of_their_namespace() {
        let job = |(namespace, number): (&str, u32)| {
            (
                NamespacedName::new(namespace, format!("job-{number:04}")),
                (),
            )
        };
        let healthy = (0..2_000).map(|number| ("a", number));
        let jobs = healthy.chain([("a", 2_000), ("a", 2_001)]);
        let jobs = jobs.chain((0..30).map(|number| ("b", number)));
        let is_healthy = |key: &NamespacedName| &*key.namespace == "a" && &*key.name < "job-2000";
        let fails = |key: &NamespacedName| (!is_healthy(key)).then_some(StoppedBy::Other);
        let found: Vec<_> = failing(jobs.map(job).collect(), fails)
            .map(|(key, ..)| format!("{}/{}", key.namespace, key.name))
            .collect();
        let first: Vec<_> = found.iter().take(4).map(String::as_str).collect();
        assert_eq!(
            first,
            ["a/job-2000", "b/job-0000", "a/job-2001", "b/job-0001"]
        );
        assert_eq!(found.len(), 2 + OF_NAMESPACE);
    }
}
