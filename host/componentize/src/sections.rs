//! Custom sections of a module or component.

use wasm_encoder::{
    Component, ComponentSectionId, CustomSection, Encode, Module, RawSection, Section,
};
use wasmparser::{BinaryReaderError, Encoding, Parser, Payload};

/// Returns the contents of a core module's custom section, or `None` if it has no such section.
///
/// Linkers join sections of the same name. Should there be several, this does the same.
pub(crate) fn custom(module: &[u8], name: &str) -> Result<Option<Vec<u8>>, BinaryReaderError> {
    let mut found: Option<Vec<u8>> = None;
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::CustomSection(section) = payload?
            && section.name() == name
        {
            found
                .get_or_insert_default()
                .extend_from_slice(section.data());
        }
    }
    Ok(found)
}

/// Whether the bytes begin with the header of a core module.
pub(crate) fn is_core_module(bytes: &[u8]) -> bool {
    bytes.starts_with(&Module::HEADER)
}

/// Returns the module or component without custom sections, including those of nested modules. A host needs none of them, and some, such as
/// `producers`, differ between machines.
pub(crate) fn strip(wasm: &[u8]) -> Result<Vec<u8>, BinaryReaderError> {
    let mut outer: Vec<Vec<u8>> = Vec::new();
    let mut output = Vec::with_capacity(wasm.len());
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload?;
        match &payload {
            Payload::Version { encoding, .. } => output.extend_from_slice(match encoding {
                Encoding::Component => &Component::HEADER,
                Encoding::Module => &Module::HEADER,
            }),
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                outer.push(std::mem::take(&mut output));
                continue;
            }
            Payload::End(_) => {
                let Some(mut parent) = outer.pop() else { break };
                parent.push(if is_core_module(&output) {
                    ComponentSectionId::CoreModule.into()
                } else {
                    ComponentSectionId::Component.into()
                });
                output.encode(&mut parent);
                output = parent;
            }
            _ => {}
        }
        if matches!(payload, Payload::CustomSection(_)) {
            continue;
        }
        if let Some((id, range)) = payload.as_section()
            && let Some(data) = wasm.get(range)
        {
            RawSection { id, data }.append_to(&mut output);
        }
    }
    Ok(output)
}

/// Adds a custom section at the end of a module or component.
pub(crate) fn append(wasm: &mut Vec<u8>, name: &str, data: &[u8]) {
    CustomSection {
        name: name.into(),
        data: data.into(),
    }
    .append_to(wasm);
}

#[cfg(test)]
mod tests {
    use wasm_encoder::ModuleSection;

    use super::*;

    fn section(name: &'static str) -> CustomSection<'static> {
        CustomSection {
            name: name.into(),
            data: b"/home/someone".into(),
        }
    }

    #[test]
    fn only_custom_sections_are_stripped_at_any_depth() {
        let mut types = wasm_encoder::TypeSection::new();
        types.ty().function([], []);
        let mut named = Module::new();
        named
            .section(&section("name"))
            .section(&types)
            .section(&section("producers"));
        let mut bare = Module::new();
        bare.section(&types);

        let around = |inner: &Module, noisy: bool| {
            let mut component = Component::new();
            if noisy {
                component.section(&section("component-name"));
            }
            component.section(&ModuleSection(inner));
            component.section(&ModuleSection(inner));
            component.finish()
        };
        assert_eq!(
            strip(&around(&named, true)).ok(),
            Some(around(&bare, false))
        );
    }

    #[test]
    fn text_is_not_wasm() {
        assert!(strip(b"#!/bin/sh").is_err());
        assert!(custom(b"", "name").is_err());
    }
}
