//! A corrupt or forged bundle is refused with the reason, and none of its files is written.

use std::{fs, path::Path};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{EntryType, Header};

use crate::common::{
    bundle::{archive, changed, files, plain, recorded, replay},
    stderr,
};

/// Checks that a bundle is refused without output and without writing a file. Returns the error.
fn refused(bundle: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("in/inner");
    fs::create_dir_all(&inner).unwrap();
    fs::write(inner.join("bundle.tar"), bundle).unwrap();
    let output = replay(&inner, &[]);
    let error = stderr(&output);
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
fn unknown_files_are_refused() {
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
            error.contains("is not a file of a bundle"),
            "{name}: {error}"
        );
    }
    let unlisted = [&files[..], &[regular("plugins/other.wasm", b"x")]].concat();
    assert!(
        refused(&plain(&unlisted)).contains("`plugins/other.wasm`: is not listed in `bundle.json`")
    );
    let twice = [&files[..], &files[2..3]].concat();
    assert!(refused(&plain(&twice)).contains("appears twice"));
    let index_twice = [&files[..], &files[..1]].concat();
    assert!(refused(&plain(&index_twice)).contains("`bundle.json`: appears twice"));
    assert!(refused(&plain(&files[1..])).contains("its first file is not `bundle.json`"));
    assert!(refused(&plain(&files[..3])).contains("is listed in `bundle.json` but missing"));
}

#[test]
fn links_devices_and_extensions_are_refused() {
    let (_folder, bundle) = recorded("torch-two-jobs");
    let files = files(&bundle);
    for (kind, words) in [
        (EntryType::Symlink, "a symbolic link"),
        (EntryType::Link, "a hard link"),
        (EntryType::Directory, "a directory"),
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
            error.contains(&format!("is {words}, but a bundle has only regular files")),
            "{error}"
        );
        let error = refused(&archive(&[("bundle.json", kind, &[][..])]));
        assert!(error.contains("has only regular files"), "{error}");
    }
}

#[test]
fn truncated_or_changed_bundle_is_refused() {
    let (_folder, bundle) = recorded("torch-two-jobs");
    let files = files(&bundle);
    // Truncate before the end of the last file; the rest is padding.
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
    // Change a byte of each file's content.
    let mut at = 0;
    for (name, content) in &files {
        let mut other = bundle.clone();
        let place = at + 512 + content.len() / 2;
        other[place] ^= 1;
        let error = refused(&other);
        let printed = if name == "bundle.json" {
            ""
        } else {
            "was changed or damaged"
        };
        assert!(error.contains(printed), "{name}: {error}");
        // Change a byte of its header.
        let mut other = bundle.clone();
        other[at + 3] ^= 1;
        refused(&other);
        at += 512 + content.len().next_multiple_of(512);
    }
    assert!(refused(b"no archive at all").contains("is not a tar archive, or is damaged"));
}

#[test]
fn sizes_are_checked_before_reading() {
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
        // Remove the end of the archive.
        let before = &before[..before.len().saturating_sub(1024)];
        let error = refused(&[before, header.as_bytes()].concat());
        assert!(
            error.contains(&format!("`{name}`: has {size} bytes, but at most ")),
            "{error}"
        );
    }
    // This JSON takes far more memory than its text.
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
fn index_is_validated() {
    let (_folder, bundle) = recorded("torch-two-jobs");
    type Change = fn(&mut Value);
    let table: [(Change, &str); 12] = [
        (
            |index| index["form"] = json!(2),
            "has format version 2, but this release reads version 1",
        ),
        (|index| index["form"] = json!("1"), "`form` is missing"),
        (|index| index["more"] = json!(1), "unknown field `more`"),
        (
            |index| index["trainJobs"] = json!([]),
            "trainJobs: must have 1 to 1024 entries, has 0",
        ),
        (
            |index| index["trainJobs"][0]["output"] = json!("../x"),
            "`../x`: is listed in `bundle.json` but missing",
        ),
        (
            |index| index["plugins"][0]["limits"]["memoryBytes"] = json!(i64::MAX),
            "limits.memoryBytes: must be at most 1073741824 in a bundle; found 9223372036854775807",
        ),
        (
            |index| index["plugins"][0]["name"] = json!("other"),
            "is recorded as the built-in plugin `other`, but differs from the one in this build",
        ),
        (
            |index| {
                index["plugins"][0]["name"] = json!("other");
                index["plugins"][0]["grants"] = json!(["pod-sets[*].containers[*].command"]);
            },
            "but the index names it `other 0.1.0`",
        ),
        (
            |index| index["plugins"][0]["version"] = json!("9.9.9"),
            "but the index names it `torch 9.9.9`",
        ),
        (
            |index| index["trainJobs"][0]["name"] = json!("other"),
            "but the index names it `other`",
        ),
        (
            |index| {
                index["trainJobs"][1]["output"] = index["trainJobs"][0]["output"].clone();
            },
            "`trainjobs/000/output.json`: belongs to two plugins or TrainJobs",
        ),
        (
            |index| index["plugins"] = json!([]),
            "`plugins/torch.wasm`: does not belong to a plugin or TrainJob",
        ),
    ];
    for (change, wanted) in table {
        let error = refused(&changed(&bundle, "bundle.json", change));
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
}

/// A component of a bundle is screened like any other.
#[test]
fn components_are_screened_as_usual() {
    let (_folder, bundle) = recorded("torch-two-jobs");
    for content in [&b"no component"[..], b"\x7fELF", b""] {
        let mut files = files(&bundle);
        let plugin = files
            .iter_mut()
            .find(|(name, _)| name == "plugins/torch.wasm")
            .unwrap();
        plugin.1 = content.to_vec();
        let digest = hex::encode(Sha256::digest(content));
        let mut index: Value = serde_json::from_slice(&files[0].1).unwrap();
        index["files"]["plugins/torch.wasm"] =
            json!({"bytes": content.len(), "digest": format!("sha256:{digest}")});
        index["plugins"][0]["grants"] = json!([]);
        files[0].1 = index.to_string().into_bytes();
        let error = refused(&plain(&files));
        assert!(error.contains("`plugins/torch.wasm`: "), "{error}");
    }
}

/// A built-in plugin has all its claims without explicit grants, and another component in its place would get them.
#[test]
fn built_in_plugins_must_match_this_build() {
    let (_folder, bundle) = recorded("torch-two-jobs");
    let mut files = files(&bundle);
    let place = |files: &[(String, Vec<u8>)]| {
        let mut names = files.iter().map(|(name, _)| name);
        names.position(|name| name == "plugins/torch.wasm").unwrap()
    };
    let at = place(&files);
    // An empty custom section does not change the code.
    files[at].1.extend([0, 2, 1, b'x']);
    let digest = hex::encode(Sha256::digest(&files[at].1));
    let mut index: Value = serde_json::from_slice(&files[0].1).unwrap();
    index["files"]["plugins/torch.wasm"] =
        json!({"bytes": files[at].1.len(), "digest": format!("sha256:{digest}")});
    files[0].1 = index.to_string().into_bytes();
    let error = refused(&plain(&files));
    assert!(
        error.contains(
            "is recorded as the built-in plugin `torch`, but differs from the one in this build"
        ),
        "{error}"
    );
}

#[test]
fn reformatted_result_is_not_the_same() {
    let (_folder, bundle) = recorded("torch-two-jobs");
    let error = refused(&changed(&bundle, "trainjobs/000/output.json", |_| {}));
    assert!(
        error.contains(
            "`trainjobs/000/output.json`: has the recorded values but not the recorded bytes"
        ),
        "{error}"
    );
}
