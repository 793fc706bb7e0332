//! Makes plugins of files that other tools built: a core module of C, Zig or Go, or a component of JavaScript or Python.
//!
//! A core module is encoded as a component of the contract. Its imports of WASI preview 1, which libraries and run-times of languages have
//! without using it for a plugin, are replaced by [`wasi`]. A component is kept, without what it exports beyond the phases.

mod exports;
mod wasi;

use serde_json::{Map, Value, json};
use trainyard_model::{
    contract::VERSION,
    manifest::{Manifest, PartsError, SECTION},
    phase::Phase,
};
use wasmparser::{BinaryReaderError, ExternalKind, Parser, Payload, TypeRef};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

use crate::{
    component::Component,
    contract::{self, ContractError},
    sections,
};

/// The name with which sections begin that hold the world of a core module.
const WORLD_SECTION: &str = "component-type";

/// An error that prevents making a plugin of a file.
#[derive(Debug, thiserror::Error)]
pub enum WrapError {
    /// The file is not valid WebAssembly.
    #[error("it is not valid WebAssembly: {0}")]
    Invalid(#[from] BinaryReaderError),
    /// It exports no phase.
    #[error(
        "it exports no phase of the contract; export one as `{}`, or as a function `{}` of a component",
        core_export(Phase::Transform),
        Phase::Transform
    )]
    NoPhase,
    /// It exports a phase that the manifest does not list, or the other way around.
    #[error(
        "it exports the phases {exported}, but the manifest lists {listed}; leave `phases` out of the manifest"
    )]
    Phases {
        /// The exported phases.
        exported: String,
        /// The phases in the manifest.
        listed: String,
    },
    /// It imports something that the contract does not have.
    #[error("it imports {}, which the contract does not have; {advice}", .imports.join(", "))]
    Imports {
        /// The imports.
        imports: Vec<String>,
        /// What to do.
        advice: &'static str,
    },
    /// The manifest is invalid.
    #[error("the manifest: {0}")]
    Manifest(#[from] PartsError),
    /// The manifest cannot be serialized.
    #[error("the manifest cannot be serialized: {0}")]
    Write(#[from] serde_json::Error),
    /// The contract cannot be parsed.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// The imports or exports do not match the contract.
    #[error("it cannot be encoded as a component: {0}")]
    Encode(String),
    /// An export beyond the phases cannot be removed.
    #[error(
        "it exports {names}, which is not a phase and cannot be removed: {problem}; leave it out when you build the component"
    )]
    Exports {
        /// The names.
        names: String,
        /// Why.
        problem: String,
    },
}

/// Makes a plugin of a core module or component, with a manifest. `contract` and `phases` are added to the manifest if they are absent.
///
/// # Errors
///
/// The file or the manifest is not valid, or the file does not match the contract.
pub fn wrap(wasm: &[u8], manifest: &[u8]) -> Result<Component, WrapError> {
    let (component, phases) = if sections::is_core_module(wasm) {
        let phases = core_phases(wasm)?;
        (encode(wasm, &phases)?, phases)
    } else {
        exports::only_phases(wasm)?
    };
    if phases.is_empty() {
        return Err(WrapError::NoPhase);
    }
    let manifest = complete(manifest, &phases)?;
    check_phases(&manifest, &phases)?;
    let mut bytes = sections::strip(&component)?;
    sections::append(&mut bytes, SECTION, &serde_json::to_vec(&manifest)?);
    Ok(Component { bytes, manifest })
}

/// Checks a manifest before the plugin is built. Returns it with all phases, if it does not list its own.
///
/// # Errors
///
/// It is not valid.
pub fn check_manifest(manifest: &[u8]) -> Result<Manifest, PartsError> {
    complete(manifest, &Phase::ALL)
}

