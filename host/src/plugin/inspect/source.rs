//! Where a plugin that is inspected comes from: a file, or a registry.

use std::{collections::BTreeMap, path::Path};

use serde::Serialize;
use trainyard_model::text::clean;
use trainyard_oci::{
    Inspected, Location, PluginName, ReferenceError, Referrer, Requirement, Signed,
};
use trainyard_sandbox::screen::Screened;

use crate::{
    args::{RegistryArgs, SignerArgs},
    built_ins::plugin_name,
    output::{self, Transfer},
    plugin::{
        registry::signed_line,
        screened::{screened, screened_bytes},
    },
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
    /// Whether it is signed as required, if that is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<SignatureReport>,
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
    pub(super) fn find(
        plugin: &Path,
        by: &SignerArgs,
        registry: &RegistryArgs,
    ) -> Result<Self, ErrorList> {
        let shown = output::path(plugin);
        let parsed = plugin.to_str().map(str::parse::<Location>);
        match parsed {
            Some(Ok(Location::Registry(_))) if plugin.exists() => {
                tracing::warn!(
                    "{shown}: this is the file of that name, and not the plugin in the registry; rename the file to inspect the other one"
                );
            }
            Some(Ok(location)) if !plugin.exists() => return Self::pull(&location, by, registry),
            Some(Err(error @ (ReferenceError::NoTag { .. } | ReferenceError::Digest { .. })))
                if !plugin.exists() =>
            {
                return Err(ErrorList::from_iter([format!(
                    "{shown}: there is no such file, and as a reference, {error}"
                )]));
            }
            _ => {}
        }
        if by.signers()?.is_some() {
            return Err(ErrorList::from_iter([format!(
                "{shown}: is a file, which has no signature; pass a reference, or omit --key and --signers"
            )]));
        }
        Ok(Self {
            plugin: screened(plugin)?,
            name: shown,
            artifact: None,
        })
    }

    fn pull(
        location: &Location,
        by: &SignerArgs,
        registry: &RegistryArgs,
    ) -> Result<Self, ErrorList> {
        let signers = by.signers()?;
        let inspect = |location: &Location, plugin| {
            let requirement = signers
                .as_ref()
                .map(|signers| Requirement { signers, plugin });
            let transfer = Transfer::new("pulling");
            registry.run(async |client| {
                let inspected = client
                    .inspect(location, requirement.as_ref(), &transfer.progress())
                    .await;
                inspected.map_err(|error| ErrorList::from_iter([error.to_string()]))
            })
        };
        let Inspected {
            plugin,
            mut signed,
            referrers,
            has_more_referrers,
        } = inspect(location, PluginName::Unknown)?;
        let name = output::path(Path::new(&location.to_string()));
        let screened = screened_bytes(plugin.file, &name)?;
        if let (Some(Ok(found)), Some(signers)) = (&signed, &signers)
            && found.signer().is_some()
        {
            let named = plugin_name(&screened.manifest.name);
            if found.clone().check(signers, named).is_err() {
                // Somebody else who may sign this name can have signed it, too.
                let pinned = location.pinned(&plugin.digest);
                let pinned: Location = pinned
                    .parse()
                    .map_err(|error: ReferenceError| ErrorList::from_iter([error.to_string()]))?;
                signed = inspect(&pinned, named)?.signed;
            }
        }
        let signature = signed.zip(signers.as_ref()).map(|(signed, signers)| {
            let plugin = plugin_name(&screened.manifest.name);
            let signed = signed.map_err(|problem| problem.to_string());
            SignatureReport::of(signed.and_then(|mut signed| {
                let checked = signed.check(signers, plugin);
                checked.map_err(|problem| problem.to_string())?;
                Ok(signed)
            }))
        });
        Ok(Self {
            plugin: screened,
            name,
            artifact: Some(ArtifactReport {
                reference: location.pinned(&plugin.digest),
                digest: plugin.digest.to_string(),
                annotations: plugin.annotations,
                signature,
                referrers,
                has_more_referrers,
            }),
        })
    }
}

/// Whether a plugin is signed as required.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SignatureReport {
    counts: bool,
    signers: Vec<String>,
    /// Who signed it, or why nothing counts.
    #[serde(rename = "message")]
    line: String,
}

impl SignatureReport {
    fn of(signed: Result<Signed, String>) -> Self {
        match signed {
            Ok(signed) => Self {
                counts: true,
                line: signed_line(&signed),
                signers: signed.signers,
            },
            Err(problem) => Self {
                counts: false,
                line: format!("none that counts: {}", clean(&problem)),
                signers: Vec::new(),
            },
        }
    }
}

/// Returns the line of what refers to a plugin.
fn referrer(one: &Referrer) -> String {
    let attests = match &one.predicate_type {
        Some(_) if one.is_signature() => ", a signature".to_owned(),
        Some(predicate) => format!(", an attestation of the type {}", clean(predicate)),
        None => String::new(),
    };
    let by = match (&one.signer, &one.problem) {
        (Some(signer), _) => format!(", by {signer}"),
        (None, Some(problem)) => format!(": {}", clean(problem)),
        (None, None) => String::new(),
    };
    format!("  {} {}{attests}{by}", one.artifact_type, one.digest)
}

impl ArtifactReport {
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("reference:   {}", self.reference)];
        if !self.annotations.is_empty() {
            lines.push("annotations:".to_owned());
            let annotations = self.annotations.iter();
            lines.extend(annotations.map(|(key, value)| format!("  {key}: {value}")));
        }
        if let Some(signature) = &self.signature {
            lines.push(format!("signature:   {}", signature.line));
        }
        lines.push(match (self.referrers.as_slice(), &self.signature) {
            ([], _) => "referrers:   none (no signature, SBOM or provenance)".to_owned(),
            (_, None) => "referrers (their contents are not checked):".to_owned(),
            (_, Some(_)) => "referrers (only what is signed is checked):".to_owned(),
        });
        lines.extend(self.referrers.iter().map(referrer));
        if self.has_more_referrers {
            lines.push("  and more".to_owned());
        }
        lines
    }
}
