//! The contract as tools of other languages read it: WIT files, and bindings for C.

use std::fmt::Write as _;

use trainyard_model::{
    contract::{PACKAGE, VERSION},
    phase::Phase,
};
use wit_bindgen_core::Files;
use wit_parser::{Resolve, SourceMap, WorldId};

/// The files of the contract in WIT, by their names.
pub const WIT: [(&str, &str); 7] = [
    ("context.wit", include_str!("../../../wit/context.wit")),
    ("job.wit", include_str!("../../../wit/job.wit")),
    ("lookups.wit", include_str!("../../../wit/lookups.wit")),
    ("objects.wit", include_str!("../../../wit/objects.wit")),
    ("phases.wit", include_str!("../../../wit/phases.wit")),
    (
        "pod-set-info.wit",
        include_str!("../../../wit/pod-set-info.wit"),
    ),
    ("types.wit", include_str!("../../../wit/types.wit")),
];

/// The name of the world of one plugin, which exports its phases and no others.
pub const GUEST: &str = "guest";
/// The name of the file with that world.
pub const GUEST_FILE: &str = "guest.wit";

/// An error that prevents generating bindings.
#[derive(Debug, thiserror::Error)]
pub enum ContractError {
    /// The contract cannot be parsed.
    #[error("the contract cannot be parsed: {0}")]
    Parse(String),
    /// The generator failed.
    #[error("the bindings cannot be generated: {0}")]
    Generate(String),
}

/// Returns the text of a file with the world [`GUEST`], which exports these phases.
#[must_use]
pub fn guest(phases: &[Phase]) -> String {
    let mut text = format!(
        "package {PACKAGE}@{VERSION};\n\n/// A plugin with its phases.\nworld {GUEST} {{\n    import context;\n    import panics;\n"
    );
    for phase in phases {
        // Writing to a string never fails.
        let _ = writeln!(text, "    export {phase};");
    }
    text + "}\n"
}

/// Parses the contract with a further file. Returns it with one of its worlds.
pub(crate) fn parse(file: (&str, &str), world: &str) -> Result<(Resolve, WorldId), ContractError> {
    let mut sources = SourceMap::default();
    for (name, text) in WIT.into_iter().chain([file]) {
        sources.push_str(name, text);
    }
    let group = sources
        .parse()
        .map_err(|(_, error)| ContractError::Parse(error.to_string()))?;
    let mut resolve = Resolve::default();
    let package = resolve.push_group(group);
    let package = package.map_err(|error| ContractError::Parse(error.to_string()))?;
    let world = resolve.select_world(&[package], Some(world));
    let world = world.map_err(|error| ContractError::Parse(format!("{error:#}")))?;
    Ok((resolve, world))
}

/// Returns the files of wit-bindgen for C, by their names, for a plugin with these phases. Functions and types begin with the name of their
/// interface, without that of the package.
///
/// # Errors
///
/// The generator fails.
pub fn c_bindings(phases: &[Phase]) -> Result<Vec<(String, Vec<u8>)>, ContractError> {
    let (mut resolve, world) = parse((GUEST_FILE, &guest(phases)), GUEST)?;
    let interfaces = resolve.worlds.get(world).into_iter();
    let interfaces = interfaces.flat_map(|world| world.imports.keys().chain(world.exports.keys()));
    let names = interfaces.map(|key| resolve.name_world_key(key));
    let options = wit_bindgen_c::Opts {
        rename: names.map(|name| (name.clone(), short(&name))).collect(),
        ..wit_bindgen_c::Opts::default()
    };
    let mut files = Files::default();
    options
        .build()
        .generate(&mut resolve, world, &mut files)
        .map_err(|error| ContractError::Generate(format!("{error:#}")))?;
    let files = files.iter();
    Ok(files
        .map(|(name, bytes)| (name.to_owned(), bytes.to_vec()))
        .collect())
}

/// `trainyard:policy/pod-set-info@1.0.0` as `pod_set_info`.
fn short(interface: &str) -> String {
    let (_, name) = interface.rsplit_once('/').unwrap_or(("", interface));
    let (name, _) = name.split_once('@').unwrap_or((name, ""));
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn bindings_for_c_have_the_phases_of_the_plugin_and_no_others() {
        for phases in [&[Phase::Transform][..], &[Phase::Check], &Phase::ALL] {
            let files = c_bindings(phases).unwrap();
            let mut names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
            names.sort_unstable();
            assert_eq!(names, ["guest.c", "guest.h", "guest_component_type.o"]);
            let header = files.iter().find(|(name, _)| name == "guest.h").unwrap();
            let header = String::from_utf8_lossy(&header.1);
            assert!(header.contains(" pod_set_info_method_pod_set_container("));
            for phase in Phase::ALL {
                let export = format!(" exports_{phase}_{phase}(");
                let is_exported = phases.contains(&phase);
                assert_eq!(header.contains(&export), is_exported, "{phase}");
            }
        }
    }
}
