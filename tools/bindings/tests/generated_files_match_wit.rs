//! The generated files match `wit/`, and adding a method takes only its signature and docs.
//!
//! `UPDATE=1` regenerates the files.

use std::{collections::BTreeMap, env, fs, path::Path};

use trainyard_bindings::{Contract, GeneratedFile, generate};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn generated_files_are_up_to_date() {
    let files = generate(&Contract::read(&root().join("wit")).unwrap()).unwrap();
    assert!(files.len() > 8, "{files:?}");
    for GeneratedFile { path, text } in files {
        let file = root().join(&path);
        if env::var_os("UPDATE").is_some_and(|value| value == "1") {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let found = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            found == text,
            "{path} does not match wit/: run `make bindings`"
        );
    }
}

/// Reads the contract with these replacements in all of its files.
fn changed(changes: &[(&str, &str)]) -> anyhow::Result<Contract> {
    let mut sources = BTreeMap::new();
    let mut found = vec![false; changes.len()];
    for entry in fs::read_dir(root().join("wit")).unwrap() {
        let path = entry.unwrap().path();
        let mut text = fs::read_to_string(&path).unwrap();
        for ((from, to), found) in changes.iter().zip(&mut found) {
            *found |= text.contains(from);
            text = text.replace(from, to);
        }
        let name = path.file_name().unwrap();
        sources.insert(name.to_str().unwrap().to_owned(), text);
    }
    assert!(found.iter().all(|found| *found), "{changes:?}");
    Contract::parse(sources)
}

/// The lines that these replacements add to the generated Rust files.
fn new_lines(changes: &[(&str, &str)]) -> Vec<String> {
    let today = generate(&changed(&[]).unwrap()).unwrap();
    let lines = |files: &[GeneratedFile]| -> Vec<String> {
        let of = |file: &GeneratedFile| {
            let lines = file.text.lines();
            lines
                .map(|line| format!("{}: {}", file.path, line.trim()))
                .collect::<Vec<_>>()
        };
        let is_code =
            |file: &&GeneratedFile| [".rs", ".go"].iter().any(|end| file.path.ends_with(end));
        files.iter().filter(is_code).flat_map(of).collect()
    };
    let before = lines(&today);
    let after = lines(&generate(&changed(changes).unwrap()).unwrap());
    after
        .into_iter()
        .filter(|line| !before.contains(line))
        .collect()
}

#[test]
fn signature_and_docs_are_enough_to_add_a_method() {
    let supports = "supports: func(feature: string) -> bool;";
    let added = format!(
        "{supports}\n/// Puts ports, as `put-port`.\n///\n/// @writes C.ports[*]\nput-ports-of: func(name: string, claims: option<string>) -> list<string>;"
    );
    assert_eq!(
        new_lines(&[(supports, &added)]),
        [
            "host/sandbox/src/contract/rows.rs: \"[method]context.put-ports-of\",",
            "host/sandbox/src/contract/rows.rs: \"context.put-ports-of\" (name: String, claims: Option<String>) -> Vec<String> = context_put_ports_of(&name, claims.as_deref());",
            "plugins/sdk/src/contract/context.rs: /// Puts ports, as `put_port`.",
            "plugins/sdk/src/contract/context.rs: ///",
            "plugins/sdk/src/contract/context.rs: /// Needs the claim to write `C.ports[*]`.",
            "plugins/sdk/src/contract/context.rs: fn put_ports_of(name: &str, claims: Option<&str>) -> Vec<String> = \"context.put-ports-of\" context_put_ports_of(name, claims);",
            "host/templates/go/policy/context.go: // Puts ports, as `PutPort`.",
            "host/templates/go/policy/context.go: //",
            "host/templates/go/policy/context.go: // Needs the claim to write `C.ports[*]`.",
            "host/templates/go/policy/context.go: PutPortsOf(name string, claims *string) []string",
            "host/templates/go/policy/context_wasip1.go: //go:wasmimport trainyard:policy/context@1.0.0 [method]context.put-ports-of",
            "host/templates/go/policy/context_wasip1.go: func importContextPutPortsOf(self uint32, word0 uint32, word1 uint32, word2 uint32, word3 uint32, word4 uint32, result unsafe.Pointer)",
            "host/templates/go/policy/context_wasip1.go: func (self contextHandle) PutPortsOf(name string, claims *string) []string {",
            "host/templates/go/policy/context_wasip1.go: rawClaims := lowerOption(claims, lowerString)",
            "host/templates/go/policy/context_wasip1.go: var result rawList",
            "host/templates/go/policy/context_wasip1.go: importContextPutPortsOf(uint32(self), rawName.at, rawName.length, bit(rawClaims.some), rawClaims.value.at, rawClaims.value.length, unsafe.Pointer(&result))",
            "host/templates/go/policy/context_wasip1.go: return liftList(result, liftString)",
            "tests/fuzz/src/calls/methods.rs: Method { name: \"context.put-ports-of\", call: |call, args| { let got = call.context_put_ports_of(args.take::<handle::Context>(), &args.take::<String>(), args.take::<Option<String>>().as_deref())?; got.keep(args); Ok(()) } },",
        ]
    );
}

