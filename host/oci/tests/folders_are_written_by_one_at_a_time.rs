//! A folder that several plugins share loses no entry, and no plugin makes it unreadable for the others.

use std::{fs, path::Path, thread};

use serde_json::{Value, json};
use trainyard_oci::{CONFIG_TYPE, LAYER_TYPE, MANIFEST_TYPE, Progress};

use crate::common::{HOST, Net, Registry, WASM, at, client, pull, push};

const REFERENCE: &str = "r.example.com/team/x:1.0";

/// Returns what the index lists.
fn listed(folder: &Path) -> Vec<Value> {
    let index = fs::read(folder.join("index.json")).unwrap();
    let index: Value = serde_json::from_slice(&index).unwrap();
    index.get("manifests").unwrap().as_array().unwrap().clone()
}

/// Puts a plugin into a registry whose manifest has as many bytes as one may have, nearly all of them in an annotation.
fn largest(registry: &Registry, tag: &str) {
    let (config, layer) = (
        registry.put_blob("team/x", b"{}"),
        registry.put_blob("team/x", WASM),
    );
    let manifest = |annotation: &str| {
        json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": {"mediaType": CONFIG_TYPE, "digest": config, "size": 2},
            "layers": [{"mediaType": LAYER_TYPE, "digest": layer, "size": WASM.len()}],
            "annotations": {"a": annotation},
        })
        .to_string()
    };
    let rest = (4 << 20) - manifest("").len();
    registry.put_manifest("team/x", tag, &manifest(&"x".repeat(rest)));
}

#[tokio::test]
async fn annotations_of_one_plugin_do_not_fill_the_index_of_all() {
    let net = Net::of(&[HOST]);
    let folder = tempfile::tempdir().unwrap();
    let target = at(&format!("oci:{}", folder.path().display()));
    for name in ["a", "b", "c"] {
        push(&net, &format!("{target}:{name}"), name).await;
    }
    push(&net, REFERENCE, "one").await;
    largest(net.registry(HOST), "large");
    for source in [REFERENCE, "r.example.com/team/x:large", REFERENCE] {
        let client = client(&net);
        let copied = client
            .copy(&at(source), &target, None, &Progress::NONE)
            .await;
        copied.unwrap();
    }
    let source = format!("{target}:{REFERENCE}");
    assert_eq!(
        pull(&client(&net), &source).await,
        Ok([WASM, b"one"].concat())
    );
}

#[tokio::test]
async fn index_that_could_not_be_read_is_not_written() {
    let net = Net::of(&[HOST]);
    push(&net, REFERENCE, "one").await;
    let folder = tempfile::tempdir().unwrap();
    let name = format!("oci:{}", folder.path().display());
    push(&net, &format!("{name}:1.0"), "two").await;
    let before = fs::read(folder.path().join("index.json")).unwrap();
    let target = at(&format!("{name}:{}", "x".repeat(4 << 20)));
    let copied = client(&net)
        .copy(&at(REFERENCE), &target, None, &Progress::NONE)
        .await;
    let error = copied.unwrap_err().to_string();
    assert!(
        error.contains("its list of manifests has 4194"),
        "{}",
        error.len()
    );
    assert_eq!(fs::read(folder.path().join("index.json")).unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn index_is_written_by_one_process_at_a_time() {
    let net = Net::of(&[HOST]);
    push(&net, REFERENCE, "one").await;
    let folder = tempfile::tempdir().unwrap();
    let target = at(&format!("oci:{}", folder.path().display()));
    push(&net, &format!("{target}:1.0"), "two").await;
    let other = fs::File::open(folder.path().join("oci-layout")).unwrap();
    other.lock().unwrap();
    let copied = client(&net)
        .copy(&at(REFERENCE), &target, None, &Progress::NONE)
        .await;
    let error = copied.unwrap_err().to_string();
    assert!(error.contains("not done within 300s"), "{error}");
    assert_eq!(listed(folder.path()).len(), 1);
    other.unlock().unwrap();
    let copied = client(&net)
        .copy(&at(REFERENCE), &target, None, &Progress::NONE)
        .await;
    copied.unwrap();
    assert_eq!(listed(folder.path()).len(), 2);
}

#[test]
fn copies_at_the_same_time_are_all_listed() {
    const COPIES: usize = 16;
    let folder = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for number in 0..COPIES {
            let target = format!("oci:{}:{number}", folder.path().display());
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread();
                let runtime = { runtime }.enable_time().build().unwrap();
                runtime.block_on(push(&Net::of(&[]), &target, &number.to_string()));
            });
        }
    });
    assert_eq!(listed(folder.path()).len(), COPIES);
}

#[tokio::test]
async fn plugin_that_was_copied_by_its_digest_is_found_by_it() {
    let net = Net::of(&[HOST]);
    let digest = push(&net, REFERENCE, "one").await;
    for source in [
        format!("r.example.com/team/x@{digest}"),
        format!("{REFERENCE}@{digest}"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let target = format!("oci:{}", folder.path().display());
        push(&net, &format!("{target}:other"), "two").await;
        let copied = client(&net)
            .copy(&at(&source), &at(&target), None, &Progress::NONE)
            .await;
        copied.unwrap();
        let file = pull(&client(&net), &format!("{target}:{source}")).await;
        assert_eq!(file, Ok([WASM, b"one"].concat()), "{source}");
    }
}
