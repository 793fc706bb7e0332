//! A pod whose containers run on this machine, from its binding to its end.

use std::{
    collections::HashMap,
    fs,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use k8s_openapi::{
    api::core::v1::{Pod, PodStatus, Volume},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde_json::json;
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender},
    task::{AbortHandle, block_in_place},
};

use super::{
    Runs,
    container::{self, Process, Volumes},
    facts::{Facts, Objects},
    fetch,
    images::Images,
    names::Resolver,
    next::{self, Exit, Record, State},
    probe,
    problem::Problem,
    status::{self, About},
    volumes::{self, Contents},
};
use crate::kubelet::{AGAIN_AFTER, step::back_off};

/// The address of every node.
const HOST_IP: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 255, 255, 254));
/// The grace period of a pod without one, in seconds.
const GRACE_SECONDS: i64 = 30;

/// What happens to a pod.
#[derive(Debug)]
pub(super) enum Note {
    /// A process of a container exited.
    Exited {
        position: usize,
        run: u64,
        code: i32,
    },
    /// A container can be started again.
    Due(usize),
    /// A probe of a container answered.
    Probed {
        position: usize,
        run: u64,
        is_startup: bool,
        is_so: bool,
    },
    /// The grace period of a container is over.
    Kill { position: usize, run: u64 },
    /// What was missing is looked for again.
    Retry,
    /// The pod is to end within these seconds.
    Deleted(i64),
    /// The pod no longer exists.
    Gone,
}

/// A running container, with what watches it.
struct Live {
    process: Process,
    run: u64,
    probes: Vec<AbortHandle>,
    is_stopping: bool,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.probes.iter().for_each(AbortHandle::abort);
    }
}

/// A pod and its containers.
pub(super) struct PodRun {
    pub(super) runs: Arc<Runs>,
    pub(super) pod: Pod,
    pub(super) images: Arc<Images>,
    pub(super) address: Ipv4Addr,
    pub(super) notes: UnboundedReceiver<Note>,
    pub(super) sender: UnboundedSender<Note>,
    pub(super) state: PodState,
}

/// What changes while a pod runs.
#[derive(Default)]
pub(super) struct PodState {
    records: Vec<Record>,
    live: HashMap<usize, Live>,
    sandbox: Option<trainyard_pods::Pod>,
    objects: Objects,
    volumes: Option<Volumes>,
    /// Whether a container needs an object that did not exist.
    needs_objects: bool,
    written: Option<PodStatus>,
    grace: Option<i64>,
    is_gone: bool,
    starts: u64,
}

impl PodRun {
    /// Runs the pod until it has ended and its status says so, or it no longer exists.
    pub(super) async fn run(mut self) {
        self.state.records = next::records(&self.pod);
        let problem = self.live().await.err();
        self.state.live.clear();
        block_in_place(|| drop(self.state.sandbox.take()));
        self.runs.names.forget(&self.uid());
        // Logs are elsewhere.
        let _ = fs::remove_dir_all(self.folder());
        self.report(true, problem.as_ref()).await;
        for note in self.runs.forget(&self.uid(), &mut self.notes) {
            self.take(note);
        }
        if self.state.grace.is_some() && !self.state.is_gone {
            self.delete().await;
        }
    }

    async fn live(&mut self) -> Result<(), Problem> {
        loop {
            if self.state.grace.is_none() && self.state.volumes.is_none() {
                self.prepare().await?;
            }
            if self.state.needs_objects
                && let Ok(objects) = fetch::objects(&self.runs.client, &self.pod).await
            {
                self.state.objects = objects;
                self.state.needs_objects = false;
            }
            if self.act()? || self.state.is_gone {
                return Ok(());
            }
            self.report(false, None).await;
            // This value has a sender itself, so the channel stays open.
            if let Some(note) = self.notes.recv().await {
                self.take(note);
            }
            while let Ok(note) = self.notes.try_recv() {
                self.take(note);
            }
        }
    }

