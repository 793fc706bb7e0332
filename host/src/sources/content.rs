//! The content of plugins on this machine.

use std::path::PathBuf;

use trainyard_config::policy_plugin::{Origin, ResolvedPlugin};
use trainyard_controller::plugins::{PluginCondition, Problem};
use trainyard_model::{names::sha256_digest, text::clean};
use trainyard_oci::{Digest, stored_file};
use trainyard_sandbox::{LoadLimits, screen};

use super::refusal::problem;
use crate::output;

/// Where content is on this machine.
pub(crate) struct Content {
    /// The folder that keeps plugins of registries.
    pub(crate) store: PathBuf,
    /// The folder with the files that PolicyPlugins name.
    pub(crate) plugin_dir: Option<PathBuf>,
}

impl Content {
    /// Reads a file of the plugin directory.
    pub(super) fn file(&self, name: &str) -> Result<Vec<u8>, Problem> {
        let failed = |reason, message| problem(PluginCondition::Pulled, reason, message);
        let Some(folder) = &self.plugin_dir else {
            let message = format!(
                "the controller has no plugin directory, so there is no file `{}`; set `pluginDir` in its configuration, or use a source in a registry",
                clean(name)
            );
            return Err(failed("NoPluginDir", message));
        };
        // The schema allows names only, but whoever can write a revision must not name other files.
        let is_name = !name.contains(['/', '\\', '\0']) && !matches!(name, "" | "." | "..");
        if !is_name {
            let message = format!("`{}` is a path; write the name of a file", clean(name));
            return Err(failed("NotFound", message));
        }
        let path = folder.join(name);
        screen::read(&path, &LoadLimits::default()).map_err(|error| {
            let message = format!(
                "{}: {error}; check that the file is in the plugin directory of each replica",
                output::path(&path)
            );
            failed("NotFound", message)
        })
    }

    /// Reads the file of a plugin of a revision, and checks its digest.
    pub(crate) fn of(&self, plugin: &ResolvedPlugin) -> Result<Vec<u8>, Problem> {
        let wanted = plugin.digest.as_deref().unwrap_or_default();
        let (bytes, place) = match &plugin.origin {
            Origin::File(file) => (self.file(&file.name)?, "the plugin directory"),
            Origin::Oci(_) => (self.stored(wanted)?, "the store"),
            Origin::BuiltIn(_) => (Vec::new(), "this program"),
        };
        check_digest(&bytes, wanted, place)?;
        Ok(bytes)
    }

    /// Reads a plugin of a registry that is kept, by the digest of its file.
    pub(crate) fn stored(&self, digest: &str) -> Result<Vec<u8>, Problem> {
        let failed = |message| problem(PluginCondition::Pulled, "NotStored", message);
        let digest: Digest = digest
            .parse()
            .map_err(|_| failed(format!("`{}` is not a digest", clean(digest))))?;
        let limit = LoadLimits::default().bytes;
        stored_file(&self.store, &digest, limit).map_err(|error| failed(error.to_string()))
    }
}

/// Checks the digest of a file.
pub(super) fn check_digest(bytes: &[u8], wanted: &str, place: &str) -> Result<(), Problem> {
    let found = sha256_digest(bytes);
    if found == wanted {
        return Ok(());
    }
    let message = format!(
        "the file in {place} has the digest {found}, but the revision was made with {}; put that file back, or wait until a revision with the new one runs",
        clean(wanted)
    );
    Err(problem(PluginCondition::Pulled, "DigestMismatch", message))
}
