//! Whatever a registry sends that is not the plugin that was asked for is refused, with an error that says what, and what to do.

use serde_json::{Value, json};
use trainyard_oci::{CONFIG_TYPE, Digest, LAYER_TYPE, MANIFEST_TYPE};

use crate::common::{Body, HOST, Net, Reply, WASM, client, pull, push};

const REFERENCE: &str = "r.example.com/team/x:1.0";

/// Pushes a plugin, and changes its manifest.
async fn pulled_with(change: impl FnOnce(&mut Value)) -> String {
    let net = Net::of(&[HOST]);
    push(&net, REFERENCE, "one").await;
    let registry = net.registry(HOST);
    let manifest = {
        let content = registry.content.lock().unwrap();
        let (_, manifest) = content.get("/v2/team/x/manifests/1.0").unwrap();
        let mut manifest: Value = serde_json::from_slice(manifest).unwrap();
        change(&mut manifest);
        manifest.to_string()
    };
    registry.put_manifest("team/x", "1.0", &manifest);
    let error = pull(&client(&net), REFERENCE).await.unwrap_err();
    assert!(error.starts_with(&format!("{REFERENCE}: ")), "{error}");
    error
}

/// A change of a manifest.
type Change = fn(&mut Value);

#[tokio::test]
async fn manifests_of_other_things_are_refused() {
    let changes: [(Change, &str); 13] = [
        (
            |manifest| {
                let layers = manifest
                    .pointer_mut("/layers")
                    .unwrap()
                    .as_array_mut()
                    .unwrap();
                layers.push(layers.first().unwrap().clone());
            },
            "has 2 layers, but a plugin has one",
        ),
        (
            |manifest| *manifest.pointer_mut("/layers").unwrap() = json!([]),
            "has 0 layers",
        ),
        (
            |manifest| {
                *manifest.pointer_mut("/layers/0/mediaType").unwrap() =
                    json!("application/vnd.oci.image.layer.v1.tar+gzip");
            },
            "neither packed nor compressed",
        ),
        (
            |manifest| {
                *manifest.pointer_mut("/config/mediaType").unwrap() =
                    json!("application/vnd.oci.image.config.v1+json");
            },
            "is it a container image?",
        ),
        (
            |manifest| {
                *manifest.pointer_mut("/layers/0/annotations").unwrap() =
                    json!({"org.opencontainers.image.title": "../../etc/cron.d/x"});
            },
            "the title `../../etc/cron.d/x`, which is a path",
        ),
        (
            |manifest| {
                *manifest = json!({"schemaVersion": 2, "manifests": [{"digest": "sha256:a"}, {}]})
            },
            "is an index of 2 manifests, but a plugin is one manifest for all platforms; write the reference of one of them: sha256:a",
        ),
        (
            |manifest| {
                *manifest.pointer_mut("/mediaType").unwrap() =
                    json!("application/vnd.docker.distribution.manifest.v2+json");
            },
            "but a plugin has application/vnd.oci.image.manifest.v1+json",
        ),
        (
            |manifest| *manifest.pointer_mut("/layers/0/size").unwrap() = json!(1_u64 << 40),
            "its file has 1099511627776 bytes, but at most 65536 are accepted",
        ),
        (
            |manifest| *manifest.pointer_mut("/config/size").unwrap() = json!(1_u64 << 40),
            "its configuration has 1099511627776 bytes",
        ),
        (
            |manifest| *manifest.pointer_mut("/layers/0/size").unwrap() = json!(-1),
            "its manifest is not valid",
        ),
        (
            |manifest| {
                *manifest.pointer_mut("/layers/0/digest").unwrap() =
                    json!(format!("sha512:{}", "a".repeat(128)));
            },
            "is not `sha256:` with 64 hexadecimal digits",
        ),
        (
            |manifest| *manifest.pointer_mut("/layers/0/digest").unwrap() = json!("sha256:../../x"),
            "its manifest is not valid",
        ),
        (
            |manifest| *manifest = json!("no object"),
            "its manifest is not valid",
        ),
    ];
    for (change, expected) in changes {
        let error = pulled_with(change).await;
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[tokio::test]
async fn sizes_and_digests_of_a_manifest_are_compared() {
    for (pointer, value, expected) in [
        (
            "/layers/0/size",
            json!(10),
            "sent more of a file for which its manifest says 10 bytes",
        ),
        (
            "/layers/0/size",
            json!(12),
            "sent 11 bytes of a file for which its manifest says 12 bytes",
        ),
    ] {
        let error = pulled_with(|manifest| *manifest.pointer_mut(pointer).unwrap() = value).await;
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("nothing was used of it"), "{error}");
    }
    let net = Net::of(&[HOST]);
    push(&net, REFERENCE, "one").await;
    let other = [WASM, b"two"].concat();
    net.answer(move |seen| {
        let is_file = seen
            .url
            .ends_with(Digest::of(&[WASM, b"one"].concat()).as_str());
        is_file.then(|| Reply::new(200, other.clone()))
    });
    let error = pull(&client(&net), REFERENCE).await.unwrap_err();
    assert!(
        error.contains("sent a file with the digest sha256:"),
        "{error}"
    );
}

#[tokio::test]
async fn files_are_webassembly_whatever_their_media_type() {
    for (file, expected) in [
        (&b"\x1f\x8b\x08 zip"[..], "is compressed with gzip"),
        (b"<!doctype html>", "is not a WebAssembly file"),
    ] {
        let net = Net::of(&[HOST]);
        let registry = net.registry(HOST);
        let (config, layer) = (
            registry.put_blob("team/x", b"{}"),
            registry.put_blob("team/x", file),
        );
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": {"mediaType": CONFIG_TYPE, "digest": config, "size": 2},
            "layers": [{"mediaType": LAYER_TYPE, "digest": layer, "size": file.len()}],
        });
        registry.put_manifest("team/x", "1.0", &manifest.to_string());
        let error = pull(&client(&net), REFERENCE).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn manifest_has_the_digest_that_was_asked_for() {
    let net = Net::of(&[HOST]);
    let (one, two) = (
        push(&net, REFERENCE, "one").await,
        push(&net, "r.example.com/team/x:2.0", "two").await,
    );
    let registry = net.registry(HOST);
    let manifest = registry
        .content
        .lock()
        .unwrap()
        .get(&format!("/v2/team/x/manifests/{two}"))
        .cloned();
    let (_, manifest) = manifest.unwrap();
    registry.put(
        &format!("/v2/team/x/manifests/{one}"),
        MANIFEST_TYPE,
        manifest,
    );
    let error = pull(&client(&net), &format!("r.example.com/team/x@{one}"))
        .await
        .unwrap_err();
    assert!(
        error.contains(&format!("sent a manifest with the digest {two} for {one}")),
        "{error}"
    );

    net.answer(|seen| {
        let reply = Reply::new(200, "{}").header(
            "docker-content-digest",
            format!("sha256:{}", "0".repeat(64)),
        );
        seen.url.ends_with("/manifests/1.0").then_some(reply)
    });
    let error = pull(&client(&net), REFERENCE).await.unwrap_err();
    assert!(error.contains("sent a manifest with the digest"), "{error}");
}

#[tokio::test]
async fn tag_that_moved_is_an_error_if_the_digest_is_given() {
    let net = Net::of(&[HOST]);
    let one = push(&net, REFERENCE, "one").await;
    let two = push(&net, REFERENCE, "two").await;
    let error = pull(&client(&net), &format!("{REFERENCE}@{one}"))
        .await
        .unwrap_err();
    assert!(
        error.contains(&format!(
            "the tag 1.0 now has the digest {two}, but {one} is wanted"
        )),
        "{error}"
    );
    assert!(
        error.contains("write the reference without the tag"),
        "{error}"
    );
    let pinned = pull(&client(&net), &format!("r.example.com/team/x@{one}")).await;
    assert_eq!(pinned.unwrap(), [WASM, b"one"].concat());
}

#[tokio::test]
async fn registries_that_refuse_are_named_with_their_reason() {
    let net = Net::of(&[HOST]);
    for (status, expected) in [
        (
            404,
            "r.example.com has no manifest `1.0` in `team/x`; check the registry",
        ),
        (
            403,
            "refuses access to team/x without a credential; run `docker login r.example.com`",
        ),
        (
            429,
            "answered 429 Too Many Requests: slow down; try again later",
        ),
        (
            503,
            "answered 503 Service Unavailable: slow down; try again later",
        ),
        (
            418,
            "answered 418 I'm a teapot: slow down; check what this registry accepts",
        ),
    ] {
        net.answer(move |_| {
            Some(Reply::new(
                status,
                r#"{"errors": [{"message": "slow\u001b[31m down"}]}"#,
            ))
        });
        let error = pull(&client(&net), REFERENCE).await.unwrap_err();
        let shown = error.replace("\\u{1b}[31m", "").replace("\\u001b[31m", "");
        assert!(!error.contains('\u{1b}'), "{error:?}");
        assert!(shown.contains(expected), "{expected}: {error}");
    }
    net.answer(|_| Some(Reply::new(500, "").body(Body::Endless)));
    let error = pull(&client(&net), REFERENCE).await.unwrap_err();
    assert!(
        error.contains("answered 500 Internal Server Error; try again later"),
        "{error}"
    );
    net.take_down(HOST);
    let error = pull(&client(&net), REFERENCE).await.unwrap_err();
    assert!(
        error.contains("cannot reach r.example.com: connection refused"),
        "{error}"
    );
}
