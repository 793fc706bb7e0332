//! Converts the contract's docs to those of a language: names of methods and arguments as in the language, claims as sentences.

use std::collections::BTreeSet;

use crate::names::snake;

/// Names in the contract that are spelled differently in Rust.
pub(crate) type Words = BTreeSet<String>;

/// The maximum width of a comment line.
const WIDTH: usize = 120;

/// Formats a doc comment of Rust with this indentation.
pub(crate) fn comment(docs: &str, words: &Words, indent: usize) -> String {
    let spelled = |name: &str| words.contains(name).then(|| snake(name));
    with_marks(docs, &format!("{}/// ", " ".repeat(indent)), spelled)
}

/// Formats a comment whose lines begin with a mark. `spelled` returns a name as it is in the language, or `None` if it is not one.
pub(crate) fn with_marks(
    docs: &str,
    mark: &str,
    spelled: impl Fn(&str) -> Option<String>,
) -> String {
    let lines = lines(docs, &spelled, WIDTH - mark.len());
    let comment = lines.iter().map(|line| {
        let line = format!("{mark}{line}");
        format!("{}\n", line.trim_end())
    });
    comment.collect()
}

/// Returns the claims that a method needs, each as the list of the manifest and the path.
pub(crate) fn claims(docs: &str) -> impl Iterator<Item = (&str, &str)> {
    docs.lines().filter_map(claim)
}

fn claim(line: &str) -> Option<(&str, &str)> {
    line.trim().strip_prefix('@')?.split_once(' ')
}

fn lines(docs: &str, spelled: &impl Fn(&str) -> Option<String>, width: usize) -> Vec<String> {
    let (mut paragraphs, mut claims) = (vec![String::new()], Vec::new());
    for line in docs.lines().map(str::trim) {
        match (line, claim(line), paragraphs.last_mut()) {
            (_, Some((tag, path)), _) => {
                let verb = tag.trim_end_matches('s');
                claims.push(format!("Needs the claim to {verb} `{path}`."));
            }
            (text, None, Some(last)) if !text.is_empty() => {
                *last += if last.is_empty() { "" } else { " " };
                *last += &in_language(text, spelled);
            }
            _ => paragraphs.push(String::new()),
        }
    }
    let texts = paragraphs.iter().filter(|text| !text.is_empty());
    let mut blocks: Vec<Vec<String>> = texts.map(|text| wrap(text, width)).collect();
    if !claims.is_empty() {
        blocks.push(claims);
    }
    blocks.join(&String::new())
}

/// Converts a method's name, such as `put-env`, to the language.
fn in_language(text: &str, spelled: &impl Fn(&str) -> Option<String>) -> String {
    let spans = text.split('`').enumerate().map(|(at, span)| {
        let name = if at % 2 == 1 { spelled(span) } else { None };
        name.unwrap_or_else(|| span.to_owned())
    });
    spans.collect::<Vec<_>>().join("`")
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        line += if line.is_empty() { "" } else { " " };
        line += word;
    }
    lines.push(line);
    lines
}
