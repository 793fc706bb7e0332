//! Parsing of paths.

use std::str::FromStr;

use super::{ClaimPath, ClaimScope, KeyPattern, MAX_PATH, PathError, PodSetPattern, Variable};
use crate::{
    record::{Field, Level},
    text::clean,
};

/// The segments of a path that are not parsed yet.
type Rest = std::vec::IntoIter<(String, Option<RawKey>)>;

impl FromStr for ClaimPath {
    type Err = PathError;

    fn from_str(path: &str) -> Result<Self, PathError> {
        if path.len() > MAX_PATH {
            return Err(PathError::TooLong { path: clean(path) });
        }
        if clean(path) != path {
            return Err(syntax(&clean(path), "it contains control characters"));
        }
        let mut rest = segments(path)?.into_iter();
        let (scope, field, key) = place(&mut rest, path)?;
        if rest.next().is_some() {
            return Err(syntax(path, "this field has no fields below it"));
        }
        let key = key_of(field, key, path)?;
        Ok(Self { scope, field, key })
    }
}

/// The scope of the path, and its field with the key as written.
fn place(rest: &mut Rest, path: &str) -> Result<(ClaimScope, Field, Option<RawKey>), PathError> {
    let (first, key) = rest
        .next()
        .ok_or_else(|| syntax(path, "the path is empty"))?;
    if first != "pod-sets" {
        return Ok((ClaimScope::Job, named(Level::Job, &first, path)?, key));
    }
    let pod_sets = key.ok_or_else(|| key_missing(path, "pod-sets"))?;
    let pod_sets = pod_sets.pod_sets(path)?;
    let (name, key) = rest
        .next()
        .ok_or_else(|| syntax(path, "a field must follow `pod-sets[...]`"))?;
    let field = named(Level::PodSet, &name, path)?;
    match rest.next() {
        None => Ok((ClaimScope::PodSet(pod_sets), field, key)),
        Some((inner, inner_key)) if field.holds_containers() => {
            let name = key.ok_or_else(|| key_missing(path, field.name()))?;
            let scope = ClaimScope::Container {
                pod_sets,
                list: field,
                name: name.container(path)?,
            };
            Ok((scope, named(Level::Container, &inner, path)?, inner_key))
        }
        Some(_) => Err(syntax(path, "this field has no fields below it")),
    }
}

/// The key, if the field takes one.
fn key_of(field: Field, key: Option<RawKey>, path: &str) -> Result<Option<KeyPattern>, PathError> {
    match (field.is_keyed(), key) {
        (true, Some(key)) => Ok(Some(key.parse(path)?.in_field(field))),
        (true, None) => Err(key_missing(path, field.name())),
        (false, None) => Ok(None),
        (false, Some(_)) => Err(PathError::KeyNotTaken {
            path: path.to_owned(),
            field: field.name(),
        }),
    }
}

fn syntax(path: &str, problem: &'static str) -> PathError {
    PathError::Syntax {
        path: path.to_owned(),
        problem,
    }
}

fn key_missing(path: &str, field: &'static str) -> PathError {
    PathError::KeyMissing {
        path: path.to_owned(),
        field,
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
            known,
        }
    })
}

/// A key as written between the brackets.
enum RawKey {
    Plain(String),
    Quoted(String),
}

impl RawKey {
    /// Parses it as a name. The set of keys has no fields below it.
    fn name(self, path: &str) -> Result<KeyPattern, PathError> {
        match self.parse(path)? {
            KeyPattern::Set => Err(syntax(
                path,
                "`#` is the set of keys and has no fields; `*` matches every key",
            )),
            key => Ok(key),
        }
    }

    /// Parses it as the name of a container. `@base` matches all that no plugin added.
    fn container(self, path: &str) -> Result<KeyPattern, PathError> {
        match &self {
            Self::Plain(text) if text == "@base" => Ok(KeyPattern::Base),
            Self::Plain(text) if text.starts_with('@') => Err(syntax(
                path,
                "the only container name that begins with `@` is `@base`, which matches the containers that no plugin added",
            )),
            _ => self.name(path),
        }
    }

    /// Parses it as the key of `pod-sets`. `@` begins an ancestor, except in `@nodes`.
    fn pod_sets(self, path: &str) -> Result<PodSetPattern, PathError> {
        match &self {
            Self::Plain(text) if text == "@nodes" => Ok(PodSetPattern::Nodes),
            Self::Plain(text) if text.starts_with('@') => {
                let ancestor = text.trim_start_matches('@');
                if ancestor.is_empty() || ancestor.len() + 1 != text.len() || ancestor.contains('*')
                {
                    return Err(syntax(
                        path,
                        "`@` must be followed by `nodes` or by an ancestor, which is one whole label value, such as `@trainer`",
                    ));
                }
                Ok(PodSetPattern::Ancestor(ancestor.into()))
            }
            _ => self.name(path).map(PodSetPattern::Named),
        }
    }

    fn parse(self, path: &str) -> Result<KeyPattern, PathError> {
        let syntax = |problem| syntax(path, problem);
        let text = match self {
            Self::Quoted(text) => return Ok(KeyPattern::Literal(text.into())),
            Self::Plain(text) => text,
        };
        Ok(match text.as_str() {
            "" => return Err(syntax("the key is empty")),
            "*" => KeyPattern::Any,
            "#" => KeyPattern::Set,
            "$job" => KeyPattern::Variable(Variable::Job),
            text => match (text.strip_prefix("$config."), text.strip_suffix('*')) {
                (Some(pointer), _) if pointer.starts_with('/') => {
                    KeyPattern::Variable(Variable::Config(pointer.into()))
                }
                _ if text.starts_with('$') => {
                    return Err(syntax(
                        "a variable is `$job` or `$config./pointer`; quote a key that begins with `$`",
                    ));
                }
                (None, Some(prefix)) if prefix.contains('*') => {
                    return Err(syntax(
                        "`*` is allowed only at the end; quote a key that contains it",
                    ));
                }
                (None, Some(prefix)) => KeyPattern::Prefix(prefix.into()),
                _ if text.contains('*') => {
                    return Err(syntax(
                        "`*` is allowed only at the end; quote a key that contains it",
                    ));
                }
                _ => KeyPattern::Literal(text.into()),
            },
        })
    }
}

/// Splits `a[x].b["y"]` into names and keys.
fn segments(path: &str) -> Result<Vec<(String, Option<RawKey>)>, PathError> {
    let syntax = |problem| syntax(path, problem);
    let mut out = Vec::new();
    let mut rest = path;
    loop {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest
            .split_at_checked(end)
            .ok_or_else(|| syntax("the quoted key is not a valid JSON string"))?;
        if name.is_empty() {
            return Err(syntax("a field's name is missing"));
        }
        let (key, after) = match after.strip_prefix('[') {
            None => (None, after),
            Some(inner) => {
                let (key, after) =
                    raw_key(inner).ok_or_else(|| syntax("a bracket or quote is not closed"))?;
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
