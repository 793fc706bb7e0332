//! Sets `TRAINYARD_SOURCES`, the digest of all sources that determine a JobSet. If it changes, suspended JobSets are rendered again
//! (src/generation/common_inputs.rs). Bundles record it.

mod sources;

use std::{io, path::PathBuf};

/// The contract in `wit` and the schemas in YAML are not listed, because checked-in files that are generated from them are.
const SOURCES: [&str; 11] = [
    "../api/src",
    "../model/src",
    "../render/src",
    "../sandbox/src",
    "../schema/documents/compact.json",
    "../schema/documents/kubernetes",
    "../schema/src",
    "../structural/src",
    "../text/src",
    "src/reconcile",
    "src/watch",
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    let digest = sources::digest(&SOURCES.map(PathBuf::from))?;
    println!("cargo::rustc-env=TRAINYARD_SOURCES={digest:016x}");
    Ok(())
}
