//! The plugin files that PolicyPlugins name.

use std::{
    path::{Path, PathBuf},
    sync::Once,
};

use trainyard_api::Located;
use trainyard_config::policy_plugin::{PolicyPlugin, PolicyPluginSpec, Source};
use trainyard_controller::plugins::Problem;
use trainyard_model::{manifest::Manifest, names::sha256_digest, text::clean};
use trainyard_oci::Signers;
use trainyard_sandbox::{LoadLimits, screen};

use super::{
    Policy,
    file::{PluginContent, PluginFile},
    missing::Missing,
    refused,
    registry::{VerifiedPlugin, check_unverified, pulled},
};
use crate::{
    args::SourceArgs,
    built_ins, output,
    report::{self, ErrorList},
    sources::{LoadedAs, file_of_built_in, loaded_as},
};

impl Policy {
    /// Returns these files, and those that PolicyPlugins name. Files of the command line are not named twice. A built-in plugin that is as new
    /// as the one that a PolicyPlugin names gets its settings.
    pub(crate) fn files(
        &mut self,
        given: Vec<PathBuf>,
        args: &SourceArgs,
    ) -> Result<Vec<PluginFile>, ErrorList> {
        let (files, missing) = self.available_files(given, args);
        let mut failure = ErrorList::default();
        for missing in missing {
            if missing.plugin.spec.disabled {
                let why = missing.refusal().1;
                report::warn(Located {
                    location: missing.plugin.at("source"),
                    message: format!("{why}; the plugin is disabled, so it is not needed"),
                });
                self.disable(missing.plugin);
                continue;
            }
            failure.absorb(missing.errors);
        }
        failure.or_ok(files)
    }

    /// Disables the built-in plugin of a name, if there is one, in the place of one that is not available.
    fn disable(&mut self, plugin: PolicyPlugin) {
        if built_ins::manifest(&plugin.name).is_none() {
            return;
        }
        let spec = PolicyPluginSpec {
            disabled: true,
            ..PolicyPluginSpec::default()
        };
        self.plugins.push(PolicyPlugin { spec, ..plugin });
    }

    /// Returns files like [`Self::files`], and the PolicyPlugins whose plugin is not available. Their settings have no effect, but nothing else
    /// may have their names.
    pub(crate) fn available_files(
        &mut self,
        given: Vec<PathBuf>,
        args: &SourceArgs,
    ) -> (Vec<PluginFile>, Vec<Missing>) {
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
        let is_of_registry =
            |plugin: &PolicyPlugin| matches!(plugin.spec.source, Some(Source::Oci(_)));
        if self.signers.is_none() && self.plugins.iter().any(is_of_registry) {
            WARNED.call_once(|| report::warn(NOT_VERIFIED));
        }
        let mut missing = Vec::new();
        for mut plugin in std::mem::take(&mut self.plugins) {
            let source = plugin.spec.source.clone();
            match source.map_or(Ok(None), |source| finder.add(&plugin, &source)) {
                Ok(None) => {}
                Ok(Some(why)) => {
                    report::warn(Located {
                        location: plugin.at("source"),
                        message: why,
                    });
                    // It is that of the plugin which is not used.
                    plugin.spec.digest = None;
                }
                Err(errors) => {
                    missing.push(Missing { plugin, errors });
                    continue;
                }
            }
            self.plugins.push(plugin);
        }
        (finder.files, missing)
    }
}

/// The warning if plugins of registries are used without signers. It is printed once.
const NOT_VERIFIED: &str = "the signatures of plugins from registries are not verified; pass the configuration of the controller with --signers, or a public key with --key";
static WARNED: Once = Once::new();

/// What a source is.
enum Found {
    /// A plugin that is loaded, with the manifest of the built-in one that it replaces.
    Plugin(PluginContent, Option<Box<Manifest>>),
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
    /// Adds the file of a PolicyPlugin. Returns the reason if the built-in plugin of its name is used instead.
    fn add(&mut self, plugin: &PolicyPlugin, source: &Source) -> Result<Option<String>, ErrorList> {
        let (content, replaced) = match self.find(plugin, source)? {
            Found::BuiltIn(why) => return Ok(Some(why)),
            Found::Plugin(content, replaced) => (content, replaced),
        };
        let given = self.given(&content);
        let known = given.as_ref().and_then(|file| file.wanted.as_ref());
        if let Some((name, place)) = known {
            let message = format!(
                "the file is also that of `{name}` in {place}; give each plugin a file of its own"
            );
            return Err(refused(plugin, "source", message));
        }
        let file = PluginFile {
            content,
            wanted: Some((plugin.name.clone(), plugin.at("source"))),
            replaced: replaced.map(|shipped| *shipped),
        };
        match given {
            Some(given) => *given = file,
            None => self.files.push(file),
        }
        Ok(None)
    }

    fn find(&self, plugin: &PolicyPlugin, source: &Source) -> Result<Found, ErrorList> {
        let failed = |problem: Problem| refused(plugin, "source", problem.message);
        let content = match (source, self.signers) {
            (Source::File(file), _) => {
                file_of_built_in(&plugin.name).map_err(failed)?;
                PluginContent::File(self.file(plugin, &file.name)?)
            }
            (Source::Oci(oci), None) => {
                check_unverified(plugin)?;
                match self.with_digest(plugin.spec.digest.as_deref()) {
                    Some(path) => PluginContent::File(path),
                    None => pulled(self.args, plugin, oci)?,
                }
            }
            (Source::Oci(oci), Some(signers)) => {
                let verified = VerifiedPlugin::pull(self.args, signers, plugin, (source, oci))?;
                let as_what = loaded_as(&plugin.name, Some(&verified.version), verified.is_signed);
                let replaced = match as_what.map_err(failed)? {
                    LoadedAs::Added => None,
                    LoadedAs::Replaces(shipped) => Some(shipped),
                    LoadedAs::BuiltIn(why) => return Ok(Found::BuiltIn(why)),
                };
                return Ok(Found::Plugin(verified.content(plugin, oci)?, replaced));
            }
        };
        Ok(Found::Plugin(content, None))
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
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
