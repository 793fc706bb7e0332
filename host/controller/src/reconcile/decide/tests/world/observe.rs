//! The observations of the simulated cluster.

use super::*;

impl World {
    pub(super) fn observe(
        &mut self,
        what: &Observe,
        o: &Observed,
    ) -> Result<Fact, ReconcileFailure> {
        let none = || failure(Class::Conflict);
        match what {
            Observe::Inputs => Ok(Fact::Inputs(Inputs::for_tests(&self.inputs()))),
            Observe::TrainJob => Ok(Fact::Holds),
            Observe::LiveTrainJob => self.is_current().map(|()| Fact::Holds),
            Observe::Absence => {
                self.is_current()?;
                if self.job_set.is_none() {
                    Ok(Fact::Holds)
                } else {
                    Err(none())
                }
            }
            Observe::Snapshot => match &self.snapshot {
                Some(snapshot) if !snapshot.ours => Err(failure(Class::Foreign)),
                Some(snapshot) if snapshot.broken => Err(failure(Class::Snapshot)),
                snapshot => {
                    // Only a JobSet vouches for it.
                    let trusted = self.job_set.is_some() || self.deleted_job_set.is_some();
                    let facts = snapshot.as_ref().map(SimSnapshot::facts);
                    Ok(Fact::Snapshot(
                        facts.map(|facts| SnapshotFacts { trusted, ..facts }),
                    ))
                }
            },
            Observe::SnapshotMarks => {
                let marks = self.snapshot.as_ref().map(|snapshot| SnapshotMarks {
                    at: version("snapshot", snapshot.version),
                    foreign: (!snapshot.ours).then(|| failure(Class::Foreign)),
                    started: snapshot.started,
                    recreate: snapshot.recreate,
                });
                Ok(Fact::SnapshotMarks(marks))
            }
            Observe::Runtime if self.runtime => Ok(Fact::Holds),
            Observe::Runtime => Err(failure(Class::Input)),
            Observe::Rendering(basis) => self.render(*basis, o),
            Observe::Lookups(_) => Ok(Fact::Rendering(Rendering::LookedUp)),
            Observe::ListedObjects => {
                let snapshot = self.snapshot.as_ref().filter(|snapshot| snapshot.ours);
                let listed = snapshot.map_or(&[][..], |snapshot| &snapshot.objects);
                Ok(Fact::Listed(AppliedObject::unknown(listed)))
            }
            Observe::ListedObject(object) | Observe::Object(object) => {
                Ok(Fact::Object(match self.objects.get(object) {
                    None => ObjectState::Missing,
                    Some(it) if it.ours => ObjectState::Ours(Some(it.version.to_string().into())),
                    Some(_) => ObjectState::Unusable(failure(Class::Foreign)),
                }))
            }
            Observe::JobSetOwner => Ok(Fact::Owner(match &self.job_set {
                Some(found) if !found.ours => Owner::Foreign(failure(Class::Foreign)),
                _ => Owner::OursOrGone,
            })),
            Observe::LiveJobSet { uid } => match &self.job_set {
                Some(found) if found.suspended && found.uid == *uid => {
                    Ok(Fact::JobSet(LiveJobSet {
                        at: version(&found.uid, found.version),
                        started: found.started,
                        active: found.active,
                        inputs: found.inputs.clone(),
                        removed: found.removed,
                    }))
                }
                _ => Err(none()),
            },
            Observe::Placement(wanted) => {
                let found = self.job_set.as_ref().unwrap();
                let moves = found.placement != self.placement;
                Ok(Fact::Placement(Placement {
                    loses: moves || found.removed,
                    moves: moves && *wanted != PlacementSource::Applied,
                    noted: found.removed,
                }))
            }
            Observe::Jobs => Ok(Fact::Jobs(self.jobs.clone())),
            Observe::Creation => Ok(Fact::Creation(None)),
            Observe::Creatable { .. } => Ok(Fact::Holds),
        }
    }

    fn is_current(&mut self) -> Result<(), ReconcileFailure> {
        if std::mem::take(&mut self.stale) {
            return Err(failure(Class::Conflict));
        }
        Ok(())
    }

    pub(super) fn inputs(&self) -> String {
        format!("inputs of {}", self.job.fingerprint)
    }

    fn render(&self, basis: Basis, o: &Observed) -> Result<Fact, ReconcileFailure> {
        match self.rendering {
            Some(Class::PlanIsPinned) if !basis.started => {}
            None => {}
            Some(class) => return Err(failure(class)),
        }
        if o.observations.rounds < self.needs {
            return Ok(Fact::Rendering(Rendering::Needs));
        }
        let snapshot = self.snapshot.as_ref();
        let is_same =
            |snapshot: &SimSnapshot| basis.started || snapshot.fingerprint == self.job.fingerprint;
        let is_equal = |snapshot: &SimSnapshot| snapshot.fingerprint == self.job.fingerprint;
        let objects = self.rendered.iter().map(|object| RenderedObjectFacts {
            object: object.clone(),
            content: self.job.fingerprint,
            has_keys: object.apply == ApplyMode::Once,
            state: None,
            written: None,
        });
        Ok(Fact::Rendering(Rendering::Rendered(RenderedFacts {
            saved: match basis.source {
                RuntimeSource::Snapshot => snapshot.is_some_and(is_same),
                RuntimeSource::Runtime => {
                    let known = o.observations.snapshot.as_ref().and_then(Option::as_ref);
                    known.is_some() && snapshot.is_some_and(is_equal)
                }
            },
            inputs: self.inputs().into(),
            expires: self.expires,
            objects: objects.collect(),
        })))
    }
}
