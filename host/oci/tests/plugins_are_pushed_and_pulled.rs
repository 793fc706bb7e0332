//! A plugin that was pushed is pulled as it was, by its tag and by its digest.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use trainyard_oci::{
    Artifact, CONFIG_TYPE, Digest, LAYER_TYPE, MANIFEST_TYPE, Progress, Release, Step,
};

use crate::common::{HOST, Net, WASM, at, client, plugin, pull, push};

#[tokio::test]
async fn pulled_file_is_the_pushed_one() {
    let net = Net::of(&[HOST]);
    let digest = push(&net, "r.example.com/team/x:1.0", "one").await;
    let file = [WASM, b"one"].concat();
    for source in [
        "r.example.com/team/x:1.0".to_owned(),
        format!("r.example.com/team/x@{digest}"),
        format!("r.example.com/team/x:1.0@{digest}"),
    ] {
        assert_eq!(
            pull(&client(&net), &source).await,
            Ok(file.clone()),
            "{source}"
        );
    }
    let (client, tag) = (client(&net), at("r.example.com/team/x:1.0"));
    let pulled = client.pull(&tag, &Progress::NONE).await.unwrap();
    assert_eq!(pulled.digest.as_str(), digest);
    assert_eq!(pulled.annotations.get("a").unwrap(), "b");
}

#[tokio::test]
async fn operations_can_run_in_any_thread() {
    fn sent<T: Send>(operation: T) -> T {
        operation
    }
    let net = Net::of(&[HOST]);
    let client = client(&net);
    let (from, to) = (
        at("r.example.com/team/x:1.0"),
        at("r.example.com/team/y:1.0"),
    );
    let artifact = plugin("one");
    sent(client.push(&artifact, &from, &Progress::NONE))
        .await
        .unwrap();
    sent(client.pull(&from, &Progress::NONE)).await.unwrap();
    sent(client.inspect(&from, None, &Progress::NONE))
        .await
        .unwrap();
    sent(client.copy(&from, &to, None, &Progress::NONE))
        .await
        .unwrap();
}

#[tokio::test]
async fn manifest_is_the_wasm_artifact_of_the_cncf() {
    let net = Net::of(&[HOST]);
    push(&net, "r.example.com/team/x:1.0", "one").await;
    let content = net.registry(HOST).content.lock().unwrap();
    let (media_type, manifest) = content.get("/v2/team/x/manifests/1.0").unwrap();
    assert_eq!(media_type, MANIFEST_TYPE);
    let manifest: Value = serde_json::from_slice(manifest).unwrap();
    let text = |pointer: &str| manifest.pointer(pointer).unwrap().as_str().unwrap();
    assert_eq!(text("/mediaType"), MANIFEST_TYPE);
    assert_eq!(text("/config/mediaType"), CONFIG_TYPE);
    assert_eq!(text("/layers/0/mediaType"), LAYER_TYPE);
    let (_, config) = content
        .get(&format!("/v2/team/x/blobs/{}", text("/config/digest")))
        .unwrap();
    let config: Value = serde_json::from_slice(config).unwrap();
    let file = Digest::of(&[WASM, b"one"].concat());
    let expected = serde_json::json!({
        "created": "1970-01-01T00:00:00Z",
        "architecture": "wasm",
        "os": "wasip2",
        "layerDigests": [file],
    });
    assert_eq!(config, expected);
    assert_eq!(text("/layers/0/digest"), file.as_str());
}

#[test]
fn same_file_has_the_same_digest_and_other_files_are_refused() {
    assert_eq!(plugin("one").digest, plugin("one").digest);
    assert_ne!(plugin("one").digest, plugin("two").digest);
    for (file, expected) in [
        (&b"\x1f\x8b\x08"[..], "compressed with gzip"),
        (b"#!/bin/sh", "is not a WebAssembly file"),
        (b"", "is not a WebAssembly file"),
    ] {
        let error = Artifact::new(file.to_vec(), &Release::default()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn content_that_the_registry_has_is_not_sent_again() {
    let net = Net::of(&[HOST]);
    push(&net, "r.example.com/team/x:1.0", "one").await;
    net.forget();
    push(&net, "r.example.com/team/x:2.0", "one").await;
    let seen = net.seen();
    assert!(
        seen.iter().all(|seen| !seen.url.contains("/uploads/")),
        "{seen:?}"
    );
}

#[tokio::test]
async fn progress_counts_each_byte_of_the_file_once() {
    let net = Net::of(&[HOST]);
    let steps = Arc::new(Mutex::new(Vec::new()));
    let progress = {
        let steps = steps.clone();
        Progress::new(move |step| steps.lock().unwrap().push(step))
    };
    push(&net, "r.example.com/team/x:1.0", "one").await;
    client(&net)
        .pull(&at("r.example.com/team/x:1.0"), &progress)
        .await
        .unwrap();
    let steps = steps.lock().unwrap();
    let bytes = (WASM.len() + 3) as u64;
    assert_eq!(steps.first(), Some(&Step::Expect(bytes)));
    let advanced = steps.iter().map(|step| match step {
        Step::Advance(bytes) => *bytes,
        Step::Expect(_) => 0,
    });
    assert_eq!(advanced.sum::<u64>(), bytes);
}
