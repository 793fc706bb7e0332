//! The layout of a plugin: the WebAssembly artifact of the CNCF, an image manifest with one configuration and one layer.

use std::collections::BTreeMap;

use bytes::Bytes;
use oci_spec::image;
use serde::Deserialize;
use serde_json::json;
use thiserror::Error;
use trainyard_text::clean;

use crate::digest::Digest;

/// The media type of the manifest.
pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of the configuration.
pub const CONFIG_TYPE: &str = "application/vnd.wasm.config.v0+json";
/// The media type of the layer, which is the plugin file.
pub const LAYER_TYPE: &str = "application/wasm";
/// The media type of a list of manifests.
pub(crate) const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
/// What a registry is asked for, which includes what is refused with a clear error.
pub(crate) const ACCEPTED: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

/// The annotation with the name of a file, which some tools use when they write it.
const TITLE: &str = "org.opencontainers.image.title";

/// When every configuration says that it was created, so that the same file always has the same digest.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// The most bytes of a configuration.
const CONFIG_BYTES: u64 = 256 << 10;

/// Why a manifest does not describe a plugin.
#[derive(Debug, Error)]
pub enum ArtifactError {
    /// It is not JSON, or has wrong types.
    #[error("its manifest is not valid: {0}; push the plugin again with `trainyard plugin push`")]
    Json(String),
    /// It is an index.
    #[error(
        "is an index of {manifests} manifests, but a plugin is one manifest for all platforms; write the reference of one of them: {listed}"
    )]
    Index {
        /// How many.
        manifests: usize,
        /// The first ones, as digests.
        listed: String,
    },
    /// The manifest has another type.
    #[error(
        "its manifest has the media type {found}, but a plugin has {MANIFEST_TYPE}; push it with `trainyard plugin push`"
    )]
    ManifestType {
        /// The media type.
        found: String,
    },
    /// The configuration has another type, as that of a container image.
    #[error(
        "its configuration has the media type {found}, but that of a plugin has {CONFIG_TYPE}; is it a container image? Push plugins with `trainyard plugin push`"
    )]
    ConfigType {
        /// The media type.
        found: String,
    },
    /// It does not have one layer.
    #[error(
        "has {found} layers, but a plugin has one, its file; push it with `trainyard plugin push`"
    )]
    Layers {
        /// The number.
        found: usize,
    },
    /// The layer has another type.
    #[error(
        "its layer has the media type {found}, but that of a plugin has {LAYER_TYPE}, neither packed nor compressed; push the .wasm file itself with `trainyard plugin push`"
    )]
    LayerType {
        /// The media type.
        found: String,
    },
    /// The layer's file name is a path.
    #[error(
        "its layer has the title `{title}`, which is a path and not a file name; tools that write layers to files could write it outside of their folder, so do not use this artifact"
    )]
    Title {
        /// The title.
        title: String,
    },
    /// A digest has another algorithm or form.
    #[error(
        "the digest `{found}` in its manifest is not `sha256:` with 64 hexadecimal digits; push it again with sha256"
    )]
    Digest {
        /// The digest.
        found: String,
    },
    /// It refers to another manifest.
    #[error(
        "its manifest refers to {subject}, as only signatures and attestations do; a copy of it would appear as one of {subject}, so push it with `trainyard plugin push`"
    )]
    Subject {
        /// The digest of the other manifest.
        subject: String,
    },
    /// A declared size is beyond the limit.
    #[error("its {what} has {bytes} bytes, but at most {limit} are accepted")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The declared size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The file is compressed.
    #[error(
        "its layer has the media type {LAYER_TYPE}, but is compressed with gzip; push the .wasm file itself with `trainyard plugin push`"
    )]
    Gzip,
    /// The file is something else.
    #[error(
        "its layer has the media type {LAYER_TYPE}, but is not a WebAssembly file; push the .wasm file itself with `trainyard plugin push`"
    )]
    NotWasm,
}

