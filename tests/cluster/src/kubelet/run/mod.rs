//! Pods whose containers run as processes of this machine.

mod container;
mod env;
mod expand;
mod facts;
mod fetch;
mod images;
mod isolation;
mod names;
mod next;
mod pod;
mod probe;
mod problem;
mod sandbox;
mod script;
mod status;
mod volumes;

use std::{
    collections::{HashMap, VecDeque},
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use anyhow::{Result, anyhow};
pub use images::{Image, Images};
pub use isolation::Isolation;
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, ResourceExt as _};
use names::Names;
use pod::{Note, PodRun, PodState};
use tempfile::TempDir;
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{AbortHandle, block_in_place},
};
use trainyard_pods::{Machine, Rights};

/// The address of every node, and of this machine for its pods.
const HOST: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 254);
/// The number of failed containers whose logs are shown.
const SHOWN: usize = 4;
/// The number of lines of a log that are shown.
const TAIL_LINES: usize = 30;

/// The pods that run on this machine.
pub(super) struct Runs {
    client: Client,
    folder: TempDir,
    logs: PathBuf,
    /// How pods are kept apart if nothing else is asked for.
    isolation: OnceLock<Isolation>,
    /// The namespaces of root, and those in a user namespace.
    machines: [OnceLock<Result<Machine, String>>; 2],
    is_watching: OnceLock<()>,
    names: Arc<Names>,
    state: Mutex<State>,
}

/// How pods run.
#[derive(Clone, Default)]
struct Way {
    images: Arc<Images>,
    isolation: Option<Isolation>,
}

#[derive(Default)]
struct State {
    /// How the pods of namespaces run.
    ways: HashMap<String, Way>,
    live: HashMap<String, UnboundedSender<Note>>,
    tasks: Vec<AbortHandle>,
    /// The last containers that failed, with their exit codes.
    failed: VecDeque<(PathBuf, i32)>,
}

impl Runs {
    /// Creates an empty set with folders in this one.
    pub(super) fn new(client: Client, folder: &Path) -> Result<Self> {
        let logs = folder.join("container-logs");
        fs::create_dir_all(&logs)?;
        Ok(Self {
            client,
            folder: tempfile::Builder::new()
                .prefix("pods-")
                .tempdir_in(folder)?,
            logs,
            isolation: OnceLock::new(),
            machines: [OnceLock::new(), OnceLock::new()],
            is_watching: OnceLock::new(),
            names: Arc::default(),
            state: Mutex::default(),
        })
    }

    /// Sets how the pods of a namespace run.
    pub(super) fn set(&self, namespace: &str, images: Images, isolation: Option<Isolation>) {
        let way = Way {
            images: Arc::new(images),
            isolation,
        };
        self.state().ways.insert(namespace.to_owned(), way);
    }

    /// Starts a pod, unless it runs.
    pub(super) fn start(self: &Arc<Self>, pod: &Pod, address: Ipv4Addr) {
        let uid = pod.uid().unwrap_or_default();
        let isolation = self.isolation();
        let mut state = self.state();
        if state.live.contains_key(&uid) {
            return;
        }
        let (sender, notes) = unbounded_channel();
        state.live.insert(uid, sender.clone());
        let way = pod.namespace().and_then(|it| state.ways.get(&it).cloned());
        let way = way.unwrap_or_default();
        let run = PodRun {
            runs: Arc::clone(self),
            pod: pod.clone(),
            images: way.images,
            isolation: way.isolation.unwrap_or(isolation),
            address,
            notes,
            sender,
            state: PodState::default(),
        };
        state.tasks.retain(|task| !task.is_finished());
        state.tasks.push(tokio::spawn(run.run()).abort_handle());
    }

    /// Passes a change to a pod. Returns whether it runs.
    pub(super) fn changed(&self, pod: &Pod) -> bool {
        let state = self.state();
        let Some(live) = pod.uid().and_then(|uid| state.live.get(&uid)) else {
            return false;
        };
        if pod.metadata.deletion_timestamp.is_some() {
            let seconds = pod.metadata.deletion_grace_period_seconds;
            // The receiver is gone if the kubelet has stopped.
            let _ = live.send(Note::Deleted(seconds.unwrap_or(0)));
        }
        true
    }

