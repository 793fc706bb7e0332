//! Builds JSON values from the parser's events: keys, aliases, merge keys and their bounds.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, ScalarStyle, Tag};
use serde_json::{Map, Value};

use super::scalar::{self, Scalar};
use super::{Aliases, ErrorKind, MAX_DEPTH};

/// A line from 1 and a column from 0, as the parser counts them.
pub(super) type At = (usize, usize);

/// What an event may end in.
type Outcome<T = ()> = Result<T, (ErrorKind, At)>;

/// Builds the documents of one text, one after the other.
pub(super) struct Builder<'a> {
    frames: Vec<Frame>,
    root: Value,
    anchors: HashMap<usize, Anchored>,
    /// The anchors of the lists and mappings that are not complete yet.
    open: HashSet<usize>,
    aliases: &'a mut Aliases,
}

/// A value that an alias may stand for.
struct Anchored {
    value: Value,
    /// What a copy of it takes, in bytes of memory.
    bytes: usize,
    depth: usize,
}

/// A list or mapping that is not complete yet.
enum Frame {
    List { anchor: usize, items: Vec<Value> },
    Mapping { anchor: usize, mapping: Mapping },
}

#[derive(Default)]
struct Mapping {
    map: Map<String, Value>,
    /// The keys that came by a merge alone: setting one of them is no duplicate.
    merged: HashSet<String>,
    key: Option<Key>,
}

enum Key {
    Name(String),
    Merge,
}

/// A complete value on its way into its list or mapping.
struct Node {
    value: Value,
    /// What it is as a key; None for lists and mappings.
    scalar: Option<Scalar>,
    aliased: bool,
    merge: bool,
}

impl<'a> Builder<'a> {
    pub(super) fn new(aliases: &'a mut Aliases) -> Self {
        Self {
            frames: Vec::new(),
            root: Value::Null,
            anchors: HashMap::new(),
            open: HashSet::new(),
            aliases,
        }
    }

    /// Begins a document: anchors of the one before are forgotten.
    pub(super) fn start(&mut self) {
        self.frames.clear();
        self.anchors.clear();
        self.open.clear();
        self.root = Value::Null;
    }

    /// Ends a document: its value.
    pub(super) fn finish(&mut self) -> Value {
        std::mem::take(&mut self.root)
    }

    /// Takes one event that begins at `at`.
    pub(super) fn event(&mut self, event: Event<'_>, at: At) -> Outcome {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), at)
            }
            Event::Alias(anchor) => self.alias(anchor, at),
            Event::SequenceStart(anchor, _) => self.open(
                Frame::List {
                    anchor,
                    items: Vec::new(),
                },
                anchor,
                at,
            ),
            Event::MappingStart(anchor, _) => self.open(
                Frame::Mapping {
                    anchor,
                    mapping: Mapping::default(),
                },
                anchor,
                at,
            ),
            Event::SequenceEnd | Event::MappingEnd => self.close(at),
            _ => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        at: At,
    ) -> Outcome {
        let tag = tag.map(|tag| format!("{}{}", tag.handle, tag.suffix));
        let plain = style == ScalarStyle::Plain;
        let merge = text == "<<"
            && tag
                .as_deref()
                .map_or(plain, |tag| scalar::short(tag) == Some("merge"));
        let scalar = scalar::resolve(text, plain, tag.as_deref()).map_err(|kind| (kind, at))?;
        // A key may be what a value may not (.inf), so the value is made only where it is one.
        let value = if self.expects_key() {
            Value::Null
        } else {
            scalar.clone().into_value(text).map_err(|kind| (kind, at))?
        };
        if anchor > 0 {
            let value = scalar.clone().into_value(text).map_err(|kind| (kind, at))?;
            self.remember(anchor, &value, at)?;
        }
        self.place(
            Node {
                value,
                scalar: Some(scalar),
                aliased: false,
                merge,
            },
            at,
        )
    }

    fn alias(&mut self, anchor: usize, at: At) -> Outcome {
        let Some(anchored) = self.anchors.get(&anchor) else {
            let inside = self.open.contains(&anchor);
            return Err((
                if inside {
                    ErrorKind::AliasInsideItself
                } else {
                    ErrorKind::UnknownAlias
                },
                at,
            ));
        };
        if self.frames.len() + anchored.depth > MAX_DEPTH {
            return Err((ErrorKind::TooDeep { limit: MAX_DEPTH }, at));
        }
        let bytes = anchored.bytes;
        self.aliases.take(bytes).map_err(|kind| (kind, at))?;
        let value = anchored.value.clone();
        let scalar = as_scalar(&value);
        self.place(
            Node {
                value,
                scalar,
                aliased: true,
                merge: false,
            },
            at,
        )
    }

    fn open(&mut self, frame: Frame, anchor: usize, at: At) -> Outcome {
        if self.frames.len() >= MAX_DEPTH {
            return Err((ErrorKind::TooDeep { limit: MAX_DEPTH }, at));
        }
        if self.expects_key() {
            let what = if matches!(frame, Frame::List { .. }) {
                "a list"
            } else {
                "a mapping"
            };
            return Err((ErrorKind::Key(what), at));
        }
        if anchor > 0 {
            self.open.insert(anchor);
        }
        self.frames.push(frame);
        Ok(())
    }

    fn close(&mut self, at: At) -> Outcome {
        let (anchor, value) = match self.frames.pop() {
            Some(Frame::List { anchor, items }) => (anchor, Value::Array(items)),
            Some(Frame::Mapping { anchor, mapping }) => (anchor, Value::Object(mapping.map)),
            None => return Ok(()),
        };
        if anchor > 0 {
            self.open.remove(&anchor);
            self.remember(anchor, &value, at)?;
        }
        self.place(
            Node {
                value,
                scalar: None,
                aliased: false,
                merge: false,
            },
            at,
        )
    }

    /// Keeps a copy for aliases. The copy is charged too: anchors may nest.
    fn remember(&mut self, anchor: usize, value: &Value, at: At) -> Outcome {
        let bytes = bytes_of(value);
        self.aliases.take(bytes).map_err(|kind| (kind, at))?;
        self.anchors.insert(
            anchor,
            Anchored {
                value: value.clone(),
                bytes,
                depth: depth_of(value),
            },
        );
        Ok(())
    }

    fn expects_key(&self) -> bool {
        matches!(
            self.frames.last(),
            Some(Frame::Mapping {
                mapping: Mapping { key: None, .. },
                ..
            })
        )
    }

    fn place(&mut self, node: Node, at: At) -> Outcome {
        match self.frames.last_mut() {
            None => self.root = node.value,
            Some(Frame::List { items, .. }) => items.push(node.value),
            Some(Frame::Mapping { mapping, .. }) => {
                mapping.take(node).map_err(|kind| (kind, at))?
            }
        }
        Ok(())
    }
}

