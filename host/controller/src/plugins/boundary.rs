//! Where plugins come from, and how they are loaded. The controller decides which plugins are used; the program brings their content and the
//! sandbox, and no content passes through here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;
use trainyard_config::policy_plugin::{Origin, ResolvedPlugin, Source};
use trainyard_model::facts::HostFacts;
use trainyard_render::Renderer;

use crate::generation::Generation;

/// Plugins of the cluster: where they come from, and how they are loaded.
#[derive(Clone)]
pub struct ClusterPlugins {
    /// Where they come from.
    pub source: Arc<dyn PluginSource>,
    /// How they are loaded.
    pub loader: Arc<dyn PluginLoader>,
}

/// Resolves sources of plugins to content with a digest, and keeps that content.
pub trait PluginSource: Send + Sync {
    /// Resolves the source of the plugin of this name, verifies its content and keeps it. Only the leader and commands call this. Nothing is
    /// requested from a registry that the operator has not allowed for the plugin.
    fn pin<'a>(
        &'a self,
        name: &'a str,
        source: &'a Source,
    ) -> BoxFuture<'a, Result<Pinned, SourceError>>;

    /// Makes the content of a plugin of a revision available to the loader, by its digest. It is hashed and verified each time, even if it was
    /// kept. It is not called for built-in plugins.
    fn fetch<'a>(
        &'a self,
        plugin: &'a ResolvedPlugin,
    ) -> BoxFuture<'a, Result<Verified, SourceError>>;

    /// Discards the kept content of all plugins without one of these digests, which are those of files.
    fn keep(&self, digests: &BTreeSet<String>);
}

/// A plugin whose source was resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Where its content is.
    pub origin: Origin,
    /// The digest of its file.
    pub digest: String,
    /// Its version, from its manifest.
    pub version: String,
    /// When it is active, as its manifest says.
    pub active_when: String,
    /// Who signed it, as the operator's configuration names the signer. It is only displayed.
    pub signer: Option<String>,
}

/// Whether a version is newer than another one. Build metadata makes none newer, and a version that cannot be read is not newer.
#[must_use]
pub fn is_newer(version: Option<&str>, than: Option<&str>) -> bool {
    let parse = |text: &str| text.parse::<semver::Version>().ok();
    let both = version.and_then(parse).zip(than.and_then(parse));
    both.is_some_and(|(version, than)| version.cmp_precedence(&than).is_gt())
}

/// A plugin whose content is available to the loader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Who signed it, as the operator's configuration names the signer. It is only displayed.
    pub signer: Option<String>,
}

/// Why a plugin has no content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceError {
    /// A retry may succeed, such as after an outage of the registry.
    Retry {
        /// The time that the registry asks to wait.
        after: Option<Duration>,
        /// What could not be done, and why.
        message: String,
    },
    /// A retry does not help.
    Refused(Problem),
}

impl SourceError {
    /// Returns what is wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Retry { message, .. } | Self::Refused(Problem { message, .. }) => message,
        }
    }

    /// Returns what is wrong, as the status of its PolicyPlugin has it.
    pub(crate) fn into_problem(self) -> Problem {
        match self {
            Self::Refused(problem) => problem,
            Self::Retry { message, .. } => Problem {
                condition: PluginCondition::Pulled,
                reason: "Retrying".to_owned(),
                message: format!("{message}; it is tried again"),
            },
        }
    }
}

/// What is wrong with a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The condition that does not hold, or that of a conflict.
    pub condition: PluginCondition,
    /// The reason in CamelCase.
    pub reason: String,
    /// What is wrong, and what to do.
    pub message: String,
}

/// The conditions of a PolicyPlugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PluginCondition {
    /// Its content is there.
    Pulled,
    /// Its content is signed as the operator demands.
    Verified,
    /// This release can load it, with the settings of its PolicyPlugin.
    Loaded,
    /// It conflicts with another plugin.
    Conflicting,
    /// The controller has the permissions for what it looks up and emits.
    Permitted,
    /// Its calls fail in all namespaces, so that it is paused.
    Paused,
    /// It is used as the PolicyPlugin says.
    Active,
}

impl PluginCondition {
    /// All conditions, in the order in which they are written.
    pub const ALL: [Self; 7] = [
        Self::Pulled,
        Self::Verified,
        Self::Loaded,
        Self::Conflicting,
        Self::Permitted,
        Self::Paused,
        Self::Active,
    ];

    /// Returns the type of the condition.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pulled => "Pulled",
            Self::Verified => "Verified",
            Self::Loaded => "Loaded",
            Self::Conflicting => "Conflicting",
            Self::Permitted => "Permitted",
            Self::Paused => "Paused",
            Self::Active => "Active",
        }
    }
}

impl fmt::Display for PluginCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Loads sets of plugins.
pub trait PluginLoader: Send + Sync {
    /// Loads the built-in plugins with these plugins of a revision, and checks them against each other. Built-in plugins that no plugin of the
    /// revision replaces or configures are as shipped. Those that are disabled are not loaded. A plugin of one of the generations is used again
    /// if its content and settings are the same. It may take minutes, and is called on a thread of its own.
    ///
    /// # Errors
    /// What is wrong with which plugins. In the mode [`Mode::Lenient`], plugins that are not loaded, or that conflict with others, are skipped
    /// instead, and only a conflict of built-in plugins is an error.
    fn load(
        &self,
        set: &[FetchedPlugin],
        mode: Mode,
        reuse: &[Arc<Generation>],
        host: &HostFacts,
    ) -> Result<LoadedPlugins, Vec<Refusal>>;

    /// Returns why a built-in plugin is loaded in the place of a plugin of its name, such as that it is as new after an upgrade of this program;
    /// `None` if it is not. It follows from the plugin and this program alone, and the content of the plugin is not needed then.
    fn built_in_instead(&self, plugin: &ResolvedPlugin) -> Option<String>;

    /// Returns the names of the built-in plugins that are active for every TrainJob, unless a plugin of a revision says otherwise.
    fn always_built_in(&self) -> BTreeSet<String>;
}

/// Plugins that are loaded together.
pub struct LoadedPlugins {
    /// What renders TrainJobs with them.
    pub renderer: Renderer,
    /// What has no effect in the settings or the manifest of a plugin, and what to do, by the name of the plugin. It stops nothing.
    pub warnings: BTreeMap<String, Vec<String>>,
}

/// A plugin of a revision, with its content or why there is none.
#[derive(Clone, Debug)]
pub struct FetchedPlugin {
    /// The plugin.
    pub plugin: ResolvedPlugin,
    /// Whether its content is available. That of a built-in plugin is, and so is what is not loaded, because it is
    /// disabled or a built-in plugin is loaded in its place.
    pub content: Result<Verified, SourceError>,
}

/// Whether all plugins have to be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All of them, because it is decided whether the set is used.
    Strict,
    /// Those that can be, because the set is in use. TrainJobs that need one of the others wait.
    Lenient,
}

/// Why plugins are not loaded together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The names of the plugins at fault.
    pub plugins: Vec<String>,
    /// What is wrong.
    pub problem: Problem,
}
