//! The plugin files that PolicyPlugins name.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use trainyard_api::Located;
use trainyard_config::policy_plugin::{OciSource, PolicyPlugin, Source};
use trainyard_model::{
    claims::Grants,
    manifest::{Manifest, NodeSet},
    names::sha256_digest,
    plugin_info::Settings,
    text::clean,
};
use trainyard_oci::{Client, Digest, LayoutReference, Location, Pulled, Reference};
use trainyard_sandbox::{LoadLimits, screen};

use super::Policy;
use crate::{
    args::SourceArgs,
    built_ins,
    output::{self, Transfer},
    report::ErrorList,
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

impl Policy {
    /// Returns these files, and those that PolicyPlugins name. Files of the command line are not named twice.
    pub(crate) fn files(
        &self,
        given: Vec<PathBuf>,
        args: &SourceArgs,
    ) -> Result<Vec<PluginFile>, ErrorList> {
        let given = given.into_iter().map(|path| PluginFile {
            content: PluginContent::File(path),
            wanted: None,
            replaced: None,
        });
        let mut finder = Finder {
            files: given.collect(),
            args,
        };
        let mut failure = ErrorList::default();
        for plugin in &self.plugins {
            let Some(source) = &plugin.spec.source else {
                continue;
            };
            if let Err(errors) = finder.add(plugin, source) {
                failure.absorb(errors);
            }
        }
        failure.or_ok(finder.files)
    }
}

/// Finds the files of PolicyPlugins.
struct Finder<'a> {
    files: Vec<PluginFile>,
    args: &'a SourceArgs,
}

