//! An image for several architectures, as a layout of the OCI image specification 1.1: a folder that registry clients can push.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    archive::{Archive, ArchiveError, gzip},
    sha256,
};

/// The user and the group of the program, as in the chart. Pod Security's level `restricted` needs a number other than 0.
pub const USER: &str = "65532:65532";

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// An image could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The content of a layer cannot be archived.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A file of the layout cannot be written.
    #[error("{}: cannot be written: {error}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The folder of the layout exists, so its files could be of another image.
    #[error("{}: already exists; remove it", .path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
}

/// What an image consists of.
#[derive(Debug)]
pub struct Image<'a> {
    /// The version, which is also the image's tag.
    pub version: &'a str,
    /// The root folder for each architecture, with the architecture's name in Go.
    pub roots: &'a [(String, PathBuf)],
}

impl Image<'_> {
    /// Writes the layout to a new folder. Returns the digest that the image has in each registry: that of the index of its architectures.
    ///
    /// # Errors
    ///
    /// If the folder exists, or if a file cannot be read or written.
    pub fn write(&self, folder: &Path) -> Result<String, ImageError> {
        if folder.exists() {
            let path = folder.to_owned();
            return Err(ImageError::Exists { path });
        }
        let layout = Layout { folder };
        let mut manifests = Vec::new();
        for (architecture, root) in self.roots {
            let platform = json!({"architecture": architecture, "os": "linux"});
            let manifest = self.write_architecture(&layout, architecture, root)?;
            manifests.push(manifest.descriptor_with("platform", &platform));
        }
        let index = layout.document(
            INDEX,
            &json!({
                "schemaVersion": 2,
                "mediaType": INDEX,
                "manifests": manifests,
                "annotations": self.annotations(),
            }),
        )?;
        let tag = json!({"org.opencontainers.image.ref.name": self.version});
        let entry = index.descriptor_with("annotations", &tag);
        let entry = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]});
        layout.file("index.json", entry.to_string().as_bytes())?;
        layout.file("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        Ok(index.digest)
    }

    /// Writes the manifest for one architecture.
    fn write_architecture(
        &self,
        layout: &Layout<'_>,
        architecture: &str,
        root: &Path,
    ) -> Result<Blob, ImageError> {
        let tar = Archive::of_folder(root)?.tar()?;
        let config = json!({
            "architecture": architecture,
            "os": "linux",
            "config": {
                "User": USER,
                "Entrypoint": ["/trainyard"],
                "Env": ["TRAINYARD_COMPILED_DIR=/compiled"],
                "WorkingDir": "/",
                "Labels": self.annotations(),
            },
            "rootfs": {"type": "layers", "diff_ids": [sha256(&tar)]},
            "history": [{"created_by": "make image"}],
        });
        let config = layout.document(CONFIG, &config)?;
        let layer = layout.blob(LAYER, &gzip(&tar)?)?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.descriptor(),
            "layers": [layer.descriptor()],
            "annotations": self.annotations(),
        });
        layout.document(MANIFEST, &manifest)
    }

    /// There is neither a time nor a commit, because the same content has to have the same digest.
    fn annotations(&self) -> Value {
        json!({
            "org.opencontainers.image.title": "trainyard",
            "org.opencontainers.image.description": "Runs the TrainJobs of the Kubeflow Trainer API",
            "org.opencontainers.image.version": self.version,
            "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
        })
    }
}

/// A written blob.
struct Blob {
    media_type: &'static str,
    digest: String,
    size: usize,
}

impl Blob {
    fn descriptor(&self) -> Value {
        json!({"mediaType": self.media_type, "digest": self.digest, "size": self.size})
    }

    fn descriptor_with(&self, key: &str, value: &Value) -> Value {
        json!({"mediaType": self.media_type, "digest": self.digest, "size": self.size, (key): value})
    }
}

struct Layout<'a> {
    folder: &'a Path,
}

impl Layout<'_> {
    fn document(&self, media_type: &'static str, document: &Value) -> Result<Blob, ImageError> {
        self.blob(media_type, document.to_string().as_bytes())
    }

    fn blob(&self, media_type: &'static str, bytes: &[u8]) -> Result<Blob, ImageError> {
        let digest = sha256(bytes);
        self.file(&format!("blobs/{}", digest.replace(':', "/")), bytes)?;
        let size = bytes.len();
        Ok(Blob {
            media_type,
            digest,
            size,
        })
    }

    fn file(&self, name: &str, bytes: &[u8]) -> Result<(), ImageError> {
        let path = self.folder.join(name);
        let folder = path.parent().unwrap_or(self.folder);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, bytes))
            .map_err(|error| ImageError::Write { path, error })
    }
}
