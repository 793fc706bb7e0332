//! A credential is sent to its registry, or to the token server that this registry names, and to nobody else: not by redirects, not by
//! mirrors, not without encryption. No error contains one.

use std::sync::Arc;

use serde_json::json;
use trainyard_oci::{Client, Progress, Registries};

use crate::common::{
    Access, HOST, Net, Registry, Reply, at, client_of, credentials, plugin, pull, registries,
};

const REFERENCE: &str = "r.example.com/team/x:1.0";
/// `robot:hunter2` in base64.
const BASIC: &str = "Basic cm9ib3Q6aHVudGVyMg==";
const SECRETS: [&str; 3] = ["hunter2", "cm9ib3Q6aHVudGVyMg", "Bearer token"];

fn with_credentials(net: &Arc<Net>, registries: Registries) -> Client {
    let document = json!({"auths": {HOST: {"username": "robot", "password": "hunter2"}}});
    client_of(net, credentials(&document), registries)
}

/// Returns the hosts that got an authorization, each once.
fn holders(net: &Net) -> Vec<(String, String)> {
    let mut found: Vec<_> = net
        .seen()
        .into_iter()
        .filter_map(|seen| {
            let uri: http::Uri = seen.url.parse().unwrap();
            let host = format!("{}://{}", uri.scheme_str()?, uri.authority()?);
            Some((host, seen.authorization?))
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

async fn pushed(net: &Arc<Net>) -> Client {
    let client = with_credentials(net, Registries::default());
    client
        .push(&plugin("one"), &at(REFERENCE), &Progress::NONE)
        .await
        .unwrap();
    client
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|(host, sent)| ((*host).to_owned(), (*sent).to_owned()))
        .collect()
}

#[tokio::test]
async fn password_goes_to_its_registry_when_it_asks() {
    let net = Net::with([(
        HOST,
        Registry::for_holders_of(Access::Basic(BASIC.to_owned())),
    )]);
    let client = pushed(&net).await;
    pull(&client, REFERENCE).await.unwrap();
    assert_eq!(holders(&net), owned(&[("https://r.example.com", BASIC)]));
    let anonymous = Net::of(&[HOST]);
    pushed(&anonymous).await;
    assert_eq!(holders(&anonymous), []);
}

#[tokio::test]
async fn redirects_get_no_credential() {
    let net = Net::with([
        (
            HOST,
            Registry::for_holders_of(Access::Basic(BASIC.to_owned())),
        ),
        ("evil.example.com", Registry::default()),
    ]);
    let client = pushed(&net).await;
    for location in [
        "https://evil.example.com/x",
        "https://r.example.com:8443/x",
        "https://a:b@r.example.com/x",
    ] {
        net.forget();
        net.answer(move |seen| {
            let is_blob = seen.authorization.is_some() && seen.url.contains("/blobs/");
            is_blob.then(|| Reply::new(307, "").header("location", location))
        });
        pull(&client, REFERENCE).await.unwrap_err();
        assert!(
            net.seen().iter().any(|seen| seen.url == location),
            "{location}"
        );
        assert_eq!(
            holders(&net),
            owned(&[("https://r.example.com", BASIC)]),
            "{location}"
        );
    }
}

#[tokio::test]
async fn hosts_that_are_redirected_to_cannot_ask_for_credentials() {
    let net = Net::with([
        (
            HOST,
            Registry::for_holders_of(Access::Basic(BASIC.to_owned())),
        ),
        (
            "evil.example.com",
            Registry::for_holders_of(Access::Basic(BASIC.to_owned())),
        ),
    ]);
    let client = pushed(&net).await;
    net.forget();
    net.answer(|seen| {
        let is_blob = seen.url.starts_with("https://r.example.com") && seen.url.contains("/blobs/");
        is_blob.then(|| Reply::new(307, "").header("location", "https://evil.example.com/x"))
    });
    let error = pull(&client, REFERENCE).await.unwrap_err();
    assert!(error.contains("evil.example.com answered 401"), "{error}");
    assert_eq!(holders(&net), owned(&[("https://r.example.com", BASIC)]));
}

#[tokio::test]
async fn uploads_to_other_hosts_get_no_credential() {
    let net = Net::with([(
        HOST,
        Registry::for_holders_of(Access::Basic(BASIC.to_owned())),
    )]);
    net.answer(|seen| {
        let begins = seen.authorization.is_some() && seen.url.contains("/uploads/");
        begins.then(|| Reply::new(202, "").header("location", "https://evil.example.com/upload"))
    });
    let client = with_credentials(&net, Registries::default());
    client
        .push(&plugin("one"), &at(REFERENCE), &Progress::NONE)
        .await
        .unwrap_err();
    assert!(net.seen().iter().any(|seen| {
        seen.url
            .starts_with("https://evil.example.com/upload?digest=")
    }));
    assert_eq!(holders(&net), owned(&[("https://r.example.com", BASIC)]));
}

#[tokio::test]
async fn mirrors_get_no_credential_of_their_registry() {
    let net = Net::with([
        (
            HOST,
            Registry::for_holders_of(Access::Basic(BASIC.to_owned())),
        ),
        (
            "mirror.example.com",
            Registry::for_holders_of(Access::Basic(BASIC.to_owned())),
        ),
    ]);
    pushed(&net).await;
    net.forget();
    let mirrors =
        registries("mirrors: {r.example.com: {endpoint: [\"https://mirror.example.com\"]}}");
    let client = with_credentials(&net, mirrors);
    pull(&client, REFERENCE).await.unwrap();
    assert!(
        net.seen()
            .iter()
            .any(|seen| seen.url.starts_with("https://mirror.example.com/"))
    );
    assert_eq!(holders(&net), owned(&[("https://r.example.com", BASIC)]));
}

/// A registry with a token server at that URL.
fn with_tokens(realm: &str) -> Arc<Net> {
    let challenge = format!(
        "Bearer realm=\"{realm}\",service=\"r\",scope=\"repository:other/secret:pull,push\""
    );
    let net = Net::with([(HOST, Registry::for_holders_of(Access::Bearer(challenge)))]);
    net.answer(|seen| {
        let is_token = seen.url.contains("/token");
        is_token.then(|| Reply::new(200, r#"{"access_token": "token"}"#))
    });
    net
}

#[tokio::test]
async fn token_server_gets_the_password_and_only_the_registry_the_token() {
    let net = with_tokens("https://auth.example.com/token?x=y");
    let client = pushed(&net).await;
    net.forget();
    pull(&client, REFERENCE).await.unwrap();
    assert_eq!(
        holders(&net),
        owned(&[
            ("https://auth.example.com", BASIC),
            ("https://r.example.com", "Bearer token")
        ])
    );
    let asked: Vec<_> = net
        .seen()
        .into_iter()
        .filter(|seen| seen.url.contains("/token"))
        .collect();
    // One token for all requests, and only for the right that is needed, whatever the registry asked for.
    assert_eq!(asked.len(), 1);
    let url = &asked.first().unwrap().url;
    assert_eq!(
        url,
        "https://auth.example.com/token?x=y&scope=repository%3Ateam%2Fx%3Apull&service=r"
    );
}

#[tokio::test]
async fn token_servers_without_encryption_get_nothing() {
    for realm in [
        "http://auth.example.com/token",
        "/token",
        "https://a:b@auth.example.com/token",
        "gopher://x/token",
    ] {
        let net = with_tokens(realm);
        let client = with_credentials(&net, Registries::default());
        let error = pull(&client, REFERENCE).await.unwrap_err();
        assert!(
            error.contains(&format!(
                "asks to send credentials to `{}`, which is not https",
                realm.rsplit('@').next().unwrap()
            )),
            "{error}"
        );
        assert_eq!(holders(&net), [], "{realm}");
    }
}

#[tokio::test]
async fn redirects_of_token_servers_are_not_followed() {
    let net = with_tokens("https://auth.example.com/token");
    net.answer(|seen| {
        let is_token = seen.url.contains("/token");
        is_token.then(|| Reply::new(307, "").header("location", "https://evil.example.com/token"))
    });
    let client = with_credentials(&net, Registries::default());
    let error = pull(&client, REFERENCE).await.unwrap_err();
    assert!(
        error.contains(
            "the token server auth.example.com of r.example.com gave no token: it answered 307"
        ),
        "{error}"
    );
    assert_eq!(holders(&net), owned(&[("https://auth.example.com", BASIC)]));
}

#[tokio::test]
async fn identity_tokens_are_exchanged_in_a_form() {
    let net = with_tokens("https://auth.example.com/token");
    let document = json!({"auths": {HOST: {"identitytoken": "hunter2&x"}}});
    let client = client_of(&net, credentials(&document), Registries::default());
    client
        .push(&plugin("one"), &at(REFERENCE), &Progress::NONE)
        .await
        .unwrap();
    let asked = net
        .seen()
        .into_iter()
        .find(|seen| seen.url.contains("/token"))
        .unwrap();
    assert_eq!(asked.url, "https://auth.example.com/token");
    assert_eq!(
        asked.body,
        "scope=repository%3Ateam%2Fx%3Apull%2Cpush&service=r&grant_type=refresh_token&client_id=trainyard&refresh_token=hunter2%26x"
    );
}

#[tokio::test]
async fn errors_have_no_credentials() {
    let leaks = |seen: &crate::common::Seen| seen.authorization.clone().unwrap_or_default();
    for status in [400, 401, 403, 500] {
        let net = with_tokens("https://auth.example.com/token");
        net.answer(move |seen| {
            // A server that repeats what it got.
            let body = json!({"errors": [{"message": "denied"}], "token": "", "sent": leaks(seen)});
            seen.authorization
                .is_some()
                .then(|| Reply::new(status, body.to_string()))
        });
        let client = with_credentials(&net, Registries::default());
        let error = pull(&client, REFERENCE).await.unwrap_err();
        assert!(
            SECRETS.iter().all(|secret| !error.contains(secret)),
            "{error}"
        );
        let debug = format!("{client:?}");
        assert!(
            SECRETS.iter().all(|secret| !debug.contains(secret)),
            "{debug}"
        );
    }
    let net = with_tokens("https://auth.example.com/token");
    net.answer(|seen| {
        seen.authorization
            .is_some()
            .then(|| Reply::new(200, r#"{"token": 7, "x": "hunter2"}"#))
    });
    let client = with_credentials(&net, Registries::default());
    let error = pull(&client, REFERENCE).await.unwrap_err();
    assert!(
        error.contains("gave no token: its answer has none"),
        "{error}"
    );
}

#[tokio::test]
async fn refused_credentials_are_told_apart_from_missing_ones() {
    let net = Net::with([(
        HOST,
        Registry::for_holders_of(Access::Basic("Basic other".to_owned())),
    )]);
    let client = with_credentials(&net, Registries::default());
    let error = pull(&client, REFERENCE).await.unwrap_err();
    assert!(
        error.contains("refuses access to team/x with the configured credential"),
        "{error}"
    );
    let error = pull(&crate::common::client(&net), REFERENCE)
        .await
        .unwrap_err();
    assert!(
        error.contains("refuses access to team/x without a credential"),
        "{error}"
    );
}

#[tokio::test]
async fn messages_that_repeat_the_credential_are_left_out() {
    let net = Net::with([(
        HOST,
        Registry::for_holders_of(Access::Basic(BASIC.to_owned())),
    )]);
    let client = with_credentials(&net, Registries::default());
    for (message, is_shown) in [
        (format!("unexpected header Authorization: {BASIC}"), false),
        ("robot:hunter2 may not".to_owned(), false),
        ("robot may not".to_owned(), true),
    ] {
        let shown = message.clone();
        net.answer(move |seen| {
            let body = json!({"errors": [{"message": message}]}).to_string();
            seen.authorization.as_ref()?;
            Some(Reply::new(400, body))
        });
        let error = pull(&client, REFERENCE).await.unwrap_err();
        assert!(error.contains("r.example.com answered 400"), "{error}");
        assert_eq!(error.contains(&shown), is_shown, "{error}");
        assert!(SECRETS.iter().all(|secret| !error.contains(secret)));
    }
}

#[tokio::test]
async fn users_in_urls_are_not_shown() {
    let net = Net::of(&[HOST]);
    for (location, expected) in [
        (
            "ftp://key:hunter2@cdn.example.com/x",
            "to `cdn.example.com/x`",
        ),
        (
            "https://key:hunter2@cdn.example.com/x",
            "cdn.example.com answered 500",
        ),
    ] {
        net.answer(move |seen| {
            Some(if seen.url.contains("cdn.example.com") {
                Reply::new(500, "")
            } else {
                Reply::new(302, "").header("location", location)
            })
        });
        let error = pull(&crate::common::client(&net), REFERENCE)
            .await
            .unwrap_err();
        assert!(
            error.contains(expected) && !error.contains("hunter2"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn token_that_everybody_gets_is_not_a_configured_credential() {
    let net = with_tokens("https://auth.example.com/token");
    let client = crate::common::client(&net);
    client
        .push(&plugin("one"), &at(REFERENCE), &Progress::NONE)
        .await
        .unwrap();
    net.answer(|seen| {
        if seen.url.contains("/token") {
            return Some(Reply::new(200, r#"{"token": "token"}"#));
        }
        seen.url.contains("/blobs/").then(|| Reply::new(403, "{}"))
    });
    let error = pull(&client, REFERENCE).await.unwrap_err();
    assert!(
        error.contains("refuses access to team/x without a credential"),
        "{error}"
    );
}

#[tokio::test]
async fn registry_on_this_machine_sends_nothing_in_clear_text_to_others() {
    const HERE: &str = "localhost:5000";
    let challenge = "Bearer realm=\"http://auth.example.com/token\"".to_owned();
    let net = Net::with([(HERE, Registry::for_holders_of(Access::Bearer(challenge)))]);
    let document = json!({"auths": {HERE: {"username": "robot", "password": "hunter2"}}});
    let client = client_of(&net, credentials(&document), Registries::default());
    let error = pull(&client, "localhost:5000/team/x:1.0")
        .await
        .unwrap_err();
    assert!(
        error.contains("asks to send credentials to `http://auth.example.com/token`"),
        "{error}"
    );
    assert_eq!(holders(&net), []);
}
