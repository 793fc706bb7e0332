//! What a file says of itself, read without compiling or running anything of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read},
    path::Path,
    sync::LazyLock,
};

use sha2::{Digest, Sha256};
use trainyard_model::{
    manifest::{Manifest, ManifestError, SECTION},
    names::hex,
    policy::Phase,
    text::clean,
};
use wasmparser::{Encoding, Parser, Payload, Validator, component_types::ComponentEntityType};
use wit_parser::{Resolve, UnresolvedPackageGroup, WorldItem};

/// What a plugin file may be made of. Beyond it, a file is refused before it is compiled.
#[derive(Clone, Copy, Debug)]
pub struct LoadLimits {
    /// Bytes of the file. Default 32 MiB: plugins in Python and JavaScript carry an interpreter.
    pub bytes: u64,
    /// Functions, over all modules. Default 100,000.
    pub functions: u32,
    /// Locals of one function. Default 2,000.
    pub locals: u64,
    /// Bytes of one function's body. Default 512 KiB.
    pub body_bytes: usize,
    /// Core modules and nested components. Default 64: an interpreter comes in a dozen modules.
    pub modules: u32,
    /// Bytes of memory while it compiles. Default 2 GiB.
    pub compile_memory_bytes: u64,
    /// Seconds of CPU, and of wall-clock time, while it compiles. Default 60.
    pub compile_seconds: u64,
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self {
            bytes: 32 << 20,
            functions: 100_000,
            locals: 2_000,
            body_bytes: 512 << 10,
            modules: 64,
            compile_memory_bytes: 2 << 30,
            compile_seconds: 60,
        }
    }
}

/// Why a file is no plugin.
#[derive(Debug, thiserror::Error)]
pub enum ScreenError {
    /// It can't be read.
    #[error("can't be read: {0}")]
    Read(#[from] io::Error),
    /// It is a folder, a device, a pipe.
    #[error("is {0}, no file; a plugin is a `.wasm` file")]
    NotAFile(&'static str),
    /// It has no bytes.
    #[error("is empty")]
    Empty,
    /// It is too large.
    #[error("has more than {0} bytes, the most that a plugin may have")]
    TooLarge(u64),
    /// It is a core module.
    #[error(
        "is a core module, no component; `trainyard plugin build` makes a component of a crate"
    )]
    CoreModule,
    /// It is compiled code.
    #[error(
        "is native code ({0}), which is never loaded; give the component that it was compiled from"
    )]
    NativeCode(&'static str),
    /// It is no WebAssembly, or damaged.
    #[error("is no WebAssembly component, or a damaged one: {0}")]
    Malformed(String),
    /// It has more of something than allowed.
    #[error("has more {what} than allowed: {allowed}")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// How much is allowed.
        allowed: u64,
    },
    /// It imports what the contract does not have.
    #[error("imports what contract {} does not have: {}", trainyard_model::manifest::CONTRACT, .0.join(", "))]
    Imports(Vec<String>),
    /// It exports something else than phases.
    #[error("exports what is no phase of the contract: {}", .0.join(", "))]
    Exports(Vec<String>),
    /// The manifest and the exports disagree.
    #[error("exports the phases [{exported}], and its manifest names [{declared}]")]
    Phases {
        /// What it exports.
        exported: String,
        /// What it declares.
        declared: String,
    },
    /// It has no manifest, or several.
    #[error(
        "has {0} custom sections `{SECTION}` at its top level; a plugin has one, which the SDK's macro and `trainyard plugin build` make"
    )]
    Manifests(usize),
    /// Its manifest is refused.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// A component that may be compiled.
#[derive(Debug)]
pub struct Screened {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// `sha256:` and their digest.
    pub digest: String,
    /// Its manifest.
    pub manifest: Manifest,
    /// The methods of the contract that it imports, sorted.
    pub imports: Vec<String>,
}

