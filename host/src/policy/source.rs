//! The plugin files that PolicyPlugins name.

use std::{
    env,
    path::{Path, PathBuf},
    sync::{Arc, Once},
};

use trainyard_api::Located;
use trainyard_config::policy_plugin::{OciSource, PolicyPlugin, Source};
use trainyard_controller::plugins::{PluginSource as _, SourceError};
use trainyard_model::{
    claims::Grants,
    manifest::{Manifest, NodeSet},
    names::sha256_digest,
    plugin_info::Settings,
    text::clean,
};
use trainyard_oci::{Client, Digest, LayoutReference, Location, Pulled, Reference, Signers};
use trainyard_sandbox::{LoadLimits, screen};

use super::Policy;
use crate::{
    args::SourceArgs,
    built_ins,
    output::{self, Transfer},
    registries,
    report::{self, ErrorList},
    sources::{Content, LoadedAs, Registries, file_of_built_in, loaded_as},
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
    /// Verifies the plugins of registries like another policy, unless it has signers of its own.
    pub(crate) fn verify_like(&mut self, other: &Self) {
        if self.signers.is_none() {
            self.signers.clone_from(&other.signers);
        }
    }

    /// Returns these files, and those that PolicyPlugins name. Files of the command line are not named twice. A built-in plugin that is as new
    /// as the one that a PolicyPlugin names gets its settings.
    pub(crate) fn files(
        &mut self,
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
            signers: self.signers.as_ref(),
        };
        let mut failure = ErrorList::default();
        let is_of_registry =
            |plugin: &PolicyPlugin| matches!(plugin.spec.source, Some(Source::Oci(_)));
        if self.signers.is_none() && self.plugins.iter().any(is_of_registry) {
            WARNED.call_once(|| report::warn(NOT_VERIFIED));
        }
        for plugin in &mut self.plugins {
            let Some(source) = plugin.spec.source.clone() else {
                continue;
            };
            match finder.add(plugin, &source) {
                Ok(Found::Plugin) => {}
                Ok(Found::BuiltIn(why)) => {
                    report::warn(Located {
                        location: plugin.at("source"),
                        message: why,
                    });
                    // It is that of the plugin which is not used.
                    plugin.spec.digest = None;
                }
                Err(errors) => failure.absorb(errors),
            }
        }
        failure.or_ok(finder.files)
    }
}

/// The warning if plugins of registries are used without signers. It is printed once.
const NOT_VERIFIED: &str = "the signatures of plugins from registries are not verified; pass the configuration of the controller with --signers, or a public key with --key";
static WARNED: Once = Once::new();

/// What a source is.
enum Found {
    /// A plugin that is loaded.
    Plugin,
    /// One that is not loaded, because the built-in plugin of its name is used, for this reason.
    BuiltIn(String),
}

/// Finds the files of PolicyPlugins.
struct Finder<'a> {
    files: Vec<PluginFile>,
    args: &'a SourceArgs,
    /// Who must have signed the plugins of registries.
    signers: Option<&'a Signers>,
}