/// What a pusher says of a plugin, beside its file.
#[derive(Clone, Debug, Default)]
pub struct Release {
    /// The name of the file, without a path.
    pub title: Option<String>,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
}

/// A plugin as it is pushed.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// The manifest.
    pub(crate) manifest: Vec<u8>,
    /// The digest of the manifest, which is that of the plugin in a registry.
    pub digest: Digest,
    /// The configuration.
    pub(crate) config: Bytes,
    /// The file.
    pub(crate) file: Bytes,
}

impl Artifact {
    /// Returns the artifact of a plugin file. The same file and release always have the same digest.
    ///
    /// # Errors
    /// The file is not WebAssembly.
    pub fn new(file: Vec<u8>, release: &Release) -> Result<Self, ArtifactError> {
        check_file(&file)?;
        let file = Bytes::from(file);
        let layer = Digest::of(&file);
        let config = json!({
            "created": CREATED,
            "architecture": "wasm",
            "os": "wasip2",
            "layerDigests": [layer.as_str()],
        });
        let config = Bytes::from(config.to_string());
        let mut layer = json!({
            "mediaType": LAYER_TYPE,
            "digest": layer.as_str(),
            "size": file.len(),
        });
        if let (Some(title), Some(layer)) = (&release.title, layer.as_object_mut()) {
            layer.insert("annotations".to_owned(), json!({ TITLE: title }));
        }
        let mut manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": {
                "mediaType": CONFIG_TYPE,
                "digest": Digest::of(&config).as_str(),
                "size": config.len(),
            },
            "layers": [layer],
        });
        if let (false, Some(manifest)) = (release.annotations.is_empty(), manifest.as_object_mut())
        {
            manifest.insert("annotations".to_owned(), json!(release.annotations));
        }
        let manifest = manifest.to_string().into_bytes();
        Ok(Self {
            digest: Digest::of(&manifest),
            manifest,
            config,
            file,
        })
    }
}

/// What a descriptor says of content.
#[derive(Clone, Debug)]
pub(crate) struct Blob {
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) artifact_type: Option<String>,
}

impl Blob {
    pub(crate) fn of(descriptor: &image::Descriptor) -> Result<Self, ArtifactError> {
        let annotations = descriptor.annotations().iter().flatten();
        let artifact_type = descriptor.artifact_type().as_ref();
        Ok(Self {
            media_type: descriptor.media_type().to_string(),
            digest: digest(descriptor.digest().as_ref())?,
            size: descriptor.size(),
            annotations: annotations
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            artifact_type: artifact_type.map(ToString::to_string),
        })
    }
}

/// An image manifest, with its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: Digest,
    parsed: image::ImageManifest,
}

/// What decides how a manifest is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind {
    media_type: Option<String>,
    manifests: Option<Vec<Named>>,
}

/// What an error says of a manifest in an index.
#[derive(Deserialize)]
struct Named {
    digest: Option<String>,
}

impl Manifest {
    /// Reads an image manifest. The type that the registry gave it counts if it does not say one itself.
    pub(crate) fn parse(bytes: Vec<u8>, given: Option<&str>) -> Result<Self, ArtifactError> {
        let kind: Kind = serde_json::from_slice(&bytes).map_err(|error| json_error(&error))?;
        if let Some(manifests) = kind.manifests {
            return Err(index_error(&manifests));
        }
        let media_type = kind.media_type.as_deref().or(given);
        if let Some(found) = media_type.filter(|media_type| *media_type != MANIFEST_TYPE) {
            return Err(ArtifactError::ManifestType {
                found: clean(found),
            });
        }
        let parsed = serde_json::from_slice(&bytes).map_err(|error| json_error(&error))?;
        Ok(Self {
            digest: Digest::of(&bytes),
            bytes,
            parsed,
        })
    }

    /// Returns the configuration and the layers: all blobs that it needs.
    pub(crate) fn blobs(&self) -> Result<Vec<Blob>, ArtifactError> {
        let layers = self.parsed.layers().iter();
        std::iter::once(self.parsed.config())
            .chain(layers)
            .map(Blob::of)
            .collect()
    }

