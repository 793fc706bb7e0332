//! The lines of fields in the text from which they were parsed. A line is found when an error is printed. Parsing keeps no positions, so
//! it has no cost without errors.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use saphyr_parser::{Event, Parser};

use crate::path::Segment;

/// The maximum size of a document whose lines are found, in bytes. A run can have hundreds of errors.
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
pub struct DocumentText(Option<(Arc<str>, Part)>);

impl DocumentText {
    /// Keeps a document of a text, unless it is too long.
    pub(crate) fn new(text: Arc<str>, part: Part) -> Self {
        let is_short = part.end.saturating_sub(part.start) <= MAX_BYTES;
        Self(is_short.then_some((text, part)))
    }

    /// Returns the line, from 1, of the field at a path, or of its nearest parent in the document. `None` if the text is not
    /// known.
    pub(crate) fn line(&self, steps: &[Segment]) -> Option<usize> {
        let (text, part) = self.0.as_ref()?;
        let events = Parser::new_from_str(text.get(part.start..part.end)?);
        let events = events.map_while(Result::ok);
        let events = Events(events.map(|(event, at)| (event, at.start.line())).collect());
        let mut at = events.document(part.documents_before)?;
        let mut line = events.line(at)?;
        for step in steps {
            let Some((found, value)) = events.below(at, step) else {
                break;
            };
            (line, at) = (events.line(found)?, value);
        }
        Some(line + part.lines_before)
    }
}

/// The events of a part of a text, with their lines. A node is identified by the index of its first event.
struct Events<'t>(Vec<(Event<'t>, usize)>);

impl Events<'_> {
    fn event(&self, at: usize) -> Option<&Event<'_>> {
        self.0.get(at).map(|(event, _)| event)
    }

    fn line(&self, at: usize) -> Option<usize> {
        self.0.get(at).map(|(_, line)| *line)
    }

    /// The root node of a document.
    fn document(&self, number: usize) -> Option<usize> {
        let events = self.0.iter().enumerate();
        let mut starts = events.filter(|(_, (event, _))| matches!(event, Event::DocumentStart(_)));
        starts.nth(number).map(|(at, _)| at + 1)
    }

    /// The node of a step below a node, after the node of its key.
    fn below(&self, at: usize, step: &Segment) -> Option<(usize, usize)> {
        match (self.event(at)?, step) {
            (Event::MappingStart(..), Segment::Field(name) | Segment::Key(name)) => {
                let value = self.value(at, name)?;
                Some((value - 1, value))
            }
            (Event::SequenceStart(..), Segment::Index(index)) => {
                let item = self.children(at).nth(*index)?;
                Some((item, item))
            }
            (Event::SequenceStart(..), Segment::Key(name)) => {
                let is_it = |item: &usize| self.name(*item) == Some(name);
                let item = self.children(at).find(is_it)?;
                Some((item, item))
            }
            _ => None,
        }
    }

    /// The value of a key of a mapping.
    fn value(&self, at: usize, name: &str) -> Option<usize> {
        let is_it =
            |key: usize| matches!(self.event(key), Some(Event::Scalar(text, ..)) if text == name);
        let mut children = self.children(at);
        while let (Some(key), Some(value)) = (children.next(), children.next()) {
            if is_it(key) {
                return Some(value);
            }
        }
        None
    }

    /// The `name` of an item, which is the key of most lists.
    fn name(&self, at: usize) -> Option<&str> {
        if !matches!(self.event(at)?, Event::MappingStart(..)) {
            return None;
        }
        match self.event(self.value(at, "name")?)? {
            Event::Scalar(text, ..) => Some(text),
            _ => None,
        }
    }

    /// The items of a list, or the keys and values of a mapping.
    fn children(&self, at: usize) -> impl Iterator<Item = usize> {
        let is_child = |at: &usize| {
            let event = self.event(*at);
            event.is_some_and(|event| !matches!(event, Event::SequenceEnd | Event::MappingEnd))
        };
        let first = Some(at + 1).filter(is_child);
        std::iter::successors(first, move |at| Some(self.behind(*at)).filter(is_child))
    }

    /// The index of the node after a node.
    fn behind(&self, mut at: usize) -> usize {
        let mut depth = 0;
        loop {
            match self.event(at) {
                Some(Event::SequenceStart(..) | Event::MappingStart(..)) => depth += 1,
                Some(Event::SequenceEnd | Event::MappingEnd) => depth -= 1,
                Some(_) => {}
                None => return at,
            }
            at += 1;
            if depth <= 0 {
                return at;
            }
        }
    }
}

impl fmt::Debug for DocumentText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = self.0.as_ref().map(|(_, part)| part);
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
