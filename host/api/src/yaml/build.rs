//! Builds JSON values from the parser's events: keys, aliases, merge keys and their bounds.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, ScalarStyle, Tag};
use serde_json::{Map, Value};

use super::{
    Document, ErrorKind, MAX_DEPTH,
    budget::{Budget, bytes_of},
    scalar::{self, Scalar},
};

/// A line from 1 and a column from 0, as the parser counts them.
pub(super) type At = (usize, usize);

/// The result of an event.
type Outcome<T = ()> = Result<T, (ErrorKind, At)>;

/// Builds the documents of a text.
pub(super) struct Builder<'a> {
    frames: Vec<Frame>,
    root: Value,
    anchors: HashMap<usize, Anchored>,
    /// The anchors of the lists and mappings that are not complete yet.
    open: HashSet<usize>,
    budget: &'a mut Budget,
}

/// A value to which aliases can refer.
struct Anchored {
    value: Value,
    /// The memory of a copy, in bytes.
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
    /// The keys that only come from a merge. They can be set without being duplicates.
    merged: HashSet<String>,
    key: Option<Key>,
}

enum Key {
    Name(String),
    Merge,
}

/// A complete value that is added to its list or mapping.
struct Node {
    value: Value,
    /// Its form as a key; `None` for lists and mappings.
    scalar: Option<Scalar>,
    aliased: bool,
    merge: bool,
}

impl<'a> Builder<'a> {
    pub(super) fn new(budget: &'a mut Budget) -> Self {
        Self {
            frames: Vec::new(),
            root: Value::Null,
            anchors: HashMap::new(),
            open: HashSet::new(),
            budget,
        }
    }

    /// Starts a document, without the anchors of the previous one.
    pub(super) fn start(&mut self) {
        self.frames.clear();
        self.anchors.clear();
        self.open.clear();
        self.root = Value::Null;
    }

    /// Ends a document and returns its value.
    pub(super) fn finish(&mut self) -> Result<Value, ErrorKind> {
        // Twice, because the capacity of a list can be twice its length.
        self.budget.take(2 * size_of::<Document>())?;
        Ok(std::mem::take(&mut self.root))
    }

    /// Handles an event that starts at `at`.
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
        // A key can be a number that a value cannot be (.inf), so only values are converted.
        let value = if self.expects_key() {
            Value::Null
        } else {
            scalar.clone().into_value(text).map_err(|kind| (kind, at))?
        };
        if let Value::String(text) = &value {
            self.budget.take_text(text).map_err(|kind| (kind, at))?;
        }
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
        self.budget.take_copy(bytes).map_err(|kind| (kind, at))?;
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

    /// Keeps a copy for aliases. The copy is counted too, because anchors can be nested.
    fn remember(&mut self, anchor: usize, value: &Value, at: At) -> Outcome {
        let bytes = size_of::<Anchored>() + bytes_of(value);
        self.budget.take_copy(bytes).map_err(|kind| (kind, at))?;
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
        let budget = &mut *self.budget;
        let placed = match self.frames.last_mut() {
            None => {
                self.root = node.value;
                Ok(())
            }
            Some(Frame::List { items, .. }) => budget
                .take_item(items.len())
                .map(|()| items.push(node.value)),
            Some(Frame::Mapping { mapping, .. }) => mapping.take(node, budget),
        };
        placed.map_err(|kind| (kind, at))
    }
}

impl Mapping {
    fn take(&mut self, node: Node, budget: &mut Budget) -> Result<(), ErrorKind> {
        match self.key.take() {
            None if node.merge => self.key = Some(Key::Merge),
            None => self.key = Some(Key::Name(self.new_key(node)?)),
            Some(Key::Merge) => self.merge(node, budget)?,
            Some(Key::Name(name)) => {
                budget.take_member(self.map.len(), &name)?;
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
        let overrides = self.merged.contains(&key) && scalar::is_text(&key);
        if self.map.contains_key(&key) && !overrides {
            return Err(ErrorKind::DuplicateKey(key));
        }
        Ok(key)
    }

    /// Merges as go-yaml v2 does: a merge overrides the keys before it, and the first mapping of a list wins.
    fn merge(&mut self, node: Node, budget: &mut Budget) -> Result<(), ErrorKind> {
        match node.value {
            Value::Object(map) => self.merge_map(map, budget)?,
            Value::Array(items) if !node.aliased => {
                for item in items.into_iter().rev() {
                    let Value::Object(map) = item else {
                        return Err(ErrorKind::Merge);
                    };
                    self.merge_map(map, budget)?;
                }
            }
            _ => return Err(ErrorKind::Merge),
        }
        Ok(())
    }

    fn merge_map(&mut self, map: Map<String, Value>, budget: &mut Budget) -> Result<(), ErrorKind> {
        for (key, value) in map {
            // To go-yaml, 1 and "1" are two keys. Which one becomes that of the JSON is random.
            if self.map.contains_key(&key) && !scalar::is_text(&key) {
                return Err(ErrorKind::DuplicateKey(key));
            }
            // Once for the mapping, and once for the set of merged keys.
            budget.take_member(self.map.len(), &key)?;
            budget.take_member(self.merged.len(), &key)?;
            if self.map.insert(key.clone(), value).is_none() {
                self.merged.insert(key);
            }
        }
        Ok(())
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

fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}
