//! The language of claims: paths into the record, keyed as in server-side apply.
//!
//! `labels[KEY]`, `pod-sets[P].volumes[KEY]`, `pod-sets[P].containers[C].env[KEY]`, where `P` is a name or `@ancestor`.
//! A key is a literal, a prefix (`PET_*`), everything (`*`), the set of keys (`#`), or a variable (`$job`,
//! `$config./pointer`). It is quoted (`"a]b"`) where it holds a bracket, a quote or a blank, or begins like a variable.

use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::record::{Field, Level};

/// The longest path, in bytes.
pub const MAX_PATH: usize = 512;

/// A value that is known once a TrainJob is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variable {
    /// The TrainJob's name.
    Job,
    /// A string in the plugin's configuration, by pointer.
    Config(Box<str>),
}

/// The key of a keyed field, or a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Every key.
    Any,
    /// The set of keys, apart from what they hold.
    Set,
    /// One key.
    Literal(Box<str>),
    /// Every key that begins so.
    Prefix(Box<str>),
    /// One key, known per TrainJob.
    Variable(Variable),
}

/// Which pod sets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PodSets {
    /// By name.
    Named(Key),
    /// By the ancestor label.
    Ancestor(Box<str>),
}

/// Where the field of a claim stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Of the TrainJob.
    Job,
    /// Of pod sets.
    PodSet(PodSets),
    /// Of containers (`list` says which of the two lists) with that name.
    Container {
        /// The pod sets.
        pod_sets: PodSets,
        /// `Containers` or `InitContainers`.
        list: Field,
        /// The containers' names.
        name: Key,
    },
}

/// A path of a claim or a grant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimPath {
    /// Where.
    pub scope: Scope,
    /// What.
    pub field: Field,
    /// Which of it; none where the field holds one value.
    pub key: Option<Key>,
}

/// Why a text is no path.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PathError {
    /// No such field there.
    #[error("`{path}`: `{name}` is no field here; there are {known}")]
    UnknownField {
        /// The whole text.
        path: String,
        /// What stands in its place.
        name: String,
        /// The fields that do exist there.
        known: String,
    },
    /// The field needs a key.
    #[error(
        "`{path}`: `{field}` needs a key, as `{field}[NAME]`, `{field}[PREFIX*]` or `{field}[*]`"
    )]
    KeyMissing {
        /// The whole text.
        path: String,
        /// The field.
        field: &'static str,
    },
    /// The field has one value.
    #[error("`{path}`: `{field}` holds one value and takes no key")]
    KeyNotTaken {
        /// The whole text.
        path: String,
        /// The field.
        field: &'static str,
    },
    /// A bracket or quote is left open, or something follows the end.
    #[error("`{path}`: {problem}")]
    Syntax {
        /// The whole text.
        path: String,
        /// What is wrong.
        problem: &'static str,
    },
}

impl FromStr for ClaimPath {
    type Err = PathError;

    fn from_str(path: &str) -> Result<Self, PathError> {
        let syntax = |problem| PathError::Syntax {
            path: crate::text::clean(path),
            problem,
        };
        if path.len() > MAX_PATH {
            return Err(syntax("a path has at most 512 bytes"));
        }
        if crate::text::clean(path) != path {
            return Err(syntax("it holds control characters"));
        }
        let mut rest = segments(path)?.into_iter();
        let mut next = || rest.next();
        let (first, key) = next().ok_or_else(|| syntax("a path is empty"))?;
        let (scope, field, key) = if first == "pod-sets" {
            let pod_sets = match key {
                None => {
                    return Err(PathError::KeyMissing {
                        path: path.to_owned(),
                        field: "pod-sets",
                    });
                }
                Some(key) => key.pod_sets(path)?,
            };
            let (name, key) =
                next().ok_or_else(|| syntax("a field must follow `pod-sets[...]`"))?;
            let field = named(Level::PodSet, &name, path)?;
            match next() {
                Some((inner, inner_key)) if field.holds_containers() => {
                    let Some(name) = key else {
                        return Err(PathError::KeyMissing {
                            path: path.to_owned(),
                            field: field.name(),
                        });
                    };
                    let scope = Scope::Container {
                        pod_sets,
                        list: field,
                        name: name.name(path)?,
                    };
                    (scope, named(Level::Container, &inner, path)?, inner_key)
                }
                Some(_) => return Err(syntax("nothing stands below this field")),
                None => (Scope::PodSet(pod_sets), field, key),
            }
        } else {
            (Scope::Job, named(Level::Job, &first, path)?, key)
        };
        if next().is_some() {
            return Err(syntax("nothing stands below this field"));
        }
        let key = match (field.is_keyed(), key) {
            (true, Some(key)) => Some(key.parse(path)?),
            (true, None) => {
                return Err(PathError::KeyMissing {
                    path: path.to_owned(),
                    field: field.name(),
                });
            }
            (false, Some(_)) => {
                return Err(PathError::KeyNotTaken {
                    path: path.to_owned(),
                    field: field.name(),
                });
            }
            (false, None) => None,
        };
        Ok(Self { scope, field, key })
    }
}

fn named(level: Level, name: &str, path: &str) -> Result<Field, PathError> {
    Field::named(level, name).ok_or_else(|| {
        let mut known: Vec<_> = Field::ALL
            .iter()
            .filter(|f| f.level() == level)
            .map(|f| f.name())
            .collect();
        if level == Level::Job {
            known.push("pod-sets");
        }
        PathError::UnknownField {
            path: path.to_owned(),
            name: name.to_owned(),
            known: known.join(", "),
        }
    })
}

