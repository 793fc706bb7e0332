//! Encodes a core module and its manifest as a component.

use trainyard_model::manifest::{FILE_SECTION, Manifest, PARTS_SECTION, PartsError, SECTION};
use wasmparser::BinaryReaderError;
use wit_component::ComponentEncoder;

use crate::sections;

/// A plugin as a single file.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// The component. Its custom section [`SECTION`] holds the manifest, with keys in the order of [`Manifest`]'s fields.
    pub bytes: Vec<u8>,
    /// The manifest in [`Component::bytes`].
    pub manifest: Manifest,
}

/// An error that prevents encoding a core module as a plugin.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// The bytes are not a core module.
    #[error("it is not a WebAssembly core module")]
    NotModule,
    /// The module is not valid WebAssembly.
    #[error("it is not valid WebAssembly: {0}")]
    Invalid(#[from] BinaryReaderError),
    /// A custom section is missing.
    #[error("it has no section `{section}`; call `trainyard_sdk::plugin!` in the crate")]
    NoManifest { section: &'static str },
    /// A component has no manifest.
    #[error("it has no section `{SECTION}`, which `trainyard plugin wrap` adds")]
    NotPlugin,
    /// The parts of the manifest are invalid or contradict each other.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// The manifest cannot be serialized.
    #[error("its manifest cannot be serialized: {0}")]
    Write(#[from] serde_json::Error),
    /// The imports or exports do not match the contract.
    #[error(
        "it cannot be encoded as a component: {0}\nA plugin may only import the contract: no WASI, no JavaScript, no C library"
    )]
    Encode(String),
}

/// Reads a plugin from its bytes.
///
/// # Errors
///
/// If it has no manifest, or one that is not valid.
pub fn read(bytes: Vec<u8>) -> Result<Component, ComponentError> {
    let section = sections::custom(&bytes, SECTION)?;
    let section = section.ok_or(ComponentError::NotPlugin)?;
    let manifest = Manifest::parse(&section).map_err(PartsError::from)?;
    Ok(Component { bytes, manifest })
}

/// Encodes a core module that was built with the SDK as a component. Its only custom section is the manifest, at its end.
///
/// # Errors
///
/// If the module or its manifest is invalid.
pub fn componentize(core_module: &[u8]) -> Result<Component, ComponentError> {
    if !sections::is_core_module(core_module) {
        return Err(ComponentError::NotModule);
    }
    let section = |section| {
        sections::custom(core_module, section)?.ok_or(ComponentError::NoManifest { section })
    };
    let manifest = Manifest::from_parts(&section(FILE_SECTION)?, &section(PARTS_SECTION)?)?;
    let encoded = encode(core_module).map_err(ComponentError::Encode)?;
    let mut bytes = sections::strip(&encoded)?;
    sections::append(&mut bytes, SECTION, &serde_json::to_vec(&manifest)?);
    Ok(Component { bytes, manifest })
}

fn encode(core_module: &[u8]) -> Result<Vec<u8>, String> {
    let encoded = ComponentEncoder::default()
        .validate(true)
        .module(core_module)
        .and_then(|mut encoder| encoder.encode());
    encoded.map_err(|error| format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use wasm_encoder::{CustomSection, EntityType, ImportSection, Module, TypeSection};
    use wasmparser::{Parser, Payload, Validator, WasmFeatures};

    use super::*;

    const FILE: &[u8] = br#"{"activeWhen": "always"}"#;
    const PARTS: &[u8] =
        br#"{"name": "quiet", "version": "1.0.0", "contract": "1.0.0", "phases": ["check"]}"#;

    fn module(sections: &[(&str, &[u8])], import: Option<(&str, &str)>) -> Vec<u8> {
        let mut module = Module::new();
        if let Some((from, name)) = import {
            let mut types = TypeSection::new();
            types.ty().function([], []);
            let mut imports = ImportSection::new();
            imports.import(from, name, EntityType::Function(0));
            module.section(&types).section(&imports);
        }
        for &(name, data) in sections {
            module.section(&CustomSection {
                name: name.into(),
                data: data.into(),
            });
        }
        module.finish()
    }

    #[test]
    fn manifest_is_the_only_and_last_custom_section() {
        let core = module(
            &[
                ("name", b"\x00\x01\x00"),
                (FILE_SECTION, FILE),
                (PARTS_SECTION, PARTS),
            ],
            None,
        );
        let component = componentize(&core).unwrap();
        Validator::new_with_features(WasmFeatures::all())
            .validate_all(&component.bytes)
            .unwrap();

        let mut custom = Vec::new();
        let mut last = None;
        for payload in Parser::new(0).parse_all(&component.bytes) {
            let payload = payload.unwrap();
            if let Payload::CustomSection(section) = &payload {
                custom.push((section.name().to_owned(), section.data().to_vec()));
            }
            last = payload.as_section().map(|(id, _)| id).or(last);
        }
        assert_eq!(custom.len(), 1, "{custom:?}");
        assert_eq!(custom[0].0, SECTION);
        assert_eq!(Manifest::parse(&custom[0].1).unwrap(), component.manifest);
        assert_eq!(last, Some(0), "a custom section is the last");
    }

    #[test]
    fn error_for_a_missing_section_names_the_macro() {
        for (there, missing) in [(FILE_SECTION, PARTS_SECTION), (PARTS_SECTION, FILE_SECTION)] {
            let error = componentize(&module(&[(there, FILE)], None)).unwrap_err();
            assert!(matches!(error, ComponentError::NoManifest { section } if section == missing));
            assert!(
                error.to_string().contains("trainyard_sdk::plugin!"),
                "{error}"
            );
        }
    }

    #[test]
    fn imports_beyond_the_contract_are_named() {
        let parts = [(FILE_SECTION, FILE), (PARTS_SECTION, PARTS)];
        let error = componentize(&module(&parts, Some(("wbg", "now")))).unwrap_err();
        assert!(matches!(error, ComponentError::Encode(_)));
        assert!(error.to_string().contains("wbg"), "{error}");
    }

    #[test]
    fn components_and_text_are_refused() {
        let component = wasm_encoder::Component::new().finish();
        for bytes in [&component[..], b"", b"(module)"] {
            assert!(matches!(
                componentize(bytes).unwrap_err(),
                ComponentError::NotModule
            ));
        }
    }
}