/// Returns the manifest with the version of the contract and these phases, if it does not contain them.
fn complete(manifest: &[u8], phases: &[Phase]) -> Result<Manifest, PartsError> {
    let written: Option<Map<String, Value>> = serde_json::from_slice(manifest).ok();
    let written = written.unwrap_or_default();
    let names: Vec<_> = phases.iter().map(|phase| phase.name()).collect();
    let mut added = Map::new();
    for (key, value) in [("contract", json!(VERSION)), ("phases", json!(names))] {
        if !written.contains_key(key) {
            added.insert(key.to_owned(), value);
        }
    }
    Manifest::from_parts(manifest, Value::Object(added).to_string().as_bytes())
}

/// Checks that a manifest lists the phases that a file exports.
fn check_phases(manifest: &Manifest, exported: &[Phase]) -> Result<(), WrapError> {
    let is_listed = exported.iter().all(|phase| manifest.has(*phase));
    if is_listed && manifest.phases.len() == exported.len() {
        return Ok(());
    }
    let names = |phases: &[Phase]| {
        let names: Vec<_> = phases.iter().map(|phase| phase.name()).collect();
        names.join(", ")
    };
    Err(WrapError::Phases {
        exported: names(exported),
        listed: names(&manifest.phases),
    })
}

/// The name with which a core module exports a phase.
fn core_export(phase: Phase) -> String {
    format!("{}#{phase}", interface(phase.name()))
}

/// The whole name of an interface of the contract.
fn interface(name: &str) -> String {
    format!("trainyard:policy/{name}@{VERSION}")
}

/// The phases that a core module exports.
fn core_phases(module: &[u8]) -> Result<Vec<Phase>, WrapError> {
    let mut names = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::ExportSection(exports) = payload? {
            for export in exports {
                let export = export?;
                if export.kind == ExternalKind::Func {
                    names.push(export.name.to_owned());
                }
            }
        }
    }
    let phases = Phase::ALL.into_iter();
    Ok(phases
        .filter(|phase| names.contains(&core_export(*phase)))
        .collect())
}

/// Encodes a core module as a component with these phases.
fn encode(module: &[u8], phases: &[Phase]) -> Result<Vec<u8>, WrapError> {
    check_imports(module)?;
    let mut module = module.to_vec();
    if !has_world(&module)? {
        let guest = contract::guest(phases);
        embed(&mut module, (contract::GUEST_FILE, &guest), contract::GUEST)?;
    }
    let stub = wasi::stub(&module)?;
    let encoder = ComponentEncoder::default().validate(true);
    let encoded = encoder
        .module(&module)
        .and_then(|encoder| match &stub {
            Some(stub) => encoder.adapter(wasi::MODULE, stub),
            None => Ok(encoder),
        })
        .and_then(|mut encoder| encoder.encode());
    encoded.map_err(|error| WrapError::Encode(format!("{error:#}")))
}

/// Adds the section with a world of the contract.
fn embed(module: &mut Vec<u8>, file: (&str, &str), world: &str) -> Result<(), WrapError> {
    let (resolve, world) = contract::parse(file, world)?;
    embed_component_metadata(module, &resolve, world, StringEncoding::UTF8)
        .map_err(|error| WrapError::Encode(format!("{error:#}")))
}

fn has_world(module: &[u8]) -> Result<bool, BinaryReaderError> {
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::CustomSection(section) = payload?
            && section.name().starts_with(WORLD_SECTION)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Checks that a core module imports only the contract and WASI preview 1.
fn check_imports(module: &[u8]) -> Result<(), WrapError> {
    let mut unknown = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        let Payload::ImportSection(imports) = payload? else {
            continue;
        };
        for import in imports.into_imports() {
            let import = import?;
            let is_of_contract = import.module.starts_with("trainyard:policy/")
                || import.module.starts_with("[export]trainyard:policy/");
            let is_stubbed = import.module == wasi::MODULE && matches!(import.ty, TypeRef::Func(_));
            if !is_of_contract && !is_stubbed {
                unknown.push(format!("`{}` of `{}`", import.name, import.module));
            }
        }
    }
    match unknown.is_empty() {
        true => Ok(()),
        false => Err(WrapError::Imports {
            imports: unknown,
            advice: "build the module without JavaScript's glue, threads and imported memories",
        }),
    }
}

#[cfg(test)]
mod tests;