/// A key as it stands between the brackets.
enum RawKey {
    Plain(String),
    Quoted(String),
}

impl RawKey {
    /// As a name: what stands below the set of keys is nothing.
    fn name(self, path: &str) -> Result<Key, PathError> {
        match self.parse(path)? {
            Key::Set => Err(PathError::Syntax {
                path: path.to_owned(),
                problem: "`#` is the set of keys, which holds nothing; `*` means every one",
            }),
            key => Ok(key),
        }
    }

    /// As the key of `pod-sets`: `@` stands before an ancestor.
    fn pod_sets(self, path: &str) -> Result<PodSets, PathError> {
        match &self {
            Self::Plain(text) if text.starts_with('@') => {
                let ancestor = text.trim_start_matches('@');
                if ancestor.is_empty() || ancestor.len() + 1 != text.len() || ancestor.contains('*')
                {
                    return Err(PathError::Syntax {
                        path: path.to_owned(),
                        problem: "an ancestor is one whole label value, as `@trainer`",
                    });
                }
                Ok(PodSets::Ancestor(ancestor.into()))
            }
            _ => self.name(path).map(PodSets::Named),
        }
    }

    fn parse(self, path: &str) -> Result<Key, PathError> {
        let syntax = |problem| PathError::Syntax {
            path: path.to_owned(),
            problem,
        };
        let text = match self {
            Self::Quoted(text) => return Ok(Key::Literal(text.into())),
            Self::Plain(text) => text,
        };
        Ok(match text.as_str() {
            "" => return Err(syntax("a key is empty")),
            "*" => Key::Any,
            "#" => Key::Set,
            "$job" => Key::Variable(Variable::Job),
            text => match (text.strip_prefix("$config."), text.strip_suffix('*')) {
                (Some(pointer), _) if pointer.starts_with('/') => {
                    Key::Variable(Variable::Config(pointer.into()))
                }
                _ if text.starts_with('$') => {
                    return Err(syntax(
                        "a variable is `$job` or `$config./pointer`; quote a key that begins with `$`",
                    ));
                }
                (None, Some(prefix)) if prefix.contains('*') => {
                    return Err(syntax(
                        "`*` stands only at the end; quote a key that holds it",
                    ));
                }
                (None, Some(prefix)) => Key::Prefix(prefix.into()),
                _ if text.contains('*') => {
                    return Err(syntax(
                        "`*` stands only at the end; quote a key that holds it",
                    ));
                }
                _ => Key::Literal(text.into()),
            },
        })
    }
}

/// Cuts `a[x].b["y"]` into names and keys.
fn segments(path: &str) -> Result<Vec<(String, Option<RawKey>)>, PathError> {
    let syntax = |problem| PathError::Syntax {
        path: path.to_owned(),
        problem,
    };
    let mut out = Vec::new();
    let mut rest = path;
    loop {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest
            .split_at_checked(end)
            .ok_or_else(|| syntax("it is no text"))?;
        if name.is_empty() {
            return Err(syntax("a field's name is missing"));
        }
        let (key, after) = match after.strip_prefix('[') {
            None => (None, after),
            Some(inner) => {
                let (key, after) =
                    raw_key(inner).ok_or_else(|| syntax("a bracket or a quote is left open"))?;
                (Some(key), after)
            }
        };
        out.push((name.to_owned(), key));
        match after.strip_prefix('.') {
            Some(after) => rest = after,
            None if after.is_empty() => return Ok(out),
            None => return Err(syntax("a `.` must follow a key")),
        }
    }
}

/// The key after `[`, and what follows `]`.
fn raw_key(text: &str) -> Option<(RawKey, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (key, after) = text.split_once(']')?;
        return (!key.contains('"')).then(|| (RawKey::Plain(key.to_owned()), after));
    };
    let mut key = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => key.push(chars.next()?.1),
            '"' => {
                return Some((
                    RawKey::Quoted(key),
                    quoted.get(at + 1..)?.strip_prefix(']')?,
                ));
            }
            c => key.push(c),
        }
    }
    None
}

/// Writes a literal key so that it reads back as one.
pub(crate) fn write_literal(f: &mut fmt::Formatter<'_>, key: &str) -> fmt::Result {
    let plain = !key.is_empty()
        && !key.starts_with(['$', '@', '#'])
        && !key.contains(|c: char| {
            matches!(c, '[' | ']' | '"' | '\\' | '*') || c.is_whitespace() || c.is_control()
        });
    if plain {
        return f.write_str(key);
    }
    f.write_str("\"")?;
    for c in key.chars() {
        if matches!(c, '"' | '\\') {
            f.write_str("\\")?;
        }
        write!(f, "{c}")?;
    }
    f.write_str("\"")
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Set => f.write_str("#"),
            Self::Literal(text) => write_literal(f, text),
            Self::Prefix(text) => write!(f, "{text}*"),
            Self::Variable(Variable::Job) => f.write_str("$job"),
            Self::Variable(Variable::Config(pointer)) => write!(f, "$config.{pointer}"),
        }
    }
}

impl fmt::Display for PodSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(key) => write!(f, "pod-sets[{key}]"),
            Self::Ancestor(name) => write!(f, "pod-sets[@{name}]"),
        }
    }
}

impl fmt::Display for ClaimPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Scope::Job => {}
            Scope::PodSet(pod_sets) => write!(f, "{pod_sets}.")?,
            Scope::Container {
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