/// Reads a file, without ever reading more than allowed or waiting for a device.
///
/// # Errors
/// What is wrong with the file.
pub fn read(path: &Path, limits: &LoadLimits) -> Result<Vec<u8>, ScreenError> {
    let kind = std::fs::metadata(path)?;
    if !kind.is_file() {
        return Err(ScreenError::NotAFile(if kind.is_dir() {
            "a folder"
        } else {
            "a device or a pipe"
        }));
    }
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(ScreenError::NotAFile("a device or a pipe"));
    }
    if kind.len() > limits.bytes {
        return Err(ScreenError::TooLarge(limits.bytes));
    }
    let mut bytes = Vec::new();
    file.take(limits.bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limits.bytes {
        return Err(ScreenError::TooLarge(limits.bytes));
    }
    Ok(bytes)
}

/// Checks the bytes of a component against the limits and the contract.
///
/// # Errors
/// The first thing that keeps it from being a plugin.
pub fn screen(bytes: Vec<u8>, limits: &LoadLimits) -> Result<Screened, ScreenError> {
    if bytes.is_empty() {
        return Err(ScreenError::Empty);
    }
    if bytes.len() as u64 > limits.bytes {
        return Err(ScreenError::TooLarge(limits.bytes));
    }
    if bytes.starts_with(b"\x7fELF") {
        return Err(ScreenError::NativeCode("ELF"));
    }
    let manifest = Manifest::parse(walk(&bytes, limits)?)?;
    let (imports, exported) = surface(&bytes)?;
    let mut declared = manifest.phases.clone();
    declared.sort();
    if declared.iter().copied().collect::<BTreeSet<_>>() != exported {
        let list = |phases: &mut dyn Iterator<Item = &Phase>| {
            phases.map(|p| p.name()).collect::<Vec<_>>().join(", ")
        };
        return Err(ScreenError::Phases {
            exported: list(&mut exported.iter()),
            declared: list(&mut declared.iter()),
        });
    }
    let digest = format!("sha256:{}", hex(&Sha256::digest(&bytes)));
    Ok(Screened {
        bytes,
        digest,
        manifest,
        imports,
    })
}

/// What a built-in component says of itself: it was checked when this program was built, so that a start costs no more
/// than reading its manifest.
pub(crate) fn screen_vouched(bytes: &[u8]) -> Result<Screened, ScreenError> {
    let manifest = Manifest::parse(walk(bytes, &LoadLimits::default())?)?;
    let digest = format!("sha256:{}", hex(&Sha256::digest(bytes)));
    Ok(Screened {
        bytes: bytes.to_vec(),
        digest,
        manifest,
        imports: Vec::new(),
    })
}

/// Walks the sections: counts what compiling costs, and finds the manifest.
fn walk<'b>(bytes: &'b [u8], limits: &LoadLimits) -> Result<&'b [u8], ScreenError> {
    let too_much = |what, allowed| Err(ScreenError::TooMuch { what, allowed });
    let (mut depth, mut modules, mut functions) = (0u32, 0u32, 0u32);
    let mut manifests = Vec::new();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(malformed)? {
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
                for group in body.get_locals_reader().map_err(malformed)? {
                    locals = locals.saturating_add(u64::from(group.map_err(malformed)?.0));
                }
                if locals > limits.locals {
                    return too_much("locals in one function", limits.locals);
                }
            }
            _ => {}
        }
    }
    match manifests.as_slice() {
        [manifest] => Ok(manifest),
        other => Err(ScreenError::Manifests(other.len())),
    }
}

