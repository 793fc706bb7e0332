//! How many TrainJobs use a plugin.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use trainyard_config::policy_plugin::{DigestCount, MAX_DIGESTS, TrainJobCount};

use crate::{plugins::Leader, queue::NamespacedName};

/// How often TrainJobs are counted. Each change of a count is a write.
const COUNTS: Duration = Duration::from_secs(30);

impl Leader {
    /// Counts the TrainJobs that use each plugin, if that is due.
    pub(super) fn count_train_jobs(&self) -> Option<BTreeMap<String, TrainJobCount>> {
        let plugins = &self.plugins;
        let now = plugins.parts.clock.now();
        {
            let mut due = self.counts_due();
            if due.is_some_and(|due| now < due) {
                return None;
            }
            *due = Some(plugins.after(COUNTS));
        }
        let stores = &self.work.stores;
        let job_sets = stores.job_sets.objects();
        // Tenants may create other JobSets, with any notes.
        let is_of_train_job = |key: &NamespacedName, owner: Option<&str>| {
            let train_job = stores.jobs.get(key);
            train_job.is_some_and(|it| owner == Some(&*it.uid))
        };
        let live = job_sets.iter().filter(|(key, it)| {
            it.end.is_none() && !it.deleting && is_of_train_job(key, it.owner.as_deref())
        });
        let noted: Vec<_> = live.map(|(_, it)| it.plugins.as_deref()).collect();
        let names = plugins.policies.keys().into_iter();
        let names = names.map(|name| name.0.to_string());
        Some(train_jobs(names, &noted))
    }

    fn counts_due(&self) -> MutexGuard<'_, Option<SystemTime>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts the TrainJobs that use each plugin, by the notes of their JobSets.
fn train_jobs(
    names: impl Iterator<Item = String>,
    noted: &[Option<&str>],
) -> BTreeMap<String, TrainJobCount> {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let mut by_plugin: HashMap<&str, HashMap<&str, usize>> = HashMap::new();
    for plugins in noted.iter().flatten() {
        // Tenants may change the notes, and everyone who may read PolicyPlugins sees the counts.
        let parts = plugins.split(',').filter_map(|it| it.split_once('@'));
        let of_job_set: BTreeMap<_, _> = parts.filter(|(_, it)| are_digits(it)).collect();
        for (plugin, digits) in of_job_set {
            let digests = by_plugin.entry(plugin).or_default();
            *digests.entry(digits).or_default() += 1;
        }
    }
    let without = noted.iter().filter(|it| it.is_none()).count();
    let count = |name: String| {
        let digests = by_plugin.get(&*name).into_iter().flatten();
        let mut digests: Vec<_> = digests.map(|(digest, count)| (*count, *digest)).collect();
        digests.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        let total = digests.iter().map(|(count, _)| count).sum();
        let further = digests.iter().skip(MAX_DIGESTS).map(|(count, _)| count);
        let unknown = without + further.sum::<usize>();
        digests.truncate(MAX_DIGESTS);
        let digests = digests.into_iter().map(|(count, digest)| DigestCount {
            digest: digest.to_owned(),
            train_jobs: number(count),
        });
        let counted = TrainJobCount {
            total: number(total),
            digests: digests.collect(),
            unknown: number(unknown),
        };
        (name, counted)
    };
    names.map(count).collect()
}

/// Whether a text is the digits of a digest as they are noted, or all of them.
fn are_digits(text: &str) -> bool {
    matches!(text.len(), 12 | 64)
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_digits_of_a_digest_are_shown_and_a_plugin_counts_once_for_each_job_set() {
        let noted = [
            Some("stamp@0123456789ab,other@0123456789ab"),
            Some("stamp@0123456789ab,stamp@0123456789ab,stamp@0123456789ab"),
            Some("stamp@\u{1b}[31mall is well\u{1b}[0m"),
            Some("stamp@0123456789AB"),
            Some("stamp@0123"),
            None,
        ];
        let mut counts = train_jobs(["stamp".to_owned()].into_iter(), &noted);
        let counted = counts.remove("stamp").unwrap();
        let digest = DigestCount {
            digest: "0123456789ab".to_owned(),
            train_jobs: 2,
        };
        let expected = TrainJobCount {
            total: 2,
            digests: vec![digest],
            unknown: 1,
        };
        assert_eq!(counted, expected);
    }
}
