//! A controller whose API calls can be disturbed.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use tokio::sync::Mutex;
use trainyard_cluster::{Cluster, ControlPlane, Proxy, Shared, Trainyard};

use super::{prepare, runtime};

/// A cluster with a proxy in front of its API server, for one test at a time.
pub(crate) struct Disturbed {
    pub(crate) cluster: Cluster,
    pub(crate) proxy: Proxy,
    pub(crate) turn: Mutex<()>,
    /// The kubeconfig file of the controller's ServiceAccount in deploy/, and one for the proxy.
    direct: PathBuf,
    by_proxy: PathBuf,
}

impl Shared for Disturbed {
    fn start() -> Result<Self> {
        let cluster = Cluster::start()?;
        let direct = prepare(&cluster, &[runtime()])?;
        let plane = cluster.plane();
        let proxy = plane.block_on(Proxy::start(plane))?;
        Ok(Self {
            by_proxy: proxy.kubeconfig(&direct)?,
            direct,
            turn: Mutex::default(),
            cluster,
            proxy,
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.cluster.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.cluster.still_runs()
    }
}

impl Disturbed {
    /// Starts a controller that uses the proxy.
    pub(crate) async fn controller(&self) -> Result<Arc<Trainyard>> {
        let arguments = ["--leader-elect=false"];
        Ok(Arc::new(
            Trainyard::start(self.plane(), &self.by_proxy, arguments).await?,
        ))
    }

    /// Starts a controller that uses the proxy, with the plugins of a folder.
    pub(crate) async fn controller_with(&self, plugins: &Path) -> Result<Arc<Trainyard>> {
        self.controller_under(plugins, None).await
    }

    /// Starts a controller that uses the proxy, with the plugins of a folder and a policy file.
    pub(crate) async fn controller_under(
        &self,
        plugins: &Path,
        policy: Option<&Path>,
    ) -> Result<Arc<Trainyard>> {
        let mut arguments = vec![
            OsStr::new("--leader-elect=false"),
            OsStr::new("--plugin-dir"),
            plugins.as_os_str(),
        ];
        if let Some(policy) = policy {
            arguments.extend([OsStr::new("--policy"), policy.as_os_str()]);
        }
        Ok(Arc::new(
            Trainyard::start(self.plane(), &self.by_proxy, arguments).await?,
        ))
    }

    /// Starts a controller that uses the proxy and leader election, with these arguments.
    pub(crate) async fn leading_controller_with(
        &self,
        arguments: &[OsString],
    ) -> Result<Trainyard> {
        let elected = [OsString::from("--leader-elect")];
        let arguments = elected.iter().chain(arguments);
        Trainyard::start(self.plane(), &self.by_proxy, arguments).await
    }

    /// Starts a controller that calls the API server directly.
    pub(crate) async fn direct_controller(&self) -> Result<Trainyard> {
        Trainyard::start(self.plane(), &self.direct, ["--leader-elect=false"]).await
    }

    /// Starts a controller that uses the proxy, without waiting until it is ready.
    pub(crate) fn starting_controller(&self) -> Result<Arc<Trainyard>> {
        let arguments = ["--leader-elect=false"];
        let started = Trainyard::start_unready(self.plane(), &self.by_proxy, arguments)?;
        Ok(Arc::new(started))
    }
}
