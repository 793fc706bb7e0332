//! The plugins that PolicyPlugins of the cluster declare: `sources` has their content, and `loader` loads sets of them, by the code that loads
//! those of the command line.

mod loader;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, sync::Arc};

pub(crate) use loader::{ProcessLoader, Shared};
use trainyard_controller::plugins::ClusterPlugins;
use trainyard_oci::Signers;

use crate::{
    args::RegistryArgs,
    sources::{Content, Registries},
};

/// Where plugins of the cluster come from.
pub(crate) struct Places {
    /// The folder that keeps plugins of registries.
    pub(crate) store: PathBuf,
    /// The folder with the files that PolicyPlugins name.
    pub(crate) plugin_dir: Option<PathBuf>,
    /// Who may sign plugins.
    pub(crate) signers: Signers,
    /// How registries are reached.
    pub(crate) registry: RegistryArgs,
}

/// Returns the plugins of the cluster, which the loader loads.
pub(crate) fn cluster_plugins(places: Places, shared: Arc<Shared>) -> ClusterPlugins {
    let content = Arc::new(Content {
        store: places.store,
        plugin_dir: places.plugin_dir,
    });
    ClusterPlugins {
        source: Arc::new(Registries::new(
            content.clone(),
            places.signers,
            places.registry,
        )),
        loader: Arc::new(ProcessLoader { shared, content }),
    }
}
