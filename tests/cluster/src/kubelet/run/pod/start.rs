//! Starting and stopping the containers of a pod.

use std::time::Duration;

use kube::ResourceExt as _;
use tokio::task::{AbortHandle, block_in_place};

use super::{Live, Note, PodRun, now, waiting};
use crate::kubelet::{
    AGAIN_AFTER,
    run::{
        container::{self, Process},
        next::State,
        probe,
        problem::Problem,
    },
};

/// The grace period of a pod without one, in seconds.
const GRACE_SECONDS: i64 = 30;

impl PodRun {
    /// Starts a container. If an object does not exist, it is tried again later.
    pub(super) fn start(&mut self, position: usize) -> Result<(), Problem> {
        match self.started(position) {
            Err(Problem::Missing(message)) => {
                if let Some(record) = self.state.records.get_mut(position) {
                    record.state = waiting("CreateContainerConfigError", Some(message), false);
                }
                self.state.needs_objects = true;
                self.later(AGAIN_AFTER, Note::Due(position));
                Ok(())
            }
            other => other,
        }
    }

    fn started(&mut self, position: usize) -> Result<(), Problem> {
        let (Some(record), Some(sandbox), Some(volumes)) = (
            self.state.records.get(position),
            &self.state.sandbox,
            &self.state.volumes,
        ) else {
            return Ok(());
        };
        let container = record.spec.clone();
        let name = container.image.as_deref().unwrap_or_default();
        let image = self.images.get(name).ok_or_else(|| {
            Problem::Unsupported(format!("the image {name} is not in the images of the test"))
        })?;
        let isolation = self.isolation;
        let setup = container::setup(
            &container,
            image,
            &self.facts(),
            volumes,
            &self.host_name(),
            isolation,
        )?;
        let folder = self.folder().join(&container.name);
        let log = self
            .runs
            .log(&self.namespace(), &self.pod.name_any(), &container.name);
        let run = self.state.starts;
        let sender = self.sender.clone();
        let exited = move |code| {
            // The receiver is gone if the pod has ended.
            let _ = sender.send(Note::Exited {
                position,
                run,
                code,
            });
        };
        let process = block_in_place(|| Process::start(sandbox, &setup, &folder, &log, exited))?;
        self.state.starts += 1;
        let probes = self.probe(position, run, &process)?;
        if let Some(record) = self.state.records.get_mut(position) {
            record.state = State::Running { since: now() };
            record.has_started = container.startup_probe.is_none();
            record.is_ready = record.has_started && container.readiness_probe.is_none();
        }
        let live = Live {
            process,
            run,
            probes,
            is_stopping: false,
        };
        self.state.live.insert(position, live);
        Ok(())
    }

    /// Starts the probes of a container.
    fn probe(
        &self,
        position: usize,
        run: u64,
        process: &Process,
    ) -> Result<Vec<AbortHandle>, Problem> {
        let Some(record) = self.state.records.get(position) else {
            return Ok(Vec::new());
        };
        let container = &record.spec;
        let both = [
            (true, &container.startup_probe),
            (false, &container.readiness_probe),
        ];
        let mut probes = Vec::new();
        for (is_startup, probe) in both {
            let Some(probe) = probe else {
                continue;
            };
            let command = probe::command(probe, container)?;
            let (sender, isolation) = (self.sender.clone(), self.isolation);
            let process = process.clone();
            let task = tokio::spawn(async move {
                loop {
                    tokio::time::sleep(probe::INTERVAL).await;
                    let Some(enter) = process.enter(isolation) else {
                        return;
                    };
                    let is_so = block_in_place(|| probe::succeeds(enter, &command));
                    let note = Note::Probed {
                        position,
                        run,
                        is_startup,
                        is_so,
                    };
                    if sender.send(note).is_err() {
                        return;
                    }
                }
            });
            probes.push(task.abort_handle());
        }
        Ok(probes)
    }

    /// Sends SIGTERM to a container, and SIGKILL after the grace period.
    pub(super) fn stop(&mut self, position: usize) {
        let spec = self.pod.spec.as_ref();
        let own = spec.and_then(|spec| spec.termination_grace_period_seconds);
        let grace = self.state.grace.or(own).unwrap_or(GRACE_SECONDS);
        let Some(live) = self.state.live.get_mut(&position) else {
            return;
        };
        if !live.is_stopping {
            live.is_stopping = true;
            live.process.terminate();
            let run = live.run;
            let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
            self.later(grace, Note::Kill { position, run });
        }
    }
}
