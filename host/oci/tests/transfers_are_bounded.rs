//! No registry makes a client wait forever, read without end, or go in circles. The clock of these tests stands still.

use std::time::Duration;

use trainyard_oci::{Client, Credentials, Limits, Progress, Registries};

use crate::common::{Body, HOST, Net, Reply, WASM, at, client, plugin, pull, push};

const REFERENCE: &str = "r.example.com/team/x:1.0";

#[tokio::test(start_paused = true)]
async fn silent_registries_are_given_up() {
    let net = Net::of(&[HOST]);
    push(&net, REFERENCE, "one").await;
    net.answer(|seen| seen.url.contains("/manifests/").then(|| Reply::new(0, "")));
    let error = pull(&client(&net), REFERENCE).await.unwrap_err();
    assert_eq!(
        error,
        format!(
            "{REFERENCE}: r.example.com sent nothing for 15s; try again, or check whether the registry is overloaded"
        )
    );
    net.answer(|seen| {
        seen.url
            .contains("/blobs/")
            .then(|| Reply::new(200, "").body(Body::Hangs(b"{".to_vec())))
    });
    let error = pull(&client(&net), REFERENCE).await.unwrap_err();
    assert!(
        error.contains("r.example.com sent nothing for 15s"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn slow_registries_are_given_up_as_a_whole() {
    let net = Net::of(&[HOST]);
    push(&net, REFERENCE, "one").await;
    net.answer(|seen| seen.url.contains("/manifests/").then(|| Reply::new(0, "")));
    let limits = Limits {
        answer: Duration::from_secs(3600),
        ..Limits::default()
    };
    let client = Client::new(
        net,
        Credentials::default(),
        Registries::default(),
        limits,
        false,
    );
    let error = pull(&client, REFERENCE).await.unwrap_err();
    assert!(
        error.contains("not done within 300s; the network or the registry is too slow"),
        "{error}"
    );
    let pushed = client
        .push(&plugin("two"), &at(REFERENCE), &Progress::NONE)
        .await;
    assert!(
        pushed
            .unwrap_err()
            .to_string()
            .contains("not done within 300s")
    );
}

#[tokio::test]
async fn endless_answers_are_cut() {
    let net = Net::of(&[HOST]);
    push(&net, REFERENCE, "one").await;
    net.answer(|seen| {
        let reply = Reply::new(200, "").body(Body::Endless);
        seen.url.contains("/manifests/").then_some(reply)
    });
    let error = pull(&client(&net), REFERENCE).await.unwrap_err();
    assert!(
        error.contains("sent a manifest of more than 4194304 bytes; nothing was used of it"),
        "{error}"
    );
    net.answer(|seen| {
        let reply = Reply::new(200, "").body(Body::Endless);
        seen.url.contains("/blobs/").then_some(reply)
    });
    let error = pull(&client(&net), REFERENCE).await.unwrap_err();
    assert!(
        error.contains("sent more of a file for which its manifest says"),
        "{error}"
    );
}

#[tokio::test]
async fn length_that_differs_is_an_error_before_anything_is_read() {
    let net = Net::of(&[HOST]);
    push(&net, REFERENCE, "one").await;
    net.answer(|seen| {
        let reply = Reply::new(200, "")
            .header("content-length", "999")
            .body(Body::Endless);
        seen.url.contains("/blobs/").then_some(reply)
    });
    let error = pull(&client(&net), REFERENCE).await.unwrap_err();
    assert!(
        error.contains("sent 999 bytes of a file for which its manifest says"),
        "{error}"
    );
}

#[tokio::test]
async fn redirects_in_a_loop_are_given_up() {
    let net = Net::of(&[HOST]);
    push(&net, REFERENCE, "one").await;
    net.forget();
    net.answer(|seen| Some(Reply::new(307, "").header("location", seen.url.clone())));
    let error = pull(&client(&net), REFERENCE).await.unwrap_err();
    assert!(
        error.contains("r.example.com redirects in a loop, or more than 5 times"),
        "{error}"
    );
    assert_eq!(net.seen().len(), 6);
}

#[tokio::test]
async fn redirects_lead_to_encrypted_hosts_only() {
    let net = Net::of(&[HOST, "cdn.example.com"]);
    push(&net, REFERENCE, "one").await;
    for (location, expected) in [
        (
            "http://cdn.example.com/x?signature=secret",
            "redirects to `http://cdn.example.com/x`, which is not followed: it is not https",
        ),
        ("file:///etc/passwd", "it is"),
        ("ftp://cdn.example.com/x", "it is neither https nor http"),
        ("", "it is not a URL"),
    ] {
        net.answer(move |seen| {
            let reply = Reply::new(302, "").header("location", location);
            seen.url.contains("/blobs/").then_some(reply)
        });
        let error = pull(&client(&net), REFERENCE).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
    // What a registry on another host stores is found there.
    net.answer(|seen| {
        if seen.url.starts_with("https://r.example.com/") && seen.url.contains("/blobs/") {
            let location = seen.url.replace("r.example.com", "cdn.example.com");
            return Some(Reply::new(307, "").header("location", location));
        }
        None
    });
    let file = [WASM, b"one"].concat();
    let cdn = net.registry("cdn.example.com");
    cdn.put_blob("team/x", &file);
    let config = net.registry(HOST).content.lock().unwrap().clone();
    for (path, (media_type, bytes)) in config {
        cdn.put(&path, &media_type, bytes);
    }
    assert_eq!(pull(&client(&net), REFERENCE).await, Ok(file));
}
