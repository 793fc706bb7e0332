//! What stands beside a running JobSet: what is missing is made again, except for keys; what is live follows, and the rest is frozen.
//!
//! Nothing is watched and nothing is asked for at a fixed pace: the objects are looked at when the TrainJob or its JobSet has
//! changed. Which there are is known since they were made, or read from the snapshot once after a start; so a TrainJob without
//! objects costs nothing.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use trainyard_model::object::ApplyMode;

use super::Pass;
use super::beside::{Held, Stage};
use crate::queue::Key;
use crate::reconcile::error::ReconcileError;
use crate::reconcile::listed::Listed;
use crate::reconcile::snapshot::Snapshot;
use crate::reconcile::{Reconciler, owner};
use crate::watch::{JobSetState, State as _, TrainJobState};
use crate::workers::Worker;

/// What was seen of a TrainJob when all was as it should be.
#[derive(Clone, Debug)]
pub(in crate::reconcile) struct Known {
    /// The TrainJob's UID.
    uid: Box<str>,
    /// The TrainJob's fingerprint.
    fingerprint: u64,
    /// The version of its JobSet.
    job_set: Option<u64>,
    /// The objects beside the JobSet; none where nobody has looked since the start.
    objects: Option<Arc<[Held]>>,
}

impl Known {
    pub(super) fn is_of(&self, uid: &str, fingerprint: u64) -> bool {
        *self.uid == *uid && self.fingerprint == fingerprint
    }
}

/// What is to be done about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    /// It is missing.
    Make,
    /// It is live, and may have to change; it has this version.
    Follow(Option<String>),
}

/// What an object needs that has this version, or is not there.
fn need(held: &Held, found: Option<Option<String>>, job_changed: bool) -> Need {
    match found {
        None => Need::Make,
        // All else that it is made of is pinned.
        Some(version)
            if held.listed.apply == ApplyMode::Live
                && (job_changed || !held.is_at(version.as_deref())) =>
        {
            Need::Follow(version)
        }
        Some(_) => Need::Nothing,
    }
}

impl Reconciler {
    /// Keeps in mind that all is as the TrainJob wants it.
    pub(super) fn remember(
        &self,
        key: &Key,
        uid: &str,
        fingerprint: u64,
        objects: Option<Arc<[Held]>>,
    ) {
        let job_set = self.stores.job_sets.get(key);
        let known = Known {
            uid: uid.into(),
            fingerprint,
            job_set: job_set.map(|job_set| job_set.version()),
            objects,
        };
        self.known().insert(key.clone(), known);
    }

    /// Sees to the objects beside a running JobSet, where it or its TrainJob has changed since the last time.
    pub(super) async fn keep_beside(
        &self,
        key: &Key,
        state: &Arc<TrainJobState>,
        job_set: &JobSetState,
        worker: &Worker,
    ) -> Result<(), ReconcileError> {
        let fingerprint = state.fingerprint();
        let mut now = Known {
            uid: state.uid.clone(),
            fingerprint,
            job_set: Some(job_set.version()),
            objects: None,
        };
        let known = self.known().get(key).cloned();
        let known = known.filter(|known| known.uid == state.uid);
        if known.is_none() && job_set.recreated {
            // Whoever made it may not have come to say so.
            self.take_recreate_off(key, &state.uid).await?;
        }
        if let Some(known) = known {
            let job_changed = known.fingerprint != fingerprint;
            if !job_changed && known.job_set == now.job_set {
                return Ok(());
            }
            let held = match known.objects {
                Some(held) => held,
                None => self.listed(key, &state.uid).await?,
            };
            let held = self
                .look_after(key, state, worker, held, job_changed)
                .await?;
            now.objects = Some(held);
        }
        self.known().insert(key.clone(), now);
        Ok(())
    }

    /// The objects that the TrainJob's snapshot lists.
    async fn listed(&self, key: &Key, uid: &str) -> Result<Arc<[Held]>, ReconcileError> {
        let found: Option<ConfigMap> = self.read(key, &Snapshot::name(&key.name)).await?;
        let most = self.plugins.renderer.most_objects();
        let listed = match found.filter(|map| owner::is_of(uid, &map.metadata)) {
            Some(map) => Snapshot::listed(&map, &key.name, most)?,
            None => Vec::new(),
        };
        Ok(Held::by_name(&listed))
    }

