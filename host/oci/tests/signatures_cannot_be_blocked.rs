//! Whoever may push to a repository can add any number of manifests that refer to a plugin. A signature that counts is found among them, in
//! bounded memory, bytes and time.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_oci::{
    Client, Credentials, Digest, Limits, MANIFEST_TYPE, PluginName, Progress, Registries,
    Requirement, Signers,
};

use crate::common::{
    Body, HOST, Net, Registry, Reply, at, client, push,
    signing::{BUNDLE, Key, SIGN, attach, list, referrer, signers},
};

const REFERENCE: &str = "r.example.com/team/x:1.0";

async fn signed(client: &Client, source: &str, signers: &Signers) -> Result<Vec<String>, String> {
    let plugin = PluginName::Custom("x");
    let requirement = Requirement { signers, plugin };
    let location = at(source);
    let pulled = client.pull_verified(&location, &requirement, &Progress::NONE);
    let pulled = pulled.await.map_err(|error| error.to_string());
    pulled.map(|pulled| pulled.signed.signers)
}

fn entry(digest: &str) -> Value {
    json!({"mediaType": MANIFEST_TYPE, "digest": digest, "size": 700, "artifactType": BUNDLE})
}

/// Puts a bundle into a repository that nothing lists.
fn put(registry: &Registry, digest: &str, bundle: &str) -> String {
    let manifest = referrer(registry, "team/x", digest, SIGN, bundle.as_bytes());
    registry.put_manifest("team/x", "any", &manifest.to_string())
}

/// Answers with pages of what refers to a plugin.
fn serve(net: &Net, pages: Vec<Vec<Value>>) {
    net.answer(move |seen| {
        let (_, rest) = seen.url.split_once("/referrers/")?;
        let page = rest
            .split_once("?page=")
            .map_or(0, |(_, page)| page.parse().unwrap());
        let url = seen.url.split('?').next().unwrap();
        let reply = Reply::new(
            200,
            json!({"manifests": pages.get(page).unwrap()}).to_string(),
        );
        let link = format!("<{url}?page={}>; rel=\"next\"", page + 1);
        Some(if page + 1 < pages.len() {
            reply.header("link", link)
        } else {
            reply
        })
    });
}

#[tokio::test]
async fn signature_is_found_behind_thousands_of_others_and_on_any_page() {
    let net = Net::of(&[HOST]);
    let digest = push(&net, REFERENCE, "one").await;
    let (key, other) = (Key::new(), Key::new());
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    let registry = net.registry(HOST);
    let good = put(registry, &digest, &key.signature(&digest).to_string());
    // Each is a valid signature of another key.
    let forged: Vec<_> = (0..2000)
        .map(|number| {
            let bundle = format!("{}{}", other.signature(&digest), " ".repeat(number));
            entry(&put(registry, &digest, &bundle))
        })
        .collect();
    let mut pages: Vec<_> = forged.chunks(100).map(<[_]>::to_vec).collect();
    pages.push(vec![entry(&good)]);
    serve(&net, pages.clone());
    assert_eq!(
        signed(&client(&net), REFERENCE, &policy).await.unwrap(),
        ["acme"]
    );
    pages.pop();
    serve(&net, pages);
    let error = signed(&client(&net), REFERENCE, &policy).await.unwrap_err();
    assert!(error.contains("and 1992 more"), "{error}");
    assert!(error.len() < 4000, "{}", error.len());
}

#[tokio::test]
async fn attestations_and_large_bundles_are_not_fetched_to_find_a_signature() {
    let net = Net::of(&[HOST]);
    let digest = push(&net, REFERENCE, "one").await;
    let key = Key::new();
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    let registry = net.registry(HOST);
    let (sbom, large) = (format!("sha256:{:064}", 1), format!("sha256:{:064}", 2));
    let mut attestation = entry(&sbom);
    attestation["annotations"] =
        json!({"dev.sigstore.bundle.predicateType": "https://spdx.dev/Document"});
    let mut too_large = entry(&large);
    too_large["size"] = json!(1 << 20);
    let good = put(registry, &digest, &key.signature(&digest).to_string());
    serve(&net, vec![vec![attestation, too_large, entry(&good)]]);
    net.forget();
    assert_eq!(
        signed(&client(&net), REFERENCE, &policy).await.unwrap(),
        ["acme"]
    );
    let seen = net.seen();
    assert!(
        !seen
            .iter()
            .any(|seen| seen.url.contains(&sbom) || seen.url.contains(&large))
    );
}

#[tokio::test]
async fn bytes_of_a_flood_are_bounded() {
    let net = Net::of(&[HOST]);
    let digest = push(&net, REFERENCE, "one").await;
    let key = Key::new();
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    for number in 0..50 {
        attach(
            net.registry(HOST),
            "team/x",
            &digest,
            format!("{{}}{}", " ".repeat(1000 + number)),
        );
    }
    let limits = Limits {
        referrer_bytes: 20_000,
        ..Limits::default()
    };
    let client = Client::new(
        net.clone(),
        Credentials::default(),
        Registries::default(),
        limits,
        false,
    );
    net.forget();
    let error = signed(&client, REFERENCE, &policy).await.unwrap_err();
    assert!(error.contains("counts among the first 12, which are 20000 bytes together; someone floods the repository"), "{error}");
    assert!(net.seen().len() < 50, "{}", net.seen().len());
}

