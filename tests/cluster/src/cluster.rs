//! A control plane with everything that JobSets need to run.

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use anyhow::{Context as _, Result, anyhow};
use futures_util::future::try_join_all;
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::{Client, api::ListParams};
use serde_json::{Value, json};
use trainyard_schema::documents::Kind;

use crate::{
    api::{Api, Write},
    binaries::Binaries,
    certificates::Certificates,
    clear::clear,
    control_plane::ControlPlane,
    crds::{Install, install},
    health,
    jobset::{self, JobSetController},
    kept::{self, Kept},
    kubeconfig::client_of,
    kubelet::{Isolation, Kubelet, NodeSpec},
    ports::Port,
    process::Process,
    resource::Resource,
    wait::eventually,
};

/// The number of nodes with which a cluster starts.
const NODES: usize = 4;

/// A [`ControlPlane`] with kube-controller-manager, kube-scheduler, the JobSet controller and its webhooks, and a [`Kubelet`]
/// with four [large](NodeSpec::large) nodes, `node-0` to `node-3`. JobSets and Trainyard's own kinds are defined. It is stopped
/// when this value is dropped.
pub struct Cluster {
    kubelet: Kubelet,
    /// `None` if the cluster is kept, because its controllers belong to another process.
    controllers: Option<Controllers>,
    plane: ControlPlane,
}

/// The controllers that run JobSets on a control plane.
struct Controllers {
    jobset: JobSetController,
    manager: Mutex<Controller>,
    scheduler: Controller,
}

impl Controllers {
    fn manager(&self) -> MutexGuard<'_, Controller> {
        self.manager.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A controller that is part of Kubernetes.
struct Controller {
    name: &'static str,
    process: Process,
    client: Client,
    _port: Port,
}

impl Cluster {
    /// Starts a cluster, and waits until pods can run on it. If `TRAINYARD_PLANE` names a cluster that `make plane` keeps, this process
    /// is attached to it instead, and objects of earlier tests are removed.
    ///
    /// # Errors
    /// A binary is missing; a process exited or was not ready in time, with the end of its log; or the kept cluster is in use.
    pub fn start() -> Result<Self> {
        Self::start_with(Vec::new())
    }

    /// Starts a cluster as [`Self::start`] does, with these CustomResourceDefinitions too. The garbage collector knows their kinds.
    ///
    /// # Errors
    /// See [`Self::start`]; or the API server refused a definition.
    pub fn start_with(kinds: Vec<Value>) -> Result<Self> {
        match Kept::find()? {
            Some(kept) => Self::attach(kept, kinds),
            None => Self::start_own_with(kinds),
        }
    }

    fn attach(kept: Kept, kinds: Vec<Value>) -> Result<Self> {
        let binaries = Binaries::of_a_cluster()?;
        let mut crds = definitions(&binaries)?;
        crds.extend(kinds);
        let plane = ControlPlane::attach(kept, &binaries)?;
        let kubelet = plane.block_on(async {
            install_all(&plane, &crds).await?;
            clear(&plane, &crds).await?;
            let kubelet = Kubelet::start(client_of(plane.kubeconfig()).await?, plane.folder())?;
            add_nodes(&kubelet).await?;
            nodes_take_pods(plane.client()).await?;
            anyhow::Ok(kubelet)
        })?;
        Ok(Self {
            kubelet,
            controllers: None,
            plane,
        })
    }

    /// Keeps its processes running for other programs, which have their own kubelet, until this program exits. Returns the folder by
    /// which they find it.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn keep(self) -> Result<KeptCluster> {
        kept::announce(self.plane.folder(), &self.plane.url())?;
        Ok(KeptCluster {
            _controllers: self.controllers,
            plane: self.plane,
        })
    }

    /// Starts a cluster, even if the environment names a kept one.
    ///
    /// # Errors
    /// A binary is missing; or a process exited or was not ready in time, with the end of its log.
    pub fn start_own() -> Result<Self> {
        Self::start_own_with(Vec::new())
    }

