//! The files of plugins, and what their PolicyPlugins say about them.

use std::{path::PathBuf, sync::Arc};

use trainyard_model::{
    claims::Grants,
    manifest::{Manifest, NodeSet},
    plugin_info::Settings,
};

/// A plugin that is not built in.
#[derive(Clone, Debug)]
pub(crate) struct PluginFile {
    pub(crate) content: PluginContent,
    /// The name that it must have, with the PolicyPlugin that names the file.
    pub(crate) wanted: Option<(String, trainyard_api::Location)>,
    /// The manifest of the built-in plugin that it replaces, which decides its default grants.
    pub(crate) replaced: Option<Manifest>,
}

impl PluginFile {
    /// Returns the settings on which those of its PolicyPlugin are based. A plugin that replaces a built-in one may do what that one may do.
    pub(crate) fn defaults(&self) -> Settings {
        let Some(replaced) = &self.replaced else {
            return Settings::default();
        };
        let claims = replaced.claims.iter().map(|(_, path)| path.clone());
        let counts = replaced.node_sets.iter().map(NodeSet::count);
        Settings {
            grants: Grants::Paths(claims.chain(counts).collect()),
            ..Settings::default()
        }
    }
}

/// The content of a plugin that is not built in.
#[derive(Clone, Debug)]
pub(crate) enum PluginContent {
    /// A file.
    File(PathBuf),
    /// What a registry or the store has under a reference.
    Pulled {
        reference: String,
        component: Arc<[u8]>,
    },
}
