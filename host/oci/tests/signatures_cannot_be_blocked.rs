//! Whoever may push to a repository can add any number of manifests that refer to a plugin. A signature that counts is found among them, in
//! bounded memory, bytes and time.

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

/// Returns a network whose registry has a plugin without signatures, the digest of its manifest, and a key that may sign it with its policy.
async fn pushed() -> (Arc<Net>, String, Key, Signers) {
    let net = Net::of(&[HOST]);
    let digest = push(&net, REFERENCE, "one").await;
    let key = Key::new();
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    (net, digest, key, policy)
}

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
    let (net, digest, key, policy) = pushed().await;
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
    let (net, digest, _, policy) = pushed().await;
    for number in 0..50 {
        attach(
            net.registry(HOST),
            "team/x",
            &digest,
            format!("{{}}{}", " ".repeat(1000 + number)),
        );
    }
    let limits = Limits {
        referrer_bytes: 200_000,
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
    assert!(
        error.contains("which are 200000 bytes together; someone floods the repository"),
        "{error}"
    );
    assert!(net.seen().len() < 60, "{}", net.seen().len());
}

#[tokio::test]
async fn what_others_declare_is_not_counted_and_what_they_send_is_cut() {
    let (net, digest, key, policy) = pushed().await;
    let registry = net.registry(HOST);
    // Small manifests of large bundles that do not exist, and a large manifest that is listed as small.
    for number in 0..100 {
        let mut manifest = referrer(registry, "team/x", &digest, SIGN, b"");
        let missing = format!("sha256:{number:064}");
        manifest["layers"][0]["digest"] = json!(missing);
        manifest["layers"][0]["size"] = json!(64 << 10);
        list(registry, "team/x", &digest, &manifest);
    }
    let mut large = referrer(registry, "team/x", &digest, SIGN, b"");
    large["annotations"]["a"] = json!("x".repeat(1 << 20));
    let large = registry.put_manifest("team/x", "any", &large.to_string());
    key.sign_in(registry, "team/x", &digest);
    let limits = Limits {
        referrer_bytes: 2 << 20,
        ..Limits::default()
    };
    let (credentials, registries) = (Credentials::default(), Registries::default());
    let client = Client::new(net.clone(), credentials, registries, limits, false);
    assert_eq!(signed(&client, REFERENCE, &policy).await.unwrap(), ["acme"]);
    serve(&net, vec![vec![entry(&large)]]);
    let error = signed(&client, REFERENCE, &policy).await.unwrap_err();
    assert!(
        error.contains("sent a manifest of more than 65536 bytes"),
        "{error}"
    );
}

#[tokio::test]
async fn annotations_of_others_do_not_hide_a_signature_in_a_long_list() {
    let (net, digest, key, policy) = pushed().await;
    let good = put(
        net.registry(HOST),
        &digest,
        &key.signature(&digest).to_string(),
    );
    let mut long = entry(&format!("sha256:{:064}", 1));
    long["annotations"] = json!({"a": "x".repeat(5 << 20)});
    serve(&net, vec![vec![long, entry(&good)]]);
    let client = client(&net);
    assert_eq!(signed(&client, REFERENCE, &policy).await.unwrap(), ["acme"]);
    // A page that is too long does not hide the next one.
    let page = json!({"manifests": [entry(&good)]}).to_string();
    net.answer(move |seen| {
        let reply = match seen.url.split_once("/referrers/")?.1.contains("page=1") {
            true => Reply::new(200, page.clone()),
            false => Reply::new(200, "")
                .header("link", format!("<{}?page=1&last=a,b>; rel=next", seen.url))
                .body(Body::Endless),
        };
        Some(reply)
    });
    assert_eq!(signed(&client, REFERENCE, &policy).await.unwrap(), ["acme"]);
}

#[tokio::test]
async fn what_counts_is_not_lost_by_what_comes_later() {
    let net = Net::of(&[HOST]);
    let digest = push(&net, REFERENCE, "one").await;
    let (acme, other) = (Key::new(), Key::new());
    let policy = signers(
        &[
            ("acme", &acme, &["x"], None),
            ("other", &other, &["y"], None),
        ],
        &[],
    );
    let good = put(
        net.registry(HOST),
        &digest,
        &acme.signature(&digest).to_string(),
    );
    let page = json!({"manifests": [entry(&good)]}).to_string();
    net.answer(move |seen| {
        let reply = match seen.url.split_once("/referrers/")?.1.contains("page=1") {
            true => Reply::new(500, ""),
            false => Reply::new(200, page.clone())
                .header("link", format!("<{}?page=1>; rel=\"next\"", seen.url)),
        };
        Some(reply)
    });
    let (client, location) = (client(&net), at(REFERENCE));
    for plugin in [PluginName::Unknown, PluginName::Custom("x")] {
        let requirement = Requirement {
            signers: &policy,
            plugin,
        };
        let pulled = client.pull_verified(&location, &requirement, &Progress::NONE);
        let mut signed = pulled.await.unwrap().signed;
        signed.check(&policy, PluginName::Custom("x")).unwrap();
        assert_eq!(signed.signers, ["acme"]);
    }
}