impl Finder<'_> {
    fn add(&mut self, plugin: &PolicyPlugin, source: &Source) -> Result<(), ErrorList> {
        if let Some(Manifest { version, .. }) = built_ins::manifest(&plugin.name) {
            return Err(refused(
                plugin,
                "source",
                format!(
                    "`{}` is a built-in plugin, and only a plugin that is newer than {version} and signed by a signer whose `plugins` writes out `{}` may replace it, which this release cannot check; remove `source`, or name the plugin differently",
                    plugin.name, plugin.name
                ),
            ));
        }
        let found = match source {
            Source::File(file) => Some(self.file(plugin, &file.name)?),
            Source::Oci(_) => self.with_digest(plugin.spec.digest.as_deref()),
        };
        let content = match (found, source) {
            (Some(path), _) => PluginContent::File(path),
            (None, Source::Oci(oci)) => self.pull(plugin, oci)?,
            (None, Source::File(_)) => return Ok(()),
        };
        let wanted = Some((plugin.name.clone(), plugin.at("source")));
        match self.given(&content) {
            None => self.files.push(PluginFile {
                content,
                wanted,
                replaced: None,
            }),
            Some(PluginFile {
                wanted: own @ None, ..
            }) => *own = wanted,
            Some(PluginFile {
                wanted: Some((name, place)),
                ..
            }) => {
                return Err(refused(
                    plugin,
                    "source",
                    format!(
                        "the file is also that of `{name}` in {place}; give each plugin a file of its own"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Returns the entry of a file that is loaded anyway.
    fn given(&mut self, content: &PluginContent) -> Option<&mut PluginFile> {
        let PluginContent::File(path) = content else {
            return None;
        };
        let same = |file: &&mut PluginFile| match &file.content {
            PluginContent::File(other) => canonical(other) == canonical(path),
            PluginContent::Pulled { .. } => false,
        };
        self.files.iter_mut().find(same)
    }

    /// Returns the paths of the files of the command line.
    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().filter_map(|file| match &file.content {
            PluginContent::File(path) => Some(path),
            PluginContent::Pulled { .. } => None,
        })
    }

    /// Returns the file of this name: one of the command line, or else the one beside the PolicyPlugin.
    fn file(&self, plugin: &PolicyPlugin, name: &str) -> Result<PathBuf, ErrorList> {
        let is_named = |path: &&PathBuf| path.file_name().is_some_and(|file| file == name);
        if let Some(path) = self.paths().find(is_named) {
            return Ok(path.clone());
        }
        let yaml = Path::new(&plugin.location.file);
        let beside = yaml.with_file_name(name);
        if beside.is_file() {
            return Ok(beside);
        }
        Err(refused(
            plugin,
            "source",
            format!(
                "`{}` is not in the plugin directory, and {} does not exist; pass the directory that has it with --plugin-dir",
                clean(name),
                output::path(&beside)
            ),
        ))
    }

    /// Returns the file of the command line that has this digest.
    fn with_digest(&self, digest: Option<&str>) -> Option<PathBuf> {
        let digest = digest?;
        let has_it = |path: &&PathBuf| {
            // A file that cannot be read is reported when it is loaded.
            let read = screen::read(path, &LoadLimits::default());
            read.is_ok_and(|bytes| sha256_digest(bytes) == digest)
        };
        self.paths().find(has_it).cloned()
    }

    /// Returns the plugin of a reference: from the store, or else from its registry.
    fn pull(&self, plugin: &PolicyPlugin, source: &OciSource) -> Result<PluginContent, ErrorList> {
        let error =
            |problem: &dyn std::fmt::Display| refused(plugin, "source", problem.to_string());
        let reference: Reference = source
            .reference
            .parse()
            .map_err(|problem| error(&problem))?;
        let store = store(self.args.plugin_store.as_deref()).ok_or_else(|| {
            error(&"there is no directory for plugins of registries, because HOME is not set; set --plugin-store")
        })?;
        let transfer = Transfer::new("pulling");
        let pulled = self.args.registry.run(async |client| {
            let pulled = stored_or_pulled(&client, &store, reference, &transfer).await;
            pulled.map_err(|problem| error(&problem))
        })?;
        drop(transfer);
        Ok(PluginContent::Pulled {
            reference: source.reference.clone(),
            component: file_of(plugin, pulled)?.into(),
        })
    }
}

/// Returns the plugin of a reference. It is kept in the store, so that it is pulled only once.
async fn stored_or_pulled(
    client: &Client,
    store: &Path,
    reference: Reference,
    transfer: &Transfer,
) -> Result<Pulled, trainyard_oci::OciError> {
    let in_store = |digest: Digest| {
        Location::Layout(LayoutReference {
            folder: store.to_owned(),
            name: None,
            digest: Some(digest),
        })
    };
    if let Some(digest) = reference.digest() {
        let kept = client
            .pull(&in_store(digest.clone()), &transfer.progress())
            .await;
        if let Ok(kept) = kept {
            return Ok(kept);
        }
    }
    let target = Location::Layout(LayoutReference {
        folder: store.to_owned(),
        name: Some(reference.to_string()),
        digest: None,
    });
    let source = Location::Registry(reference);
    let copied = client
        .copy(&source, &target, None, &transfer.progress())
        .await?;
    client
        .pull(&in_store(copied.digest), &transfer.progress())
        .await
}

/// Returns the file of a plugin that was pulled, if it has the digest of its PolicyPlugin. Its signatures are not checked, as `plugin verify`
/// does.
fn file_of(plugin: &PolicyPlugin, pulled: Pulled) -> Result<Vec<u8>, ErrorList> {
    match &plugin.spec.digest {
        Some(wanted) if *wanted != sha256_digest(&pulled.file) => Err(refused(
            plugin,
            "digest",
            format!(
                "the plugin file in the registry has the digest {}; correct one of `digest` and `source`",
                sha256_digest(&pulled.file)
            ),
        )),
        _ => Ok(pulled.file),
    }
}

/// Returns the directory of the store; `None` if none is given and there is no home directory.
pub(crate) fn store(given: Option<&Path>) -> Option<PathBuf> {
    if let Some(store) = given {
        return Some(store.to_owned());
    }
    let path = |variable: &str| {
        let set = env::var_os(variable).map(PathBuf::from);
        set.filter(|path| path.is_absolute())
    };
    let cache = path("XDG_CACHE_HOME").or_else(|| Some(path("HOME")?.join(".cache")))?;
    Some(cache.join("trainyard/store"))
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn refused(plugin: &PolicyPlugin, field: &str, message: String) -> ErrorList {
    ErrorList::from_iter([Located {
        location: plugin.at(field),
        message,
    }])
}
