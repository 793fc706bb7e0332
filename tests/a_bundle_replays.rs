//! A bundle holds all that a rendering is made of: on any machine, in any folder, the same comes of it byte for byte, or the first
//! field that differs is named. A bundle that was damaged or made up is refused with what is wrong, and nothing of it is written.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Archive, Builder, EntryType, Header};

fn trainyard(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_trainyard"))
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn replay(folder: &Path, arguments: &[&str]) -> Output {
    trainyard(folder, &[&["replay", "bundle.tar"], arguments].concat())
}

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases")
}

/// The bundle of a case.
fn recorded(case: &str) -> (tempfile::TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let input = cases().join(case).join("input.yaml");
    let arguments = [
        "render",
        "-f",
        input.to_str().unwrap(),
        "--record",
        "bundle.tar",
    ];
    let output = trainyard(folder.path(), &arguments);
    assert!(output.status.success(), "{}", said(&output));
    let bundle = fs::read(folder.path().join("bundle.tar")).unwrap();
    (folder, bundle)
}

/// The files of a bundle by name, in their order.
fn files(bundle: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = Archive::new(bundle);
    let mut files = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
        files.push((entry.path().unwrap().display().to_string(), content));
    }
    files
}

/// An archive of those entries, with any names.
fn archive(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for (name, kind, content) in entries {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

fn plain(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let entries = files.iter();
    let entries: Vec<_> = entries
        .map(|(name, content)| (name.as_str(), EntryType::Regular, &**content))
        .collect();
    archive(&entries)
}

/// The bundle with a file of JSON changed, and the digests that go with it.
fn changed(bundle: &[u8], name: &str, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut files = files(bundle);
    let file = files.iter_mut().find(|(file, _)| file == name).unwrap();
    let mut value: Value = serde_json::from_slice(&file.1).unwrap();
    change(&mut value);
    file.1 = value.to_string().into_bytes();
    if name != "bundle.json" {
        let digest: String = Sha256::digest(&file.1)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let bytes = file.1.len();
        let mut index: Value = serde_json::from_slice(&files[0].1).unwrap();
        index["files"][name] = json!({"bytes": bytes, "digest": format!("sha256:{digest}")});
        files[0].1 = index.to_string().into_bytes();
    }
    plain(&files)
}

/// Every case that renders: old forms, patches, overrides, several TrainJobs.
#[test]
fn every_case_replays() {
    let mut replayed = 0;
    for case in fs::read_dir(cases()).unwrap() {
        let case = case.unwrap();
        if !case.path().join("expected.yaml").is_file() {
            continue;
        }
        let name = case.file_name().into_string().unwrap();
        if fs::read_to_string(case.path().join("expected.yaml"))
            .unwrap()
            .is_empty()
        {
            continue;
        }
        let (folder, bundle) = recorded(&name);
        let output = replay(folder.path(), &[]);
        assert!(output.status.success(), "{name}: {}", said(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.starts_with("bundle.tar: the same, byte for byte: "),
            "{text}"
        );
        // The index says where the others are, and nothing who wrote them, when and where.
        assert_eq!(recorded(&name).1, bundle, "{name}");
        replayed += 1;
    }
    assert!(replayed > 50, "{replayed}");
}

/// The component of a test plugin.
fn component(name: &'static str) -> String {
    static BUILT: OnceLock<BTreeMap<&'static str, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let build = |name: &'static str| {
            let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
            let component = target.join(format!("replayed-{name}.wasm"));
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../tests/plugins")
                .join(name);
            trainyard_cluster::build_plugin(&folder, &component, &[]).unwrap();
            (name, component.to_str().unwrap().to_owned())
        };
        ["site", "flavors"].map(build).into()
    });
    built[name].clone()
}

const INPUT: &str = r#"
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: runtime}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  plugins: [{name: site}, {name: flavors}]
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: registry.example.com/torch:1}]}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: job, labels: {example.com/flavor: "yes", example.com/priorities: "yes"}}
spec: {runtimeRef: {name: runtime}}
---
{apiVersion: example.com/v1, kind: Flavor, metadata: {name: default, annotations: {unread: of-no-use}}, spec: {gpu: h100}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1}
---
{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {token: hunter2}}
"#;

const POLICY: &str = r#"
apiVersion: trainyard.dev/v1alpha1
kind: PolicyFile
clusterDomain: k8s.example.com
accelerators: [example.com/npu]
facts: {site/region: north-3, site/other: south}
plugins:
- {name: site, grants: ['pod-sets[@trainer].node-selector[example.com/pool]'], after: [torch], config: {proxy: 'http://proxy:3128'}}
- {name: flavors, grants: ['lookups[example.com/v1/Flavor/default]', 'lookups[scheduling.k8s.io/v1/PriorityClass/*]', 'lookups[v1/ConfigMap/*]', 'lookups[late.example.com/v1/Zone/*]'], limits: {fuel: 20000000}}
"#;

