//! The digest of all sources that determine a JobSet. If it changes, suspended JobSets are rendered again (src/reconcile/inputs.rs). Bundles
//! record it.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::{Path, PathBuf},
};

const SOURCES: [&str; 11] = [
    "../../wit",
    "../api/src",
    "../model/src",
    "../render/src",
    "../sandbox/src",
    "../schema/documents",
    "../schema/src",
    "../structural/src",
    "../text/src",
    "src/reconcile",
    "src/watch",
];

fn main() -> io::Result<()> {
    // The keys of this hasher are fixed. A new compiler may change the digest, which does no harm.
    let mut hash = DefaultHasher::new();
    for folder in SOURCES {
        println!("cargo::rerun-if-changed={folder}");
        digest(Path::new(folder), &mut hash)?;
    }
    println!("cargo::rustc-env=TRAINYARD_SOURCES={:016x}", hash.finish());
    Ok(())
}

fn digest(folder: &Path, hash: &mut DefaultHasher) -> io::Result<()> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            digest(&path, hash)?;
        } else {
            path.hash(hash);
            fs::read(&path)?.hash(hash);
        }
    }
    Ok(())
}
