//! A test has the text of each error, so that a change of it is seen. If a text has values, its longest part between them counts.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::common::root;

/// The crates with the errors that users read.
const CRATES: [&str; 3] = ["controller", "model", "sandbox"];

/// Parts that are shorter say too little.
const SHORTEST: usize = 8;

/// The files below a folder with one of these extensions, in no order.
fn files(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let name = entry.file_name().into_string().unwrap_or_default();
        let extension = path.extension().and_then(|it| it.to_str());
        if kind.is_dir() && name != "target" && !name.starts_with('.') {
            files(&path, extensions, found);
        } else if kind.is_file() && extension.is_some_and(|it| extensions.contains(&it)) {
            found.push(path);
        }
    }
}

/// Whether the file has only tests, or what they expect.
fn is_of_tests(path: &Path) -> bool {
    let is_folder = |folder| path.components().any(|part| part.as_os_str() == folder);
    path.ends_with("tests.rs") || is_folder("tests") || is_folder("cases")
}

/// The text of a string literal, whose opening quote is before it.
fn literal(source: &str) -> String {
    let mut text = String::new();
    let mut rest = source.chars().peekable();
    while let Some(char) = rest.next() {
        match char {
            '"' => break,
            '\\' => match rest.next() {
                Some('\n') => while rest.next_if(|next| next.is_whitespace()).is_some() {},
                escaped => text.extend(escaped),
            },
            char => text.push(char),
        }
    }
    text
}

/// The longest part of a format string between its values.
fn longest_part(format: &str) -> String {
    let format = format.replace("{{", "\u{1}").replace("}}", "\u{2}");
    let parts = format.split('{').enumerate().map(|(at, part)| match at {
        0 => part,
        _ => part.split_once('}').map_or("", |(_, part)| part),
    });
    let longest = parts.max_by_key(|part| part.len()).unwrap_or_default();
    let longest = longest.replace('\u{1}', "{").replace('\u{2}', "}");
    longest.trim().to_owned()
}

/// The parts that tests should have, of the errors in a source.
fn parts(source: &str) -> Vec<String> {
    let errors = source.split("#[error(").skip(1);
    let texts = errors.filter_map(|error| error.trim_start().strip_prefix('"'));
    let parts = texts.map(|text| longest_part(&literal(text)));
    parts.filter(|part| part.len() >= SHORTEST).collect()
}

/// The text of a source, as its literals are read.
fn read(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.split("\\\n");
    let joined: Vec<_> = lines
        .enumerate()
        .map(|(at, line)| if at == 0 { line } else { line.trim_start() })
        .collect();
    joined.concat().replace("\\\"", "\"")
}

#[test]
fn every_error_is_in_a_test() {
    let this = Path::new(file!()).file_name().unwrap();
    let mut all = Vec::new();
    files(&root(), &["rs", "txt"], &mut all);
    all.retain(|path| path.file_name() != Some(this));
    let mut tests = String::new();
    let mut wanted = BTreeSet::new();
    for path in &all {
        let is_of_errors = CRATES.iter().any(|name| {
            let folder = root().join("host").join(name).join("src");
            path.starts_with(folder)
        });
        if is_of_tests(path.strip_prefix(root()).unwrap()) {
            tests += &read(path);
        } else if is_of_errors {
            let source = fs::read_to_string(path).unwrap();
            wanted.extend(parts(&source));
            if let Some((_, of_tests)) = read(path).split_once("#[cfg(test)]\nmod tests {") {
                tests += of_tests;
            }
        }
    }
    assert!(
        wanted.len() > 150,
        "only {} errors were found",
        wanted.len()
    );
    let untested: Vec<_> = wanted
        .iter()
        .filter(|part| !tests.contains(*part))
        .collect();
    assert!(
        untested.is_empty(),
        "no test has these texts: {untested:#?}"
    );
}

#[test]
fn parts_are_found_between_values() {
    let source = r##"
        #[error("a {b}: {{c}} is too long for this; \
                 say \"less\" than {} or {d:?}")]
        #[error(
            "short {0}"
        )]
        #[error(transparent)]
    "##;
    assert_eq!(
        parts(source),
        [": {c} is too long for this; say \"less\" than"]
    );
}
