//! The list of a release's files, with their digests and what they are.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::sha256;

/// The files that this module writes.
const OWN: [&str; 2] = ["SHA256SUMS", "contents.json"];

/// What the files are, by a part of the name that only they have.
const KINDS: [(&str, &str); 10] = [
    (
        "trainyard-image-",
        "image for linux/amd64 and linux/arm64, as an archive of an OCI layout",
    ),
    (
        ".cdx.json",
        "software bill of materials, in CycloneDX's format",
    ),
    ("trainyard-linux-", "the program, static"),
    (".tgz", "Helm chart"),
    (".crate", "crate, for unit tests of plugins"),
    (
        "crds.yaml",
        "CustomResourceDefinitions, which the chart contains, too",
    ),
    ("runtimes.yaml", "the shipped runtimes"),
    (
        "images.txt",
        "all images that Trainyard and the shipped runtimes pull",
    ),
    ("NOTES.md", "what is new"),
    ("LICENSE", "the license"),
];

/// The files of a release cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum ContentsError {
    /// A file cannot be read or written.
    #[error("{}: cannot be read or written: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// It is not known what a file is.
    #[error(
        "{name}: is not a file of a release; remove it, or describe it in tools/release/src/contents.rs"
    )]
    Unknown {
        /// The file.
        name: String,
    },
}

/// What a release was made of, and its files.
#[derive(Debug)]
pub struct Contents<'a> {
    /// The version.
    pub version: &'a str,
    /// The commit from which the release was made.
    pub commit: &'a str,
    /// The digest of the image.
    pub image: &'a str,
}

impl Contents<'_> {
    /// Writes `SHA256SUMS` and `contents.json` to the folder of a release. Returns the lines of a table of all files.
    ///
    /// # Errors
    ///
    /// If it is not known what a file is.
    pub fn write(&self, folder: &Path) -> Result<Vec<String>, ContentsError> {
        let mut sums = String::new();
        let mut files = Vec::new();
        let mut lines = Vec::new();
        for name in names(folder)? {
            let kind = KINDS.iter().find(|(part, _)| name.contains(part));
            let Some((_, what)) = kind else {
                return Err(ContentsError::Unknown { name });
            };
            let path = folder.join(&name);
            let bytes = fs::read(&path).map_err(|error| ContentsError::File { path, error })?;
            let digest = sha256(&bytes);
            let hex = digest.trim_start_matches("sha256:");
            sums.push_str(&format!("{hex}  {name}\n"));
            lines.push(format!("{name:<40} {:>12}  {what}", bytes.len()));
            files.push(json!({"name": name, "size": bytes.len(), "digest": digest, "what": what}));
        }
        write(folder, "SHA256SUMS", &sums)?;
        let contents = format!("{:#}\n", self.document(files));
        write(folder, "contents.json", &contents)?;
        Ok(lines)
    }

    fn document(&self, files: Vec<Value>) -> Value {
        json!({
            "version": self.version,
            "commit": self.commit,
            "image": {"tag": self.version, "digest": self.image},
            "files": files,
        })
    }
}

/// Returns the sorted names of all files except for those that this module writes.
fn names(folder: &Path) -> Result<Vec<String>, ContentsError> {
    let failed = |error| ContentsError::File {
        path: folder.to_owned(),
        error,
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    names.retain(|name| !OWN.contains(&name.as_str()));
    names.sort();
    Ok(names)
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), ContentsError> {
    let path = folder.join(name);
    fs::write(&path, text).map_err(|error| ContentsError::File { path, error })
}