    /// Starts and stops containers. Returns whether the pod has ended.
    fn act(&mut self) -> Result<bool, Problem> {
        loop {
            let next = next::next(&self.state.records, self.state.grace.is_some());
            for position in next.stop {
                self.stop(position);
            }
            if next.has_ended || next.start.is_empty() || self.state.volumes.is_none() {
                return Ok(next.has_ended);
            }
            for position in next.start {
                self.start(position)?;
            }
        }
    }

    /// Starts the sandbox, and mounts the volumes if all objects exist.
    async fn prepare(&mut self) -> Result<(), Problem> {
        if self.state.sandbox.is_none() {
            let sandbox = block_in_place(|| self.start_sandbox());
            self.state.sandbox = Some(sandbox.map_err(Problem::machine)?);
        }
        let objects = fetch::objects(&self.runs.client, &self.pod).await;
        let objects = objects.map_err(|error| Problem::Missing(format!("{error:#}")));
        match objects.and_then(|objects| self.lay(objects)) {
            Ok(()) => {
                for record in &mut self.state.records {
                    record.state = waiting("PodInitializing", None, true);
                }
                Ok(())
            }
            Err(Problem::Missing(message)) => {
                for record in &mut self.state.records {
                    let message = Some(message.clone());
                    record.state = waiting("ContainerCreating", message, true);
                }
                self.later(AGAIN_AFTER, Note::Retry);
                Ok(())
            }
            Err(problem) => Err(problem),
        }
    }

    fn start_sandbox(&self) -> anyhow::Result<trainyard_pods::Pod> {
        let machine = self.runs.machine()?;
        let host_name = self.host_name();
        let folder = self.folder();
        fs::create_dir_all(&folder)?;
        let hosts = folder.join("hosts");
        let resolver = Resolver::of(&self.pod, self.address.into(), &host_name);
        self.runs.names.add(&self.uid(), resolver, hosts.clone())?;
        machine.start_pod(&trainyard_pods::PodSpec {
            host_name: &host_name,
            address: self.address,
            hosts: &hosts,
        })
    }

    /// Writes the volumes to folders.
    fn lay(&mut self, objects: Objects) -> Result<(), Problem> {
        self.state.objects = objects;
        let spec = self.pod.spec.clone().unwrap_or_default();
        let group = spec.security_context.and_then(|context| context.fs_group);
        let group = group.and_then(|group| u32::try_from(group).ok());
        let wanted: Vec<Volume> = spec.volumes.unwrap_or_default();
        let facts = self.facts();
        let contents = wanted
            .iter()
            .map(|volume| volumes::contents(volume, &facts));
        let contents: Result<Vec<_>, _> = contents.collect();
        let mut all = Volumes::new();
        for (volume, contents) in wanted.iter().zip(contents?) {
            let path = match &contents {
                Contents::Host(path) => path.clone(),
                Contents::Claim(name) => self.runs.claim(&self.namespace(), name),
                _ => self.folder().join("volumes").join(&volume.name),
            };
            if !matches!(contents, Contents::Host(_)) {
                volumes::write(&contents, &path, group).map_err(Problem::machine)?;
            }
            let is_read_only = matches!(contents, Contents::Files(_));
            all.insert(volume.name.clone(), (path, is_read_only));
        }
        self.state.volumes = Some(all);
        Ok(())
    }