impl Finder<'_> {
    fn add(&mut self, plugin: &PolicyPlugin, source: &Source) -> Result<Found, ErrorList> {
        let mut replaced = None;
        let content = match (source, self.signers) {
            (Source::File(file), _) => {
                let checked = file_of_built_in(&plugin.name);
                checked.map_err(|problem| refused(plugin, "source", problem.message))?;
                PluginContent::File(self.file(plugin, &file.name)?)
            }
            (Source::Oci(oci), None) => {
                check_unverified(plugin)?;
                match self.with_digest(plugin.spec.digest.as_deref()) {
                    Some(path) => PluginContent::File(path),
                    None => self.pull(plugin, oci)?,
                }
            }
            (Source::Oci(oci), Some(signers)) => {
                let (verified, version, is_signed) = self.verified(plugin, source, oci, signers)?;
                match loaded_as(&plugin.name, Some(&version), is_signed) {
                    Ok(LoadedAs::Added) => {}
                    Ok(LoadedAs::Replaces(shipped)) => replaced = Some(*shipped),
                    Ok(LoadedAs::BuiltIn(why)) => return Ok(Found::BuiltIn(why)),
                    Err(problem) => return Err(refused(plugin, "source", problem.message)),
                }
                verified
            }
        };
        let wanted = Some((plugin.name.clone(), plugin.at("source")));
        match self.given(&content) {
            None => self.files.push(PluginFile {
                content,
                wanted,
                replaced,
            }),
            Some(file) => match &file.wanted {
                None => {
                    *file = PluginFile {
                        content,
                        wanted,
                        replaced,
                    }
                }
                Some((name, place)) => {
                    let message = format!(
                        "the file is also that of `{name}` in {place}; give each plugin a file of its own"
                    );
                    return Err(refused(plugin, "source", message));
                }
            },
        }
        Ok(Found::Plugin)
    }

    /// Returns the plugin of a registry, or of the store, after its signature was verified as the controller does, with its version and whether
    /// it is signed. Files of the command line have no signature, so that none is used in its place.
    fn verified(
        &self,
        plugin: &PolicyPlugin,
        source: &Source,
        oci: &OciSource,
        signers: &Signers,
    ) -> Result<(PluginContent, String, bool), ErrorList> {
        let content = Arc::new(Content {
            store: self.store(plugin)?,
            plugin_dir: None,
        });
        let (signers, registry) = (signers.clone(), self.args.registry.clone());
        let registries = Registries::new(content.clone(), signers, registry);
        let transfer = Transfer::new("pulling");
        let pinned = registries::block_on(registries.pin(&plugin.name, source))?;
        drop(transfer);
        let failed = |message: String| refused(plugin, "source", message);
        let pinned = pinned.map_err(|error| {
            failed(match error {
                SourceError::Retry { message, .. } => message,
                SourceError::Refused(problem) => named(&oci.reference, problem.message),
            })
        })?;
        let file = content.stored(&pinned.digest);
        let file = file.map_err(|problem| failed(named(&oci.reference, problem.message)))?;
        let content = PluginContent::Pulled {
            reference: oci.reference.clone(),
            component: checked(plugin, file)?.into(),
        };
        Ok((content, pinned.version, pinned.signer.is_some()))
    }

    /// Returns the entry of a file that is loaded anyway.
    fn given(&mut self, content: &PluginContent) -> Option<&mut PluginFile> {
        let same: &dyn Fn(&Path) -> bool = match content {
            PluginContent::File(path) => &|other| canonical(other) == canonical(path),
            PluginContent::Pulled { component, .. } => &|other| {
                let read = screen::read(other, &LoadLimits::default());
                read.is_ok_and(|bytes| *bytes == **component)
            },
        };
        let is_it = |file: &&mut PluginFile| match &file.content {
            PluginContent::File(other) => same(other),
            PluginContent::Pulled { .. } => false,
        };
        self.files.iter_mut().find(is_it)
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
        let store = self.store(plugin)?;
        let transfer = Transfer::new("pulling");
        let pulled = self.args.registry.run(async |client| {
            let pulled = stored_or_pulled(&client, &store, reference, &transfer).await;
            pulled.map_err(|problem| error(&problem))
        })?;
        drop(transfer);
        Ok(PluginContent::Pulled {
            reference: source.reference.clone(),
            component: checked(plugin, pulled.file)?.into(),
        })
    }

    /// Returns the directory that keeps plugins of registries.
    fn store(&self, plugin: &PolicyPlugin) -> Result<PathBuf, ErrorList> {
        store(self.args.plugin_store.as_deref()).ok_or_else(|| {
            let message = "there is no directory for plugins of registries, because HOME is not set; set --plugin-store";
            refused(plugin, "source", message.to_owned())
        })
    }
}

/// Fails for a plugin with the name of a built-in one, because only signatures say whether it may replace that one.
fn check_unverified(plugin: &PolicyPlugin) -> Result<(), ErrorList> {
    let Some(Manifest { version, .. }) = built_ins::manifest(&plugin.name) else {
        return Ok(());
    };
    Err(refused(
        plugin,
        "source",
        format!(
            "`{name}` is a built-in plugin, and only a plugin that is newer than {version} and signed by a signer whose `plugins` writes out `{name}` may replace it; pass the configuration of the controller with --signers to verify that, remove `source`, or name the plugin differently",
            name = plugin.name
        ),
    ))
}

/// Returns a message that names the reference.
fn named(reference: &str, message: String) -> String {
    let name = clean(reference);
    match message.contains(&name) {
        true => message,
        false => format!("{name}: {message}"),
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

/// Returns the file of a plugin that was pulled, if it has the digest of its PolicyPlugin.
fn checked(plugin: &PolicyPlugin, file: Vec<u8>) -> Result<Vec<u8>, ErrorList> {
    let digest = sha256_digest(&file);
    match &plugin.spec.digest {
        Some(wanted) if *wanted != digest => Err(refused(
            plugin,
            "digest",
            format!(
                "the plugin file in the registry has the digest {digest}; correct one of `digest` and `source`"
            ),
        )),
        _ => Ok(file),
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