/// What a component imports of the contract, and the phases that it exports, by the types that validation gives: it is
/// made for hostile bytes, as a reader of WIT is not.
fn surface(bytes: &[u8]) -> Result<(Vec<String>, BTreeSet<Phase>), ScreenError> {
    let types = Validator::new().validate_all(bytes).map_err(malformed)?;
    let (import_names, export_names) = names(bytes)?;
    let (mut imports, mut unknown) = (Vec::new(), Vec::new());
    for name in import_names {
        let item = types.as_ref().component_item_for_import(name);
        let (Some(known), Some(ComponentEntityType::Instance(id))) =
            (CONTRACT.get(name), item.map(|item| item.ty))
        else {
            unknown.push(clean(name));
            continue;
        };
        for (member, item) in &types[id].exports {
            let whole = format!("{name}#{member}");
            if !known.contains(member) {
                unknown.push(clean(&whole));
            } else if matches!(item.ty, ComponentEntityType::Func(_)) {
                imports.push(whole);
            }
        }
    }
    if !unknown.is_empty() {
        unknown.truncate(MAX_NAMES);
        return Err(ScreenError::Imports(unknown));
    }
    let (mut phases, mut others) = (BTreeSet::new(), Vec::new());
    for name in export_names {
        match Phase::ALL
            .into_iter()
            .find(|phase| name == phase.interface())
        {
            Some(phase) => drop(phases.insert(phase)),
            None => others.push(clean(name)),
        }
    }
    if !others.is_empty() {
        others.truncate(MAX_NAMES);
        return Err(ScreenError::Exports(others));
    }
    imports.sort();
    Ok((imports, phases))
}

/// The names of a component's own imports and exports.
fn names(bytes: &[u8]) -> Result<(Vec<&str>, Vec<&str>), ScreenError> {
    let (mut depth, mut imports, mut exports) = (0u32, Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(malformed)? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    imports.push(import.map_err(malformed)?.name.name);
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    exports.push(export.map_err(malformed)?.name.name);
                }
            }
            _ => {}
        }
    }
    Ok((imports, exports))
}

fn malformed(error: wasmparser::BinaryReaderError) -> ScreenError {
    ScreenError::Malformed(clean(&error.to_string()))
}

/// The most names that an error lists.
const MAX_NAMES: usize = 20;

/// The functions and types of the contract that a component may import, by interface.
static CONTRACT: LazyLock<BTreeMap<String, BTreeSet<String>>> =
    LazyLock::new(|| contract().unwrap_or_default());

/// Reads the contract that this host was built with. Empty where it does not parse, which a test rules out: then no
/// import at all is known.
fn contract() -> Option<BTreeMap<String, BTreeSet<String>>> {
    let mut resolve = Resolve::default();
    let mut sources = wit_parser::SourceMap::default();
    for (name, text) in WIT {
        sources.push(Path::new(name), *text);
    }
    let group: UnresolvedPackageGroup = sources.parse().ok()?;
    resolve.push_group(group).ok()?;
    let world = resolve
        .worlds
        .iter()
        .find(|(_, world)| world.name == "plugin")?
        .1;
    let interfaces = world.imports.iter().filter_map(|(key, item)| {
        let WorldItem::Interface { id, .. } = item else {
            return None;
        };
        let interface = resolve.interfaces.get(*id)?;
        let members = interface.functions.keys().chain(interface.types.keys());
        Some((resolve.name_world_key(key), members.cloned().collect()))
    });
    Some(interfaces.collect())
}

/// The contract's files.
const WIT: &[(&str, &str)] = &[
    ("types.wit", include_str!("../../../wit/types.wit")),
    ("job.wit", include_str!("../../../wit/job.wit")),
    (
        "pod-set-info.wit",
        include_str!("../../../wit/pod-set-info.wit"),
    ),
    ("lookups.wit", include_str!("../../../wit/lookups.wit")),
    ("objects.wit", include_str!("../../../wit/objects.wit")),
    ("context.wit", include_str!("../../../wit/context.wit")),
    ("phases.wit", include_str!("../../../wit/phases.wit")),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn the_contract_is_known_to_the_method() {
        let contract = contract().unwrap();
        assert!(
            contract["trainyard:policy/pod-set-info@1.0.0"].contains("[method]container.put-env")
        );
        assert!(contract["trainyard:policy/panics@1.0.0"].contains("message"));
    }
}
