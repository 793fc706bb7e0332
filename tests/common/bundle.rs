//! Records, unpacks and changes bundles.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    unreachable_pub
)]

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Archive, Builder, EntryType, Header};

use super::{stdout, trainyard};

pub fn replay(folder: &Path, arguments: &[&str]) -> Output {
    trainyard(folder, &[&["replay", "bundle.tar"], arguments].concat())
}

/// Records a case. Returns the folder of the bundle and its bytes.
pub fn recorded(name: &str) -> (tempfile::TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let input = super::case(name).join("input.yaml");
    let arguments = [
        "render",
        "-f",
        input.to_str().unwrap(),
        "--record",
        "bundle.tar",
    ];
    stdout(&trainyard(folder.path(), &arguments));
    let bundle = fs::read(folder.path().join("bundle.tar")).unwrap();
    (folder, bundle)
}

/// Returns the files of a bundle with their names, in order.
pub fn files(bundle: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = Archive::new(bundle);
    let mut files = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
        files.push((entry.path().unwrap().display().to_string(), content));
    }
    files
}

/// Returns an archive of these entries, which can have any names.
pub fn archive(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for (name, kind, content) in entries {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

/// Returns an archive of these files.
pub fn plain(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let entries = files.iter();
    let entries: Vec<_> = entries
        .map(|(name, content)| (name.as_str(), EntryType::Regular, &**content))
        .collect();
    archive(&entries)
}

/// Returns the bundle with a changed JSON file, and with its new digest in the index.
pub fn changed(bundle: &[u8], name: &str, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut files = files(bundle);
    let file = files.iter_mut().find(|(file, _)| file == name).unwrap();
    let mut value: Value = serde_json::from_slice(&file.1).unwrap();
    change(&mut value);
    file.1 = value.to_string().into_bytes();
    if name != "bundle.json" {
        let digest = hex::encode(Sha256::digest(&file.1));
        let bytes = file.1.len();
        let mut index: Value = serde_json::from_slice(&files[0].1).unwrap();
        index["files"][name] = json!({"bytes": bytes, "digest": format!("sha256:{digest}")});
        files[0].1 = index.to_string().into_bytes();
    }
    plain(&files)
}
