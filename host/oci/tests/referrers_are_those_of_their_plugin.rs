//! What a registry or folder lists as a referrer is copied only if it is one, gets no name, and is bounded.

use std::{fs, sync::Arc};

use serde_json::{Value, json};
use trainyard_oci::{
    CONFIG_TYPE, Client, Copied, Credentials, Digest, LAYER_TYPE, Limits, MANIFEST_TYPE, OciError,
    Progress, Registries,
};

use crate::common::{HOST, Net, Registry, Reply, WASM, at, client, pull, push};

const REFERENCE: &str = "r.example.com/team/x:1.0";
const NAME: &str = "org.opencontainers.image.ref.name";

/// Puts a plugin into a registry that says that it refers to another manifest, and names itself.
fn forged(registry: &Registry, subject: &str, content: &str) -> String {
    let file = [WASM, content.as_bytes()].concat();
    let (config, layer) = (
        registry.put_blob("team/x", b"{}"),
        registry.put_blob("team/x", &file),
    );
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": {"mediaType": CONFIG_TYPE, "digest": config, "size": 2},
        "layers": [{"mediaType": LAYER_TYPE, "digest": layer, "size": file.len()}],
        "subject": {"mediaType": MANIFEST_TYPE, "digest": subject, "size": 1},
        "annotations": {NAME: "trusted:1.0", "kept": "yes"},
    });
    registry.put_manifest("team/x", content, &manifest.to_string())
}

fn refer(registry: &Registry, subject: &str, manifests: &Value) {
    let list = json!({"schemaVersion": 2, "manifests": manifests}).to_string();
    let path = format!("/v2/team/x/referrers/{subject}");
    registry.put(&path, "application/vnd.oci.image.index.v1+json", list);
}

fn entry(digest: &str) -> Value {
    json!({"mediaType": MANIFEST_TYPE, "digest": digest, "size": 1})
}

async fn copy(net: &Arc<Net>, target: &str) -> Result<Copied, OciError> {
    let client = client(net);
    client
        .copy(&at(REFERENCE), &at(target), None, &Progress::NONE)
        .await
}

#[tokio::test]
async fn referrers_give_themselves_no_name() {
    let net = Net::of(&[HOST, "to.example.com"]);
    let digest = push(&net, REFERENCE, "one").await;
    let signature = forged(net.registry(HOST), &digest, "evil");
    refer(net.registry(HOST), &digest, &json!([entry(&signature)]));
    let folder = tempfile::tempdir().unwrap();
    let name = format!("oci:{}", folder.path().display());
    assert_eq!(copy(&net, &name).await.unwrap().referrers, 1);
    let index = fs::read_to_string(folder.path().join("index.json")).unwrap();
    assert!(
        index.contains(&signature) && !index.contains("trusted"),
        "{index}"
    );
    let error = pull(&client(&net), &format!("{name}:trusted:1.0")).await;
    assert!(error.unwrap_err().contains("the folder has no plugin"));

    // The same in the tag that lists the referrers.
    let copied = copy(&net, "to.example.com/team/x:1.0").await;
    assert_eq!(copied.unwrap().referrers, 1);
    let tag = format!("/v2/team/x/manifests/{}", digest.replace(':', "-"));
    let content = net
        .registry("to.example.com")
        .content
        .lock()
        .unwrap()
        .clone();
    let (_, list) = content.get(&tag).unwrap();
    let list = String::from_utf8(list.clone()).unwrap();
    assert!(list.contains("kept") && !list.contains("trusted"), "{list}");
}

#[tokio::test]
async fn manifests_that_refer_to_something_else_are_not_copied() {
    let net = Net::of(&[HOST, "to.example.com"]);
    let digest = push(&net, REFERENCE, "one").await;
    let other = Digest::of(b"a plugin of somebody else").to_string();
    let registry = net.registry(HOST);
    let (own, foreign) = (
        forged(registry, &digest, "own"),
        forged(registry, &other, "foreign"),
    );
    refer(registry, &digest, &json!([entry(&foreign), entry(&own)]));
    let copied = copy(&net, "to.example.com/team/x:1.0").await.unwrap();
    assert_eq!(copied.referrers, 1);
    let to = net.registry("to.example.com");
    assert!(to.has(&format!("/v2/team/x/manifests/{own}")));
    assert!(!to.has(&format!("/v2/team/x/manifests/{foreign}")));
    let tag = other.replace(':', "-");
    assert!(!to.has(&format!("/v2/team/x/manifests/{tag}")));
}

