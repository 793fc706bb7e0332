//! A pod whose containers run on this machine, from its binding to its end.

mod notes;
mod report;
mod start;

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
use kube::{Api, ResourceExt as _};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender},
    task::{AbortHandle, block_in_place},
};

use super::{
    HOST, Runs,
    container::{Process, Volumes},
    facts::{Facts, Objects},
    fetch,
    images::Images,
    isolation::Isolation,
    names::Resolver,
    next::{self, Record, State},
    problem::Problem,
    sandbox::{Loopback, Sandbox, on_loopback},
    volumes::{self, Contents},
};
use crate::kubelet::AGAIN_AFTER;

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
        self.process.let_go();
    }
}

/// A pod and its containers.
pub(super) struct PodRun {
    pub(super) runs: Arc<Runs>,
    pub(super) pod: Pod,
    pub(super) images: Arc<Images>,
    pub(super) isolation: Isolation,
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
    sandbox: Option<Sandbox>,
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
            self.state.sandbox = Some(sandbox?);
            // A program that looks up the name of a Service once would fail.
            self.runs.names.until_listed().await;
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

    fn start_sandbox(&self) -> Result<Sandbox, Problem> {
        let (host_name, folder) = (self.host_name(), self.folder());
        fs::create_dir_all(&folder).map_err(Problem::machine)?;
        let hosts = folder.join("hosts");
        let resolver = Resolver::of(&self.pod, self.own_ip(), &host_name, self.isolation);
        let added = self.runs.names.add(&self.uid(), resolver, hosts.clone());
        added.map_err(Problem::machine)?;
        self.runs.watch_names();
        if self.isolation == Isolation::Loopback {
            return Loopback::new(hosts, host_name).map(Sandbox::Loopback);
        }
        let machine = self
            .runs
            .machine(self.isolation)
            .map_err(Problem::machine)?;
        let pod = machine.start_pod(&trainyard_pods::PodSpec {
            host_name: &host_name,
            address: self.address,
            hosts: &hosts,
        });
        pod.map(Sandbox::Namespaces).map_err(Problem::machine)
    }

    /// Returns the address at which the pod can listen.
    fn own_ip(&self) -> IpAddr {
        match self.isolation {
            Isolation::Loopback => on_loopback(self.address.into()),
            _ => self.address.into(),
        }
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
            pod_ip: self.own_ip(),
            host_ip: HOST.into(),
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
