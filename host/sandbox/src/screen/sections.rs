use trainyard_model::manifest::SECTION;
use wasmparser::{Encoding, Parser, Payload};

use super::{LoadLimits, ScreenError};

/// What stands at the top level of a component.
pub(super) struct Sections<'b> {
    /// The one manifest, as it is written.
    pub(super) manifest: &'b [u8],
    /// The names of its imports.
    pub(super) imports: Vec<&'b str>,
    /// The names of its exports.
    pub(super) exports: Vec<&'b str>,
}

impl<'b> Sections<'b> {
    /// Walks the sections, and counts on the way what compiling costs.
    pub(super) fn of(bytes: &'b [u8], limits: &LoadLimits) -> Result<Self, ScreenError> {
        let too_much = |what, allowed| Err(ScreenError::TooMuch { what, allowed });
        let (mut depth, mut modules, mut functions) = (0u32, 0u32, 0u32);
        let (mut manifests, mut imports, mut exports) = (Vec::new(), Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::Version {
                    encoding: Encoding::Module,
                    ..
                } if depth == 0 => return Err(ScreenError::CoreModule),
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                    depth += 1;
                    modules += 1;
                    if modules > limits.modules {
                        return too_much("modules", u64::from(limits.modules));
                    }
                }
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::CustomSection(section) if depth == 0 && section.name() == SECTION => {
                    manifests.push(section.data());
                }
                Payload::ComponentImportSection(section) if depth == 0 => {
                    for import in section {
                        imports.push(import?.name.name);
                    }
                }
                Payload::ComponentExportSection(section) if depth == 0 => {
                    for export in section {
                        exports.push(export?.name.name);
                    }
                }
                Payload::CodeSectionStart { count, .. } => {
                    functions = functions.saturating_add(count);
                    if functions > limits.functions {
                        return too_much("functions", u64::from(limits.functions));
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    if body.range().len() > limits.body_bytes {
                        return too_much("bytes in one function", limits.body_bytes as u64);
                    }
                    let mut locals = 0u64;
                    for group in body.get_locals_reader()? {
                        locals = locals.saturating_add(u64::from(group?.0));
                    }
                    if locals > limits.locals {
                        return too_much("locals in one function", limits.locals);
                    }
                }
                _ => {}
            }
        }
        match manifests.as_slice() {
            [manifest] => Ok(Self {
                manifest,
                imports,
                exports,
            }),
            other => Err(ScreenError::Manifests(other.len())),
        }
    }
}
