//! The same files become the same image, wherever they are and whenever they were written, and the image is a valid layout: every
//! descriptor matches its blob, and nothing in it is writable or runs as root.

use std::{
    collections::BTreeMap,
    fs::{self, File, Permissions},
    io::Read as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tar::EntryType;
use tempfile::{TempDir, tempdir};
use trainyard_release::{Image, sha256};

const VERSION: &str = "1.2.3";

/// Writes the files of an image in another order, with another umask and other times if `other` is set.
fn root(other: bool) -> TempDir {
    let folder = tempdir().unwrap();
    let mut files = [
        ("trainyard", "a program", 0o755),
        ("compiled/a.cwasm", "compiled code", 0o644),
        ("compiled/b.cwasm", "other code", 0o600),
    ];
    if other {
        files = files.map(|(name, content, mode)| (name, content, mode & 0o4711 | 0o4000));
        files.reverse();
    }
    fs::create_dir(folder.path().join("compiled")).unwrap();
    for (name, content, mode) in files {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        if other {
            let time = SystemTime::now() - Duration::from_secs(86_400);
            File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_modified(time)
                .unwrap();
        }
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    folder
}

/// Writes an image of the files for two architectures. Returns its digest.
fn write(root: &Path, layout: &Path) -> String {
    let roots = ["amd64", "arm64"].map(|architecture| (architecture.to_owned(), root.to_owned()));
    let image = Image {
        version: VERSION,
        roots: &roots,
    };
    image.write(layout).unwrap()
}

/// Returns the content of all files below a folder, by name.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().into();
        if path.is_dir() {
            let below = files(&path).into_iter();
            found.extend(
                below.map(|(file, content)| (Path::join(&PathBuf::clone(&name), file), content)),
            );
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn same_files_give_the_same_bytes() {
    let folder = tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
    let (first, second) = (root(false), root(true));
    assert_eq!(write(first.path(), &one), write(second.path(), &two));
    assert_eq!(files(&one), files(&two));
    // The comparison can fail.
    fs::write(second.path().join("trainyard"), "another program").unwrap();
    let three = folder.path().join("three");
    assert_ne!(
        write(first.path(), &folder.path().join("four")),
        write(second.path(), &three)
    );
}

/// Reads the blob of a descriptor, after comparing the two.
fn blob(layout: &Path, descriptor: &Value, media_type: &str) -> Vec<u8> {
    let digest = descriptor["digest"].as_str().unwrap();
    let bytes = fs::read(layout.join("blobs").join(digest.replace(':', "/"))).unwrap();
    assert_eq!(sha256(&bytes), digest);
    assert_eq!(descriptor["size"], bytes.len());
    let of_image = format!("application/vnd.oci.image.{media_type}");
    assert_eq!(descriptor["mediaType"], of_image);
    bytes
}

fn document(layout: &Path, descriptor: &Value, media_type: &str) -> Value {
    let document: Value = serde_json::from_slice(&blob(layout, descriptor, media_type)).unwrap();
    if media_type != "config.v1+json" {
        assert_eq!(document["schemaVersion"], 2);
        assert_eq!(document["mediaType"], descriptor["mediaType"]);
    }
    document
}

#[test]
fn every_descriptor_matches_its_blob() {
    let root = root(false);
    let folder = tempdir().unwrap();
    let layout = folder.path().join("image");
    let digest = write(root.path(), &layout);
    let json =
        |name| -> Value { serde_json::from_slice(&fs::read(layout.join(name)).unwrap()).unwrap() };
    assert_eq!(json("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}));
    let entry = json("index.json")["manifests"][0].clone();
    assert_eq!(entry["digest"], digest);
    assert_eq!(
        entry["annotations"]["org.opencontainers.image.ref.name"],
        VERSION
    );
    let index = document(&layout, &entry, "index.v1+json");
    let mut blobs = 1;
    for (descriptor, architecture) in index["manifests"]
        .as_array()
        .unwrap()
        .iter()
        .zip(["amd64", "arm64"])
    {
        assert_eq!(
            descriptor["platform"],
            json!({"architecture": architecture, "os": "linux"})
        );
        let manifest = document(&layout, descriptor, "manifest.v1+json");
        let config = document(&layout, &manifest["config"], "config.v1+json");
        let layer = blob(&layout, &manifest["layers"][0], "layer.v1.tar+gzip");
        assert_eq!(
            config["rootfs"]["diff_ids"],
            json!([sha256(&unpacked(&layer))])
        );
        assert_eq!(manifest["layers"].as_array().unwrap().len(), 1);
        assert_eq!(
            [&config["architecture"], &config["os"]],
            [architecture, "linux"]
        );
        blobs += 2;
    }
    // Both architectures have the same layer here.
    assert_eq!(files(&layout.join("blobs")).len(), blobs + 1);
}

fn unpacked(layer: &[u8]) -> Vec<u8> {
    let mut tar = Vec::new();
    GzDecoder::new(layer).read_to_end(&mut tar).unwrap();
    tar
}

/// Returns the configuration and the layer of an architecture.
fn of_first_architecture(layout: &Path) -> (Value, Vec<u8>) {
    let index: Value =
        serde_json::from_slice(&fs::read(layout.join("index.json")).unwrap()).unwrap();
    let index = document(layout, &index["manifests"][0], "index.v1+json");
    let manifest = document(layout, &index["manifests"][0], "manifest.v1+json");
    let config = document(layout, &manifest["config"], "config.v1+json");
    let layer = blob(layout, &manifest["layers"][0], "layer.v1.tar+gzip");
    (config, unpacked(&layer))
}

#[test]
fn nothing_is_writable_or_runs_as_root() {
    // The files that are read have a setuid bit.
    let root = root(true);
    let folder = tempdir().unwrap();
    let layout = folder.path().join("image");
    write(root.path(), &layout);
    let (config, layer) = of_first_architecture(&layout);
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"], json!(["/trainyard"]));
    assert!(config["config"]["Cmd"].is_null() && config["created"].is_null());
    let mut archive = tar::Archive::new(layer.as_slice());
    let mut found = Vec::new();
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        let is_folder = header.entry_type() == EntryType::Directory;
        assert!(is_folder || header.entry_type() == EntryType::Regular);
        let ids = (
            header.uid().unwrap(),
            header.gid().unwrap(),
            header.mtime().unwrap(),
        );
        assert_eq!(ids, (0, 0, 0));
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let is_code = name.ends_with(".cwasm");
        let mode = if is_code { 0o644 } else { 0o755 };
        assert_eq!(header.mode().unwrap(), mode, "{name}");
        found.push(name);
    }
    // There is no shell, nor anything else.
    assert_eq!(
        found,
        [
            "compiled/",
            "compiled/a.cwasm",
            "compiled/b.cwasm",
            "trainyard"
        ]
    );
}

#[test]
fn what_is_not_a_file_is_refused() {
    let root = root(false);
    symlink("/etc/passwd", root.path().join("compiled/link")).unwrap();
    let folder = tempdir().unwrap();
    let roots = [("amd64".to_owned(), root.path().to_owned())];
    let image = Image {
        version: VERSION,
        roots: &roots,
    };
    let error = image
        .write(&folder.path().join("image"))
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("compiled/link: is neither a file nor a folder; remove it"),
        "{error}"
    );
    let error = image.write(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with(": already exists; remove it"), "{error}");
}