#[tokio::test(start_paused = true)]
async fn endless_pages_end_with_the_deadline() {
    let net = Net::of(&[HOST]);
    let digest = push(&net, REFERENCE, "one").await;
    let policy = signers(&[("acme", &Key::new(), &["x"], None)], &[]);
    // Each page leads to itself.
    net.answer(|seen| {
        let is_list = seen.url.contains("/referrers/");
        is_list.then(|| {
            Reply::new(200, "{\"manifests\": []}")
                .header("link", format!("<{}>; rel=\"next\"", seen.url))
        })
    });
    let limits = Limits {
        referrer_bytes: 100_000,
        ..Limits::default()
    };
    let client = Client::new(
        net.clone(),
        Credentials::default(),
        Registries::default(),
        limits,
        false,
    );
    let error = signed(&client, REFERENCE, &policy).await.unwrap_err();
    assert!(error.contains("sent referrers of more than"), "{error}");
    // A signature that never arrives.
    let referrer = attach(net.registry(HOST), "team/x", &digest, "{}");
    net.answer(move |seen| {
        seen.url
            .ends_with(&referrer)
            .then(|| Reply::new(200, "").body(Body::Hangs(b"{".to_vec())))
    });
    let error = signed(&client, REFERENCE, &policy).await.unwrap_err();
    assert!(error.contains("sent nothing for 15s"), "{error}");
}

#[tokio::test]
async fn flood_does_not_prevent_a_copy_of_a_signed_plugin() {
    let net = Net::of(&[HOST]);
    let digest = push(&net, REFERENCE, "one").await;
    let key = Key::new();
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    for number in 0..100 {
        attach(
            net.registry(HOST),
            "team/x",
            &digest,
            format!("{{\"a\": {number}}}"),
        );
    }
    key.sign_in(net.registry(HOST), "team/x", &digest);
    let folder = tempfile::tempdir().unwrap();
    let target = format!("oci:{}", folder.path().display());
    let client = client(&net);
    let source = at(REFERENCE);
    let copied = client
        .copy(&source, &at(&target), None, &Progress::NONE)
        .await;
    assert!(
        copied
            .unwrap_err()
            .to_string()
            .contains("more than 64 manifests refer to it")
    );
    let requirement = Requirement {
        signers: &policy,
        plugin: PluginName::Custom("x"),
    };
    let copied = client
        .copy(&source, &at(&target), Some(&requirement), &Progress::NONE)
        .await;
    assert_eq!(copied.unwrap().referrers, 1);
    assert_eq!(signed(&client, &target, &policy).await.unwrap(), ["acme"]);
}

#[tokio::test]
async fn broken_referrers_do_not_prevent_a_copy_of_a_signed_plugin_with_the_others() {
    let net = Net::of(&[HOST]);
    let digest = push(&net, REFERENCE, "one").await;
    let (key, registry) = (Key::new(), net.registry(HOST));
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    let mut broken = referrer(registry, "team/x", &digest, SIGN, b"broken");
    broken["layers"][0]["digest"] = json!(format!("sha256:{:064}", 7));
    list(registry, "team/x", &digest, &broken);
    let mut sbom = referrer(registry, "team/x", &digest, SIGN, b"sbom");
    sbom["artifactType"] = json!("application/spdx+json");
    list(registry, "team/x", &digest, &sbom);
    key.sign_in(registry, "team/x", &digest);
    let folder = tempfile::tempdir().unwrap();
    let target = at(&format!("oci:{}", folder.path().display()));
    let (client, source) = (client(&net), at(REFERENCE));
    let copied = client.copy(&source, &target, None, &Progress::NONE).await;
    assert!(copied.unwrap_err().to_string().contains("has no blob"));
    let plugin = PluginName::Custom("x");
    let requirement = Requirement {
        signers: &policy,
        plugin,
    };
    let copied = client.copy(&source, &target, Some(&requirement), &Progress::NONE);
    assert_eq!(copied.await.unwrap().referrers, 2);
    // A registry that fails for a moment is no reason to leave something out.
    let sbom = Digest::of(sbom.to_string().as_bytes()).to_string();
    net.answer(move |seen| seen.url.ends_with(&sbom).then(|| Reply::new(503, "")));
    let copied = client.copy(&source, &target, Some(&requirement), &Progress::NONE);
    let error = copied.await.unwrap_err().to_string();
    assert!(error.contains("answered 503"), "{error}");
}

#[tokio::test]
async fn signature_in_a_folder_is_found_behind_others() {
    let net = Net::of(&[HOST]);
    let folder = tempfile::tempdir().unwrap();
    let name = format!("oci:{}", folder.path().display());
    let digest = push(&net, &name, "one").await;
    let (key, other) = (Key::new(), Key::new());
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    let blobs = folder.path().join("blobs/sha256");
    let put = |bytes: &[u8]| {
        let digest = Digest::of(bytes);
        std::fs::write(blobs.join(digest.hex()), bytes).unwrap();
        digest.to_string()
    };
    let file = folder.path().join("index.json");
    let mut index: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let add = |bundle: String, index: &mut Value| {
        let registry = Registry::default();
        put(bundle.as_bytes());
        put(b"{}");
        let manifest = referrer(&registry, "x", &digest, SIGN, bundle.as_bytes()).to_string();
        let mut listed = entry(&put(manifest.as_bytes()));
        listed["size"] = json!(manifest.len());
        index["manifests"].as_array_mut().unwrap().push(listed);
    };
    for number in 0..200 {
        add(
            format!("{}{}", other.signature(&digest), " ".repeat(number)),
            &mut index,
        );
    }
    add(key.signature(&digest).to_string(), &mut index);
    std::fs::write(&file, index.to_string()).unwrap();
    let net = Arc::new(Net::default());
    assert_eq!(
        signed(&client(&net), &name, &policy).await.unwrap(),
        ["acme"]
    );
}
