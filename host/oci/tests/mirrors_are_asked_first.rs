//! The operator's mirrors are asked in order before a registry, for pulls only, and their errors are not lost.

use std::fs;

use trainyard_oci::{Credentials, Progress, Registries};

use crate::common::{HOST, Net, Reply, WASM, at, client_of, plugin, pull, push, registries};

const REFERENCE: &str = "r.example.com/team/x:1.0";
const TWO: &str = "mirrors: {r.example.com: {endpoint: [\"https://a.example.com\", \"https://b.example.com/proxy\"]}}";

#[tokio::test]
async fn first_mirror_that_has_the_plugin_is_used() {
    let net = Net::of(&[HOST, "a.example.com", "b.example.com"]);
    push(&net, REFERENCE, "one").await;
    let content = net.registry(HOST).content.lock().unwrap().clone();
    for (path, (media_type, bytes)) in content {
        net.registry("b.example.com")
            .put(&path.replace("/v2/", "/proxy/"), &media_type, bytes);
    }
    net.forget();
    let client = client_of(&net, Credentials::default(), registries(TWO));
    assert_eq!(
        pull(&client, REFERENCE).await.unwrap(),
        [WASM, b"one"].concat()
    );
    let urls: Vec<_> = net.seen().into_iter().map(|seen| seen.url).collect();
    assert_eq!(
        urls.first().unwrap(),
        "https://a.example.com/v2/team/x/manifests/1.0?ns=r.example.com"
    );
    assert_eq!(
        urls.get(1).unwrap(),
        "https://b.example.com/proxy/team/x/manifests/1.0?ns=r.example.com"
    );
    assert!(
        urls.iter()
            .all(|url| !url.starts_with("https://r.example.com")),
        "{urls:?}"
    );
}

#[tokio::test]
async fn mirror_that_lies_is_passed_over() {
    let net = Net::of(&[HOST, "a.example.com", "b.example.com"]);
    push(&net, REFERENCE, "one").await;
    let content = net.registry(HOST).content.lock().unwrap().clone();
    for (path, (media_type, bytes)) in content {
        let bytes = if path.contains("/blobs/") {
            vec![0; bytes.len()]
        } else {
            bytes
        };
        net.registry("a.example.com").put(&path, &media_type, bytes);
    }
    let client = client_of(&net, Credentials::default(), registries(TWO));
    assert_eq!(
        pull(&client, REFERENCE).await.unwrap(),
        [WASM, b"one"].concat()
    );
}

#[tokio::test]
async fn errors_of_all_are_shown() {
    let net = Net::of(&[HOST, "a.example.com", "b.example.com"]);
    net.take_down("a.example.com");
    net.answer(|seen| {
        seen.url
            .contains("b.example.com")
            .then(|| Reply::new(500, ""))
    });
    let client = client_of(&net, Credentials::default(), registries(TWO));
    let error = pull(&client, REFERENCE).await.unwrap_err();
    for expected in [
        "r.example.com has no manifest `1.0` in `team/x`",
        "mirrors failed, too: cannot reach a.example.com",
        "b.example.com answered 500",
    ] {
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn mirrors_get_no_pushes() {
    let net = Net::of(&[HOST, "a.example.com", "b.example.com"]);
    let client = client_of(&net, Credentials::default(), registries(TWO));
    client
        .push(&plugin("one"), &at(REFERENCE), &Progress::NONE)
        .await
        .unwrap();
    assert!(
        net.seen()
            .iter()
            .all(|seen| seen.url.starts_with("https://r.example.com/"))
    );
}

#[tokio::test]
async fn mirrors_of_all_registries_are_those_of_a_star() {
    let net = Net::of(&[HOST, "a.example.com"]);
    let all = "mirrors: {\"*\": {endpoint: [\"http://a.example.com:5000\"]}}";
    let client = client_of(&net, Credentials::default(), registries(all));
    pull(&client, REFERENCE).await.unwrap_err();
    let seen = net.seen();
    assert!(
        seen.first()
            .unwrap()
            .url
            .starts_with("http://a.example.com:5000/v2/"),
        "{seen:?}"
    );
}

#[test]
fn errors_of_the_file_have_lines_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("registries.yaml");
    for (text, expected) in [
        (
            "mirrors:\n  r:\n    endpoints: [\"https://a\"]",
            "registries.yaml:3",
        ),
        (
            "mirrors:\n  r:\n    endpoint: [\"a.example.com\"]",
            "a URL without a query, such as https://mirror.example.com",
        ),
        (
            "mirrors:\n  r:\n    endpoint: [\"https://a.example.com?x=y\"]",
            "a URL without a query",
        ),
        (
            "mirrors:\n  r:\n    endpoint: [\"https://user:password@a.example.com\"]",
            "a URL without a query",
        ),
        (
            "mirrors:\n  r:\n    endpoint: [\"http://a.example.com:999999\"]",
            "`http://a.example.com:999999` has an invalid host or port",
        ),
        (
            "configs:\n  https://r:\n    tls: {ca_file: /x}",
            "is not HOST or HOST:PORT",
        ),
        (
            "configs:\n  r:\n    auth: {username: a, password: hunter2}",
            "put them into Docker's config.json",
        ),
        (
            "configs:\n  r:\n    tls: {insecure_skip_verify: true}",
            "insecure_skip_verify",
        ),
    ] {
        fs::write(&file, text).unwrap();
        let errors = Registries::read(&file).unwrap_err();
        let shown: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let shown = shown.join("\n");
        assert!(
            shown.contains(expected) && !shown.contains("hunter2"),
            "{expected}: {shown}"
        );
    }
}