    /// Ends a pod that no longer exists.
    pub(super) fn gone(&self, pod: &Pod) {
        let state = self.state();
        if let Some(live) = pod.uid().and_then(|uid| state.live.get(&uid)) {
            let _ = live.send(Note::Gone);
        }
    }

    /// Forgets a pod that has ended. Returns what happened to it since it last looked.
    fn forget(&self, uid: &str, notes: &mut UnboundedReceiver<Note>) -> Vec<Note> {
        // Notes are sent while the state is locked.
        let mut state = self.state();
        state.live.remove(uid);
        let mut last = Vec::new();
        while let Ok(note) = notes.try_recv() {
            last.push(note);
        }
        last
    }

    /// Kills all processes of all pods.
    pub(super) fn stop(&self) {
        let tasks = std::mem::take(&mut self.state().tasks);
        for task in tasks {
            task.abort();
        }
        for machine in self.machines.iter().filter_map(OnceLock::get).flatten() {
            machine.stop();
        }
    }

    /// Returns the folder of the logs: `NAMESPACE/POD/CONTAINER.log`.
    pub(super) fn logs(&self) -> &Path {
        &self.logs
    }

    /// Returns the end of the logs of the containers that failed last.
    pub(super) fn last_words(&self) -> String {
        let failed: Vec<_> = self.state().failed.iter().cloned().collect();
        let tail = |(log, code): &(PathBuf, i32)| {
            let text = fs::read(log).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let lines: Vec<&str> = text.lines().collect();
            let tail = lines.get(lines.len().saturating_sub(TAIL_LINES)..);
            let name = log.strip_prefix(&self.logs).unwrap_or(log);
            let tail = tail.unwrap_or_default().join("\n");
            format!(
                "\n--- exit code {code}: the end of {}:\n{tail}",
                name.display()
            )
        };
        failed.iter().map(tail).collect()
    }

    fn failed(&self, namespace: &str, pod: &str, container: &str, code: i32) {
        let log = self.log(namespace, pod, container);
        let failed = &mut self.state().failed;
        failed.push_back((log, code));
        if failed.len() > SHOWN {
            failed.pop_front();
        }
    }

    fn log(&self, namespace: &str, pod: &str, container: &str) -> PathBuf {
        let folder = self.logs.join(namespace).join(pod);
        folder.join(format!("{container}.log"))
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the folder of a PersistentVolumeClaim.
    fn claim(&self, namespace: &str, name: &str) -> PathBuf {
        self.folder().join("claims").join(namespace).join(name)
    }

    /// Returns the namespaces in which pods are, which the first one starts.
    fn machine(&self, isolation: Isolation) -> Result<&Machine> {
        let [root, user] = &self.machines;
        let (machine, rights) = match isolation {
            Isolation::Root => (root, Rights::Root),
            _ => (user, Rights::UserNamespaces),
        };
        let machine = machine
            .get_or_init(|| Machine::start_with(rights).map_err(|error| format!("{error:#}")));
        machine.as_ref().map_err(|error| anyhow!("{error}"))
    }

    /// Makes a port of this machine's loopback interface reachable for pods that are kept apart in this way. Returns the address for them.
    pub(super) fn expose(&self, port: u16, isolation: Isolation) -> Result<Ipv4Addr> {
        if isolation != Isolation::Loopback {
            self.machine(isolation)?.forward(HOST, port)?;
        }
        Ok(HOST)
    }

    /// Watches the names that pods resolve, from the first pod on.
    fn watch_names(&self) {
        self.is_watching.get_or_init(|| {
            let (names, client) = (Arc::clone(&self.names), self.client.clone());
            let watch = tokio::spawn(async move { names.watch(client).await });
            self.state().tasks.push(watch.abort_handle());
        });
    }

    /// Returns how pods are kept apart if nothing else is asked for.
    pub(super) fn isolation(&self) -> Isolation {
        *block_in_place(|| self.isolation.get_or_init(Isolation::detect))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
