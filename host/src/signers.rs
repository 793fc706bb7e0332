//! Whose signatures of plugins count, as the command line says.

use std::path::Path;

use trainyard_controller::settings::LoadedSettings;
use trainyard_oci::{PublicKey, Signers};

use crate::{args::SignerArgs, output, report::ErrorList};

/// The most bytes of a file with a key.
const KEY_BYTES: u64 = 64 << 10;

impl SignerArgs {
    /// Whether it is asked for that signatures are verified.
    pub(crate) const fn is_given(&self) -> bool {
        self.signers.is_some() || !self.key.is_empty()
    }

    /// Returns whose signatures count; `None` if that is not asked for.
    pub(crate) fn signers(&self) -> Result<Option<Signers>, ErrorList> {
        if let Some(file) = &self.signers {
            let loaded = LoadedSettings::read(file).map_err(ErrorList::from_iter)?;
            let signers = loaded.settings.plugins.signers;
            if signers.is_empty() {
                return Err(ErrorList::from_iter([format!(
                    "{}: plugins.signers: is missing, so no plugin would be accepted; add who may sign plugins",
                    output::path(file)
                )]));
            }
            return Ok(Some(signers));
        }
        let keys = self.key.iter().map(|file| read_key(file));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        Ok((!keys.is_empty()).then(|| Signers::of_keys(keys)))
    }
}

/// Reads a public key, which is named by its file.
fn read_key(file: &Path) -> Result<(String, PublicKey), ErrorList> {
    let name = output::path(file);
    let failure = |reason: String| ErrorList::from_iter([format!("{name}: {reason}")]);
    let text = trainyard_api::inputs::read_file(file, KEY_BYTES);
    let text = text.map_err(|error| failure(error.to_string()))?;
    let key = PublicKey::from_pem(&text).map_err(|error| failure(error.to_string()))?;
    Ok((name, key))
}