/// Copies a signed plugin to another registry, and returns how many referrers were copied, and whether the copy is signed.
async fn copy_signed(client: &Client, policy: &Signers) -> (usize, bool) {
    let requirement = Requirement {
        signers: policy,
        plugin: PluginName::Custom("x"),
    };
    let target = "to.example.com/team/x:1.0";
    let (from, to) = (at(REFERENCE), at(target));
    let copied = client.copy(&from, &to, Some(&requirement), &Progress::NONE);
    let copied = copied.await.unwrap();
    (
        copied.referrers,
        signed(client, target, policy).await.is_ok(),
    )
}

#[tokio::test(start_paused = true)]
async fn signed_plugin_is_copied_whatever_others_added() {
    let net = Net::of(&[HOST, "to.example.com"]);
    let digest = push(&net, REFERENCE, "one").await;
    let key = Key::new();
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    let registry = net.registry(HOST);
    let good = put(registry, &digest, &key.signature(&digest).to_string());
    let other = put(registry, &digest, "other");
    let client = client(&net);
    let list = |manifests: &[&str]| {
        let entries: Vec<_> = manifests.iter().map(|digest| entry(digest)).collect();
        json!({"manifests": entries}).to_string()
    };
    let page = list(&[&good, &other]);
    let is_list =
        |url: &str| url.starts_with("https://r.example.com") && url.contains("/referrers/");
    let bodies: [fn() -> Reply; 3] = [
        // The target refuses it, the source fails, or never sends it.
        || Reply::new(500, ""),
        || Reply::new(503, ""),
        || Reply::new(200, "").body(Body::Hangs(b"{".to_vec())),
    ];
    for (at, body) in ["https://to.", "https://r.", "https://r."]
        .into_iter()
        .zip(bodies)
    {
        let (page, other) = (page.clone(), other.clone());
        net.answer(move |seen| {
            if is_list(&seen.url) {
                return Some(Reply::new(200, page.clone()));
            }
            (seen.url.starts_with(at) && seen.url.ends_with(&other)).then(body)
        });
        assert_eq!(copy_signed(&client, &policy).await, (1, true), "{at}");
    }
    // Pages that never end: the second one is not sent, or all are empty.
    let first = list(&[&good]);
    for hangs in [true, false] {
        let first = first.clone();
        let limits = Limits {
            referrer_bytes: 1 << 20,
            ..Limits::default()
        };
        net.answer(move |seen| {
            if !is_list(&seen.url) {
                return None;
            }
            let link = format!(
                "<{}?page=1>; rel=\"next\"",
                seen.url.split('?').next().unwrap()
            );
            let reply = match seen.url.contains('?') {
                false => Reply::new(200, first.clone()),
                true if hangs => Reply::new(200, "").body(Body::Hangs(Vec::new())),
                true => Reply::new(200, "{}"),
            };
            Some(reply.header("link", link))
        });
        let (credentials, registries) = (Credentials::default(), Registries::default());
        let client = Client::new(net.clone(), credentials, registries, limits, false);
        assert_eq!(copy_signed(&client, &policy).await, (1, true), "{hangs}");
    }
}

#[tokio::test(start_paused = true)]
async fn copy_ends_in_time_although_others_are_sent_slowly() {
    let net = Net::of(&[HOST, "to.example.com"]);
    let digest = push(&net, REFERENCE, "one").await;
    let key = Key::new();
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    key.sign_in(net.registry(HOST), "team/x", &digest);
    // Each of them takes 15 seconds, so that all would take longer than the whole copy may.
    let slow: Vec<_> = (0..30)
        .map(|number| attach(net.registry(HOST), "team/x", &digest, format!("{number}")))
        .collect();
    net.answer(move |seen| {
        let is_slow = slow.iter().any(|digest| seen.url.ends_with(digest));
        is_slow.then(|| Reply::new(200, "").body(Body::Hangs(Vec::new())))
    });
    assert_eq!(copy_signed(&client(&net), &policy).await, (1, true));
}

#[tokio::test]
async fn attestation_that_is_shown_is_not_larger_than_other_content() {
    let (net, digest, _, policy) = pushed().await;
    // The limit of the client is 64 KiB.
    let predicate = "https://spdx.dev/Document";
    let bundle = " ".repeat(65 << 10);
    let registry = net.registry(HOST);
    let large = referrer(registry, "team/x", &digest, predicate, bundle.as_bytes());
    list(registry, "team/x", &digest, &large);
    net.forget();
    let requirement = Requirement {
        signers: &policy,
        plugin: PluginName::Custom("x"),
    };
    let location = at(REFERENCE);
    let client = client(&net);
    let inspected = client.inspect(&location, Some(&requirement), &Progress::NONE);
    let referrers = inspected.await.unwrap().referrers;
    let problem = referrers[0].problem.as_ref().unwrap();
    assert!(problem.contains("has more than 65536 bytes"), "{problem}");
    let content = Digest::of(bundle.as_bytes()).to_string();
    assert!(!net.seen().iter().any(|seen| seen.url.ends_with(&content)));
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
    assert!(
        error.contains("counts among the first 0, which are 100000 bytes together"),
        "{error}"
    );
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
    let (net, digest, key, policy) = pushed().await;
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
    // What counts is there, so a registry that fails for others is only a warning, too.
    let sbom = Digest::of(sbom.to_string().as_bytes()).to_string();
    net.answer(move |seen| seen.url.ends_with(&sbom).then(|| Reply::new(503, "")));
    let copied = client.copy(&source, &target, Some(&requirement), &Progress::NONE);
    assert_eq!(copied.await.unwrap().referrers, 1);
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