#[test]
fn signatures_are_enough_to_add_a_resource_and_a_method_that_borrows_it() {
    let object = "    /// One object to emit.";
    let sealed = format!("    /// Placed, never read.\n    resource sealed-note;\n\n{object}");
    let append = "        append: func(key: string, text: string);";
    let borrows = format!(
        "{append}\n/// Appends it.\nappend-sealed: func(key: string, text: borrow<sealed-note>);"
    );
    let lines = new_lines(&[(object, &sealed), (append, &borrows)]);
    for line in [
        "host/model/src/contract/handle.rs: SealedNote,",
        "host/sandbox/src/contract/rows.rs: methods!(instance, \"sealed-note\", handle::SealedNote {});",
        "host/sandbox/src/contract/rows.rs: \"object.append-sealed\" (key: String, text: Resource<handle::SealedNote>) = object_append_sealed(&key, super::lent(text));",
        "plugins/sdk/src/contract/mod.rs: pub use self::objects::SealedNote;",
        "plugins/sdk/src/contract/objects.rs: fn append_sealed(key: &str, text: &SealedNote) = \"object.append-sealed\" object_append_sealed(key, text.lend());",
        "host/templates/go/policy/objects.go: isSealedNote()",
        "host/templates/go/policy/objects.go: AppendSealed(key string, text SealedNote)",
        "host/templates/go/policy/objects_wasip1.go: importObjectAppendSealed(uint32(self), rawKey.at, rawKey.length, uint32(text.(sealedNoteHandle)))",
    ] {
        assert!(
            lines.iter().any(|found| found == line),
            "{line}\n{lines:#?}"
        );
    }
}

#[test]
fn page_of_methods_has_each_method_once() {
    let files = generate(&changed(&[]).unwrap()).unwrap();
    let page = files.iter().find(|file| file.path == "docs/methods.md");
    let page = &page.unwrap().text;
    let sdk = files
        .iter()
        .filter(|file| file.path.starts_with("plugins/sdk/src/contract"));
    let rows = sdk.flat_map(|file| file.text.lines());
    let rows = rows.filter(|line| line.trim_start().starts_with("fn "));
    let names: Vec<_> = rows
        .map(|row| row.split_once(" = \"").unwrap().1)
        .map(|row| row.split_once('"').unwrap().0)
        .collect();
    assert!(names.len() > 150, "{names:?}");
    for name in names {
        assert_eq!(
            page.matches(&format!("| `{name}` | `")).count(),
            1,
            "{name}"
        );
    }
}

#[test]
fn version_is_raised_only_in_wit() {
    let text = fs::read_to_string(root().join("wit/types.wit")).unwrap();
    let package = text.lines().next().unwrap();
    let (name, _) = package.split_once('@').unwrap();
    let lines = new_lines(&[(package, &format!("{name}@1.998.0;"))]);
    assert!(
        lines.iter().all(|line| line.contains("1.998.0")),
        "{lines:#?}"
    );
    for file in [
        "host/model/src/contract/version.rs",
        "plugins/sdk/src/contract/mod.rs",
        "plugins/sdk/src/guest/worlds.rs",
        "host/templates/go/policy/transform/transform_wasip1.go",
    ] {
        assert!(lines.iter().any(|line| line.starts_with(file)), "{file}");
    }
}

#[test]
fn variants_and_undocumented_items_are_refused() {
    let mount = "    record mount {";
    let colors = format!(
        "    /// Three.\n    enum color {{ red, green, blue }}\n\n    /// A volume.\n{mount}"
    );
    for (changes, message) in [
        ((mount, &*colors), "color: a enum cannot gain cases later"),
        (
            ("        /// The TrainJob's name.\n", ""),
            "job.name: has no docs",
        ),
        (
            (
                "interface lookups {",
                "interface lookups {\n    /// Free.\n    free: func();\n",
            ),
            "lookups.free: functions must be methods",
        ),
    ] {
        let error = changed(&[changes]).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(message), "{error}");
    }
}
