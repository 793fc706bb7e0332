//! Converts the contract's docs to Rust docs: names of methods and arguments as in Rust, claims as sentences.

use std::collections::BTreeSet;

use crate::names::snake;

/// Names in the contract that are spelled differently in Rust.
pub(crate) type Words = BTreeSet<String>;

/// The maximum width of a comment line.
const WIDTH: usize = 120;

/// Formats a doc comment with this indentation.
pub(crate) fn comment(docs: &str, words: &Words, indent: usize) -> String {
    let indent = " ".repeat(indent);
    let width = WIDTH - indent.len() - "/// ".len();
    let lines = lines(docs, words, width);
    let comment = lines.iter().map(|line| {
        let line = format!("{indent}/// {line}");
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

fn lines(docs: &str, words: &Words, width: usize) -> Vec<String> {
    let (mut paragraphs, mut claims) = (vec![String::new()], Vec::new());
    for line in docs.lines().map(str::trim) {
        match (line, claim(line), paragraphs.last_mut()) {
            (_, Some((tag, path)), _) => {
                let verb = tag.trim_end_matches('s');
                claims.push(format!("Needs the claim to {verb} `{path}`."));
            }
            (text, None, Some(last)) if !text.is_empty() => {
                *last += if last.is_empty() { "" } else { " " };
                *last += &in_rust(text, words);
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

/// Converts a method's name, such as `put-env`, to Rust.
fn in_rust(text: &str, words: &Words) -> String {
    let spans = text.split('`').enumerate().map(|(at, span)| {
        if at % 2 == 1 && words.contains(span) {
            snake(span)
        } else {
            span.to_owned()
        }
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
