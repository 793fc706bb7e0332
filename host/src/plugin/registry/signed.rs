//! Who has to have signed a plugin, for the commands that take one from a registry.

use std::path::Path;

use clap::Args;
use trainyard_model::text::listed;
use trainyard_oci::{Location, OciError, PluginName, Requirement, Signed, Signers};
use trainyard_sandbox::screen::Screened;

use crate::{
    args::{RegistryArgs, SignerArgs},
    built_ins::plugin_name,
    output::{self, Transfer},
    plugin::screened::screened_bytes,
    report::ErrorList,
};

/// The most signers in a line.
const LISTED: usize = 8;

/// Whose signatures count, for which plugin.
#[derive(Debug, Args)]
pub(super) struct SignedArgs {
    #[command(flatten)]
    pub(super) by: SignerArgs,
    /// The name that the plugin must have, and that its signer may sign [default: the name in its file].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// A plugin that was pulled, and checked without running it.
pub(super) struct PulledPlugin {
    pub(super) screened: Screened,
    /// What names exactly this plugin.
    pub(super) reference: String,
    /// Who signed it, if that was asked for.
    pub(super) signed: Option<Signed>,
}

/// Returns a line on who signed a plugin.
pub(in crate::plugin) fn line(signed: &Signed) -> String {
    match signed.signers.as_slice() {
        [] => "not signed, which `plugins.unsigned` allows".to_owned(),
        signers => format!("signed by {}", listed(signers, LISTED)),
    }
}

impl SignedArgs {
    /// Returns the plugin that has to be signed, as far as it is known before it is pulled.
    fn plugin(&self) -> PluginName<'_> {
        self.name
            .as_deref()
            .map_or(PluginName::Unknown, plugin_name)
    }

    /// Pulls a plugin, after its signatures were verified if that is asked for. Checks it, and its name, without running it.
    pub(super) fn pull(
        &self,
        source: &Location,
        registry: &RegistryArgs,
    ) -> Result<PulledPlugin, ErrorList> {
        let signers = self.by.signers()?;
        let mut plugin = pull(source, registry, signers.as_ref(), self.plugin())?;
        let shown = output::path(Path::new(&source.to_string()));
        let failure = |problem: String| ErrorList::from_iter([format!("{shown}: {problem}")]);
        let name = plugin.screened.manifest.name.clone();
        if let Some(wanted) = self.name.as_ref().filter(|wanted| **wanted != name) {
            return Err(failure(format!(
                "is the plugin `{name}`, not `{wanted}`; correct --name or the reference"
            )));
        }
        let (Some(signed), Some(signers)) = (&mut plugin.signed, &signers) else {
            return Ok(plugin);
        };
        let was_signed = signed.signer().is_some();
        match signed.check(signers, plugin_name(&name)) {
            Ok(()) => Ok(plugin),
            // Somebody else who may sign this name can have signed it, too.
            Err(_) if was_signed => {
                let pinned = super::location(&plugin.reference);
                let pinned = pinned.map_err(|error| ErrorList::from_iter([error]))?;
                pull(&pinned, registry, Some(signers), plugin_name(&name))
            }
            Err(error) => Err(failure(error.to_string())),
        }
    }

    /// Returns what is copied, and its name if that matters: the file that has the name is pulled first then, and pinned.
    pub(super) fn pinned(
        &self,
        source: &Location,
        registry: &RegistryArgs,
    ) -> Result<(Location, Option<String>), ErrorList> {
        if self.by.signers.is_none() && self.name.is_none() {
            return Ok((source.clone(), None));
        }
        let pulled = self.pull(source, registry)?;
        let pinned = super::location(&pulled.reference);
        let pinned = pinned.map_err(|error| ErrorList::from_iter([error]))?;
        Ok((pinned, Some(pulled.screened.manifest.name)))
    }
}

/// Pulls a plugin, after its signatures were verified if there are signers. Checks it without running it.
fn pull(
    source: &Location,
    registry: &RegistryArgs,
    signers: Option<&Signers>,
    plugin: PluginName<'_>,
) -> Result<PulledPlugin, ErrorList> {
    let failure = |error: OciError| ErrorList::from_iter([error.to_string()]);
    let transfer = Transfer::new("pulling");
    let progress = transfer.progress();
    let (file, digest, signed) = registry.run(async |client| match signers {
        Some(signers) => {
            let requirement = Requirement { signers, plugin };
            let pulled = client.pull_verified(source, &requirement, &progress).await;
            let pulled = pulled.map_err(failure)?;
            let digest = pulled.signed.digest.clone();
            Ok((pulled.file, digest, Some(pulled.signed)))
        }
        None => {
            let pulled = client.pull(source, &progress).await.map_err(failure)?;
            Ok((pulled.file, pulled.digest, None))
        }
    })?;
    drop(transfer);
    let shown = output::path(Path::new(&source.to_string()));
    Ok(PulledPlugin {
        screened: screened_bytes(file, &shown)?,
        reference: source.pinned(&digest),
        signed,
    })
}
