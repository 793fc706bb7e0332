//! Where a plugin that is inspected comes from: a file, or a registry.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Serialize;
use tempfile::TempDir;
use trainyard_oci::{Inspected, Location, ReferenceError, Referrer};
use trainyard_sandbox::screen::Screened;

use crate::{
    output::{self, Transfer},
    plugin::{registry::RegistryArgs, screened::screened_as},
    report::ErrorList,
};

/// A plugin that is inspected.
pub(super) enum Source {
    /// A file of the user.
    File(PathBuf),
    /// A plugin that was pulled into a file of this command.
    Pulled(Box<PulledPlugin>),
}

/// A plugin that was pulled, with its file, which exists as long as this value.
pub(super) struct PulledPlugin {
    location: Location,
    inspected: Inspected,
    _folder: TempDir,
    file: PathBuf,
}

/// What a registry or directory says of a plugin.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactReport {
    reference: String,
    digest: String,
    annotations: BTreeMap<String, String>,
    referrers: Vec<Referrer>,
    /// Whether more refers to it than is listed.
    has_more_referrers: bool,
}

impl Source {
    /// Finds a file, or pulls a plugin if there is no such file and the text is a reference.
    pub(super) fn find(plugin: &Path, registry: &RegistryArgs) -> Result<Self, ErrorList> {
        let shown = output::path(plugin);
        let parsed = plugin.to_str().map(str::parse::<Location>);
        match parsed {
            Some(Ok(Location::Registry(_))) if plugin.exists() => {
                tracing::warn!(
                    "{shown}: this is the file of that name, and not the plugin in the registry; rename the file to inspect the other one"
                );
                Ok(Self::File(plugin.to_owned()))
            }
            Some(Ok(location)) if !plugin.exists() => Self::pull(location, registry),
            Some(Err(error @ (ReferenceError::NoTag { .. } | ReferenceError::Digest { .. })))
                if !plugin.exists() =>
            {
                Err(ErrorList::from_iter([format!(
                    "{shown}: there is no such file, and as a reference, {error}"
                )]))
            }
            _ => Ok(Self::File(plugin.to_owned())),
        }
    }

    fn pull(location: Location, registry: &RegistryArgs) -> Result<Self, ErrorList> {
        let transfer = Transfer::new("pulling");
        let inspected = registry.run(async |client| {
            let inspected = client.inspect(&location, &transfer.progress()).await;
            inspected.map_err(|error| ErrorList::from_iter([error.to_string()]))
        })?;
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("plugin.wasm");
        output::replace(&file, &inspected.plugin.file)?;
        Ok(Self::Pulled(Box::new(PulledPlugin {
            location,
            inspected,
            _folder: folder,
            file,
        })))
    }

    /// Returns the file.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::File(file) => file,
            Self::Pulled(plugin) => &plugin.file,
        }
    }

    /// Returns the name for users.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(file) => output::path(file),
            Self::Pulled(plugin) => output::path(Path::new(&plugin.location.to_string())),
        }
    }

    pub(super) fn screened(&self) -> Result<Screened, ErrorList> {
        screened_as(self.path(), &self.name())
    }

    /// Returns what its registry says.
    pub(super) fn artifact(&self) -> Option<ArtifactReport> {
        let Self::Pulled(plugin) = self else {
            return None;
        };
        let PulledPlugin {
            location,
            inspected,
            ..
        } = &**plugin;
        let digest = &inspected.plugin.digest;
        Some(ArtifactReport {
            reference: location.pinned(digest),
            digest: digest.to_string(),
            annotations: inspected.plugin.annotations.clone(),
            referrers: inspected.referrers.clone(),
            has_more_referrers: inspected.has_more_referrers,
        })
    }
}

impl ArtifactReport {
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("reference:   {}", self.reference)];
        if !self.annotations.is_empty() {
            lines.push("annotations:".to_owned());
            let annotations = self.annotations.iter();
            lines.extend(annotations.map(|(key, value)| format!("  {key}: {value}")));
        }
        lines.push(match self.referrers.as_slice() {
            [] => "referrers:   none (no signature, SBOM or provenance)".to_owned(),
            _ => "referrers (their contents are not checked):".to_owned(),
        });
        let referrers = self.referrers.iter();
        lines.extend(referrers.map(|one| format!("  {} {}", one.artifact_type, one.digest)));
        if self.has_more_referrers {
            lines.push("  and more".to_owned());
        }
        lines
    }
}
