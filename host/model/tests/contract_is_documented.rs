//! The vendor's manual describes what the code enforces: docs/contract.md and docs/manifest.schema.json are generated from the contract and
//! the code, and the `@reads`, `@writes` and `@creates` of a method are the claims that a call of it needs.
//!
//! `UPDATE=1` writes the files again.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::{collections::BTreeSet, env, fs, path::Path};

use serde_json::Value;
use trainyard_model::{
    call::{Call, Fault},
    claims::{ClaimPath, ClaimScope, KeyPattern, PodSetPattern},
    contract::{handle, interface},
    manifest::Manifest,
    plugin::Phase,
};

use crate::common::{
    call, container, manifest, manual,
    methods::METHODS,
    plugin, pod_set,
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

/// What needs no claim, or none beside that of the object or container that the plugin itself made.
struct Free {
    name: &'static str,
    phase: Phase,
    claims: &'static [(&'static str, &'static str)],
    run: fn(&mut Call) -> Result<(), Fault>,
}

macro_rules! free {
    ($($name:literal $phase:ident [$($claim:expr),*] $run:expr;)+) => {
        const FREE: &[Free] = &[$(Free { name: $name, phase: Phase::$phase, claims: &[$($claim),*], run: $run },)+];
    };
}

free! {
    "context.job" Transform [] |c| c.context_job(handle::Context(0)).map(drop);
    "context.lookups" Transform [] |c| c.context_lookups(handle::Context(0)).map(drop);
    "context.objects" Transform [] |c| c.context_objects(handle::Context(0)).map(drop);
    "context.info" Transform [] |c| c.context_info(handle::Context(0)).map(drop);
    "context.base" Transform [] |c| c.context_base(handle::Context(0)).map(drop);
    "context.because" Transform [] |c| c.context_because(handle::Context(0), "x");
    "context.warn" Transform [] |c| c.context_warn(handle::Context(0), "x", None);
    "context.error" Transform [] |c| c.context_error(handle::Context(0), "x", None);
    "context.log" Transform [] |c| c.context_log(handle::Context(0), "info", "x");
    "context.supports" Transform [] |c| c.context_supports(handle::Context(0), "x").map(drop);
    "context.parse-json" Transform [] |c| c.context_parse_json(handle::Context(0), "{}").map(drop);
    "context.quantity-ceil" Transform [] |c| c.context_quantity_ceil(handle::Context(0), "1").map(drop);
    "context.quantity-milli" Transform [] |c| c.context_quantity_milli(handle::Context(0), "1").map(drop);
    "context.fit-name" Transform [] |c| c.context_fit_name(handle::Context(0), "x", 63).map(drop);
    "context.keep" Transform [] |c| c.context_keep(handle::Context(0), "a", "b");
    "context.kept" Check [] |c| c.context_kept(handle::Context(0), "a").map(drop);
    "context.fact" Transform [] |c| c.context_fact(handle::Context(0), "host/version").map(drop);
    "job.name" Transform [] |c| c.job_name(handle::Job(0)).map(drop);
    "job.namespace" Transform [] |c| c.job_namespace(handle::Job(0)).map(drop);
    "job.uid" Transform [] |c| c.job_uid(handle::Job(0)).map(drop);
    "job.suspended" Transform [] |c| c.job_suspended(handle::Job(0)).map(drop);
    "job.runtime-kind" Transform [] |c| c.job_runtime_kind(handle::Job(0)).map(drop);
    "job.runtime-name" Transform [] |c| c.job_runtime_name(handle::Job(0)).map(drop);
    "job.nodes" Transform [] |c| c.job_nodes(handle::Job(0)).map(drop);
    "job.processes-per-node" Transform [] |c| c.job_processes_per_node(handle::Job(0)).map(drop);
    "job.config" Transform [] |c| c.job_config(handle::Job(0)).map(drop);
    "job.operator-config" Transform [] |c| c.job_operator_config(handle::Job(0)).map(drop);
    "job.label" Transform [] |c| c.job_label(handle::Job(0), "x").map(drop);
    "job.annotation" Transform [] |c| c.job_annotation(handle::Job(0), "x").map(drop);
    "job.runtime-label" Transform [] |c| c.job_runtime_label(handle::Job(0), "x").map(drop);
    "job.runtime-annotation" Transform [] |c| c.job_runtime_annotation(handle::Job(0), "x").map(drop);
    "objects.name" Transform [] |c| c.objects_name(handle::Objects(0), "v1", "ConfigMap", "-a", None).map(drop);
    "object.name" Build [("writes", "objects[v1/ConfigMap/-a]")] |c| { let o = c.objects_emit(handle::Objects(0), "v1", "ConfigMap", "-a", None)?; c.object_name(o).map(drop) };
    "object.set-label" Build [("writes", "objects[v1/ConfigMap/-a]")] |c| { let o = c.objects_emit(handle::Objects(0), "v1", "ConfigMap", "-a", None)?; c.object_set_label(o, "a", "b") };
    "object.set-annotation" Build [("writes", "objects[v1/ConfigMap/-a]")] |c| { let o = c.objects_emit(handle::Objects(0), "v1", "ConfigMap", "-a", None)?; c.object_set_annotation(o, "a", "b") };
    "object.set-body" Build [("writes", "objects[example.com/v1/Widget/-a]")] |c| { let o = c.objects_emit(handle::Objects(0), "example.com/v1", "Widget", "-a", None)?; c.object_set_body(o, "{}") };
    "object.report-while" Build [("writes", "objects[example.com/v1/Widget/-a]")] |c| { let o = c.objects_emit(handle::Objects(0), "example.com/v1", "Widget", "-a", None)?; c.object_report_while(o, "phase/Pending", "waits") };
    "object.append" Build [("writes", "objects[v1/ConfigMap/-a]")] |c| { let o = c.objects_emit(handle::Objects(0), "v1", "ConfigMap", "-a", None)?; c.object_append(o, "a", "b") };
    "object.set-binary" Build [("writes", "objects[v1/ConfigMap/-a]")] |c| { let o = c.objects_emit(handle::Objects(0), "v1", "ConfigMap", "-a", None)?; c.object_set_binary(o, "a", &[1]) };
    "object.set-immutable" Build [("writes", "objects[v1/ConfigMap/-a]")] |c| { let o = c.objects_emit(handle::Objects(0), "v1", "ConfigMap", "-a", None)?; c.object_set_immutable(o) };
    "object.set-apply" Build [("writes", "objects[v1/ConfigMap/-a]")] |c| { let o = c.objects_emit(handle::Objects(0), "v1", "ConfigMap", "-a", None)?; c.object_set_apply(o, "live") };
    "object.append-secret" Build [("writes", "objects[v1/Secret/-a]")] |c| { let o = c.objects_emit(handle::Objects(0), "v1", "Secret", "-a", None)?; let t = c.objects_random(handle::Objects(0), "a", 16, "hex")?; c.object_append_secret(o, "a", t) };
    "object.set-type" Build [("writes", "objects[v1/Secret/-a]")] |c| { let o = c.objects_emit(handle::Objects(0), "v1", "Secret", "-a", None)?; c.object_set_type(o, "Opaque") };
    "objects.key-pair" Build [] |c| c.objects_key_pair(handle::Objects(0), "a", "curve25519").map(drop);
    "objects.random" Build [] |c| c.objects_random(handle::Objects(0), "a", 16, "hex").map(drop);
    "key-pair.private" Build [] |c| { let k = c.objects_key_pair(handle::Objects(0), "a", "curve25519")?; c.key_pair_private(k, "z85").map(drop) };
    "key-pair.public" Build [] |c| { let k = c.objects_key_pair(handle::Objects(0), "a", "curve25519")?; c.key_pair_public(k, "z85").map(drop) };
    "info.pod-sets" Transform [] |c| c.info_pod_sets(handle::Info(0)).map(drop);
    "info.pod-set" Transform [] |c| c.info_pod_set(handle::Info(0), "node").map(drop);
    "info.with-ancestor" Transform [] |c| c.info_with_ancestor(handle::Info(0), "trainer").map(drop);
    "info.nodes" Transform [] |c| c.info_nodes(handle::Info(0)).map(drop);
    "info.gang-members" Transform [] |c| c.info_gang_members(handle::Info(0), &["node".to_owned()]).map(drop);
    "info.selector" Transform [] |c| c.info_selector(handle::Info(0)).map(drop);
    "info.subdomain" Transform [] |c| c.info_subdomain(handle::Info(0)).map(drop);
    "info.cluster-domain" Transform [] |c| c.info_cluster_domain(handle::Info(0)).map(drop);
    "info.has-host-names" Transform [] |c| c.info_has_host_names(handle::Info(0)).map(drop);
    "pod-set.name" Transform [] |c| { let s = pod_set(c, "node"); c.pod_set_name(s).map(drop) };
    "pod-set.selector" Transform [] |c| { let s = pod_set(c, "node"); c.pod_set_selector(s).map(drop) };
    "pod-set.ancestor" Transform [] |c| { let s = pod_set(c, "node"); c.pod_set_ancestor(s).map(drop) };
    "pod-set.depends-on" Transform [] |c| { let s = pod_set(c, "node"); c.pod_set_depends_on(s).map(drop) };
    "pod-set.count" Transform [] |c| { let s = pod_set(c, "node"); c.pod_set_count(s).map(drop) };
    "pod-set.replicas" Transform [] |c| { let s = pod_set(c, "node"); c.pod_set_replicas(s).map(drop) };
    "pod-set.is-indexed" Transform [] |c| { let s = pod_set(c, "node"); c.pod_set_is_indexed(s).map(drop) };
    "pod-set.address-count" Transform [] |c| { let s = pod_set(c, "node"); c.pod_set_address_count(s).map(drop) };
    "pod-set.address" Transform [] |c| { let s = pod_set(c, "node"); c.pod_set_address(s, 0, 3).map(drop) };
    "pod-set.addresses" Transform [] |c| { let s = pod_set(c, "node"); c.pod_set_addresses(s, 0, 9).map(drop) };
    "pod-set.joined-addresses" Transform [] |c| { let s = pod_set(c, "node"); c.pod_set_joined_addresses(s, 0, 9, ",").map(drop) };
    "pod-set.hostlist" Transform [] |c| { let s = pod_set(c, "node"); c.pod_set_hostlist(s).map(drop) };
    "pod-set.container" Transform [] |c| { let s = pod_set(c, "node"); c.pod_set_container(s, "node").map(drop) };
    "container.name" Transform [] |c| { let n = container(c, "node", "node"); c.container_name(n).map(drop) };
    "container.is-init" Transform [] |c| { let n = container(c, "node", "node"); c.container_is_init(n).map(drop) };
    "container.created-by-me" Transform [] |c| { let n = container(c, "node", "node"); c.container_created_by_me(n).map(drop) };
    "container.runtime-command" Transform [] |c| { let n = container(c, "node", "node"); c.container_runtime_command(n).map(drop) };
    "container.runtime-args" Transform [] |c| { let n = container(c, "node", "node"); c.container_runtime_args(n).map(drop) };
    "container.place-first" Transform [("creates", "pod-sets[*].init-containers[x]")] |c| { let s = pod_set(c, "node"); let x = c.pod_set_add_init_container(s, "x", "image")?; c.container_place_first(x) };
    "container.place-before" Transform [("creates", "pod-sets[*].init-containers[x]")] |c| { let s = pod_set(c, "node"); let x = c.pod_set_add_init_container(s, "x", "image")?; c.container_place_before(x, "setup") };
    "container.place-after" Transform [("creates", "pod-sets[*].init-containers[x]")] |c| { let s = pod_set(c, "node"); let x = c.pod_set_add_init_container(s, "x", "image")?; c.container_place_after(x, "setup") };
    "document.kind" Transform [] |c| { let d = c.job_config(handle::Job(0))?; c.document_kind(d, "/a").map(drop) };
    "document.text" Transform [] |c| { let d = c.job_config(handle::Job(0))?; c.document_text(d, "/a").map(drop) };
    "document.integer" Transform [] |c| { let d = c.job_config(handle::Job(0))?; c.document_integer(d, "/a").map(drop) };
    "document.boolean" Transform [] |c| { let d = c.job_config(handle::Job(0))?; c.document_boolean(d, "/a").map(drop) };
    "document.len" Transform [] |c| { let d = c.job_config(handle::Job(0))?; c.document_len(d, "/a").map(drop) };
    "document.keys" Transform [] |c| { let d = c.job_config(handle::Job(0))?; c.document_keys(d, "/a").map(drop) };
    "document.json" Transform [] |c| { let d = c.job_config(handle::Job(0))?; c.document_json(d, "/a").map(drop) };
}

#[test]
fn methods_documented_without_claims_need_none() {
    for method in FREE {
        let mut call = call(method.phase, &plugin(&manifest("p", method.claims)));
        (method.run)(&mut call).unwrap_or_else(|fault| panic!("{}: {fault}", method.name));
    }
}

/// `METHODS` is what claims_are_enforced.rs drives through the host, each with and without each of its claims.
#[test]
fn documented_claims_match_enforced_claims() {
    let contract = Contract::read().all_methods();
    let (mut with_claims, mut free) = (BTreeSet::new(), BTreeSet::new());
    for method in &contract {
        if method.claims.is_empty() {
            free.insert(method.name.as_str());
            continue;
        }
        with_claims.insert(method.name.as_str());
        let driven = METHODS.iter().find(|driven| driven.name == method.name);
        let driven =
            driven.unwrap_or_else(|| panic!("{} has claims, and no test drives it", method.name));
        assert_eq!(driven.claims.len(), method.claims.len(), "{}", method.name);
        for (list, path) in driven.claims {
            let real: ClaimPath = path.parse().unwrap();
            let reported = method.claims.iter().any(|(told_list, template)| {
                let template: ClaimPath = template.parse().unwrap();
                list == told_list && is_instance(&real, &template)
            });
            assert!(
                reported,
                "{}: the host asks for {list} `{path}`, the contract says {:?}",
                method.name, method.claims
            );
        }
    }
    assert_eq!(
        with_claims,
        METHODS.iter().map(|method| method.name).collect()
    );
    assert_eq!(free, FREE.iter().map(|method| method.name).collect());
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
