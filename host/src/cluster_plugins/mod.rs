//! The plugins that PolicyPlugins of the cluster declare: where their content comes from, and how it is loaded.
//!
//! - `source` resolves sources and keeps content, by the client of registries; `refusal` says why there is none.
//! - `content` reads what is kept, and files of the plugin directory, each by its digest.
//! - `loader` loads sets of plugins, by the code that loads those of the command line.

mod content;
mod loader;
mod refusal;
mod source;

use std::{path::PathBuf, sync::Arc};

pub(crate) use loader::{ProcessLoader, Shared};
use trainyard_controller::plugins::ClusterPlugins;
use trainyard_oci::Signers;

use self::{content::Content, source::Registries};
use crate::args::RegistryArgs;

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
