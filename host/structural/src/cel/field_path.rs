//! The `fieldPath` of a rule, relative to the rule's value: `.spec.names['a key']`.

use trainyard_text::path::Segment;

use crate::node::{Child, Node};

/// Parses the path; `None` if it is invalid or not declared below `node`.
pub(super) fn parse(path: &str, node: &Node) -> Option<Vec<Segment>> {
    let mut rest = path;
    let mut here = node;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (name, after) = step(rest)?;
        rest = after;
        match here.child(&name)? {
            Child::Property(property) => {
                here = &property.node;
                steps.push(Segment::Field(name));
            }
            Child::Entry(node) => {
                here = node?;
                steps.push(Segment::Key(name));
            }
        }
    }
    Some(steps)
}

fn step(path: &str) -> Option<(String, &str)> {
    if let Some(rest) = path.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, rest) = rest.split_at_checked(end)?;
        return (!name.is_empty()).then(|| (name.to_owned(), rest));
    }
    let mut chars = path.strip_prefix("['")?.chars();
    let mut name = String::new();
    loop {
        match chars.next()? {
            '\'' => return Some((name, chars.as_str().strip_prefix(']')?)),
            '\\' => name.push(unescaped(chars.next()?)?),
            c => name.push(c),
        }
    }
}

fn unescaped(c: char) -> Option<char> {
    Some(match c {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\'' | '\\' => c,
        _ => return None,
    })
}
