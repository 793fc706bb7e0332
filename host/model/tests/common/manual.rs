//! The vendor's manual, generated from the contract, the record's table of fields, the manifest and the limits.

use std::fmt::Write as _;

use serde_json::{Value, json};
use trainyard_model::{
    contract::VERSION,
    limits::Limits,
    manifest::{FROM_CODE, Manifest, SCHEMA_KEY, SECTION},
    record::{Field, Level, ObeyedDomains, Permission},
    reserved::RESERVED,
};
use wit_parser::{Interface, TypeDefKind, WorldItem, WorldKey};

use super::wit::{Contract, Method, text};

/// The interfaces, from the handle that a phase gets to what is seldom needed.
const READING_ORDER: [&str; 7] = [
    "context",
    "job",
    "pod-set-info",
    "objects",
    "lookups",
    "types",
    "panics",
];

/// `docs/contract.md`.
pub fn contract(contract: &Contract) -> String {
    let mut out = format!(
        "# The plugin contract\n\n\
         `trainyard:policy@{VERSION}`: what a plugin exports, what it can call, and which claim each call needs. \
         This page is generated from `wit/` and the code that enforces it, with \
         `UPDATE=1 cargo test -p trainyard-model --test all contract_is_documented::`. [methods.md](methods.md) has the same methods by \
         what they are for, with their names in each language.\n\n\
         A plugin receives one handle, the context, and reaches everything else from it. Reading the record needs a claim in \
         transform only. Writing it needs a claim, and for many fields a grant (see [claims and grants](#claims-and-grants)). A \
         violation ends the call, and its writes are discarded. The host is the program that calls plugins: the controller or a \
         command of `trainyard`. In the \
         tables, `P` is a pod set, `C` is a container `pod-sets[P].containers[NAME]` or an init container \
         `pod-sets[P].init-containers[NAME]`, and other words in capitals are arguments.\n"
    );
    worlds(&mut out, contract);
    let mut interfaces: Vec<_> = contract
        .interfaces()
        .map(|(_, interface)| interface)
        .filter(|interface| !is_phase(contract, interface))
        .collect();
    interfaces.sort_by_key(|interface| {
        let name = interface.name.as_deref().unwrap();
        let place = READING_ORDER.iter().position(|known| *known == name);
        place.unwrap_or_else(|| panic!("give the interface `{name}` a place in the manual"))
    });
    for interface in interfaces {
        write_interface(&mut out, contract, interface);
    }
    claims(&mut out);
    manifest(&mut out);
    limits(&mut out);
    out
}

/// `docs/manifest.schema.json`.
pub fn manifest_schema() -> String {
    let mut schema = serde_json::to_value(schemars::schema_for!(Manifest)).unwrap();
    schema["description"] = json!(
        "A plugin's `manifest.json`. The SDK adds `name`, `version`, `contract`, `phases` and `configSchema` from the crate; the manifest of a \
         plugin that is built without the SDK needs the first four."
    );
    schema["properties"][SCHEMA_KEY] =
        json!({"description": "This schema, for editors.", "type": "string"});
    let required = schema["required"].as_array_mut().unwrap();
    required.retain(|key| !FROM_CODE.contains(&key.as_str().unwrap()));
    serde_json::to_string_pretty(&schema).unwrap() + "\n"
}

fn is_phase(contract: &Contract, interface: &Interface) -> bool {
    contract.worlds().any(|world| {
        let mut exported = world.exports.values();
        exported.any(|item| {
            matches!(item, WorldItem::Interface { id, .. } if contract.resolve.interfaces[*id].name == interface.name)
        })
    })
}

