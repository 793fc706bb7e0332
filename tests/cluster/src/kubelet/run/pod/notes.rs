//! What happens to a pod.

use kube::ResourceExt as _;

use super::{Live, Note, PodRun, now};
use crate::kubelet::{
    run::next::{self, Exit, State},
    step::back_off,
};

impl PodRun {
    pub(super) fn take(&mut self, note: Note) {
        match note {
            Note::Exited {
                position,
                run,
                code,
            } => self.exited(position, run, code),
            Note::Due(position) => {
                if let Some(record) = self.state.records.get_mut(position)
                    && let State::Waiting { is_due, .. } = &mut record.state
                {
                    *is_due = true;
                }
            }
            Note::Probed {
                position,
                run,
                is_startup,
                is_so,
            } => {
                let is_current = self
                    .state
                    .live
                    .get(&position)
                    .is_some_and(|it| it.run == run);
                if is_current && let Some(record) = self.state.records.get_mut(position) {
                    if is_startup {
                        record.has_started |= is_so;
                        record.is_ready |= is_so && record.spec.readiness_probe.is_none();
                    } else {
                        record.is_ready = record.has_started && is_so;
                    }
                }
            }
            Note::Kill { position, run } => {
                let live = self.state.live.get(&position);
                if let Some(live) = live.filter(|live| live.run == run) {
                    live.process.kill();
                }
            }
            Note::Retry => {}
            Note::Deleted(seconds) => {
                self.state.grace.get_or_insert(seconds);
            }
            Note::Gone => self.state.is_gone = true,
        }
    }

    fn exited(&mut self, position: usize, run: u64, code: i32) {
        let is_current = |live: &Live| live.run == run;
        if !self.state.live.get(&position).is_some_and(is_current) {
            return;
        }
        self.state.live.remove(&position);
        let Some(record) = self.state.records.get(position) else {
            return;
        };
        let since = match &record.state {
            State::Running { since } => since.clone(),
            _ => now(),
        };
        if code != 0 {
            self.runs.failed(
                &self.namespace(),
                &self.pod.name_any(),
                &record.spec.name,
                code,
            );
        }
        let restarts = record.restarts;
        let exit = Exit {
            code,
            since,
            until: now(),
        };
        let spec = self.pod.spec.as_ref();
        let policy = spec
            .and_then(|spec| spec.restart_policy.as_deref())
            .unwrap_or("Always");
        let is_deleted = self.state.grace.is_some();
        if next::exited(&mut self.state.records, position, exit, policy, is_deleted) {
            let restarts = u32::try_from(restarts).unwrap_or_default();
            self.later(back_off(restarts), Note::Due(position));
        }
    }
}