    fn start_own_with(kinds: Vec<Value>) -> Result<Self> {
        let binaries = Binaries::of_a_cluster()?;
        // They are large; meanwhile the API server starts.
        let (plane, crds) = thread::scope(|scope| {
            let crds = scope.spawn(|| definitions(&binaries));
            let plane = ControlPlane::start_from(&binaries);
            (plane, crds.join())
        });
        let (plane, mut crds) = (
            plane?,
            crds.map_err(|_| anyhow!("the thread that reads the definitions panicked"))??,
        );
        crds.extend(kinds);
        let (kubelet, controllers) = plane.block_on(start(&plane, &crds))?;
        Ok(Self {
            kubelet,
            controllers: Some(controllers),
            plane,
        })
    }

    /// Returns its control plane.
    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// Returns its kubelet, which controls nodes and pods.
    pub fn kubelet(&self) -> &Kubelet {
        &self.kubelet
    }

    /// Returns the administrator's client, which never retries.
    pub fn client(&self) -> &Client {
        self.plane.client()
    }

    /// Returns the objects of a kind, in a namespace if the kind is namespaced.
    pub fn api<'a>(&'a self, resource: &'a Resource, namespace: &'a str) -> Api<'a> {
        self.plane.api(resource, namespace)
    }

    /// Creates a namespace of its own for a test, waits until pods can be created in it, and returns its name.
    ///
    /// # Errors
    /// The API server refused it, or the controllers did not set it up.
    pub async fn new_namespace(&self) -> Result<String> {
        let name = self.plane.new_namespace().await?;
        let accounts: kube::Api<ServiceAccount> =
            kube::Api::namespaced(self.client().clone(), &name);
        let what = format!("the ServiceAccount default of namespace {name}");
        eventually(&what, async || Ok(accounts.get_opt("default").await?)).await?;
        Ok(name)
    }

    /// Applies a Service without a cluster IP, whose endpoint is a port of this machine, so that pods whose containers run as processes, and are
    /// kept apart in this way, reach a server on it by the name of the Service.
    ///
    /// # Errors
    /// The port cannot be forwarded, or the API server refused an object.
    pub async fn publish(
        &self,
        (namespace, name): (&str, &str),
        port: u16,
        isolation: Isolation,
    ) -> Result<()> {
        let address = self.kubelet.expose(port, isolation)?;
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"clusterIP": "None", "ports": [{"port": port}]},
        });
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address]}],
            "ports": [{"port": port}],
        });
        for (path, plural, object) in [
            ("/api/v1", "services", service),
            ("/apis/discovery.k8s.io/v1", "endpointslices", slice),
        ] {
            let resource = Resource::namespaced(path, plural);
            let api = self.api(&resource, namespace);
            // A kept cluster has those of earlier tests.
            let write = Write::by("test");
            api.apply(&object, &write).await?.accepted()?;
        }
        Ok(())
    }

    /// Checks that all processes are running.
    ///
    /// # Errors
    /// A process exited: with the end of its log.
    pub fn still_runs(&self) -> Result<()> {
        self.plane.still_runs()?;
        let Some(controllers) = &self.controllers else {
            return Ok(());
        };
        controllers.jobset.process.still_runs()?;
        controllers.manager().process.still_runs()?;
        controllers.scheduler.process.still_runs()
    }

    /// Kills kube-controller-manager, starts it again, and waits until it is ready. Where it uses leader election, an outage of the API
    /// server that is longer than its lease does so too. One that continues catches up with each kind at another time, so that it can
    /// create a pod a second time, or miss that an owner was deleted; one that starts lists everything before it acts.
    ///
    /// # Errors
    /// It exited or was not ready in time, with the end of its log; or the cluster is kept by another program.
    pub async fn restart_controller_manager(&self) -> Result<()> {
        let controllers = self.controllers.as_ref();
        let controllers = controllers.context("the cluster is kept by another program")?;
        controllers.manager().process.kill()?;
        let again = Controller::manager(&self.plane)?;
        again.ready().await?;
        *controllers.manager() = again;
        Ok(())
    }
}

/// A cluster without a kubelet, for other programs, until this value is dropped.
pub struct KeptCluster {
    _controllers: Option<Controllers>,
    plane: ControlPlane,
}

