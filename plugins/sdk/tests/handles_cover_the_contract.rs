//! Every method of the contract is a method of a handle, said in the contract's own words: what is added to wit/ is in the
//! reach of authors, errors name it as wit/ does, and the two texts can't drift apart.
//!
//! With `UPDATE=1` the docs of the handles are written anew.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
};

use wit_parser::{Resolve, TypeDefKind};

/// The docs of each resource by its Rust name (`PodSet`), and of each method by `pod_set_name`.
struct Contract {
    resources: BTreeMap<String, Vec<String>>,
    methods: BTreeMap<String, Vec<String>>,
}

impl Contract {
    fn read() -> Self {
        let mut resolve = Resolve::default();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        resolve.push_dir(folder).unwrap();
        let functions = || {
            resolve
                .interfaces
                .iter()
                .flat_map(|(_, i)| i.functions.values())
        };
        let words: BTreeSet<&str> = functions()
            .flat_map(|f| {
                f.params
                    .iter()
                    .map(|p| p.name.as_str())
                    .chain([f.item_name()])
            })
            .collect();
        let (mut resources, mut methods) = (BTreeMap::new(), BTreeMap::new());
        for (id, ty) in resolve.types.iter() {
            if !matches!(ty.kind, TypeDefKind::Resource) {
                continue;
            }
            let resource = ty.name.as_deref().unwrap();
            let docs = ty.docs.contents.as_deref().unwrap_or_default();
            resources.insert(camel_case(resource), rust_docs(docs, &words, 4));
            for function in functions().filter(|f| f.kind.resource() == Some(id)) {
                let name = format!("{resource}_{}", function.item_name()).replace('-', "_");
                let docs = function.docs.contents.as_deref().unwrap_or_default();
                methods.insert(name, rust_docs(docs, &words, 8));
            }
        }
        Self { resources, methods }
    }
}

/// The contract's sentences as lines of a doc comment: methods and arguments by their names in Rust, and claims as
/// sentences.
fn rust_docs(docs: &str, words: &BTreeSet<&str>, indent: usize) -> Vec<String> {
    let (mut paragraphs, mut claims) = (vec![String::new()], Vec::new());
    for line in docs.lines().map(str::trim) {
        let claim = line
            .strip_prefix('@')
            .map(|tag| tag.split_once(' ').unwrap());
        match (line, claim) {
            ("", _) => paragraphs.push(String::new()),
            (_, Some((tag, path))) => {
                let verb = tag.trim_end_matches('s');
                claims.push(format!("Needs the claim to {verb} `{path}`."));
            }
            (text, None) => {
                let last = paragraphs.last_mut().unwrap();
                *last += if last.is_empty() { "" } else { " " };
                *last += &in_rust(text, words);
            }
        }
    }
    let mut blocks: Vec<Vec<String>> = paragraphs
        .iter()
        .filter(|text| !text.is_empty())
        .map(|text| wrap(text, 120 - indent - 4))
        .collect();
    if !claims.is_empty() {
        blocks.push(claims);
    }
    blocks.join(&String::new())
}

/// `put-env` as an author calls it.
fn in_rust(text: &str, words: &BTreeSet<&str>) -> String {
    let spans = text.split('`').enumerate().map(|(at, span)| {
        if at % 2 == 1 && words.contains(span) {
            span.replace('-', "_")
        } else {
            span.to_owned()
        }
    });
    spans.collect::<Vec<_>>().join("`")
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().unwrap();
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// `pod-set` as `PodSet`.
fn camel_case(name: &str) -> String {
    let words = name
        .split('-')
        .map(|word| word[..1].to_ascii_uppercase() + &word[1..]);
    words.collect()
}

/// `PodSet` as `pod_set`.
fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for (at, c) in name.char_indices() {
        if at > 0 && c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// The table with the contract's docs before each handle and method. `seen` gets each method that it names.
fn with_docs(table: &str, contract: &Contract, seen: &mut Vec<String>) -> String {
    let (mut out, mut resource, mut in_table) = (String::new(), String::new(), false);
    for line in table.lines() {
        let code = line.trim();
        in_table = (in_table || line == "handles! {") && line != "}";
        let indent = &line[..line.len() - code.len()];
        let docs = if !in_table {
            None
        } else if code.starts_with("///") {
            continue;
        } else if let Some((handle, raw)) =
            code.strip_suffix(" {").and_then(|c| c.split_once(" = "))
        {
            let (_, raw) = raw.rsplit_once("::").unwrap();
            assert_eq!(handle, raw, "the handle is named for its resource");
            resource = snake_case(raw);
            Some(&contract.resources[handle])
        } else if let Some(row) = code.strip_prefix("fn ") {
            let (method, _) = row.split_once('(').unwrap();
            let call = row.rsplit_once(" = ").unwrap().1.trim_end_matches(';');
            let name = format!("{resource}_{method}");
            assert_eq!(name, call, "errors of `{call}` would name another method");
            let docs = contract.methods.get(&name);
            seen.push(name);
            Some(docs.unwrap_or_else(|| panic!("the contract has no `{call}`")))
        } else {
            None
        };
        for doc in docs.into_iter().flatten() {
            out += format!("{indent}/// {doc}").trim_end();
            out.push('\n');
        }
        out += line;
        out.push('\n');
    }
    out
}

#[test]
fn every_method_of_the_contract_is_there_in_its_words() {
    let contract = Contract::read();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/handles");
    let mut seen = Vec::new();
    for name in ["context.rs", "record.rs"] {
        let path = folder.join(name);
        let found = fs::read_to_string(&path).unwrap();
        let expected = with_docs(&found, &contract, &mut seen);
        if env::var_os("UPDATE").is_some_and(|value| value == "1") {
            fs::write(&path, &expected).unwrap();
        } else {
            assert!(
                found == expected,
                "src/handles/{name} does not say what wit/ says: run `UPDATE=1 cargo test -p trainyard-sdk --test all handles_cover_the_contract::`"
            );
        }
    }
    seen.sort();
    let all: Vec<_> = contract.methods.keys().cloned().collect();
    assert!(all.len() > 100, "{all:?}");
    assert_eq!(seen, all);
}