#[tokio::test]
async fn plugin_that_says_it_is_a_signature_is_refused() {
    let net = Net::of(&[HOST]);
    let other = Digest::of(b"a plugin of somebody else").to_string();
    forged(net.registry(HOST), &other, "1.0");
    let error = copy(&net, "r.example.com/site/x:1.0").await.unwrap_err();
    let expected = format!("{REFERENCE}: its manifest refers to {other}");
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[tokio::test]
async fn lists_without_manifests_and_with_other_digests_are_read() {
    let net = Net::of(&[HOST]);
    let digest = push(&net, REFERENCE, "one").await;
    let registry = net.registry(HOST);
    let own = forged(registry, &digest, "own");
    let sha512 = entry(&format!("sha512:{}", "0".repeat(128)));
    for (manifests, expected) in [
        (Value::Null, 0),
        (json!([sha512, entry(&own), entry(&own)]), 1),
    ] {
        refer(registry, &digest, &manifests);
        let inspected = client(&net)
            .inspect(&at(REFERENCE), None, &Progress::NONE)
            .await;
        assert_eq!(inspected.unwrap().referrers.len(), expected);
        let copied = copy(&net, "r.example.com/team/y:1.0").await;
        assert_eq!(copied.unwrap().referrers, expected);
    }
}

#[tokio::test]
async fn bytes_of_the_pages_of_referrers_are_bounded() {
    let net = Net::of(&[HOST]);
    let digest = push(&net, REFERENCE, "one").await;
    net.answer(move |seen| {
        if !seen.url.contains("/referrers/") {
            return None;
        }
        let mut manifest = entry(&digest);
        let text = json!({"a": "x".repeat(2 << 20)});
        manifest
            .as_object_mut()
            .unwrap()
            .insert("annotations".to_owned(), text);
        let page = json!({"manifests": [manifest]}).to_string();
        let link = format!("<{}>; rel=\"next\"", seen.url);
        Some(Reply::new(200, page).header("link", link))
    });
    let limits = Limits {
        referrer_bytes: 3 << 20,
        ..Limits::default()
    };
    let error = client_with(&net, limits)
        .inspect(&at(REFERENCE), None, &Progress::NONE)
        .await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("sent referrers of more than"), "{error}");
}

#[tokio::test]
async fn pages_are_read_until_there_are_too_many_referrers() {
    let net = Net::of(&[HOST]);
    let digest = push(&net, REFERENCE, "one").await;
    let many: Vec<_> = (0..65)
        .map(|number| entry(&format!("sha256:{number:064}")))
        .collect();
    refer(net.registry(HOST), &digest, &json!(many));
    let page = json!({"manifests": many}).to_string();
    net.answer(move |seen| {
        let reply = || {
            let link = format!("<{}>; rel=\"next\"", seen.url);
            Reply::new(200, page.clone()).header("link", link)
        };
        seen.url.contains("/referrers/").then(reply)
    });
    net.forget();
    let inspected = client(&net)
        .inspect(&at(REFERENCE), None, &Progress::NONE)
        .await;
    assert!(inspected.unwrap().has_more_referrers);
    let seen = net.seen();
    let pages = seen.iter().filter(|seen| seen.url.contains("/referrers/"));
    assert_eq!(pages.count(), 1);
}

fn client_with(net: &Arc<Net>, limits: Limits) -> Client {
    let (credentials, registries) = (Credentials::default(), Registries::default());
    Client::new(net.clone(), credentials, registries, limits, false)
}

#[tokio::test]
async fn bytes_of_all_referrers_are_bounded() {
    let net = Net::of(&[HOST]);
    let digest = push(&net, REFERENCE, "one").await;
    let registry = net.registry(HOST);
    let one = forged(registry, &digest, &"x".repeat(400));
    let two = forged(registry, &digest, &"y".repeat(400));
    refer(registry, &digest, &json!([entry(&one), entry(&two)]));
    let target = at("r.example.com/team/y:1.0");
    // Each request counts 4 KiB.
    for (referrer_bytes, is_enough) in [(60_000, true), (20_000, false)] {
        let limits = Limits {
            referrer_bytes,
            ..Limits::default()
        };
        let client = client_with(&net, limits);
        let copied = client
            .copy(&at(REFERENCE), &target, None, &Progress::NONE)
            .await;
        let error = copied.err().map(|error| error.to_string());
        assert_eq!(error.is_none(), is_enough, "{error:?}");
        assert!(error.is_none_or(|error| {
            error.starts_with(&format!("{REFERENCE}: its set of referrers has"))
        }));
    }
}

/// Returns how often a future let others run before it ended.
async fn pauses(future: impl Future) -> usize {
    let mut future = std::pin::pin!(future);
    let mut pauses = 0;
    std::future::poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        pauses += usize::from(polled.is_pending());
        polled.map(drop)
    })
    .await;
    pauses
}

#[tokio::test]
async fn each_manifest_of_a_folder_is_read_once_and_the_deadline_is_noticed_in_between() {
    let net = Net::of(&[]);
    let folder = tempfile::tempdir().unwrap();
    let name = format!("oci:{}:1.0", folder.path().display());
    push(&net, &name, "one").await;
    let file = folder.path().join("index.json");
    let index: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let plugin = index.pointer("/manifests/0").unwrap();
    let (same, others): (Vec<_>, Vec<_>) = (0..1500)
        .map(|number| (plugin.clone(), entry(&format!("sha256:{number:064}"))))
        .unzip();
    let (client, name) = (client(&net), at(&name));
    for (manifests, expected) in [(same, 1), ([vec![plugin.clone()], others].concat(), 1501)] {
        fs::write(&file, json!({"manifests": manifests}).to_string()).unwrap();
        let inspected = pauses(client.inspect(&name, None, &Progress::NONE));
        assert_eq!(inspected.await, expected);
    }
}

#[tokio::test]
async fn manifests_of_an_index_are_not_kept_in_memory() {
    let net = Net::of(&[HOST]);
    let nested = format!("{}0{}", "{\"\":".repeat(100), "}".repeat(100));
    let manifests = vec![nested; 1000].join(",");
    let index = format!("{{\"manifests\": [{{\"digest\": 7}},{manifests}]}}");
    net.registry(HOST).put_manifest("team/x", "1.0", &index);
    // Only the digests of an index are read, so that one that is not a text is an error.
    let error = pull(&client(&net), REFERENCE).await.unwrap_err();
    assert!(error.contains("invalid type: integer `7`"), "{error}");
}
