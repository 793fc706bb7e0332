//! Plugins that are part of the program.

use std::borrow::Cow;

use trainyard_model::manifest::{Manifest, ManifestError};

use crate::{
    contract::{Contract, OURS},
    error::ScreenError,
    load_limits::LoadLimits,
    screen::Outlined,
};

/// A plugin that is part of the program. Its digest and manifest are beside it, so that a start reads none of its code.
#[derive(Clone, Debug)]
pub struct BuiltIn {
    name: &'static str,
    component: Cow<'static, [u8]>,
    digest: Cow<'static, str>,
    manifest: Cow<'static, str>,
}

impl BuiltIn {
    /// Returns a plugin whose digest and manifest were determined when the program was built.
    #[must_use]
    pub const fn embedded(
        name: &'static str,
        component: &'static [u8],
        digest: &'static str,
        manifest: &'static str,
    ) -> Self {
        Self {
            name,
            component: Cow::Borrowed(component),
            digest: Cow::Borrowed(digest),
            manifest: Cow::Borrowed(manifest),
        }
    }

    /// Reads the digest and the manifest of a component, for programs that build plugins while they run.
    ///
    /// # Errors
    /// The component has no manifest, or exceeds a limit.
    pub fn read(name: &'static str, component: Vec<u8>) -> Result<Self, ScreenError> {
        Self::read_for(&OURS, name, component)
    }

    /// Like [`Self::read`], for a host with that contract.
    pub(crate) fn read_for(
        contract: &Contract,
        name: &'static str,
        component: Vec<u8>,
    ) -> Result<Self, ScreenError> {
        let outlined = Outlined::new(component, &LoadLimits::default(), contract)?;
        let manifest = serde_json::to_string(&outlined.manifest);
        let manifest = manifest.map_err(ManifestError::from)?;
        Ok(Self {
            name,
            component: Cow::Owned(outlined.bytes),
            digest: Cow::Owned(outlined.digest),
            manifest: Cow::Owned(manifest),
        })
    }

    /// The name of the plugin's directory, which is the plugin's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The plugin as a file.
    #[must_use]
    pub fn component(&self) -> &[u8] {
        &self.component
    }

    /// The component's digest: `sha256:` and hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The manifest as JSON, which the component contains too.
    #[must_use]
    pub fn manifest(&self) -> &str {
        &self.manifest
    }

    pub(crate) fn parsed_manifest(&self, contract: &Contract) -> Result<Manifest, ManifestError> {
        Manifest::parse_for(contract.version(), self.manifest.as_bytes())
    }
}
