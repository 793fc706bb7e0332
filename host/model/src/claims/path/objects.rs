//! Patterns of objects, by the parts of a key: `lookups[v1/Node/*]`, `objects[v1/ConfigMap/-scripts]`.

use std::fmt;

use crate::{
    lookup::{LookupKey, ObjectKey},
    names::{is_api_version, is_kind},
    object::{DataKind, ObjectKind},
    text::write_literal,
};

/// The objects of one kind that a claim on `lookups` or `objects` matches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectPattern {
    /// The API version, such as `v1` or `resource.k8s.io/v1`.
    pub api_version: Box<str>,
    /// The kind, such as `ConfigMap`.
    pub kind: Box<str>,
    /// The objects of the kind.
    pub names: NamePattern,
}

/// A pattern of names, or, for objects that a plugin emits, of the suffix that follows the TrainJob's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NamePattern {
    /// Whether the kind is served, without any object: `#`.
    Served,
    /// The list of all objects, but no object by its name: `*` in a quoted key.
    List,
    /// One object.
    Literal(Box<str>),
    /// The objects whose names begin with this text. With an empty text, every object, the list of them, and whether the kind is
    /// served.
    Prefix(Box<str>),
}

impl NamePattern {
    fn begins_with(&self, prefix: &str) -> bool {
        match self {
            Self::Served | Self::List => prefix.is_empty(),
            Self::Literal(text) | Self::Prefix(text) => text.starts_with(prefix),
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.covers(other) || other.covers(self)
    }

    fn covers(&self, other: &Self) -> bool {
        match self {
            Self::Prefix(prefix) => other.begins_with(prefix),
            _ => self == other,
        }
    }

    /// The order of patterns by how many names they match, the fewest first.
    const fn width(&self) -> usize {
        match self {
            Self::Served | Self::List | Self::Literal(_) => 0,
            Self::Prefix(prefix) => usize::MAX - prefix.len(),
        }
    }
}

impl ObjectPattern {
    /// Parses a key without its brackets and quotes. `None` if it does not have an API version, a kind and a name.
    pub(super) fn parse(text: &str, is_prefix: bool) -> Option<Self> {
        let (version_and_kind, name) = text.rsplit_once('/')?;
        let (api_version, kind) = version_and_kind.rsplit_once('/')?;
        // Otherwise a group could be parsed as a version, and a version as a kind.
        (is_api_version(api_version) && is_kind(kind)).then(|| Self {
            api_version: api_version.into(),
            kind: kind.into(),
            names: match (name, is_prefix) {
                (name, true) => NamePattern::Prefix(name.into()),
                ("#", false) => NamePattern::Served,
                ("*", false) => NamePattern::List,
                (name, false) => NamePattern::Literal(name.into()),
            },
        })
    }

    /// Parses a literal key, such as the value of a variable.
    pub(in crate::claims) fn of_literal(text: &str) -> Option<Self> {
        Self::parse(text, false)
    }

    /// Returns the pattern for one object that a plugin emits.
    #[must_use]
    pub fn emitted(kind: &ObjectKind, suffix: &str) -> Self {
        Self {
            api_version: kind.api_version().into(),
            kind: kind.kind().into(),
            names: NamePattern::Literal(suffix.into()),
        }
    }

    /// Returns the pattern for the list of this kind.
    pub(in crate::claims) fn of_list(self) -> Self {
        let names = NamePattern::List;
        Self { names, ..self }
    }

    /// Returns the pattern for every object of this kind.
    #[must_use]
    pub fn of_every_name(self) -> Self {
        let names = NamePattern::Prefix("".into());
        Self { names, ..self }
    }

    /// The length of the key in bytes, without quotes.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        let name = match &self.names {
            NamePattern::Served | NamePattern::List => 1,
            NamePattern::Literal(name) => name.len(),
            NamePattern::Prefix(prefix) => prefix.len() + 1,
        };
        self.api_version.len() + self.kind.len() + name + 2
    }

    /// The kind as a [`DataKind`], if it is one.
    #[must_use]
    pub fn data_kind(&self) -> Option<DataKind> {
        DataKind::of(&self.api_version, &self.kind)
    }

    /// Returns an example of a lookup that matches the pattern.
    pub(crate) fn example(&self) -> LookupKey {
        let (api_version, kind) = (self.api_version.to_string(), self.kind.to_string());
        match &self.names {
            NamePattern::Served => LookupKey::Served { api_version, kind },
            NamePattern::List => LookupKey::All { api_version, kind },
            NamePattern::Literal(name) => {
                LookupKey::Object(ObjectKey::new(api_version, kind, name.to_string()))
            }
            NamePattern::Prefix(prefix) => {
                LookupKey::Object(ObjectKey::new(api_version, kind, format!("{prefix}0")))
            }
        }
    }

    /// Whether version and kind begin with a prefix that ends before the name.
    pub(in crate::claims) fn kind_begins_with(&self, prefix: &str) -> bool {
        let (version, kind) = (&*self.api_version, &*self.kind);
        match prefix.strip_prefix(version) {
            Some("") => true,
            Some(rest) => match rest.strip_prefix('/') {
                Some(start) => kind.starts_with(start),
                None => false,
            },
            None => version.starts_with(prefix),
        }
    }

    fn is_of_one_kind(&self, other: &Self) -> bool {
        self.api_version == other.api_version && self.kind == other.kind
    }

    pub(in crate::claims) fn overlaps(&self, other: &Self) -> bool {
        self.is_of_one_kind(other) && self.names.overlaps(&other.names)
    }

    pub(in crate::claims) fn covers(&self, other: &Self) -> bool {
        self.is_of_one_kind(other) && self.names.covers(&other.names)
    }

    pub(in crate::claims) const fn width(&self) -> usize {
        self.names.width()
    }
}

impl From<&LookupKey> for ObjectPattern {
    fn from(key: &LookupKey) -> Self {
        let (api_version, kind) = key.api_version_and_kind();
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
            names: match key {
                LookupKey::Object(object)
                | LookupKey::Optional(object)
                | LookupKey::Catalog(object) => NamePattern::Literal(object.name.as_str().into()),
                LookupKey::All { .. } => NamePattern::List,
                LookupKey::Served { .. } => NamePattern::Served,
            },
        }
    }
}

impl fmt::Display for ObjectPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            api_version, kind, ..
        } = self;
        let name = match &self.names {
            NamePattern::Served => "#",
            NamePattern::List => "*",
            NamePattern::Literal(name) => name,
            NamePattern::Prefix(prefix) => return write!(f, "{api_version}/{kind}/{prefix}*"),
        };
        write_literal(f, &format!("{api_version}/{kind}/{name}"))
    }
}
