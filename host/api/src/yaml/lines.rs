//! The lines of fields in the text from which they were parsed.
//!
//! Parsing keeps no positions, so an input without errors has no cost. The text of a document is parsed again when the first line in it
//! is needed, and its nodes are kept for the others.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

use saphyr_parser::{Event, Parser, ScalarStyle};

use crate::path::Segment;

/// The maximum size of a document whose lines are found, in bytes. A run can have errors in hundreds of documents.
const MAX_BYTES: usize = 256 << 10;

/// The position of a document in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// The start of the part of the text with the document, in bytes.
    pub(crate) start: usize,
    /// The end of that part.
    pub(crate) end: usize,
    /// The number of lines before that part.
    pub(crate) lines_before: usize,
    /// The number of documents before it in that part.
    pub(crate) documents_before: usize,
}

/// The text of a document, if it is kept. All texts are equal: a location is the same whether or not its text is known.
#[derive(Clone, Default)]
pub struct DocumentText(Option<Arc<KeptText>>);

struct KeptText {
    text: Arc<str>,
    part: Part,
    nodes: OnceLock<Nodes>,
}

impl DocumentText {
    /// Keeps a document of a text, unless it is too long.
    pub(crate) fn new(text: Arc<str>, part: Part) -> Self {
        let is_short = part.end.saturating_sub(part.start) <= MAX_BYTES;
        let kept = is_short.then(|| KeptText {
            text,
            part,
            nodes: OnceLock::new(),
        });
        Self(kept.map(Arc::new))
    }

    /// Returns the line, from 1, of the field at a path, or of its nearest parent in the document. `None` if the text is not
    /// known.
    pub(crate) fn line(&self, steps: &[Segment]) -> Option<usize> {
        let (kept, nodes) = self.nodes()?;
        let mut at = 0;
        let mut line = nodes.0.first()?.line;
        for step in steps {
            let Some((found, value)) = nodes.below(at, step) else {
                break;
            };
            (line, at) = (nodes.0.get(found)?.line, value);
        }
        Some(line + kept.part.lines_before)
    }

    /// Returns the text of the scalar at a path, if it is written without quotes. `None` if the text of the document is not known.
    pub(crate) fn plain_scalar(&self, steps: &[Segment]) -> Option<&str> {
        let (_, nodes) = self.nodes()?;
        let at = steps
            .iter()
            .try_fold(0, |at, step| Some(nodes.below(at, step)?.1))?;
        match nodes.kind(at)? {
            NodeKind::Scalar { text, is_plain } => is_plain.then_some(text),
            _ => None,
        }
    }

    fn nodes(&self) -> Option<(&KeptText, &Nodes)> {
        let kept = self.0.as_ref()?;
        Some((kept, kept.nodes.get_or_init(|| kept.nodes())))
    }
}

impl KeptText {
    /// Parses the document.
    fn nodes(&self) -> Nodes {
        let part = self.text.get(self.part.start..self.part.end);
        let events = Parser::new_from_str(part.unwrap_or_default());
        let mut starts = 0;
        let of_document = events
            .map_while(Result::ok)
            .skip_while(|(event, _)| {
                starts += usize::from(matches!(event, Event::DocumentStart(_)));
                starts <= self.part.documents_before
            })
            .take_while(|(event, _)| !matches!(event, Event::DocumentEnd));
        let mut nodes = Nodes::default();
        let mut open = Vec::new();
        for (event, span) in of_document {
            nodes.add(event, span.start.line(), &mut open);
        }
        nodes
    }
}

/// The nodes of a document, in the order of its text. A node is identified by its index.
#[derive(Default)]
struct Nodes(Vec<Node>);

struct Node {
    kind: NodeKind,
    line: usize,
    /// The index after the node and the nodes in it.
    end: usize,
}

enum NodeKind {
    /// Its keys and values follow in turns.
    Mapping,
    Sequence,
    Scalar {
        text: Box<str>,
        /// Whether it has no quotes, so that its text decides on its type.
        is_plain: bool,
    },
    Alias,
}

impl Nodes {
    /// Adds the node of an event. `open` are the mappings and sequences around it.
    fn add(&mut self, event: Event<'_>, line: usize, open: &mut Vec<usize>) {
        let kind = match event {
            Event::MappingStart(..) => NodeKind::Mapping,
            Event::SequenceStart(..) => NodeKind::Sequence,
            Event::Scalar(text, style, ..) => NodeKind::Scalar {
                text: text.into(),
                is_plain: style == ScalarStyle::Plain,
            },
            Event::Alias(_) => NodeKind::Alias,
            Event::MappingEnd | Event::SequenceEnd => {
                let end = self.0.len();
                if let Some(node) = open.pop().and_then(|at| self.0.get_mut(at)) {
                    node.end = end;
                }
                return;
            }
            _ => return,
        };
        let at = self.0.len();
        if matches!(kind, NodeKind::Mapping | NodeKind::Sequence) {
            open.push(at);
        }
        self.0.push(Node {
            kind,
            line,
            end: at + 1,
        });
    }

    fn kind(&self, at: usize) -> Option<&NodeKind> {
        self.0.get(at).map(|node| &node.kind)
    }

    fn text(&self, at: usize) -> Option<&str> {
        match self.kind(at)? {
            NodeKind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The node with the line of a step below a node, and the node of its value. They differ in a mapping, where the key has the line.
    fn below(&self, at: usize, step: &Segment) -> Option<(usize, usize)> {
        match (self.kind(at)?, step) {
            (NodeKind::Mapping, Segment::Field(name) | Segment::Key(name)) => self.entry(at, name),
            (NodeKind::Sequence, Segment::Index(index)) => {
                let item = self.children(at).nth(*index)?;
                Some((item, item))
            }
            (NodeKind::Sequence, Segment::Key(name)) => {
                let is_it = |item: &usize| self.name(*item) == Some(name);
                let item = self.children(at).find(is_it)?;
                Some((item, item))
            }
            _ => None,
        }
    }

    /// The key and the value of an entry of a mapping.
    fn entry(&self, at: usize, name: &str) -> Option<(usize, usize)> {
        let mut children = self.children(at);
        while let (Some(key), Some(value)) = (children.next(), children.next()) {
            if self.text(key) == Some(name) {
                return Some((key, value));
            }
        }
        None
    }

    /// The `name` of an item, which is the key of most lists.
    fn name(&self, at: usize) -> Option<&str> {
        match self.kind(at)? {
            NodeKind::Mapping => self.text(self.entry(at, "name")?.1),
            _ => None,
        }
    }

    /// The items of a sequence, or the keys and values of a mapping.
    fn children(&self, at: usize) -> impl Iterator<Item = usize> {
        let end = self.0.get(at).map_or(0, |node| node.end);
        let first = Some(at + 1).filter(|child| *child < end);
        std::iter::successors(first, move |child| {
            let next = self.0.get(*child)?.end;
            (next < end).then_some(next)
        })
    }
}

impl fmt::Debug for DocumentText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = self.0.as_ref().map(|kept| kept.part);
        f.debug_tuple("DocumentText").field(&part).finish()
    }
}

impl PartialEq for DocumentText {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for DocumentText {}

impl PartialOrd for DocumentText {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DocumentText {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

impl Hash for DocumentText {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
