//! The language of claims: paths into the record, keyed as in server-side apply.
//!
//! `labels[KEY]`, `pod-sets[P].volumes[KEY]`, `pod-sets[P].containers[C].env[KEY]`, where `P` is a name, `@ancestor` or `@nodes`, the pod
//! sets whose pods are the nodes.
//! The containers that no plugin added are `containers[@base]`: those of the base record, whatever their names.
//! A key is a literal, a prefix (`PET_*`), everything (`*`), the set of keys (`#`), or a variable (`$job`,
//! `$config./pointer`). It is quoted (`"a]b"`) if it contains a bracket, a quote or a blank, or begins like a variable.

mod objects;
mod parse;

use std::fmt;

use thiserror::Error;

pub use self::objects::{NamePattern, ObjectPattern};
use crate::{
    record::Field,
    text::{nearest, write_literal},
};

/// The protocols of ports.
pub(in crate::claims) const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

/// The longest path, in bytes.
pub const MAX_PATH: usize = 512;

/// A value of the TrainJob that a claim refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variable {
    /// The TrainJob's name.
    Job,
    /// A string in the plugin's configuration, by pointer.
    Config(Box<str>),
    /// A port: a number in the plugin's configuration, by pointer, with a protocol.
    Port {
        /// The pointer.
        pointer: Box<str>,
        /// `TCP`, `UDP` or `SCTP`.
        protocol: &'static str,
    },
}

impl Variable {
    /// The port whose number is in the configuration, if the text is a pointer followed by a protocol, such as `/port/TCP`.
    fn port(text: &str) -> Option<Self> {
        let (pointer, protocol) = text.rsplit_once('/')?;
        let protocol = PROTOCOLS.into_iter().find(|known| *known == protocol)?;
        (!pointer.is_empty()).then(|| Self::Port {
            pointer: pointer.into(),
            protocol,
        })
    }
}

/// The key of a keyed field, or a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyPattern {
    /// Every key.
    Any,
    /// The set of keys, without their values.
    Set,
    /// Objects of one kind. Only for claims on `lookups` and `objects`.
    Objects(ObjectPattern),
    /// One key.
    Literal(Box<str>),
    /// Every key with this prefix.
    Prefix(Box<str>),
    /// One key, which depends on the TrainJob.
    Variable(Variable),
    /// Every container that no plugin added. Only for the name of a container.
    Base,
}

/// A pattern of pod sets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PodSetPattern {
    /// By name.
    Named(KeyPattern),
    /// By the ancestor label.
    Ancestor(Box<str>),
    /// Those whose pods are the nodes of the TrainJob, as in `info.nodes`.
    Nodes,
}

/// The scope of a claim's field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClaimScope {
    /// The TrainJob.
    Job,
    /// Pod sets.
    PodSet(PodSetPattern),
    /// Containers with that name, in one of the two lists.
    Container {
        /// The pod sets.
        pod_sets: PodSetPattern,
        /// `Containers` or `InitContainers`.
        list: Field,
        /// The containers' names.
        name: KeyPattern,
    },
}

/// A path of a claim or a grant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimPath {
    /// The scope.
    pub scope: ClaimScope,
    /// The field.
    pub field: Field,
    /// The key. `None` if the field holds one value.
    pub key: Option<KeyPattern>,
}

/// Why a text is not a valid path.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PathError {
    /// An unknown field.
    #[error("`{path}`: unknown field `{name}`; {}", meant(name, known))]
    UnknownField {
        /// The whole text.
        path: String,
        /// The unknown name.
        name: String,
        /// The valid fields.
        known: Vec<&'static str>,
    },
    /// The field needs a key.
    #[error(
        "`{path}`: `{field}` needs a key, such as `{field}[NAME]`, `{field}[PREFIX*]` or `{field}[*]`"
    )]
    KeyMissing {
        /// The whole text.
        path: String,
        /// The field.
        field: &'static str,
    },
    /// The field has one value.
    #[error("`{path}`: `{field}` is a single value and takes no key")]
    KeyNotTaken {
        /// The whole text.
        path: String,
        /// The field.
        field: &'static str,
    },
    /// Longer than [`MAX_PATH`].
    #[error("`{path}`: longer than {MAX_PATH} bytes; shorten it")]
    TooLong {
        /// The text, truncated.
        path: String,
    },
    /// A syntax error, such as an unclosed bracket or quote.
    #[error("`{path}`: {problem}")]
    Syntax {
        /// The whole text.
        path: String,
        /// What is wrong.
        problem: &'static str,
    },
}

/// The field that was probably meant, or all valid ones.
fn meant(name: &str, known: &[&'static str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("valid fields are {}", known.join(", ")),
    }
}

impl KeyPattern {
    /// Returns the pattern of a text: a prefix if it ends with `*`, otherwise one key.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(prefix) => Self::Prefix(prefix.into()),
            None => Self::Literal(text.into()),
        }
    }

    /// Returns the canonical form of the pattern in a field: two spellings of one mount path are equal, a key that names a kind is
    /// [`Self::Objects`], and a variable that ends with a protocol is a [`Variable::Port`].
    #[must_use]
    pub fn in_field(self, field: Field) -> Self {
        let (text, is_prefix) = match &self {
            Self::Variable(Variable::Config(pointer)) if field == Field::Ports => {
                return Variable::port(pointer).map_or(self, Self::Variable);
            }
            Self::Literal(text) => (text, false),
            Self::Prefix(text) => (text, true),
            _ => return self,
        };
        if matches!(field, Field::Lookups | Field::Catalog | Field::Objects) {
            return ObjectPattern::parse(text, is_prefix).map_or(self, Self::Objects);
        }
        match is_prefix {
            true => Self::Prefix(field.compared_prefix(text).into()),
            false => Self::Literal(field.compared(text).into()),
        }
    }
}

impl fmt::Display for KeyPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Set => f.write_str("#"),
            Self::Base => f.write_str("@base"),
            Self::Objects(objects) => objects.fmt(f),
            Self::Literal(text) => write_literal(f, text),
            Self::Prefix(text) => write!(f, "{text}*"),
            Self::Variable(Variable::Job) => f.write_str("$job"),
            Self::Variable(Variable::Config(pointer)) => write!(f, "$config.{pointer}"),
            Self::Variable(Variable::Port { pointer, protocol }) => {
                write!(f, "$config.{pointer}/{protocol}")
            }
        }
    }
}

impl fmt::Display for PodSetPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(key) => write!(f, "pod-sets[{key}]"),
            Self::Ancestor(name) => write!(f, "pod-sets[@{name}]"),
            Self::Nodes => f.write_str("pod-sets[@nodes]"),
        }
    }
}

impl fmt::Display for ClaimPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            ClaimScope::Job => {}
            ClaimScope::PodSet(pod_sets) => write!(f, "{pod_sets}.")?,
            ClaimScope::Container {
                pod_sets,
                list,
                name,
            } => write!(f, "{pod_sets}.{list}[{name}].")?,
        }
        match &self.key {
            None => write!(f, "{}", self.field),
            Some(key) => write!(f, "{}[{key}]", self.field),
        }
    }
}