    /// Returns the digest of the manifest that it refers to, such as what a signature signs.
    pub(crate) fn subject(&self) -> Option<String> {
        let subject = self.parsed.subject().as_ref();
        subject.map(|subject| subject.digest().to_string())
    }

    /// Returns what kind of artifact it is.
    pub(crate) fn artifact_type(&self) -> String {
        let own = self.parsed.artifact_type().as_ref();
        own.unwrap_or_else(|| self.parsed.config().media_type())
            .to_string()
    }

    pub(crate) fn annotations(&self) -> BTreeMap<String, String> {
        let annotations = self.parsed.annotations().iter().flatten();
        annotations
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// Returns the configuration and the layer of a plugin.
    ///
    /// # Errors
    /// It does not describe a plugin, or one that is too large.
    pub(crate) fn plugin(&self, file_bytes: u64) -> Result<(Blob, Blob), ArtifactError> {
        if let Some(subject) = self.subject() {
            return Err(ArtifactError::Subject {
                subject: clean(&subject),
            });
        }
        let config = Blob::of(self.parsed.config())?;
        if config.media_type != CONFIG_TYPE {
            return Err(ArtifactError::ConfigType {
                found: clean(&config.media_type),
            });
        }
        let [layer] = self.parsed.layers().as_slice() else {
            return Err(ArtifactError::Layers {
                found: self.parsed.layers().len(),
            });
        };
        let layer = Blob::of(layer)?;
        if layer.media_type != LAYER_TYPE {
            return Err(ArtifactError::LayerType {
                found: clean(&layer.media_type),
            });
        }
        let title = layer.annotations.get(TITLE);
        if let Some(title) = title.filter(|title| is_path(title)) {
            return Err(ArtifactError::Title {
                title: clean(title),
            });
        }
        check_size("configuration", config.size, CONFIG_BYTES)?;
        check_size("file", layer.size, file_bytes)?;
        Ok((config, layer))
    }
}

/// Reads a digest.
pub(crate) fn digest(text: &str) -> Result<Digest, ArtifactError> {
    text.parse()
        .map_err(|_| ArtifactError::Digest { found: clean(text) })
}

/// Refuses a declared size that is beyond the limit.
pub(crate) fn check_size(what: &'static str, bytes: u64, limit: u64) -> Result<(), ArtifactError> {
    if bytes > limit {
        return Err(ArtifactError::TooLarge { what, bytes, limit });
    }
    Ok(())
}

/// Checks that a file is WebAssembly, by its first bytes.
pub(crate) fn check_file(file: &[u8]) -> Result<(), ArtifactError> {
    if file.starts_with(b"\0asm") {
        Ok(())
    } else if file.starts_with(&[0x1f, 0x8b]) {
        Err(ArtifactError::Gzip)
    } else {
        Err(ArtifactError::NotWasm)
    }
}

/// Whether a name would lead out of a folder.
fn is_path(title: &str) -> bool {
    title.contains(['/', '\\', '\0']) || title == ".." || title == "."
}

/// Returns what is wrong with a JSON text, and where.
fn json_error(error: &serde_json::Error) -> ArtifactError {
    let (line, column) = (error.line(), error.column());
    ArtifactError::Json(match error.classify() {
        serde_json::error::Category::Data => clean(&error.to_string()),
        _ => format!("it is not JSON at line {line}, column {column}"),
    })
}

fn index_error(manifests: &[Named]) -> ArtifactError {
    const LISTED: usize = 4;
    let digests = manifests
        .iter()
        .filter_map(|manifest| manifest.digest.as_deref());
    let listed: Vec<_> = digests.take(LISTED).map(clean).collect();
    ArtifactError::Index {
        manifests: manifests.len(),
        listed: if listed.is_empty() {
            "it lists none".to_owned()
        } else {
            listed.join(", ")
        },
    }
}