impl KeptCluster {
    /// Returns the value of `TRAINYARD_PLANE` for these programs.
    pub fn folder(&self) -> &Path {
        self.plane.folder()
    }

    /// Runs a future to completion.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.plane.block_on(future)
    }
}

async fn start(plane: &ControlPlane, crds: &[Value]) -> Result<(Kubelet, Controllers)> {
    // The garbage collector of kube-controller-manager looks for kinds when it starts, and then only every 30 seconds; until
    // it knows a kind, deleting an owner of that kind deletes nothing that it owns.
    install_all(plane, crds).await?;
    let manager = Controller::manager(plane)?;
    let scheduler = Controller::scheduler(plane)?;
    // Its watches may be silent for longer than a call of a test may take.
    let kubelet = Kubelet::start(client_of(plane.kubeconfig()).await?, plane.folder())?;
    let (jobset, (), (), ()) = tokio::try_join!(
        JobSetController::start(plane),
        manager.ready(),
        scheduler.ready(),
        add_nodes(&kubelet)
    )?;
    nodes_take_pods(plane.client()).await?;
    let controllers = Controllers {
        jobset,
        manager: Mutex::new(manager),
        scheduler,
    };
    Ok((kubelet, controllers))
}

async fn add_nodes(kubelet: &Kubelet) -> Result<()> {
    for number in 0..NODES {
        let node = NodeSpec::large(format!("node-{number}"));
        // The namespace of the leases may not exist yet.
        eventually("a node", async || Ok(kubelet.add_node(&node).await.ok())).await?;
    }
    Ok(())
}

/// Defines JobSets and Trainyard's own kinds on a control plane without controllers, for tests with many objects that are only stored.
///
/// # Errors
/// A binary is missing, or the API server refused a definition.
pub async fn define_kinds(plane: &ControlPlane) -> Result<()> {
    install_all(plane, &definitions(&Binaries::of_a_cluster()?)?).await
}

async fn install_all(plane: &ControlPlane, crds: &[Value]) -> Result<()> {
    let installs = crds
        .iter()
        .map(|crd| install(plane, crd, Install::ServerSide));
    try_join_all(installs).await.map(drop)
}

/// Returns the definitions of JobSets and of our own kinds.
fn definitions(binaries: &Binaries) -> Result<Vec<Value>> {
    let mut crds = vec![jobset::definition(binaries)?];
    for kind in Kind::ALL {
        crds.push(kind.crd()?);
    }
    Ok(crds)
}

impl Controller {
    fn manager(plane: &ControlPlane) -> Result<Self> {
        let port = Port::find()?;
        let (launcher, certificates) = (&plane.launcher, &plane.certificates);
        let process =
            launcher.controller_manager(certificates, plane.kubeconfig(), port.number())?;
        Self::new("kube-controller-manager", process, port, certificates)
    }

    fn scheduler(plane: &ControlPlane) -> Result<Self> {
        let port = Port::find()?;
        let (launcher, certificates) = (&plane.launcher, &plane.certificates);
        let process = launcher.scheduler(certificates, plane.kubeconfig(), port.number())?;
        Self::new("kube-scheduler", process, port, certificates)
    }

    fn new(
        name: &'static str,
        process: Process,
        port: Port,
        certificates: &Certificates,
    ) -> Result<Self> {
        let url = format!("https://127.0.0.1:{}", port.number());
        Ok(Self {
            name,
            process,
            client: health::client(&url, &certificates.authority)?,
            _port: port,
        })
    }

    async fn ready(&self) -> Result<()> {
        let still_runs = || self.process.still_runs();
        health::wait(self.name, &self.client, "/healthz", still_runs).await
    }
}

/// Waits until the node controller of kube-controller-manager has seen that the nodes are ready, and allows pods on them.
async fn nodes_take_pods(client: &Client) -> Result<()> {
    let nodes: kube::Api<Node> = kube::Api::all(client.clone());
    eventually("no node is tainted", async || {
        let nodes = nodes.list(&ListParams::default()).await?;
        let is_tainted = |node: &Node| {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
            taints.is_some_and(|taints| !taints.is_empty())
        };
        Ok((!nodes.items.iter().any(is_tainted)).then_some(()))
    })
    .await
}
