//! Each crate has only the dependencies that its layer allows: the record, the API, the schemas and rendering depend neither on a
//! Kubernetes client nor on WebAssembly, the sandbox does not depend on Kubernetes, and the controller does not depend on WebAssembly.

use std::{collections::BTreeSet, fs, process::Command};

use crate::common::{root, sources};

/// Returns the names of all dependencies of a crate and its own, without those of tests and examples.
fn built_from(package: &str) -> BTreeSet<String> {
    built_with(package, &[])
}

/// Returns the same with further arguments of `cargo tree`, such as features.
fn built_with(package: &str, args: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--frozen",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--package",
            package,
        ])
        .args(args)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "cargo tree: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let names: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    assert!(
        names.contains(package) && names.len() > 1,
        "{package}: {text}"
    );
    names
}

const KUBERNETES: &[&str] = &["kube", "k8s-openapi"];
const WASM: &[&str] = &["wasmtime", "cranelift", "wasmparser", "wit-component"];

#[test]
fn no_crate_depends_on_a_forbidden_layer() {
    for (package, ours, foreign) in [
        ("trainyard-model", &[][..], [KUBERNETES, WASM].concat()),
        ("trainyard-api", &[], [KUBERNETES, WASM].concat()),
        ("trainyard-structural", &[], [KUBERNETES, WASM].concat()),
        (
            "trainyard-schema",
            &["trainyard-api", "trainyard-structural"],
            [KUBERNETES, WASM].concat(),
        ),
        (
            "trainyard-config",
            &[
                "trainyard-api",
                "trainyard-model",
                "trainyard-schema",
                "trainyard-structural",
            ],
            [KUBERNETES, WASM].concat(),
        ),
        (
            "trainyard-oci",
            &[
                "trainyard-api",
                "trainyard-config",
                "trainyard-model",
                "trainyard-schema",
                "trainyard-structural",
            ],
            [KUBERNETES, WASM].concat(),
        ),
        (
            "trainyard-render",
            &["trainyard-api", "trainyard-model"],
            [KUBERNETES, WASM].concat(),
        ),
        (
            "trainyard-sandbox",
            &["trainyard-model"],
            KUBERNETES.to_vec(),
        ),
        (
            "trainyard-bundle",
            &[
                "trainyard-api",
                "trainyard-model",
                "trainyard-render",
                "trainyard-sandbox",
            ],
            KUBERNETES.to_vec(),
        ),
        (
            "trainyard-divergences",
            &["trainyard-api", "trainyard-model"],
            [KUBERNETES, WASM].concat(),
        ),
        (
            "trainyard-controller",
            &[
                "trainyard-api",
                "trainyard-config",
                "trainyard-divergences",
                "trainyard-model",
                "trainyard-oci",
                "trainyard-render",
                "trainyard-schema",
                "trainyard-structural",
            ],
            WASM.to_vec(),
        ),
        (
            "trainyard-componentize",
            &["trainyard-model"],
            KUBERNETES.to_vec(),
        ),
    ] {
        for name in built_from(package) {
            // All crates escape hidden characters in the same way, and build scripts list the folders of the plugins.
            let shared = ["trainyard-text", "trainyard-plugin-folders"];
            let is_shared = name == package || shared.contains(&name.as_str());
            let is_other = name.starts_with("trainyard") && !is_shared;
            assert!(
                !is_other || ours.contains(&name.as_str()),
                "{package} depends on {name}"
            );
            let is_foreign = |part: &&str| name == **part || name.starts_with(&format!("{part}-"));
            assert!(
                !foreign.iter().any(is_foreign),
                "{package} depends on {name}"
            );
        }
    }
}

