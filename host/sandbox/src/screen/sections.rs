use trainyard_model::manifest::SECTION;
use wasmparser::{Encoding, FunctionBody, Parser, Payload};

use crate::{error::ScreenError, load_limits::LoadLimits};

/// Checks the limits of a component, and returns its manifest.
///
/// This counts and measures sections without parsing them, so memory is bounded. Only the compiler process parses them.
pub(super) fn manifest<'b>(bytes: &'b [u8], limits: &LoadLimits) -> Result<&'b [u8], ScreenError> {
    let (mut depth, mut counts) = (0u32, Counts::default());
    let (mut manifests, mut manifest) = (0, None);
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload?;
        counts.add(&payload, limits)?;
        match payload {
            Payload::Version {
                encoding: Encoding::Module,
                ..
            } if depth == 0 => return Err(ScreenError::CoreModule),
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if depth == 0 && section.name() == SECTION => {
                manifests += 1;
                manifest = Some(section.data());
            }
            _ => {}
        }
    }
    match (manifest, manifests) {
        (Some(manifest), 1) => Ok(manifest),
        (_, count) => Err(ScreenError::Manifests(count)),
    }
}

/// The counts over all modules.
#[derive(Default)]
struct Counts {
    modules: u64,
    functions: u64,
    data_segments: u64,
    sections: u64,
    type_bytes: u64,
    declaration_bytes: u64,
}

impl Counts {
    fn add(&mut self, payload: &Payload<'_>, limits: &LoadLimits) -> Result<(), ScreenError> {
        if payload.as_section().is_some() {
            count(
                &mut self.sections,
                1,
                "sections",
                u64::from(limits.sections),
            )?;
        }
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                let modules = u64::from(limits.modules);
                count(&mut self.modules, 1, "modules", modules)
            }
            Payload::FunctionSection(section) => {
                let functions = u64::from(limits.functions);
                count(&mut self.functions, section.count(), "functions", functions)
            }
            Payload::CodeSectionEntry(body) => check_body(body, limits),
            Payload::DataSection(section) => {
                let (what, allowed) = ("data segments", u64::from(limits.data_segments));
                count(&mut self.data_segments, section.count(), what, allowed)
            }
            Payload::TypeSection(_)
            | Payload::CoreTypeSection(_)
            | Payload::ComponentTypeSection(_) => {
                let (what, allowed) = ("bytes of types", limits.type_bytes);
                count(&mut self.type_bytes, length(payload), what, allowed)
            }
            Payload::CodeSectionStart { .. } | Payload::CustomSection(_) => Ok(()),
            declarations => {
                let (what, allowed) = (
                    "bytes of imports, exports and the like",
                    limits.declaration_bytes,
                );
                count(
                    &mut self.declaration_bytes,
                    length(declarations),
                    what,
                    allowed,
                )
            }
        }
    }
}

/// The bytes of a section; 0 for other payloads.
fn length(payload: &Payload<'_>) -> u32 {
    let section = payload.as_section();
    section.map_or(0, |(_, range)| {
        u32::try_from(range.len()).unwrap_or(u32::MAX)
    })
}

fn count(
    counted: &mut u64,
    more: u32,
    what: &'static str,
    allowed: u64,
) -> Result<(), ScreenError> {
    *counted = counted.saturating_add(u64::from(more));
    if *counted > allowed {
        return Err(ScreenError::TooMuch { what, allowed });
    }
    Ok(())
}

fn check_body(body: &FunctionBody<'_>, limits: &LoadLimits) -> Result<(), ScreenError> {
    if body.range().len() > limits.body_bytes {
        return Err(ScreenError::TooMuch {
            what: "bytes in one function",
            allowed: limits.body_bytes as u64,
        });
    }
    let mut locals = 0u64;
    for group in body.get_locals_reader()? {
        locals = locals.saturating_add(u64::from(group?.0));
    }
    if locals > limits.locals {
        return Err(ScreenError::TooMuch {
            what: "locals in one function",
            allowed: limits.locals,
        });
    }
    Ok(())
}
