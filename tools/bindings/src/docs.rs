//! Converts the contract's docs to those of Rust and Go: names of methods and arguments as in the language, claims as sentences.

use std::collections::BTreeSet;

use crate::{
    contract::Contract,
    names::{camel, lower_camel, snake},
};

/// Names in the contract that are spelled differently in Rust.
pub(crate) type Words = BTreeSet<String>;

/// The maximum width of a comment line.
const WIDTH: usize = 120;

/// Formats a doc comment of Rust with this indentation.
pub(crate) fn comment(docs: &str, words: &Words, indent: usize) -> String {
    let spelled = |name: &str| words.contains(name).then(|| snake(name));
    with_marks(docs, &format!("{}/// ", " ".repeat(indent)), spelled)
}

/// Formats a comment of Go that is indented by these tabs. Methods and fields are exported, so they begin with a capital, unlike parameters.
pub(crate) fn go_comment(docs: &str, contract: &Contract, tabs: usize) -> String {
    let methods = contract.resources().flat_map(|(_, it)| &it.methods);
    let fields = contract.records().flat_map(|(_, it)| &it.fields);
    let exported = methods.map(|it| &it.name).chain(fields.map(|it| &it.name));
    let exported: BTreeSet<_> = exported.map(String::as_str).collect();
    let spelled = |name: &str| match exported.contains(name) {
        true => Some(camel(name)),
        false => contract.words.contains(name).then(|| lower_camel(name)),
    };
    with_marks(docs, &format!("{}// ", "\t".repeat(tabs)), spelled)
}

fn with_marks(docs: &str, mark: &str, spelled: impl Fn(&str) -> Option<String>) -> String {
    let lines = lines(docs, &spelled, WIDTH - mark.len());
    let comment = lines.iter().map(|line| {
        let line = format!("{mark}{line}");
        format!("{}\n", line.trim_end())
    });
    comment.collect()
}

fn lines(docs: &str, spelled: &impl Fn(&str) -> Option<String>, width: usize) -> Vec<String> {
    let (mut paragraphs, mut claims) = (vec![String::new()], Vec::new());
    for line in docs.lines().map(str::trim) {
        let claim = line.strip_prefix('@').and_then(|tag| tag.split_once(' '));
        match (line, claim, paragraphs.last_mut()) {
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
