//! Where a plugin that is inspected comes from: a file, or a registry.

use std::{collections::BTreeMap, path::Path};

use serde::Serialize;
use trainyard_oci::{Inspected, Location, ReferenceError, Referrer};
use trainyard_sandbox::screen::Screened;

use crate::{
    args::RegistryArgs,
    output::{self, Transfer},
    plugin::screened::{screened, screened_bytes},
    report::ErrorList,
};

/// A plugin that is inspected.
pub(super) struct Source {
    /// The name for users.
    pub(super) name: String,
    pub(super) plugin: Screened,
    /// What its registry says.
    pub(super) artifact: Option<ArtifactReport>,
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
    /// Returns what names exactly this plugin in its registry; `None` for a file or a directory.
    pub(super) fn reference(&self) -> Option<&str> {
        let reference = self.artifact.as_ref().map(|artifact| &*artifact.reference);
        reference.filter(|reference| !reference.starts_with("oci:"))
    }

    /// Returns the name of the plugin's file.
    pub(super) fn file_name(&self) -> String {
        let file = match self.artifact {
            None => Path::new(&self.name).file_name(),
            Some(_) => None,
        };
        let file = file.map(|file| file.display().to_string());
        file.unwrap_or_else(|| format!("{}.wasm", self.plugin.manifest.name))
    }

    /// Reads a file, or pulls a plugin if there is no such file and the text is a reference. Checks it without running it.
    pub(super) fn find(plugin: &Path, registry: &RegistryArgs) -> Result<Self, ErrorList> {
        let shown = output::path(plugin);
        let parsed = plugin.to_str().map(str::parse::<Location>);
        match parsed {
            Some(Ok(Location::Registry(_))) if plugin.exists() => {
                tracing::warn!(
                    "{shown}: this is the file of that name, and not the plugin in the registry; rename the file to inspect the other one"
                );
            }
            Some(Ok(location)) if !plugin.exists() => return Self::pull(&location, registry),
            Some(Err(error @ (ReferenceError::NoTag { .. } | ReferenceError::Digest { .. })))
                if !plugin.exists() =>
            {
                return Err(ErrorList::from_iter([format!(
                    "{shown}: there is no such file, and as a reference, {error}"
                )]));
            }
            _ => {}
        }
        Ok(Self {
            plugin: screened(plugin)?,
            name: shown,
            artifact: None,
        })
    }

    fn pull(location: &Location, registry: &RegistryArgs) -> Result<Self, ErrorList> {
        let transfer = Transfer::new("pulling");
        let inspected = registry.run(async |client| {
            let inspected = client.inspect(location, &transfer.progress()).await;
            inspected.map_err(|error| ErrorList::from_iter([error.to_string()]))
        })?;
        let Inspected {
            plugin,
            referrers,
            has_more_referrers,
        } = inspected;
        let name = output::path(Path::new(&location.to_string()));
        Ok(Self {
            plugin: screened_bytes(plugin.file, &name)?,
            name,
            artifact: Some(ArtifactReport {
                reference: location.pinned(&plugin.digest),
                digest: plugin.digest.to_string(),
                annotations: plugin.annotations,
                referrers,
                has_more_referrers,
            }),
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