/// Plugins, grants, configuration, order, facts of the cluster, namespace and lookups come from the bundle alone.
#[test]
fn nothing_but_the_bundle_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("input.yaml"), INPUT).unwrap();
    fs::write(folder.path().join("policy.yaml"), POLICY).unwrap();
    let (site, flavors) = (component("site"), component("flavors"));
    let arguments = [
        "render",
        "-f",
        "input.yaml",
        "-n",
        "research",
        "--policy",
        "policy.yaml",
        "--plugin",
        &site,
        "--plugin",
        &flavors,
        "--record",
        "bundle.tar",
    ];
    let rendered = trainyard(folder.path(), &arguments);
    assert!(rendered.status.success(), "{}", said(&rendered));
    let text = String::from_utf8(rendered.stdout).unwrap();
    for part in [
        "h100",
        "k8s.example.com",
        "http://proxy:3128",
        "north-3",
        "namespace: research",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let bundle = fs::read(folder.path().join("bundle.tar")).unwrap();
    // What no plugin read is not in it, and a Secret never is.
    let of_use = String::from_utf8_lossy(&bundle);
    for part in ["hunter2", "of-no-use"] {
        assert!(!of_use.contains(part), "{part}");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("bundle.tar"), &bundle).unwrap();
    let output = replay(elsewhere.path(), &["-o", "json"]);
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["same"], &report["trainJobs"]),
        (&json!(true), &json!(1))
    );
    // Without what it was granted, it is refused as by any policy file.
    let without = changed(&bundle, "bundle.json", |index| {
        let plugins = index["plugins"].as_array_mut().unwrap();
        let site = plugins.iter_mut().find(|plugin| plugin["name"] == "site");
        site.unwrap()["grants"] = json!([]);
    });
    fs::write(elsewhere.path().join("bundle.tar"), without).unwrap();
    let error = said(&replay(elsewhere.path(), &[]));
    assert!(
        error.contains("`plugins/site.wasm`: plugin site") && error.contains("is not granted"),
        "{error}"
    );
}

#[test]
fn the_first_field_that_differs_is_named() {
    let (folder, bundle) = recorded("torch-two-jobs");
    let output = "trainjobs/001/output.json";
    let other = changed(&bundle, output, |list| {
        let job_set = &mut list["items"][0];
        job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] = json!(77);
    });
    fs::write(folder.path().join("bundle.tar"), other).unwrap();
    let table = replay(folder.path(), &[]);
    assert_eq!(table.status.code(), Some(1));
    let text = String::from_utf8(table.stdout.clone()).unwrap();
    assert!(
        text.contains(
            ": spec.replicatedJobs[0].template.spec.parallelism\n  recorded: 77\n  now:      "
        ),
        "{text}"
    );
    assert!(
        said(&table).starts_with("error: bundle.tar: the result differs from the recorded one")
    );
    let json: Value =
        serde_json::from_slice(&replay(folder.path(), &["-o", "json"]).stdout).unwrap();
    assert_eq!(
        (&json["same"], &json["difference"]["recorded"]),
        (&json!(false), &json!(77))
    );
    // Another input leads to another result.
    let other = changed(&bundle, "trainjobs/000/trainjob.json", |job| {
        job["spec"]["trainer"] = json!({"numNodes": 9});
    });
    fs::write(folder.path().join("bundle.tar"), other).unwrap();
    let output = replay(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("TrainJob ml/zeta: JobSet zeta: ")
    );
}

#[test]
fn another_build_is_compared_only_if_that_is_wanted() {
    let (folder, bundle) = recorded("torch-two-jobs");
    for (member, value) in [("version", "9.9.9"), ("build", "0123456789abcdef")] {
        let other = changed(&bundle, "bundle.json", |index| {
            index["trainyard"][member] = json!(value)
        });
        fs::write(folder.path().join("bundle.tar"), other).unwrap();
        let output = replay(folder.path(), &[]);
        assert_eq!(output.status.code(), Some(1));
        let error = said(&output);
        assert!(
            output.stdout.is_empty() && error.contains(value) && error.contains("--any-version"),
            "{error}"
        );
        let output = replay(folder.path(), &["--any-version"]);
        assert!(
            output.status.success()
                && said(&output).starts_with("warning: bundle.tar: was recorded by trainyard ")
        );
    }
}

