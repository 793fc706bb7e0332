//! What the controller keeps in memory.

use super::{client::Client, *};
use crate::{generation::CommonInputs, reconcile::cluster::Memory};

impl Memory for Client<'_> {
    fn job_set_now(&self) -> KnownJobSet {
        self.world.borrow().known_job_set(self.who)
    }

    fn begin(&mut self) {
        let controller = &mut self.notes("begin").controllers[self.who];
        if controller.last.is_some() {
            (controller.last, controller.unfinished) = (None, false);
        }
        controller.outdated = false;
    }

    fn begin_writes(&mut self) {
        let controller = &mut self.world.borrow_mut().controllers[self.who];
        (controller.last, controller.unfinished) = (None, true);
    }

    fn remember(&mut self, last: LastReconcile) {
        let mut world = self.notes("remember");
        assert_eq!(last.fingerprint, self.job.facts.fingerprint);
        assert_eq!(last.common, CommonInputs::for_tests(self.plugins));
        let unfinished = world.controllers[self.who].unfinished;
        world.hidden &= !unfinished;
        let controller = &mut world.controllers[self.who];
        (controller.last, controller.unfinished) = (Some(last), false);
        // Another may have been deleted since.
        let deleted = controller.deleted.as_ref().zip(self.deleted.as_ref());
        if deleted.is_some_and(|(now, then)| Arc::ptr_eq(now, then)) {
            controller.deleted = None;
        }
    }

    fn settle(&mut self, interests: KeptInterests) {
        let controller = &mut self.notes("settle").controllers[self.who];
        controller.outdated &= interests == KeptInterests::OfThisReconcile;
        controller.interests = Some(interests);
    }

    fn forget_last(&mut self) {
        let controller = &mut self.notes("forget last").controllers[self.who];
        (controller.last, controller.unfinished) = (None, false);
    }

    fn note_unseen_end(&mut self) {
        let mut world = self.notes("note unseen end");
        let status = &self.job.facts.status;
        let end = status::unseen_end(status, now());
        let uid = self.job.facts.uid.clone();
        let deleted = JobSetState::of_deleted(uid, end, &status.jobs_status);
        world.controllers[self.who].deleted = Some(Arc::new(deleted));
    }

    fn forget_deleted_job_set(&mut self) {
        self.notes("forget deleted").controllers[self.who].deleted = None;
    }
}
