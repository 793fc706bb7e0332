//! Comparing worlds.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::*;

impl World {
    /// Returns a hash of everything that decides what can happen. Versions count only as far as they are equal.
    pub(in super::super) fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let World {
            job,
            job_version,
            gone,
            edit,
            job_set,
            snapshot,
            runtime,
            rendering,
            plugins,
            warnings: _,
            needs: _,
            expires,
            placement,
            rendered: _,
            objects,
            jobs,
            jobs_placement,
            mutable,
            served,
            refuses,
            created_by_another: _,
            owner_is_gone: _,
            two: _,
            controllers,
            hidden,
            persists,
            ended,
            meddled: _,
            unlisted,
            reconciled,
            placed_late,
            overwritten,
            second,
            made: _,
            version: _,
            done: _,
            broken: _,
            fails: _,
            lost: _,
            waiting: _,
            answer: _,
        } = self;
        hash_job(job, &mut hasher);
        (job_version, gone, edit, job_set, snapshot).hash(&mut hasher);
        (runtime, rendering, plugins, expires, placement).hash(&mut hasher);
        for (object, it) in objects {
            (object.apply, it).hash(&mut hasher);
        }
        (jobs.len(), jobs_placement, mutable, served, refuses).hash(&mut hasher);
        (hidden, persists, ended, unlisted).hash(&mut hasher);
        (*expires && *reconciled, placed_late, overwritten, second).hash(&mut hasher);
        for controller in controllers {
            controller.hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Numbers versions and JobSets anew, in their order.
    pub(in super::super) fn renumber(&mut self) {
        let mut versions = Vec::new();
        self.each_version(&mut |version| versions.push(*version));
        versions.sort_unstable();
        versions.dedup();
        let mut newest = 1;
        self.each_version(&mut |version| {
            let place = versions.binary_search(version).unwrap_or_default();
            *version = place as u64 + 1;
            newest = newest.max(*version);
        });
        self.version = newest;
        let mut uids: Vec<Box<str>> = Vec::new();
        self.each_job_set(&mut |job_set| {
            let place = uids.iter().position(|uid| *uid == job_set.uid);
            let place = place.unwrap_or_else(|| {
                uids.push(job_set.uid.clone());
                uids.len() - 1
            });
            job_set.uid = format!("job set {}", place + 1).into();
        });
        self.made = uids.len() as u64;
    }

    fn each_job_set(&mut self, change: &mut impl FnMut(&mut SimJobSet)) {
        for controller in &mut self.controllers {
            if let Some(behind) = &mut controller.job_sets {
                behind.each().flatten().for_each(&mut *change);
            }
        }
        self.job_set.iter_mut().for_each(change);
    }

    fn each_version(&mut self, change: &mut impl FnMut(&mut u64)) {
        change(&mut self.job_version);
        self.each_job_set(&mut |job_set| change(&mut job_set.version));
        if let Some(snapshot) = &mut self.snapshot {
            change(&mut snapshot.version);
        }
        for object in self.objects.values_mut() {
            change(&mut object.version);
        }
        for controller in &mut self.controllers {
            if let Some(behind) = &mut controller.job {
                behind.each().for_each(|job| change(&mut job.version));
            }
            let Some(last) = &mut controller.last else {
                continue;
            };
            if let Some(version) = &mut last.job_set {
                change(version);
            }
            if let Some(objects) = &mut last.objects {
                let renumbered = |it: &AppliedObject| {
                    let mut it = it.clone();
                    if let Some(applied) = &mut it.applied {
                        let mut version = applied.version.as_deref().unwrap().parse().unwrap();
                        change(&mut version);
                        applied.version = Some(version.to_string().into());
                    }
                    it
                };
                *objects = objects.iter().map(renumbered).collect();
            }
        }
    }
}

fn hash_job(job: &JobFacts, hasher: &mut impl Hasher) {
    (job.deleting, &job.desired, &job.status).hash(hasher);
    (&job.error, job.fingerprint).hash(hasher);
}

impl Hash for KnownJob {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hash_job(&self.facts, hasher);
        (self.version, self.placement, self.gone).hash(hasher);
    }
}

impl Hash for Controller {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (&self.job, &self.job_sets, self.unfinished).hash(hasher);
        (&self.deleted, self.outdated).hash(hasher);
        (self.last.is_some(), self.annotated.is_some()).hash(hasher);
        if let Some(last) = &self.last {
            last.objects.is_some().hash(hasher);
            (last.fingerprint, last.common.digest(), last.job_set).hash(hasher);
            for it in last.objects.iter().flat_map(|all| all.iter()) {
                let applied = it.applied.as_ref();
                let applied = applied.map(|applied| (applied.content, &applied.version));
                (it.object.apply, applied).hash(hasher);
            }
        }
        if let Some(annotated) = &self.annotated {
            (&annotated.text, annotated.refused, annotated.at).hash(hasher);
        }
    }
}
