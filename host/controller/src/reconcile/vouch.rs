//! What vouches for the content of a snapshot.
//!
//! An account that may edit ConfigMaps can rewrite a snapshot, whose runtime decides what the TrainJob's pods may do. Therefore a JobSet has the
//! digests of the snapshot that it was applied with. An account that can edit the JobSet needs no snapshot to run any pods.

use std::{collections::BTreeMap, fmt};

use sha2::{Digest as _, Sha256};

use super::start::KnownJobSet;

/// The key of the runtime in a snapshot.
pub(super) const RUNTIME: &str = "runtime";

/// The digests of a snapshot's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Digests {
    /// The digest of the runtime, which stays the same.
    runtime: String,
    /// The digest of all other keys. They are renewed until the JobSet runs, and the snapshot is written before the JobSet, so it counts
    /// only once the JobSet has run.
    others: String,
}

impl Digests {
    /// Returns the digests of the data of a snapshot's ConfigMap.
    pub(crate) fn of(data: &BTreeMap<String, String>) -> Self {
        let digest = |is_runtime: bool| {
            let mut hash = Sha256::new();
            for (key, text) in data {
                if (key == RUNTIME) == is_runtime {
                    for part in [key, text] {
                        hash.update(part.len().to_le_bytes());
                        hash.update(part);
                    }
                }
            }
            hex::encode(hash.finalize())
        };
        Self {
            runtime: digest(true),
            others: digest(false),
        }
    }

    /// Returns how far a snapshot with these digests is used if its JobSet has this text. Only the runtime counts if the JobSet has not run.
    fn trust(&self, text: &str, started: bool) -> Option<Trust> {
        let (runtime, others) = text.split_once('/').unwrap_or((text, ""));
        match (runtime == self.runtime, others == self.others) {
            (true, true) => Some(Trust::Whole),
            (true, false) if !started => Some(Trust::Renewed),
            _ => None,
        }
    }
}

impl fmt::Display for Digests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.runtime, self.others)
    }
}

/// What vouches for a TrainJob's snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Voucher {
    /// Its JobSet, or the JobSet that was seen to be deleted, has these digests, and runs or is suspended.
    Digests { text: Box<str>, runs: bool },
    /// That JobSet has no digests, because the reference created it, or a build of Trainyard before the first release.
    Reference,
    /// No JobSet is known.
    Nothing,
}

/// How far a snapshot is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It is the one that the JobSet was applied with.
    Whole,
    /// Only its runtime is. All else was written for a JobSet that was not applied, or by another client, and is renewed until the JobSet runs.
    Renewed,
    /// It is used as a snapshot of the reference, which has nothing but the runtime.
    RuntimeOnly,
    /// It is not used, except that an equal one does not have to be written.
    Nothing,
}

impl Voucher {
    /// Returns what vouches for the snapshot of the TrainJob of this JobSet.
    pub(crate) fn of(job_set: &KnownJobSet) -> Self {
        match job_set.ours().or(job_set.deleted.as_deref()) {
            Some(found) => Self::of_annotation(found.snapshot.clone(), found.suspended),
            None => Self::Nothing,
        }
    }

    /// Returns what vouches for the snapshot, given this annotation of a JobSet that is suspended or runs.
    pub(super) fn of_annotation(digests: Option<Box<str>>, suspended: bool) -> Self {
        match digests {
            Some(text) => Self::Digests {
                text,
                runs: !suspended,
            },
            None => Self::Reference,
        }
    }

    /// Returns how far a snapshot with these digests is used; `None` if another client has changed or recreated it.
    pub(crate) fn trust(&self, digests: &Digests, started: bool) -> Option<Trust> {
        match self {
            Self::Digests { text, runs } => digests.trust(text, started || *runs),
            Self::Reference => Some(Trust::RuntimeOnly),
            Self::Nothing => Some(Trust::Nothing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(texts: [(&str, &str); 3]) -> BTreeMap<String, String> {
        let texts = texts.map(|(key, text)| (key.to_owned(), text.to_owned()));
        texts.into_iter().collect()
    }

    #[test]
    fn changed_keys_are_noticed_once_the_job_set_has_run() {
        use Trust::{Renewed, Whole};

        let known = data([("runtime", "a"), ("plan", "b"), ("lookups", "c")]);
        let of_job_set = |text: &str, runs| Voucher::Digests {
            text: text.into(),
            runs,
        };
        let known = Digests::of(&known).to_string();
        for (changed, queued, started) in [
            (
                [("runtime", "a"), ("plan", "b"), ("lookups", "c")],
                Some(Whole),
                Some(Whole),
            ),
            (
                [("runtime", "a"), ("plan", "B"), ("lookups", "c")],
                Some(Renewed),
                None,
            ),
            (
                [("runtime", "a"), ("plan", "b"), ("placement", "c")],
                Some(Renewed),
                None,
            ),
            // The same text, divided in another way.
            (
                [("runtime", "a"), ("planb", ""), ("lookups", "c")],
                Some(Renewed),
                None,
            ),
            (
                [("runtime", "A"), ("plan", "b"), ("lookups", "c")],
                None,
                None,
            ),
            (
                [("runtimes", "a"), ("plan", "b"), ("lookups", "c")],
                None,
                None,
            ),
        ] {
            let digests = Digests::of(&data(changed));
            for (runs, was_started, wanted) in [
                (false, false, queued),
                (false, true, started),
                (true, false, started),
            ] {
                let trust = of_job_set(&known, runs).trust(&digests, was_started);
                assert_eq!(trust, wanted, "{changed:?}");
            }
            assert_eq!(of_job_set("a", false).trust(&digests, false), None);
        }
    }
}
