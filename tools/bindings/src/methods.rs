//! Generates `docs/methods.md`: every method of the contract by what it is for, with its name in each language.

use std::fmt::Write as _;

use crate::{
    GeneratedFile,
    contract::{Contract, Method, Resource},
    docs::claims,
    names::{camel, lower_camel, snake},
};

const PAGE: &str = "docs/methods.md";

const INTRODUCTION: &str = "\
# Where to set what, in each language

Every method of [the contract](contract.md). This page is generated from `wit/` by `make bindings`.

A method belongs to a handle. Its name in each language follows from that in the contract:

| language | rule | `container.put-env` |
|---|---|---|
| Rust, with [the SDK](write-a-plugin.md) | the type and the method | `Container::put_env` |
| C | the interface, `method`, the type and the method | `pod_set_info_method_container_put_env` |
| others, without generated code | the import `[method]` and the name, from the module of the handle | `[method]container.put-env` |
| Go | the type and the method | `Container.PutEnv` |
| JavaScript | the class and the method | `Container.putEnv` |
| Python | the class and the method | `Container.put_env` |

[Plugins in other languages](languages.md) says which tools generate these types. The column \"claim\" has what the plugin's manifest must
declare. `P` is a pod set, and `C` is `pod-sets[P].containers[NAME]` or `pod-sets[P].init-containers[NAME]`. Claims to read are needed in
transform only, except for those of `job` and `lookups` ([rules](contract.md#claims-and-grants)).

";

/// The heading of each method: the first rule with its resource, and with a part of its name, applies.
const HEADINGS: &[(&str, &str, &[&str])] = &[
    ("Env vars", "container", &["env"]),
    (
        "Volumes and mounts",
        "pod-set",
        &["volume", "empty-dir", "put-own"],
    ),
    ("Volumes and mounts", "container", &["mount"]),
    ("Commands", "container", &["command", "args", "working-dir"]),
    ("Ports", "container", &["port"]),
    (
        "Resources and devices",
        "container",
        &["request", "limit", "resource-claim"],
    ),
    (
        "Resources and devices",
        "pod-set",
        &[
            "devices",
            "accelerators",
            "processes",
            "resource-claim",
            "pod-requests",
        ],
    ),
    ("Resources and devices", "context", &["quantity"]),
    ("Security", "container", &["capabilit"]),
    ("Security", "pod-set", &["fs-group"]),
    (
        "Other members of pods and containers",
        "container",
        &["raw"],
    ),
    ("Other members of pods and containers", "pod-set", &["raw"]),
    ("Containers", "pod-set", &["container"]),
    ("Containers", "container", &[""]),
    (
        "Labels and annotations",
        "pod-set",
        &["label", "annotation"],
    ),
    ("Labels and annotations", "info", &["label", "annotation"]),
    (
        "Scheduling",
        "pod-set",
        &[
            "selector",
            "priority-class",
            "scheduler-name",
            "scheduling-gate",
            "toleration",
            "affinity",
        ],
    ),
    ("Scheduling", "info", &["gang", "selector"]),
    ("Addresses", "pod-set", &["address", "hostlist", "dns"]),
    ("Addresses", "info", &["domain", "host-names"]),
    ("Pods", "info", &[""]),
    ("Pods", "pod-set", &[""]),
    ("Configuration", "job", &["config"]),
    ("The TrainJob and its runtime", "job", &[""]),
    ("Objects in the cluster", "lookups", &[""]),
    ("Objects to emit", "objects", &[""]),
    ("Objects to emit", "object", &[""]),
    ("Objects to emit", "key-pair", &[""]),
    ("JSON", "context", &["json"]),
    ("JSON", "document", &[""]),
    (
        "Reasons and messages",
        "context",
        &["because", "warn", "error", "log"],
    ),
];

/// The heading of the methods to which no rule applies.
const REST: &str = "Everything else";

pub(crate) fn files(contract: &Contract) -> anyhow::Result<Vec<GeneratedFile>> {
    let mut text = INTRODUCTION.to_owned();
    modules(&mut text, contract)?;
    let mut headings: Vec<_> = HEADINGS.iter().map(|(heading, ..)| *heading).collect();
    headings.dedup();
    headings.push(REST);
    for heading in headings {
        let resources = contract.resources().map(|(_, resource)| resource);
        let of_it = resources.flat_map(|resource| {
            let methods = resource.methods.iter();
            methods
                .filter(|method| heading_of(resource, method) == heading)
                .map(move |method| (resource, method))
        });
        let mut rows = of_it.peekable();
        if rows.peek().is_some() {
            write!(
                text,
                "\n## {heading}\n\n| what | contract | Rust, Python | Go | JavaScript | claim |\n|---|---|---|---|---|---|\n"
            )?;
        }
        for (resource, method) in rows {
            row(&mut text, resource, method)?;
        }
    }
    Ok(vec![GeneratedFile {
        path: PAGE.to_owned(),
        text,
    }])
}

fn heading_of(resource: &Resource, method: &Method) -> &'static str {
    let mut rules = HEADINGS.iter().filter(|(_, of, _)| *of == resource.name);
    let rule = rules.find(|(_, _, parts)| parts.iter().any(|part| method.name.contains(part)));
    rule.map_or(REST, |(heading, ..)| heading)
}

/// Writes the module from which C imports the methods of each handle.
fn modules(text: &mut String, contract: &Contract) -> anyhow::Result<()> {
    text.push_str("| handle | module for C |\n|---|---|\n");
    let (package, version) = (&contract.package, &contract.version);
    for (interface, resource) in contract.resources() {
        writeln!(
            text,
            "| `{}` | `{package}/{}@{version}` |",
            resource.name, interface.name
        )?;
    }
    Ok(())
}

fn row(text: &mut String, resource: &Resource, method: &Method) -> anyhow::Result<()> {
    let (of, name) = (&resource.name, &method.name);
    let (ty, rust) = (camel(of), snake(name));
    let claims = claims(&method.docs);
    let claims: Vec<_> = claims
        .map(|(tag, path)| format!("{tag} `{path}`"))
        .collect();
    writeln!(
        text,
        "| {} | `{of}.{name}` | `{ty}::{rust}`, `{ty}.{rust}` | `{ty}.{}` | `{ty}.{}` | {} |",
        first_sentence(&method.docs),
        camel(name),
        lower_camel(name),
        claims.join("<br>")
    )?;
    Ok(())
}

/// Returns the first sentence of a comment, as a cell of a table.
fn first_sentence(docs: &str) -> String {
    let text: Vec<_> = docs.split_whitespace().collect();
    let text = text.join(" ");
    let sentence = text.split_once(". ").map_or(&*text, |(first, _)| first);
    let sentence = sentence
        .split_once(" @")
        .map_or(sentence, |(first, _)| first);
    sentence.trim_end_matches('.').replace('|', "\\|")
}
