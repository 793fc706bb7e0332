//! The vendor's manual describes what the code enforces: docs/contract.md and docs/manifest.schema.json are generated from the contract and
//! the code, and the `@reads`, `@writes` and `@creates` of a method are the claims that a call of it needs.
//!
//! `UPDATE=1` writes the files again.

use std::{collections::BTreeSet, env, fs, path::Path};

use serde_json::Value;
use trainyard_model::{
    claims::{ClaimPath, ClaimScope, KeyPattern, PodSetPattern},
    contract::interface,
    manifest::Manifest,
};

use crate::common::{
    manual,
    methods::METHODS,
    wit::{self, Contract},
};

fn check_file(name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    if env::var_os("UPDATE").is_some_and(|value| value == "1") {
        fs::write(&path, expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/{name} is not what the code says: run `UPDATE=1 cargo test -p trainyard-model --test all contract_is_documented::`"
    );
}

#[test]
fn manual_is_generated_from_the_contract() {
    check_file("contract.md", &manual::contract(&Contract::read()));
}

#[test]
fn manifest_schema_is_generated_from_its_type() {
    check_file("manifest.schema.json", &manual::manifest_schema());
}

/// The schema is that of `manifest.json`, in which the SDK's macro leaves some keys to the crate.
#[test]
fn manifest_schema_accepts_documented_manifests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let schema: Value = serde_json::from_str(&read("docs/manifest.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let guide = read("docs/write-a-plugin.md");
    let mut written: Vec<String> = guide
        .split("manifest.json -->\n```json\n")
        .skip(1)
        .map(|rest| rest.split_once("```").unwrap().0.to_owned())
        .collect();
    assert!(!written.is_empty());
    let plugins = fs::read_dir(root.join("plugins")).unwrap();
    let manifests = plugins.map(|plugin| plugin.unwrap().path().join("manifest.json"));
    let of_plugins: Vec<_> = manifests
        .filter_map(|file| fs::read_to_string(file).ok())
        .collect();
    assert!(of_plugins.len() > 5, "{} manifests", of_plugins.len());
    written.extend(of_plugins);
    for text in written {
        let mut manifest: Value = serde_json::from_str(&text).unwrap();
        manifest["$schema"] = "https://example.com/manifest.schema.json".into();
        let errors: Vec<_> = validator
            .iter_errors(&manifest)
            .map(|e| e.to_string())
            .collect();
        assert_eq!(errors, [""; 0], "{text}");
        Manifest::check_file(manifest.to_string().as_bytes()).unwrap();
        manifest["clams"] = Value::Null;
        assert!(!validator.is_valid(&manifest));
    }
}

#[test]
fn contract_version_matches_the_host() {
    let contract = Contract::read();
    let context = interface("context");
    assert!(
        contract
            .interfaces()
            .any(|(id, _)| contract.resolve.id_of(id).as_deref() == Some(&context))
    );
}

#[test]
fn every_item_of_the_contract_is_documented() {
    let contract = Contract::read();
    for (_, interface) in contract.interfaces() {
        let name = interface.name.as_deref().unwrap();
        assert!(!wit::text(&interface.docs).is_empty(), "interface {name}");
        for (_, ty) in contract.types(interface) {
            assert!(!wit::text(&ty.docs).is_empty(), "{name}.{:?}", ty.name);
        }
        for function in contract.methods(interface, None) {
            assert!(!function.doc.is_empty(), "{name}.{}", function.name);
        }
    }
    for method in contract.all_methods() {
        let words = method.doc.split_whitespace().count();
        assert!(words > 1, "{}: a claim alone says little", method.name);
    }
    assert!(
        contract
            .worlds()
            .all(|world| !wit::text(&world.docs).is_empty())
    );
}

/// `claims_are_enforced` calls each row of `METHODS` with and without each of its claims.
#[test]
fn documented_claims_match_enforced_claims() {
    let contract = Contract::read().all_methods();
    let rust_name = |method: &wit::Method| method.name.replace(['.', '-'], "_");
    for method in &contract {
        let mut rows = METHODS
            .iter()
            .filter(|row| row.name == rust_name(method))
            .peekable();
        assert!(
            rows.peek().is_some(),
            "{}: add a row to METHODS",
            method.name
        );
        for row in rows {
            assert_eq!(row.claims.len(), method.claims.len(), "{}", method.name);
            for (list, path) in row.claims {
                let real: ClaimPath = path.parse().unwrap();
                let is_documented = method.claims.iter().any(|(told_list, template)| {
                    let template: ClaimPath = template.parse().unwrap();
                    list == told_list && is_instance(&real, &template)
                });
                let name = &method.name;
                assert!(
                    is_documented,
                    "{name}: the host asks for {list} `{path}`, the contract says {:?}",
                    method.claims
                );
            }
        }
    }
    let known: BTreeSet<_> = contract.iter().map(rust_name).collect();
    let removed: Vec<_> = METHODS
        .iter()
        .filter(|row| !known.contains(row.name))
        .map(|row| row.name)
        .collect();
    assert_eq!(removed, [""; 0], "the contract has no such methods");
}

#[test]
fn every_record_write_documents_a_write_claim() {
    let writes = [
        "set-", "put-", "add-", "remove-", "clear-", "default-", "emit",
    ];
    let mut found = 0;
    for method in Contract::read().all_methods() {
        let (resource, own) = method.name.split_once('.').unwrap();
        let of_record = matches!(resource, "info" | "pod-set" | "container" | "objects");
        let is_write = of_record && writes.iter().any(|start| own.starts_with(start));
        let claimed = method.claims.iter().any(|(list, _)| *list != "reads");
        assert_eq!(is_write, claimed, "{}", method.name);
        found += usize::from(is_write);
    }
    assert!(found > 30, "{found}");
}

/// Whether the path is the template with arguments in the places of words in capitals.
fn is_instance(path: &ClaimPath, template: &ClaimPath) -> bool {
    let text = |key: &KeyPattern| match key {
        KeyPattern::Objects(objects) => {
            let text = objects.to_string();
            match text.strip_suffix('*') {
                Some(prefix) => KeyPattern::Prefix(prefix.into()),
                None => KeyPattern::Literal(text.into()),
            }
        }
        key => key.clone(),
    };
    let key = |path: &KeyPattern, template: &KeyPattern| match (&text(path), &text(template)) {
        (KeyPattern::Literal(key), KeyPattern::Literal(template)) => {
            let (keys, templates) = (key.split('/'), template.split('/'));
            let is_argument = |text: &str| text.starts_with(|c: char| c.is_ascii_uppercase());
            let whole = matches!(
                &**template,
                "KEY" | "NAME" | "PATH" | "POINTER" | "P" | "RESOURCE" | "SOURCE" | "MEMBER"
            );
            whole
                || (keys.clone().count() == templates.clone().count()
                    && keys
                        .zip(templates)
                        .all(|(key, template)| key == template || is_argument(template)))
        }
        (KeyPattern::Prefix(key), KeyPattern::Prefix(template)) => {
            key.split('/').count() == template.split('/').count()
        }
        (path, template) => path == template,
    };
    let sets = |path: &PodSetPattern, template: &PodSetPattern| match (path, template) {
        (PodSetPattern::Named(path), PodSetPattern::Named(template)) => key(path, template),
        (path, template) => path == template,
    };
    let lists = matches!(
        template.field.level(),
        trainyard_model::record::Level::Container
    );
    let scope = match (&path.scope, &template.scope) {
        (ClaimScope::Job, ClaimScope::Job) => true,
        (ClaimScope::PodSet(path), ClaimScope::PodSet(template)) => sets(path, template),
        (
            ClaimScope::Container { pod_sets, name, .. },
            ClaimScope::Container {
                pod_sets: template_sets,
                name: template_name,
                ..
            },
        ) => lists && sets(pod_sets, template_sets) && key(name, template_name),
        _ => false,
    };
    let keys = match (&path.key, &template.key) {
        (None, None) => true,
        (Some(path), Some(template)) => key(path, template),
        _ => false,
    };
    path.field == template.field && scope && keys
}
