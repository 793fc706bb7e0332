//! Every method of the contract is a method of a handle: what is added to wit/ is in the reach of authors.

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

/// The function of the host's call that stands for a method.
fn function(method: &str) -> String {
    match method {
        // `objects.name` has the plain name already.
        "object.name" => "object_name_of".to_owned(),
        _ => method.replace(['.', '-'], "_"),
    }
}

fn texts(dir: &str) -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(dir);
    let files = fs::read_dir(dir).unwrap();
    files
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect()
}

#[test]
fn every_method_of_the_contract_has_its_line() {
    let contract: BTreeSet<String> = texts("../../wit")
        .iter()
        .flat_map(|wit| methods(wit))
        .map(|method| function(&method))
        .collect();
    let tables = texts("src/handles").concat();
    let handles: BTreeSet<String> = tables
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("fn "))
        .filter_map(|line| line.rsplit_once(" = ")?.1.strip_suffix(';'))
        .map(str::to_owned)
        .collect();
    assert!(contract.len() > 100, "{contract:?}");
    assert_eq!(contract, handles);
}
