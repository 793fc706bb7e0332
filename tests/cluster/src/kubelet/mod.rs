//! A kubelet that updates the status of pods as if their containers ran, or runs them as processes of this machine.

mod fate;
mod nodes;
mod run;
mod step;

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
pub use fate::{Fate, UnknownFate};
use futures_util::{Stream, StreamExt as _, stream};
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    runtime::watcher::{self, Event},
};
pub use nodes::NodeSpec;
use run::Runs;
pub use run::{Image, Images, Isolation};
use serde_json::json;
use step::{Here, Step};
use tokio::{
    runtime::Handle,
    sync::mpsc,
    task::{JoinHandle, block_in_place},
};

/// The interval between renewals of a node's lease.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// The pause before a failed step is retried.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// The address before the first pod's.
const POD_NETWORK: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 0);

/// A test's decision about the pods of a namespace.
type Decision = Arc<dyn Fn(&Pod) -> Fate + Send + Sync>;

/// The kubelet of every node of a cluster. It stops when this value is dropped.
///
/// It creates [nodes](NodeSpec), renews their leases, and updates the pods that are bound to them as a kubelet would: a pod runs and is
/// ready at once, with its own address, and then has the outcome of its [`Fate`]. A deleted pod exits with code 143 and is removed.
/// Nothing is pulled, mounted, probed or run, and there are no logs, except for pods with [`Fate::Run`].
pub struct Kubelet {
    shared: Arc<Shared>,
    again: mpsc::UnboundedSender<String>,
    tasks: [JoinHandle<()>; 2],
}

struct Shared {
    client: Client,
    nodes: Mutex<Vec<String>>,
    decisions: Mutex<HashMap<String, Decision>>,
    default_fate: Mutex<Fate>,
    addresses: AtomicU32,
    runs: Arc<Runs>,
}

impl Kubelet {
    /// Starts it. The client must have all permissions. Files of pods are in a folder.
    pub(crate) fn start(client: Client, folder: &Path) -> Result<Self> {
        let shared = Arc::new(Shared {
            runs: Arc::new(Runs::new(client.clone(), folder)?),
            client,
            nodes: Mutex::default(),
            decisions: Mutex::default(),
            default_fate: Mutex::new(Fate::Succeed),
            addresses: AtomicU32::new(0),
        });
        let (again, namespaces) = mpsc::unbounded_channel();
        let tasks = [
            Handle::current().spawn(Arc::clone(&shared).run_pods(namespaces)),
            Handle::current().spawn(Arc::clone(&shared).keep_alive()),
        ];
        Ok(Self {
            shared,
            again,
            tasks,
        })
    }

    /// Creates a ready node, whose lease is renewed.
    ///
    /// # Errors
    /// The API server refused it.
    pub async fn add_node(&self, node: &NodeSpec) -> Result<()> {
        nodes::register(&self.shared.client, node).await?;
        lock(&self.shared.nodes).push(node.name.clone());
        Ok(())
    }

    /// Sets the fate of pods without an annotation in namespaces without a decision. Defaults to [`Fate::Succeed`].
    pub fn set_default_fate(&self, fate: Fate) {
        *lock(&self.shared.default_fate) = fate;
    }

    /// Sets the fate of every pod of a namespace, instead of their annotations. The function is called again for every change of a pod. A
    /// later decision replaces it and also applies to running pods, such as those that are held.
    pub fn decide(&self, namespace: &str, decision: impl Fn(&Pod) -> Fate + Send + Sync + 'static) {
        lock(&self.shared.decisions).insert(namespace.to_owned(), Arc::new(decision));
        // The receiver is gone if the runtime was stopped.
        let _ = self.again.send(namespace.to_owned());
    }

    /// Runs the containers of all pods of a namespace that are not running yet, with these images. This is a [decision](Self::decide).
    pub fn run(&self, namespace: &str, images: Images) {
        self.shared.runs.set(namespace, images, None);
        self.decide(namespace, |_| Fate::Run);
    }

    /// Like [`Self::run`], with pods that are kept apart in this way, which may be a weaker one than this user has the rights for.
    pub fn run_with(&self, namespace: &str, images: Images, isolation: Isolation) {
        let isolation = Some(isolation);
        self.shared.runs.set(namespace, images, isolation);
        self.decide(namespace, |_| Fate::Run);
    }

    /// Makes a port of this machine's loopback interface reachable for pods that are kept apart in this way, until the kubelet stops. Returns
    /// the address for them, which is that of their node.
    pub(crate) fn expose(&self, port: u16, isolation: Isolation) -> Result<Ipv4Addr> {
        block_in_place(|| self.shared.runs.expose(port, isolation))
    }

    /// Returns how pods whose containers run are kept apart.
    pub fn isolation(&self) -> Isolation {
        self.shared.runs.isolation()
    }