    /// Starts a container. If an object does not exist, it is tried again later.
    fn start(&mut self, position: usize) -> Result<(), Problem> {
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
        let isolation = self.runs.isolation();
        let setup = container::setup(
            &container,
            image,
            &self.facts(),
            volumes,
            &self.host_name(),
            isolation,
        )?;
        let folder = self.folder().join(&container.name);
        let script = folder.with_extension("sh");
        fs::create_dir_all(&folder).map_err(Problem::machine)?;
        fs::write(&script, setup.script()).map_err(Problem::machine)?;
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
        let process = block_in_place(|| Process::start(sandbox, &script, &folder, &log, exited));
        let process = process.map_err(Problem::machine)?;
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
            let (sender, isolation) = (self.sender.clone(), self.runs.isolation());
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
    fn stop(&mut self, position: usize) {
        let spec = self.pod.spec.as_ref();
        let own = spec.and_then(|spec| spec.termination_grace_period_seconds);
        let grace = self.state.grace.or(own).unwrap_or(GRACE_SECONDS);
        let Some(live) = self.state.live.get_mut(&position) else {
            return;
        };
        if !live.is_stopping {
            live.is_stopping = true;
            live.process.signal("TERM");
            let run = live.run;
            let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
            self.later(grace, Note::Kill { position, run });
        }
    }

    fn take(&mut self, note: Note) {
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
                    live.process.signal("KILL");
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

    /// Writes the status if it has changed.
    async fn report(&mut self, has_ended: bool, problem: Option<&Problem>) {
        if self.state.is_gone {
            return;
        }
        let about = About {
            now: now(),
            pod_ip: self.state.sandbox.as_ref().map(|it| it.address().into()),
            host_ip: HOST_IP,
            has_ended,
        };
        let before = self.state.written.clone();
        let before = before
            .or_else(|| self.pod.status.clone())
            .unwrap_or_default();
        let mut status = status::status(&self.state.records, before, &about);
        if let Some(problem) = problem {
            status.phase = Some("Failed".to_owned());
            status.reason = Some(problem.reason().to_owned());
            status.message = Some(problem.to_string());
        }
        if self.state.written.as_ref() == Some(&status) {
            return;
        }
        let patch = Patch::Strategic(json!({"metadata": {"uid": self.uid()}, "status": status}));
        self.state.written = Some(status);
        let (pods, name) = (self.pods(), self.pod.name_any());
        loop {
            let written = pods
                .patch_status(&name, &PatchParams::default(), &patch)
                .await;
            match written {
                Ok(_) => return,
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                    self.state.is_gone = true;
                    return;
                }
                Err(_) => tokio::time::sleep(AGAIN_AFTER).await,
            }
        }
    }

    async fn delete(&self) {
        let params = DeleteParams::default()
            .grace_period(0)
            .preconditions(Preconditions {
                uid: self.pod.uid(),
                resource_version: None,
            });
        let (pods, name) = (self.pods(), self.pod.name_any());
        loop {
            match pods.delete(&name, &params).await {
                Ok(_) | Err(kube::Error::Api(_)) => return,
                Err(_) => tokio::time::sleep(AGAIN_AFTER).await,
            }
        }
    }

    fn later(&self, after: Duration, note: Note) {
        let sender = self.sender.clone();
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            // The receiver is gone if the pod has ended.
            let _ = sender.send(note);
        });
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            pod: &self.pod,
            pod_ip: self.address.into(),
            host_ip: HOST_IP,
            objects: &self.state.objects,
        }
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.runs.client.clone(), &self.namespace())
    }

    fn folder(&self) -> PathBuf {
        self.runs.folder().join(self.uid())
    }

    fn host_name(&self) -> String {
        let spec = self.pod.spec.as_ref();
        let given = spec.and_then(|spec| spec.hostname.clone());
        let mut name = given.unwrap_or_else(|| self.pod.name_any());
        // The longest host name of Linux.
        name.truncate(63);
        name
    }

    fn namespace(&self) -> String {
        self.pod.namespace().unwrap_or_default()
    }

    fn uid(&self) -> String {
        self.pod.uid().unwrap_or_default()
    }
}

fn waiting(reason: &'static str, message: Option<String>, is_due: bool) -> State {
    State::Waiting {
        reason,
        message,
        is_due,
    }
}

fn now() -> Time {
    Time(Timestamp::now())
}
