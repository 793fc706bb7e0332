//! Names of plugins in registries and folders.

use std::{fmt, path::PathBuf, str::FromStr};

use oci_spec::distribution;
use thiserror::Error;
use trainyard_text::clean;

use crate::digest::{Digest, DigestError};

/// A plugin in a registry: `REGISTRY/REPOSITORY` with `:TAG`, `@DIGEST`, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    parsed: distribution::Reference,
    digest: Option<Digest>,
}

/// Why a text is not a reference.
#[derive(Debug, Error)]
pub enum ReferenceError {
    /// It has another form.
    #[error(
        "`{text}` is not a reference to a plugin in a registry: {source}; write REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGITS"
    )]
    Form {
        text: String,
        source: distribution::ParseError,
    },
    /// The registry is missing, for which other tools would use Docker Hub.
    #[error(
        "`{text}` does not name its registry; write it in front, such as registry.example.com/{text}, or docker.io/{text} for Docker Hub"
    )]
    NoRegistry { text: String },
    /// It has neither a tag nor a digest, for which other tools would use `latest`.
    #[error("`{text}` has neither a tag nor a digest; add `:TAG` or `@sha256:DIGITS`")]
    NoTag { text: String },
    /// The digest has another algorithm or form.
    #[error("`{text}`: its digest {source}; use the digest that `trainyard plugin push` prints")]
    Digest { text: String, source: DigestError },
    /// The folder is missing.
    #[error(
        "`{text}` does not name a folder; write oci:FOLDER, oci:FOLDER:NAME or oci:FOLDER@sha256:DIGITS"
    )]
    NoFolder { text: String },
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let shown = || clean(text);
        let parsed = distribution::Reference::from_str(text).map_err(|source| {
            let text = shown();
            ReferenceError::Form { text, source }
        })?;
        let first = text.split_once('/').map(|(first, _)| first);
        let names_registry =
            first.is_some_and(|first| first.contains(['.', ':']) || first == "localhost");
        if !names_registry {
            return Err(ReferenceError::NoRegistry { text: shown() });
        }
        let named = text.rsplit('/').next().unwrap_or_default();
        if !named.contains([':', '@']) {
            return Err(ReferenceError::NoTag { text: shown() });
        }
        let digest = parsed.digest().map(Digest::from_str).transpose();
        let digest = digest.map_err(|source| {
            let text = shown();
            ReferenceError::Digest { text, source }
        })?;
        Ok(Self { parsed, digest })
    }
}

impl Reference {
    /// Returns the registry's host, with its port if it has one.
    #[must_use]
    pub fn registry(&self) -> &str {
        self.parsed.registry()
    }

    /// Returns the repository.
    #[must_use]
    pub fn repository(&self) -> &str {
        self.parsed.repository()
    }

    /// Returns the registry with the repository, which a signing policy names.
    #[must_use]
    pub fn full_repository(&self) -> String {
        format!("{}/{}", self.registry(), self.repository())
    }

    /// Returns the tag.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.parsed.tag()
    }

    /// Returns the digest.
    #[must_use]
    pub const fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Returns what the registry is asked for: the digest, or else the tag.
    pub(crate) fn wanted(&self) -> &str {
        let digest = self.digest.as_ref().map(Digest::as_str);
        digest.or(self.tag()).unwrap_or_default()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parsed.fmt(f)
    }
}

/// A plugin in a folder of the OCI image layout: `oci:FOLDER`, with `:NAME`, `@DIGEST`, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutReference {
    /// The folder.
    pub folder: PathBuf,
    /// The name in the folder's index: a tag, or a whole reference.
    pub name: Option<String>,
    /// The digest of the manifest.
    pub digest: Option<Digest>,
}

/// Where a plugin is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In a registry.
    Registry(Reference),
    /// In a folder.
    Layout(LayoutReference),
}

const LAYOUT: &str = "oci:";

impl FromStr for LayoutReference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let shown = || clean(text);
        let rest = text.strip_prefix(LAYOUT).unwrap_or(text);
        let (rest, digest) = match rest.rsplit_once('@') {
            Some((rest, digest)) if digest.starts_with("sha256:") => (rest, Some(digest)),
            _ => (rest, None),
        };
        let digest = digest.map(Digest::from_str).transpose();
        let digest = digest.map_err(|source| {
            let text = shown();
            ReferenceError::Digest { text, source }
        })?;
        let (folder, name) = match rest.split_once(':') {
            Some((folder, name)) => (folder, Some(name.to_owned())),
            None => (rest, None),
        };
        if folder.is_empty() {
            return Err(ReferenceError::NoFolder { text: shown() });
        }
        Ok(Self {
            folder: folder.into(),
            name: name.filter(|name| !name.is_empty()),
            digest,
        })
    }
}

impl Location {
    /// Returns the registry with the repository, which a signing policy names; `None` for a folder.
    #[must_use]
    pub fn repository(&self) -> Option<String> {
        match self {
            Self::Registry(reference) => Some(reference.full_repository()),
            Self::Layout(_) => None,
        }
    }

    /// Returns the reference that names exactly what has this digest.
    #[must_use]
    pub fn pinned(&self, digest: &Digest) -> String {
        let text = self.to_string();
        match self {
            Self::Registry(Reference {
                digest: Some(_), ..
            })
            | Self::Layout(LayoutReference {
                digest: Some(_), ..
            }) => text,
            _ => format!("{text}@{digest}"),
        }
    }
}

impl FromStr for Location {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        if text.starts_with(LAYOUT) {
            text.parse().map(Self::Layout)
        } else {
            text.parse().map(Self::Registry)
        }
    }
}

impl fmt::Display for LayoutReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{LAYOUT}{}", self.folder.display())?;
        if let Some(name) = &self.name {
            write!(f, ":{name}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(reference) => reference.fmt(f),
            Self::Layout(reference) => reference.fmt(f),
        }
    }
}