    /// Looks at each object, and puts right what has to be.
    async fn look_after(
        &self,
        key: &Key,
        state: &Arc<TrainJobState>,
        worker: &Worker,
        held: Arc<[Held]>,
        job_changed: bool,
    ) -> Result<Arc<[Held]>, ReconcileError> {
        let mut refused = None;
        let mut needs = Vec::with_capacity(held.len());
        for one in held.iter() {
            let Listed { kind, name, .. } = &one.listed;
            if !self.emitted.has(kind) {
                // No plugin that is loaded makes it again; whoever wrote the list may have made the kind up.
                needs.push(Need::Nothing);
                continue;
            }
            let objects = self.beside(key, kind);
            let found = objects.get_metadata_opt(name.as_str()).await;
            let what = || format!("reading {kind} `{name}`");
            let found = found.map_err(|error| ReconcileError::api(what(), error))?;
            let found = found.map(|found| found.metadata);
            let foreign = found.as_ref().filter(|it| !owner::is_of(&state.uid, it));
            if let Some(foreign) = foreign {
                refused.get_or_insert_with(|| {
                    owner::foreign(&key.name, kind.kind(), name.as_str(), foreign)
                });
                needs.push(Need::Nothing);
                continue;
            }
            let version = found.map(|found| found.resource_version);
            needs.push(need(one, version, job_changed));
        }
        if needs.contains(&Need::Make) {
            // Of a TrainJob that was deleted, the objects go before the watch says so.
            self.confirm(key, state).await?;
        }
        let held = if needs.iter().all(|need| *need == Need::Nothing) {
            held
        } else {
            let pass = self.pass(key, state, worker).await?;
            pass.put_right(held, needs).await?
        };
        refused.map_or(Ok(held), Err)
    }
}

impl Pass<'_> {
    /// Makes again what is missing, and has follow what is live, from the pinned plan. A Secret with key material would be another
    /// one: it is reported, once all else is there.
    async fn put_right(
        &self,
        held: Arc<[Held]>,
        needs: Vec<Need>,
    ) -> Result<Arc<[Held]>, ReconcileError> {
        let mut missing = held.iter().zip(&needs);
        let missing = missing.find(|(_, need)| **need == Need::Make);
        let missing = missing.map(|(held, _)| &held.listed);
        let Some(snapshot) = self.read_snapshot().await? else {
            let why = "so is the snapshot that says how it was made";
            return missing.map_or_else(|| Ok(held.clone()), |listed| Err(lost(listed, why)));
        };
        let rendered = match self.render(snapshot.of_a_started_job()).await {
            Ok(made) => made.rendered,
            Err(error @ ReconcileError::PlanIsPinned { .. }) if missing.is_none() => {
                tracing::info!(%error, "live objects stay as they are");
                return Ok(held);
            }
            Err(error) => return Err(error),
        };
        let mut next = Vec::with_capacity(held.len());
        let mut keys_lost = None;
        for (one, need) in held.iter().zip(needs) {
            let mut objects = rendered.objects.iter();
            let object = objects.find(|object| Listed::of(object) == one.listed);
            next.push(match (need, object) {
                (Need::Make, None) => {
                    let why = "the TrainJob as it is now does not lead to it";
                    return Err(lost(&one.listed, why));
                }
                (Need::Make, Some(object)) if !object.material.is_empty() => {
                    let name = one.listed.name.to_string();
                    keys_lost.get_or_insert(ReconcileError::KeysLost { name });
                    one.clone()
                }
                (Need::Make, Some(object)) => self.put(object, Stage::Running).await?,
                (Need::Follow(version), Some(object))
                    if !(one.has(&object.value) && one.is_at(version.as_deref())) =>
                {
                    self.put(object, Stage::Running).await?
                }
                _ => one.clone(),
            });
        }
        keys_lost.map_or_else(|| Ok(next.into()), Err)
    }
}

fn lost(listed: &Listed, why: &'static str) -> ReconcileError {
    ReconcileError::Lost {
        kind: listed.kind.to_string(),
        name: listed.name.to_string(),
        why,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use trainyard_model::object::{ObjectKind, ObjectName};

    use super::*;

    fn held(apply: ApplyMode) -> Held {
        let listed = Listed {
            kind: ObjectKind::new("v1", "ConfigMap").unwrap(),
            name: ObjectName::new("a", "a-b".to_owned()).unwrap(),
            apply,
        };
        Held {
            listed,
            applied: None,
        }
    }

    #[test]
    fn what_is_missing_is_made_in_every_mode() {
        for mode in ApplyMode::ALL {
            assert_eq!(need(&held(mode), None, false), Need::Make);
        }
    }

    #[test]
    fn of_what_is_there_only_live_objects_follow() {
        let version = || Some("7".to_owned());
        for mode in ApplyMode::ALL {
            let follows = match mode {
                ApplyMode::Live => Need::Follow(version()),
                _ => Need::Nothing,
            };
            for job_changed in [true, false] {
                let needed = need(&held(mode), Some(version()), job_changed);
                assert_eq!(needed, follows, "{mode}");
            }
        }
    }
}