impl Mapping {
    fn take(&mut self, node: Node) -> Result<(), ErrorKind> {
        match self.key.take() {
            None if node.merge => self.key = Some(Key::Merge),
            None => self.key = Some(Key::Name(self.new_key(node)?)),
            Some(Key::Merge) => self.merge(node)?,
            Some(Key::Name(name)) => {
                self.merged.remove(&name);
                self.map.insert(name, node.value);
            }
        }
        Ok(())
    }

    fn new_key(&self, node: Node) -> Result<String, ErrorKind> {
        let what = if node.value.is_array() {
            "a list"
        } else {
            "a mapping"
        };
        let key = node.scalar.ok_or(ErrorKind::Key(what))?.into_key()?;
        if self.map.contains_key(&key) && !self.merged.contains(&key) {
            return Err(ErrorKind::DuplicateKey(key));
        }
        Ok(key)
    }

    /// Merges as go-yaml v2 does: a merge overrides the keys before it, and the first mapping of a list wins.
    fn merge(&mut self, node: Node) -> Result<(), ErrorKind> {
        match node.value {
            Value::Object(map) => self.merge_map(map),
            Value::Array(items) if !node.aliased => {
                for item in items.into_iter().rev() {
                    let Value::Object(map) = item else {
                        return Err(ErrorKind::Merge);
                    };
                    self.merge_map(map);
                }
            }
            _ => return Err(ErrorKind::Merge),
        }
        Ok(())
    }

    fn merge_map(&mut self, map: Map<String, Value>) {
        for (key, value) in map {
            if self.map.insert(key.clone(), value).is_none() {
                self.merged.insert(key);
            }
        }
    }
}

fn as_scalar(value: &Value) -> Option<Scalar> {
    match value {
        Value::Null => Some(Scalar::Null),
        Value::Bool(value) => Some(Scalar::Boolean(*value)),
        Value::Number(number) => number
            .as_i64()
            .map(Scalar::Integer)
            .or_else(|| number.as_u64().map(Scalar::Unsigned))
            .or_else(|| number.as_f64().map(Scalar::Float)),
        Value::String(text) => Some(Scalar::Text(text.clone())),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// About what a copy of the value takes in memory.
fn bytes_of(value: &Value) -> usize {
    const VALUE: usize = size_of::<Value>();
    /// A key of a map with its hash and its place in the map's table.
    const KEY: usize = size_of::<String>() + 2 * size_of::<u64>();
    match value {
        Value::String(text) => VALUE + text.len(),
        Value::Array(items) => VALUE + items.iter().map(bytes_of).sum::<usize>(),
        Value::Object(map) => {
            let member = |(key, value): (&String, &Value)| KEY + key.len() + bytes_of(value);
            VALUE + map.iter().map(member).sum::<usize>()
        }
        _ => VALUE,
    }
}

fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}
