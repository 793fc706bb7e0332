//! Every method of the contract is a method of a handle: what is added to wit/ is in the reach of authors, and errors name
//! it as wit/ does.

#![allow(clippy::unwrap_used)]

use std::{collections::BTreeSet, fs, path::Path};

/// `RESOURCE.METHOD` for every method of every resource in a WIT file.
fn methods(wit: &str) -> Vec<String> {
    let mut resource = None;
    let mut methods = Vec::new();
    for line in wit.lines().map(str::trim) {
        if let Some(name) = line
            .strip_prefix("resource ")
            .and_then(|rest| rest.strip_suffix(" {"))
        {
            resource = Some(name);
        } else if line == "}" {
            resource = None;
        } else if let (Some(resource), Some((name, _))) = (resource, line.split_once(": func(")) {
            methods.push(format!("{resource}.{name}"));
        }
    }
    methods
}

fn texts(dir: &str) -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(dir);
    let files = fs::read_dir(dir).unwrap();
    files
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect()
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

/// `(resource_method, call)` for every row of the tables: by which name errors know it, and which function of the host's
/// call it runs.
fn rows(table: &str) -> Vec<(String, String)> {
    let mut resource = String::new();
    let mut rows = Vec::new();
    for line in table.lines().map(str::trim) {
        if let Some((_, raw)) = line
            .strip_suffix(" {")
            .and_then(|head| head.split_once(" = ")?.1.rsplit_once("::"))
        {
            resource = snake_case(raw);
        } else if let Some(row) = line.strip_prefix("fn ")
            && let (Some((name, _)), Some((_, call))) =
                (row.split_once('('), row.rsplit_once(" = "))
        {
            let call = call.trim_end_matches(';').to_owned();
            rows.push((format!("{resource}_{name}"), call));
        }
    }
    rows
}

#[test]
fn every_method_of_the_contract_has_its_line() {
    let contract: BTreeSet<String> = texts("../../wit")
        .iter()
        .flat_map(|wit| methods(wit))
        .map(|method| method.replace(['.', '-'], "_"))
        .collect();
    let rows: Vec<_> = texts("src/handles").iter().flat_map(|t| rows(t)).collect();
    for (name, call) in &rows {
        assert_eq!(name, call, "errors of `{call}` name another method");
    }
    let handles: BTreeSet<String> = rows.into_iter().map(|(_, call)| call).collect();
    assert!(contract.len() > 100, "{contract:?}");
    assert_eq!(contract, handles);
}
