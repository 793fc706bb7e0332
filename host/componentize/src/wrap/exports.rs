//! Removes what a component exports beyond the phases, such as the initializer of an interpreter.

use std::ops::Range;

use trainyard_model::{phase::Phase, text::clean};
use wasm_encoder::{
    ComponentExportKind, ComponentInstanceSection, ComponentSection as _, ComponentSectionId,
    RawSection, Section as _,
};
use wasmparser::{
    BinaryReaderError, ComponentExportSectionReader, ComponentExternalKind, Parser, Payload,
    Validator, WasmFeatures,
};

use super::{WrapError, interface};

/// What to do about imports of a component.
const ADVICE: &str = "leave them out when you build it: with componentize-js, by disabling all its features; with componentize-py, by \
                      `--stub-wasi`; or build a core module, whose imports of WASI preview 1 are replaced";

/// The most imports and exports that an error lists.
const MAX_NAMES: usize = 8;

/// A component that is copied without some of its exports.
#[derive(Default)]
struct Copy {
    output: Vec<u8>,
    /// The phases that it exports.
    phases: Vec<Phase>,
    /// The imports that the contract does not have.
    unknown: Vec<String>,
    /// The exports that were removed.
    removed: Vec<String>,
    /// Whether one of them has an index that later parts may need.
    has_gap: bool,
    /// Why the exports cannot be removed.
    problem: Option<&'static str>,
}

/// Returns the component with its phases as its only exports.
pub(super) fn only_phases(component: &[u8]) -> Result<(Vec<u8>, Vec<Phase>), WrapError> {
    let mut copy = Copy::default();
    let mut depth = 0u32;
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload?;
        if depth == 0 {
            copy.add(component, &payload)?;
        }
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    copy.finish(component)
}

impl Copy {
    /// Copies a part of the component's top level.
    fn add(&mut self, component: &[u8], payload: &Payload<'_>) -> Result<(), BinaryReaderError> {
        match payload {
            Payload::Version { range, .. } => {
                self.output
                    .extend_from_slice(slice(component, range.clone()));
            }
            Payload::ComponentImportSection(imports) => {
                for import in imports.clone() {
                    let name = import?.name.name;
                    if !name.starts_with("trainyard:policy/") {
                        self.unknown.push(format!("`{}`", clean(name)));
                    }
                }
            }
            Payload::ComponentExportSection(exports) => {
                return self.add_exports(component, exports);
            }
            _ => {}
        }
        if let Some((id, range)) = payload.as_section() {
            if self.has_gap && !matches!(payload, Payload::CustomSection(_)) {
                self.problem = Some("other parts follow it");
            }
            let data = slice(component, range);
            RawSection { id, data }.append_to(&mut self.output);
        }
        Ok(())
    }

    /// Copies the phases of a section of exports. An exported instance is an instance itself, so an empty one takes the place of one that is
    /// removed, and all others keep their indexes.
    fn add_exports(
        &mut self,
        component: &[u8],
        section: &ComponentExportSectionReader<'_>,
    ) -> Result<(), BinaryReaderError> {
        let mut exports = section.clone().into_iter_with_offsets().peekable();
        while let Some(export) = exports.next() {
            let (start, export) = export?;
            let end = match exports.peek() {
                Some(Ok((next, _))) => *next,
                _ => section.range().end,
            };
            let is_instance = export.kind == ComponentExternalKind::Instance;
            let mut phases = Phase::ALL.into_iter().filter(|_| is_instance);
            if let Some(phase) = phases.find(|phase| interface(phase.name()) == export.name.name) {
                self.phases.push(phase);
                let mut data = vec![1];
                data.extend_from_slice(slice(component, start..end));
                let id = ComponentSectionId::Export.into();
                RawSection { id, data: &data }.append_to(&mut self.output);
                continue;
            }
            self.removed.push(format!("`{}`", clean(export.name.name)));
            if is_instance {
                let mut empty = ComponentInstanceSection::new();
                empty.export_items([] as [(&str, ComponentExportKind, u32); 0]);
                empty.append_to_component(&mut self.output);
            } else {
                self.has_gap = true;
            }
        }
        Ok(())
    }

    fn finish(mut self, component: &[u8]) -> Result<(Vec<u8>, Vec<Phase>), WrapError> {
        if !self.unknown.is_empty() {
            self.unknown.truncate(MAX_NAMES);
            return Err(WrapError::Imports {
                imports: self.unknown,
                advice: ADVICE,
            });
        }
        let validate =
            |bytes| Validator::new_with_features(WasmFeatures::all()).validate_all(bytes);
        let problem = self.problem.map(str::to_owned);
        if let Some(problem) = problem.or_else(|| Some(validate(&self.output).err()?.to_string())) {
            // Then what was removed is not what is wrong.
            validate(component)?;
            self.removed.truncate(MAX_NAMES);
            return Err(WrapError::Exports {
                names: self.removed.join(", "),
                problem,
            });
        }
        Ok((self.output, self.phases))
    }
}

fn slice(bytes: &[u8], range: Range<usize>) -> &[u8] {
    bytes.get(range).unwrap_or_default()
}