fn worlds(out: &mut String, contract: &Contract) {
    out.push_str("\n## Phases\n\nEach phase is an interface with one function. A plugin exports the phases that it implements.\n\n");
    row(out, &["phase", "function", "what it does"]);
    rule(out, 3);
    for (_, interface) in contract.interfaces().filter(|(_, i)| is_phase(contract, i)) {
        for method in contract.methods(interface, None) {
            let doc = format!("{} {}", text(&interface.docs), method.doc);
            row(
                out,
                &[
                    &format!("`{}`", interface.name.as_ref().unwrap()),
                    &code(&method.signature),
                    &one_line(&doc),
                ],
            );
        }
    }
    out.push_str("\n## Worlds\n\n");
    row(out, &["world", "imports", "exports", "purpose"]);
    rule(out, 4);
    for world in contract.worlds() {
        let names = |items: &mut dyn Iterator<Item = &WorldKey>| {
            let names = items.filter_map(|key| match key {
                WorldKey::Interface(id) => contract.resolve.interfaces[*id].name.clone(),
                WorldKey::Name(name) => Some(name.clone()),
            });
            names
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let (imports, exports) = (
            names(&mut world.imports.keys()),
            names(&mut world.exports.keys()),
        );
        row(
            out,
            &[
                &format!("`{}`", world.name),
                &imports,
                &exports,
                &one_line(text(&world.docs)),
            ],
        );
    }
}

fn write_interface(out: &mut String, contract: &Contract, interface: &Interface) {
    let _ = write!(
        out,
        "\n## Interface `{}`\n\n{}\n",
        interface.name.as_ref().unwrap(),
        text(&interface.docs)
    );
    let functions = contract.methods(interface, None);
    if !functions.is_empty() {
        methods(out, &functions);
    }
    for (id, ty) in contract.types(interface) {
        let name = ty.name.as_ref().unwrap();
        match &ty.kind {
            TypeDefKind::Resource => {
                let _ = write!(out, "\n### Resource `{name}`\n\n{}\n", text(&ty.docs));
                methods(out, &contract.methods(interface, Some(id)));
            }
            TypeDefKind::Record(record) => {
                let _ = write!(out, "\n### Record `{name}`\n\n{}\n", text(&ty.docs));
                out.push('\n');
                row(out, &["field", "type", "meaning"]);
                rule(out, 3);
                for field in &record.fields {
                    let ty = contract.type_text(&field.ty);
                    row(
                        out,
                        &[
                            &format!("`{}`", field.name),
                            &code(&ty),
                            &one_line(text(&field.docs)),
                        ],
                    );
                }
            }
            _ => {}
        }
    }
}

fn methods(out: &mut String, methods: &[Method]) {
    out.push('\n');
    let any_claims = methods.iter().any(|method| !method.claims.is_empty());
    if any_claims {
        row(out, &["method", "what it does", "claim"]);
        rule(out, 3);
    } else {
        row(out, &["method", "what it does"]);
        rule(out, 2);
    }
    for method in methods {
        let claims: Vec<_> = method
            .claims
            .iter()
            .map(|(list, path)| format!("{list} {}", code(&short(path))))
            .collect();
        let (signature, doc, claims) = (
            code(&method.signature),
            one_line(&method.doc),
            claims.join("<br>"),
        );
        if any_claims {
            row(out, &[&signature, &doc, &claims]);
        } else {
            row(out, &[&signature, &doc]);
        }
    }
}

fn short(path: &str) -> String {
    match path.strip_prefix("pod-sets[P].containers[NAME].") {
        Some(field) => format!("C.{field}"),
        None => path.to_owned(),
    }
}

fn claims(out: &mut String) {
    let obeyed: Vec<_> = ObeyedDomains::default()
        .domains()
        .map(|domain| format!("`{domain}`"))
        .collect();
    let _ = write!(
        out,
        "\n## Claims and grants\n\n\
         A claim is a path. A key is a literal, a prefix (`PET_*`), everything (`*`), the set of keys without their contents \
         (`#`), or a variable: `$job` is the TrainJob's name, and `$config./pointer` is a string in the plugin's configuration. \
         In `ports`, `$config./pointer/TCP` is a number in it, with a protocol. \
         Quote a key that contains a bracket, a quote or a space, or begins with `$`, `@` or `#`: `annotations[\"a]b\"]`. \
         `pod-sets[@nodes]` means the pod sets whose pods are the nodes, as in `info.nodes`, `pod-sets[@trainer]` those with that \
         ancestor, `pod-sets[node]` the pod set with that name, and \
         `containers[@base]` the containers that no plugin added. A claim to write a path includes reading it. What a plugin has \
         created, it may write. A claim that cannot match anything, such as `containers[A_B]` or `lookups[v1/Secret/*]`, is \
         refused when the manifest is checked.\n\n\
         A claim to write is allowed by default, needs a grant (`grants` of a PolicyPlugin), or is never allowed. `own` means \
         that the claim is allowed by default for the plugin's own objects and volumes, for values without a source, and for ports \
         that are not host ports; otherwise, it needs a grant. Labels and annotations that controllers obey, such as those of \
         Kubernetes, schedulers, networks and clouds, except those of `app.kubernetes.io`, need a claim and a grant with their full \
         name. The domains are {}, and those below them; the operator changes the list with `rendering.obeyedDomains` in the controller's configuration. \
         Built-in plugins are granted their claims.\n\n\
         Claims to read the record or the TrainJob need no grant. Lookups need one, except for a ConfigMap with a fixed name, such \
         as `lookups[v1/ConfigMap/tracing]`. Each pod set in `nodeSets` needs a grant of its count, such as \
         `pod-sets[launcher].count`: the plugin does not write the count, but decides that it follows `numNodes`.\n\n\
         Mount paths are normalized: `mounts[/dev/shm/]` is `mounts[/dev/shm]`. Names of objects with one of these endings are \
         reserved for the host, in claims and in calls:",
        obeyed.join(", ")
    );
    for (at, reserved) in RESERVED.iter().enumerate() {
        let comma = if at == 0 { " " } else { ", " };
        let _ = write!(out, "{comma}`{}`", reserved.ending());
    }
    out.push_str(
        ".\n\n\
         Claims do not show everything, such as what a plugin writes into a container that it added. So after all plugins have \
         run, the TrainJob is refused if two of them changed the same field without a declared order (`after`, `before`), emitted \
         the same object, or mounted volumes at the same path of a container.\n\n",
    );
    row(out, &["path", "meaning", "writing"]);
    rule(out, 3);
    for field in Field::ALL {
        let scope = match field.level() {
            Level::Job => "",
            Level::PodSet => "pod-sets[P].",
            Level::Container => "C.",
        };
        let key = if field.is_keyed() { "[KEY]" } else { "" };
        let permission = match field.permission() {
            Permission::Default => "allowed",
            Permission::OwnOnly => "own",
            Permission::Grant => "needs a grant",
            Permission::Host => "never",
        };
        row(
            out,
            &[
                &format!("`{scope}{field}{key}`"),
                field.description(),
                permission,
            ],
        );
    }
}

fn manifest(out: &mut String) {
    let _ = write!(
        out,
        "\n## The manifest\n\nThe manifest is JSON in the component's custom section `{SECTION}`, which the host reads without running the \
         plugin. Unknown keys are refused. `docs/manifest.schema.json` is its JSON Schema. The SDK's macro adds `name`, `version`, \
         `contract`, `phases` and `configSchema` from the crate; write the rest in `manifest.json`.\n\n"
    );
    let schema = serde_json::to_value(schemars::schema_for!(Manifest)).unwrap();
    row(out, &["key", "required", "meaning"]);
    rule(out, 3);
    keys(out, &schema, &schema, "");
}

/// The keys of an object's schema, those below a key behind it.
fn keys(out: &mut String, root: &Value, schema: &Value, above: &str) {
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (key, property) in schema["properties"].as_object().unwrap() {
        let path = format!("{above}{key}");
        let is_required = if required.contains(&key.as_str()) {
            "yes"
        } else {
            ""
        };
        let (below, list) = target(root, property);
        let described = [property, below]
            .into_iter()
            .find_map(|schema| schema["description"].as_str());
        row(
            out,
            &[
                &format!("`{path}`"),
                is_required,
                &one_line(described.unwrap_or_default()),
            ],
        );
        if below["properties"].is_object() {
            keys(
                out,
                root,
                below,
                &format!("{path}{}.", if list { "[]" } else { "" }),
            );
        }
    }
}

/// The schema that a property refers to, and whether it is that of a list's items.
fn target<'s>(root: &'s Value, property: &'s Value) -> (&'s Value, bool) {
    let reference = |schema: &Value| {
        let name = schema["$ref"].as_str()?.rsplit('/').next()?.to_owned();
        root["$defs"].get(&name)
    };
    match (reference(property), property["items"].is_object()) {
        (Some(schema), _) => (schema, false),
        (None, true) => (reference(&property["items"]).unwrap_or(&Value::Null), true),
        (None, false) => (property, false),
    }
}

fn limits(out: &mut String) {
    out.push_str(
        "\n## Limits\n\nLimits of one call. Set them for a plugin with `limits` of its PolicyPlugin. Errors name the plugin with its \
         version and digest, and the phase.\n\n",
    );
    let schema = serde_json::to_value(schemars::schema_for!(Limits)).unwrap();
    let defaults = serde_json::to_value(Limits::default()).unwrap();
    row(out, &["key", "default", "minimum", "meaning"]);
    rule(out, 4);
    for (key, property) in schema["properties"].as_object().unwrap() {
        let number = |value: &Value| value.as_u64().map(|n| n.to_string()).unwrap_or_default();
        let meaning = one_line(property["description"].as_str().unwrap_or_default());
        row(
            out,
            &[
                &format!("`{key}`"),
                &number(&defaults[key]),
                &number(&property["minimum"]),
                &meaning,
            ],
        );
    }
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn one_line(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

fn row(out: &mut String, cells: &[&str]) {
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

fn rule(out: &mut String, columns: usize) {
    let _ = writeln!(out, "|{}", "---|".repeat(columns));
}