/// Refuses a bundle, with nothing on standard output and nothing written.
fn refused(bundle: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("in/inner");
    fs::create_dir_all(&inner).unwrap();
    fs::write(inner.join("bundle.tar"), bundle).unwrap();
    let output = replay(&inner, &[]);
    let error = said(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        output.stdout.is_empty() && error.starts_with("error: bundle.tar: "),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");
    let names = |folder: &Path| fs::read_dir(folder).unwrap().count();
    assert_eq!((names(folder.path()), names(&inner)), (1, 1));
    assert_eq!(fs::read(inner.join("bundle.tar")).unwrap(), bundle);
    error
}

#[test]
fn a_file_that_a_bundle_does_not_have_is_refused() {
    let (_folder, bundle) = recorded("torch-two-jobs");
    let files = files(&bundle);
    let regular = |name: &str, content: &[u8]| (name.to_owned(), content.to_vec());
    for name in [
        "../outside",
        "/tmp/outside",
        "trainjobs/000/../../outside",
        "trainjobs/000/other.json",
        "plugins/a/b.wasm",
        "plugins/A.wasm",
        "trainjobs/0x1/output.json",
        "",
    ] {
        let more = [&files[..], &[regular(name, b"x")]].concat();
        let error = refused(&plain(&more));
        assert!(
            error.contains("is not a file that a bundle has"),
            "{name}: {error}"
        );
    }
    let unlisted = [&files[..], &[regular("plugins/other.wasm", b"x")]].concat();
    assert!(
        refused(&plain(&unlisted)).contains("`plugins/other.wasm`: is not listed in `bundle.json`")
    );
    let twice = [&files[..], &files[2..3]].concat();
    assert!(refused(&plain(&twice)).contains("is there twice"));
    let index_twice = [&files[..], &files[..1]].concat();
    assert!(refused(&plain(&index_twice)).contains("`bundle.json`: is there twice"));
    assert!(refused(&plain(&files[1..])).contains("does not begin with `bundle.json`"));
    assert!(refused(&plain(&files[..3])).contains("is listed in `bundle.json` and missing"));
}

#[test]
fn links_devices_and_extensions_are_refused() {
    let (_folder, bundle) = recorded("torch-two-jobs");
    let files = files(&bundle);
    for (kind, words) in [
        (EntryType::Symlink, "a symbolic link"),
        (EntryType::Link, "a hard link"),
        (EntryType::Directory, "a folder"),
        (EntryType::Fifo, "a device or a pipe"),
        (EntryType::Block, "a device or a pipe"),
        (EntryType::GNULongName, "an extension of tar"),
        (EntryType::GNUSparse, "an extension of tar"),
        (EntryType::XHeader, "an extension of tar"),
        (EntryType::XGlobalHeader, "an extension of tar"),
    ] {
        let entries = [
            (files[0].0.as_str(), EntryType::Regular, &*files[0].1),
            ("plugins/torch.wasm", kind, &[][..]),
        ];
        let error = refused(&archive(&entries));
        assert!(
            error.contains(&format!("is {words}, and a bundle holds plain files only")),
            "{error}"
        );
        let error = refused(&archive(&[("bundle.json", kind, &[][..])]));
        assert!(error.contains("plain files only"), "{error}");
    }
}

#[test]
fn a_damaged_bundle_is_refused_wherever_it_is_cut_or_changed() {
    let (_folder, bundle) = recorded("torch-two-jobs");
    let files = files(&bundle);
    // Up to the last file; what follows is padding.
    let content: usize = files
        .iter()
        .map(|(_, content)| 512 + content.len().next_multiple_of(512))
        .sum();
    for end in [
        0,
        1,
        100,
        511,
        512,
        513,
        4000,
        content / 2,
        content - 1024,
        content - 600,
    ] {
        refused(&bundle[..end]);
    }
    // A byte of each file's content.
    let mut at = 0;
    for (name, content) in &files {
        let mut other = bundle.clone();
        let place = at + 512 + content.len() / 2;
        other[place] ^= 1;
        let error = refused(&other);
        let said = if name == "bundle.json" {
            ""
        } else {
            "was changed or damaged"
        };
        assert!(error.contains(said), "{name}: {error}");
        // And one of its header.
        let mut other = bundle.clone();
        other[at + 3] ^= 1;
        refused(&other);
        at += 512 + content.len().next_multiple_of(512);
    }
    assert!(refused(b"no archive at all").contains("is not a tar archive, or is damaged"));
}

#[test]
fn sizes_are_bounded_before_anything_is_read() {
    let (_folder, bundle) = recorded("torch-two-jobs");
    let files = files(&bundle);
    for (name, size) in [
        ("plugins/torch.wasm", 33 << 20),
        ("trainjobs/000/output.json", u64::MAX >> 4),
        ("bundle.json", 1 << 40),
    ] {
        let mut header = Header::new_ustar();
        header.set_path(name).unwrap();
        header.set_entry_type(EntryType::Regular);
        header.set_size(size);
        header.set_cksum();
        let before = if name == "bundle.json" {
            Vec::new()
        } else {
            archive(&[("bundle.json", EntryType::Regular, &files[0].1)])
        };
        // Without the end of the archive.
        let before = &before[..before.len().saturating_sub(1024)];
        let error = refused(&[before, header.as_bytes()].concat());
        assert!(
            error.contains(&format!("`{name}`: has {size} bytes, but at most ")),
            "{error}"
        );
    }
    // JSON that takes far more memory than text.
    let nested = "[".repeat(200) + &"]".repeat(200);
    let many = format!(
        "{{\"form\": 1, \"files\": [{}]}}",
        vec!["[]"; 9_000_000].join(",")
    );
    for text in [nested, many] {
        let error = refused(&archive(&[(
            "bundle.json",
            EntryType::Regular,
            text.as_bytes(),
        )]));
        assert!(error.contains("`bundle.json`: "), "{error}");
    }
    let (folder, _) = (tempfile::tempdir().unwrap(), ());
    fs::create_dir(folder.path().join("bundle.tar")).unwrap();
    assert_eq!(replay(folder.path(), &[]).status.code(), Some(1));
}

#[test]
fn what_the_index_says_is_checked() {
    let (_folder, bundle) = recorded("torch-two-jobs");
    type Change = fn(&mut Value);
    let table: [(Change, &str); 8] = [
        (
            |index| index["form"] = json!(2),
            "has the form 2, but this trainyard reads form 1",
        ),
        (|index| index["form"] = json!("1"), "`form` is missing"),
        (|index| index["more"] = json!(1), "unknown field `more`"),
        (
            |index| index["trainJobs"] = json!([]),
            "trainJobs: has 0 entries",
        ),
        (
            |index| index["trainJobs"][0]["output"] = json!("../x"),
            "`../x`: is listed in `bundle.json` and missing",
        ),
        (
            |index| index["plugins"][0]["limits"]["memoryBytes"] = json!(u64::MAX),
            "limits.memoryBytes: is 18446744073709551615; a replay allows at most 1073741824",
        ),
        (
            |index| index["plugins"][0]["name"] = json!("other"),
            "but the bundle names it `other`",
        ),
        (|index| index["plugins"] = json!([]), "TrainJob ml/zeta: "),
    ];
    for (change, wanted) in table {
        let error = refused(&changed(&bundle, "bundle.json", change));
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
}

/// A component of a bundle is screened as any other.
#[test]
fn a_component_is_loaded_as_any_other() {
    let (_folder, bundle) = recorded("torch-two-jobs");
    for content in [&b"no component"[..], b"\x7fELF", b""] {
        let mut files = files(&bundle);
        let plugin = files
            .iter_mut()
            .find(|(name, _)| name == "plugins/torch.wasm")
            .unwrap();
        plugin.1 = content.to_vec();
        let digest: String = Sha256::digest(content)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let mut index: Value = serde_json::from_slice(&files[0].1).unwrap();
        index["files"]["plugins/torch.wasm"] =
            json!({"bytes": content.len(), "digest": format!("sha256:{digest}")});
        files[0].1 = index.to_string().into_bytes();
        let error = refused(&plain(&files));
        assert!(error.contains("`plugins/torch.wasm`: "), "{error}");
    }
}

#[test]
fn a_refused_input_leaves_no_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let input = cases().join("error-all-at-once/input.yaml");
    let output = trainyard(
        folder.path(),
        &[
            "render",
            "-f",
            input.to_str().unwrap(),
            "--record",
            "bundle.tar",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let input = cases().join("torch-two-jobs/input.yaml");
    let output = trainyard(
        folder.path(),
        &[
            "render",
            "-f",
            input.to_str().unwrap(),
            "--record",
            "no/such/bundle.tar",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.stdout.is_empty()
            && said(&output).starts_with("error: no/such/bundle.tar: can't be written: "),
        "{}",
        said(&output)
    );
}

#[test]
fn files_are_recorded_by_render_alone() {
    let folder = tempfile::tempdir().unwrap();
    let input = cases().join("torch-two-jobs/input.yaml");
    let arguments = [
        "explain",
        "-f",
        input.to_str().unwrap(),
        "--record",
        "bundle.tar",
    ];
    let output = trainyard(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(said(&output).contains("record files with `trainyard render --record`"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