    /// Returns the folder with the output of containers, in files such as `NAMESPACE/POD/CONTAINER.log`, which are kept when a pod is
    /// deleted.
    pub fn logs(&self) -> &Path {
        self.shared.runs.logs()
    }

    /// Returns the last lines of the output of the containers that failed last.
    pub fn last_words(&self) -> String {
        self.shared.runs.last_words()
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.shared.runs.stop();
    }
}

impl Shared {
    async fn keep_alive(self: Arc<Self>) {
        loop {
            let names = lock(&self.nodes).clone();
            for name in names {
                // If a renewal fails, the lease is still valid until the next one.
                let _ = nodes::renew(&self.client, &name).await;
            }
            tokio::time::sleep(HEARTBEAT).await;
        }
    }

    async fn run_pods(self: Arc<Self>, namespaces: mpsc::UnboundedReceiver<String>) {
        let changed = stream::select(self.watched(), self.decided(namespaces));
        changed
            .for_each_concurrent(None, |pod| self.see_to(pod))
            .await;
    }

    /// A stream of all pods, and then of each changed pod.
    fn watched(&self) -> impl Stream<Item = Pod> + use<> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let events = watcher::watcher(pods, watcher::Config::default());
        let runs = Arc::clone(&self.runs);
        events.filter_map(move |event| {
            let runs = Arc::clone(&runs);
            async move {
                match event {
                    Ok(Event::Apply(pod) | Event::InitApply(pod)) => return Some(pod),
                    Ok(Event::Delete(pod)) => runs.gone(&pod),
                    Ok(Event::Init | Event::InitDone) => {}
                    // The stream resumes at its last position, or restarts with all pods.
                    Err(_) => tokio::time::sleep(AGAIN_AFTER).await,
                }
                None
            }
        })
    }

    /// A stream of the pods of each namespace with a new decision.
    fn decided(
        &self,
        namespaces: mpsc::UnboundedReceiver<String>,
    ) -> impl Stream<Item = Pod> + use<> {
        let client = self.client.clone();
        let namespaces = stream::unfold(namespaces, async |mut namespaces| {
            Some((namespaces.recv().await?, namespaces))
        });
        let pods = namespaces.then(move |namespace| {
            let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
            async move {
                loop {
                    match pods.list(&kube::api::ListParams::default()).await {
                        Ok(pods) => return stream::iter(pods.items),
                        Err(_) => tokio::time::sleep(AGAIN_AFTER).await,
                    }
                }
            }
        });
        pods.flatten()
    }

    /// Takes the next step for a pod. The step changes the pod, which triggers the following one.
    async fn see_to(&self, mut pod: Pod) {
        let Some(namespace) = pod.namespace() else {
            return;
        };
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
        if self.runs.changed(&pod) {
            return;
        }
        let fate = self.fate(&namespace, &pod);
        if fate == Ok(Fate::Run) && step::can_start(&pod) {
            return self.runs.start(&pod, self.address());
        }
        while let Some(step) = step::next(&pod, self.fate(&namespace, &pod), &self.here()) {
            match take(&pods, &pod, step).await {
                Ok(()) => return,
                // It was changed or deleted meanwhile, which leads to another event.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return,
                Err(_) => tokio::time::sleep(AGAIN_AFTER).await,
            }
            match pods.get_opt(&pod.name_any()).await {
                Ok(Some(now)) => pod = now,
                Ok(None) => return,
                Err(_) => {}
            }
        }
    }

    fn fate(&self, namespace: &str, pod: &Pod) -> Result<Fate, UnknownFate> {
        let decision = lock(&self.decisions).get(namespace).cloned();
        match decision {
            Some(decision) => Ok(decision(pod)),
            None => Fate::of(pod, *lock(&self.default_fate)),
        }
    }

    fn here(&self) -> Here {
        Here {
            now: Time(Timestamp::now()),
            pod_ip: IpAddr::V4(self.address()),
        }
    }

    /// Returns an address that no pod has.
    fn address(&self) -> Ipv4Addr {
        let number = self.addresses.fetch_add(1, Ordering::Relaxed);
        let address = POD_NETWORK.to_bits().wrapping_add(number.wrapping_add(1));
        Ipv4Addr::from_bits(address)
    }
}

async fn take(pods: &Api<Pod>, pod: &Pod, step: Step) -> kube::Result<()> {
    let name = pod.name_any();
    match step {
        Step::Write(status, after) => {
            tokio::time::sleep(after).await;
            let version = json!({"resourceVersion": pod.resource_version()});
            let patch = Patch::Merge(json!({"metadata": version, "status": status}));
            pods.patch_status(&name, &PatchParams::default(), &patch)
                .await?;
        }
        Step::Delete => {
            let params = DeleteParams::default()
                .grace_period(0)
                .preconditions(Preconditions {
                    uid: pod.uid(),
                    resource_version: None,
                });
            pods.delete(&name, &params).await?;
        }
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