/// A plugin's component is built without the crates that its tests need, and a plugin whose tests have no YAML without those that render it.
#[test]
fn plugins_are_built_without_what_their_tests_need() {
    const YAML: [&str; 2] = ["--features", "yaml"];
    const GUEST: [&str; 2] = ["--target", "wasm32-unknown-unknown"];
    const SDK: &str = "trainyard-sdk";
    let ours = |found: &BTreeSet<String>| {
        let ours = found
            .iter()
            .filter_map(|name| name.strip_prefix("trainyard-"));
        ours.map(str::to_owned).collect::<Vec<_>>()
    };
    let guest = built_with(SDK, &GUEST);
    assert_eq!(ours(&guest), ["sdk", "sdk-derive"]);
    assert_eq!(built_with(SDK, &[GUEST, YAML].concat()), guest);
    assert_eq!(
        ours(&built_from(SDK)),
        ["model", "sdk", "sdk-derive", "text"]
    );
    let yaml = built_with(SDK, &YAML);
    assert_eq!(
        ours(&yaml),
        [
            "api",
            "model",
            "render",
            "schema",
            "sdk",
            "sdk-derive",
            "structural",
            "text"
        ]
    );
    let is_foreign = |name: &&str| yaml.contains(*name);
    assert_eq!(
        [KUBERNETES, WASM]
            .concat()
            .iter()
            .find(|name| is_foreign(name)),
        None
    );
}

/// Crates that only render cannot read keys of a TrainJob's Secret, and crates that call plugins cannot generate them.
#[test]
fn only_the_controller_generates_keys() {
    const KEYS: [&str; 3] = ["p521", "x25519-dalek", "z85"];
    let makes = |package| {
        let built_from = built_from(package);
        KEYS.map(|name| built_from.contains(name))
    };
    assert_eq!(makes("trainyard-controller"), [true; 3]);
    for package in [
        "trainyard-model",
        "trainyard-oci",
        "trainyard-render",
        "trainyard-sandbox",
        "trainyard-sdk",
    ] {
        assert_eq!(makes(package), [false; 3], "{package}");
    }
}

/// The names above exist in the dependency tree. Otherwise, a renamed crate would not be noticed.
#[test]
fn only_the_sandbox_depends_on_webassembly() {
    let sandbox = built_from("trainyard-sandbox");
    assert!(sandbox.contains("wasmtime") && sandbox.contains("trainyard-model"));
    let binary = built_from("trainyard");
    for package in [
        "trainyard-api",
        "trainyard-config",
        "trainyard-model",
        "trainyard-render",
        "trainyard-sandbox",
        "trainyard-schema",
        "trainyard-structural",
        "trainyard-componentize",
    ] {
        assert!(binary.contains(package), "{package}");
    }
}

/// The controller's build digests the sources of every crate that determines a JobSet, so suspended JobSets are rendered
/// again after a fix in one of them.
#[test]
fn build_digest_covers_every_crate_that_renders() {
    let build = std::fs::read_to_string(root().join("host/controller/build/main.rs")).unwrap();
    // What a build script of the schemas lists is in compact.json, which is digested.
    let ours = |name: &String| {
        let name = name.strip_prefix("trainyard-")?;
        (name != "plugin-folders").then(|| name.to_owned())
    };
    let mut covered = 0;
    for package in ["trainyard-render", "trainyard-schema", "trainyard-sandbox"] {
        for name in built_from(package).iter().filter_map(ours) {
            let folder = format!("\"../{name}/src\"");
            assert!(build.contains(&folder), "{package} is built from {name}");
            covered += 1;
        }
    }
    assert!(covered > 8, "{covered}");
}

/// It has neither a limit of memory nor of time.
#[test]
fn only_the_fuzzers_compile_components_in_their_own_process() {
    let mut files = Vec::new();
    sources(&root().join("host"), &mut files);
    assert!(files.len() > 300, "{} files", files.len());
    let name = "load_without_a_process";
    files.retain(|file| fs::read_to_string(file).unwrap().contains(name));
    assert_eq!(files, [root().join("host/sandbox/src/loader.rs")]);
}
