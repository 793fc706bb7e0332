//! Loading one plugin, unless it is loaded already.

use std::{collections::BTreeSet, sync::Arc};

use trainyard_model::{
    manifest::Manifest,
    names::sha256_digest,
    plugin::Plugin,
    plugin_info::{PluginInfo, Settings},
};
use trainyard_sandbox::{BuiltIn, LoadError, Loader, SandboxedPlugin};

use crate::policy::PluginContent;

/// When the code of the built-in plugins is loaded.
#[derive(Clone, Copy)]
pub(crate) enum CodeLoading {
    /// At once, so a long-running process detects errors at its start.
    Eager,
    /// At the first call, because a command calls few plugins.
    Lazy,
}

/// Returns the operator's settings for the plugin of a manifest.
pub(super) type SettingsOf<'s> = &'s mut dyn FnMut(&Manifest) -> Settings;

/// How plugins are loaded.
pub(crate) struct Loading<'l> {
    loader: &'l Loader,
    code: CodeLoading,
    /// Plugins of earlier loads, which are used again if their content and settings are the same.
    reuse: Vec<Arc<dyn Plugin>>,
    /// The built-in plugins that are not loaded, because a plugin of their name is skipped.
    without: BTreeSet<String>,
    wrap: &'l dyn Fn(Arc<dyn Plugin>) -> Arc<dyn Plugin>,
}

impl<'l> Loading<'l> {
    pub(crate) fn new(loader: &'l Loader, code: CodeLoading) -> Self {
        Self {
            loader,
            code,
            reuse: Vec::new(),
            without: BTreeSet::new(),
            wrap: &std::convert::identity,
        }
    }

    /// Wraps each plugin that is loaded.
    pub(crate) fn wrapping(mut self, wrap: &'l dyn Fn(Arc<dyn Plugin>) -> Arc<dyn Plugin>) -> Self {
        self.wrap = wrap;
        self
    }

    /// Uses plugins of earlier loads again, which are wrapped already.
    pub(crate) fn reusing(mut self, plugins: impl IntoIterator<Item = Arc<dyn Plugin>>) -> Self {
        self.reuse.extend(plugins);
        self
    }

    /// Loads no built-in plugins of these names.
    pub(crate) fn without(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.without.extend(names);
        self
    }

    /// Whether a built-in plugin is not loaded.
    pub(super) fn leaves_out(&self, built_in: &str) -> bool {
        self.without.contains(built_in)
    }

    /// Returns a built-in plugin.
    pub(super) fn built_in(
        &self,
        plugin: &BuiltIn,
        settings: SettingsOf<'_>,
    ) -> Result<Arc<dyn Plugin>, LoadError> {
        if let Some(loaded) = self.loaded(plugin.digest(), settings) {
            return Ok(loaded);
        }
        Ok((self.wrap)(match self.code {
            CodeLoading::Eager => Arc::new(self.loader.load_built_in(plugin, settings)?),
            CodeLoading::Lazy => Arc::new(self.loader.defer_built_in(plugin, settings)?),
        }))
    }

    /// Returns a plugin that is not built in.
    pub(super) fn content(
        &self,
        content: &PluginContent,
        settings: SettingsOf<'_>,
    ) -> Result<Arc<dyn Plugin>, LoadError> {
        if let PluginContent::Pulled { component, .. } = content
            && !self.reuse.is_empty()
            && let Some(loaded) = self.loaded(&sha256_digest(component), settings)
        {
            return Ok(loaded);
        }
        let loaded = load_content(self.loader, content, settings)?;
        Ok((self.wrap)(Arc::new(loaded)))
    }

    /// Returns a plugin of an earlier load with this content and these settings.
    fn loaded(&self, digest: &str, settings: SettingsOf<'_>) -> Option<Arc<dyn Plugin>> {
        let mut loaded = self.reuse.iter();
        let loaded = loaded.find(|plugin| {
            let info = plugin.info();
            if *info.id.digest != *digest {
                return false;
            }
            let manifest = info.manifest.clone();
            let wanted = settings(&manifest);
            // The settings of a plugin are complete: its configuration has the defaults.
            let wanted = PluginInfo::new(manifest, digest, wanted);
            wanted.is_ok_and(|wanted| wanted.settings == info.settings)
        });
        loaded.cloned()
    }
}

/// Loads a plugin that is not built in.
pub(super) fn load_content(
    loader: &Loader,
    content: &PluginContent,
    settings: impl FnOnce(&Manifest) -> Settings,
) -> Result<SandboxedPlugin, LoadError> {
    match content {
        PluginContent::File(path) => loader.load_file(path, settings),
        PluginContent::Pulled {
            reference,
            component,
        } => {
            let loaded = loader.load_untrusted(component.to_vec(), settings);
            loaded.map_err(|problem| LoadError {
                file: reference.clone(),
                problem: Box::new(problem),
            })
        }
    }
}
