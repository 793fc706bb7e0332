//! A plugin is pulled only if one signature counts: valid, of this very manifest, by a signer who may sign this name in this repository. Else
//! its file is not even fetched.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_oci::{
    Client, MANIFEST_TYPE, OciError, PluginName, Problem, Progress, PublicKey, Requirement,
    SignatureError, Signers, Verified,
};

use crate::common::{
    Body, HOST, Net, Registry, Reply, WASM, at, client, client_of, pull, push, registries,
    signing::{BUNDLE, Key, SIGN, attach, list, referrer, signers, statement},
};

const REFERENCE: &str = "r.example.com/team/x:1.0";
const X: PluginName<'_> = PluginName::Custom("x");

async fn pull_as(
    client: &Client,
    source: &str,
    signers: &Signers,
    plugin: PluginName<'_>,
) -> Result<Verified, Problem> {
    let requirement = Requirement { signers, plugin };
    let location = at(source);
    let pulled = client.pull_verified(&location, &requirement, &Progress::NONE);
    pulled.await.map_err(|error| {
        assert_eq!(error.subject, source);
        error.problem
    })
}

/// Pulls the plugin `x` with these signers, and returns who signed it, or the error.
async fn signed(net: &Arc<Net>, signers: &Signers) -> Result<Vec<String>, String> {
    let pulled = pull_as(&client(net), REFERENCE, signers, X).await;
    pulled
        .map(|pulled| pulled.signed.signers)
        .map_err(|problem| problem.to_string())
}

/// Returns a network with a plugin, and its digest.
async fn plugin() -> (Arc<Net>, String) {
    let net = Net::of(&[HOST]);
    let digest = push(&net, REFERENCE, "one").await;
    (net, digest)
}

/// Whether the file was asked for.
fn was_fetched(net: &Net) -> bool {
    let file = format!(
        "/blobs/{}",
        trainyard_oci::Digest::of(&[WASM, b"one"].concat())
    );
    net.seen()
        .iter()
        .any(|seen| seen.method == "GET" && seen.url.ends_with(&file))
}

#[tokio::test]
async fn signed_plugin_is_pulled_with_its_signer() {
    let (net, digest) = plugin().await;
    let key = Key::new();
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    key.sign_in(net.registry(HOST), "team/x", &digest);
    let pulled = pull_as(&client(&net), REFERENCE, &policy, X).await.unwrap();
    assert_eq!(pulled.file, [WASM, b"one"].concat());
    let signed = pulled.signed;
    assert_eq!(signed.digest.as_str(), digest);
    assert_eq!(signed.repository.as_deref(), Some("r.example.com/team/x"));
    assert_eq!(signed.signer(), Some("acme"));
}

#[tokio::test]
async fn unsigned_plugin_is_refused_before_its_file_is_fetched() {
    let (net, digest) = plugin().await;
    let key = Key::new();
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    net.forget();
    let error = signed(&net, &policy).await.unwrap_err();
    assert!(
        error.starts_with(&format!(
            "{digest} is not signed; sign it with `cosign sign"
        )),
        "{error}"
    );
    assert!(!was_fetched(&net));
    // Nobody may sign.
    let error = signed(&net, &Signers::default()).await.unwrap_err();
    assert!(error.starts_with("nobody may sign plugins"), "{error}");
    // An SBOM is not a signature, even if nobody says what it is.
    let mut sbom = referrer(net.registry(HOST), "team/x", &digest, SIGN, b"{}");
    sbom["artifactType"] = json!("application/spdx+json");
    list(net.registry(HOST), "team/x", &digest, &sbom);
    let error = signed(&net, &policy).await.unwrap_err();
    assert!(error.contains("is not signed"), "{error}");
    assert!(!was_fetched(&net));
    // The same without a policy is pulled.
    pull(&client(&net), REFERENCE).await.unwrap();
    assert!(was_fetched(&net));
}

#[tokio::test]
async fn signature_of_cosign_2_is_named() {
    let (net, digest) = plugin().await;
    let tag = format!("{}.sig", digest.replace(':', "-"));
    let path = format!("/v2/team/x/manifests/{tag}");
    net.registry(HOST).put(&path, MANIFEST_TYPE, "{}");
    let error = signed(&net, &signers(&[("acme", &Key::new(), &["x"], None)], &[]))
        .await
        .unwrap_err();
    assert!(
        error.contains(&format!(
            "only under the tag {tag}, as cosign before version 3"
        )),
        "{error}"
    );
}

/// What a signature is instead of one that counts.
#[tokio::test]
async fn each_kind_of_bad_signature_is_refused_with_its_reason() {
    let (net, digest) = plugin().await;
    let other_digest = push(&net, "r.example.com/team/x:2.0", "two").await;
    let (acme, other) = (Key::new(), Key::new());
    let policy = signers(&[("acme", &acme, &["x"], None)], &[]);
    let good = acme.signature(&digest);
    let with = |pointer: &str, value: Value| {
        let mut bundle = good.clone();
        *bundle.pointer_mut(pointer).unwrap() = value;
        bundle.to_string()
    };
    let without_envelope = |name: &str, value: Value| {
        let mut bundle = good.clone();
        bundle.as_object_mut().unwrap().remove("dsseEnvelope");
        bundle[name] = value;
        bundle.to_string()
    };
    let several = {
        let mut statement = statement(&digest, SIGN);
        let subject = statement["subject"][0].clone();
        statement["subject"] = json!([subject, subject]);
        acme.bundle(&statement.to_string()).to_string()
    };
    // The fields of a struct without their names.
    let as_array = |pointer: &str| {
        let mut bundle = good.clone();
        let object = bundle.pointer_mut(pointer).unwrap();
        *object = object.as_object().unwrap().values().cloned().collect();
        bundle.to_string()
    };
    let material = |value| with("/verificationMaterial", value);
    let twice = json!([
        good["dsseEnvelope"]["signatures"][0],
        good["dsseEnvelope"]["signatures"][0]
    ]);
    let claimed = format!(
        "is signed with none of the keys (it claims the key with the fingerprint {})",
        other.fingerprint()
    );
    let replayed = format!(
        "is signed by acme, but for {other_digest}; it was copied from another plugin or version"
    );
    let provenance = acme.bundle(&statement(&digest, "https://slsa.dev/provenance/v1").to_string());
    for (bundle, expected) in [
        (other.signature(&digest).to_string(), claimed.as_str()),
        // A forger who names the right key.
        (
            {
                let mut bundle = other.signature(&digest);
                bundle["verificationMaterial"] = good["verificationMaterial"].clone();
                bundle.to_string()
            },
            "is signed with none of the keys (it claims the key with",
        ),
        (acme.signature(&other_digest).to_string(), &replayed),
        // A signature of another statement.
        (
            with(
                "/dsseEnvelope/payload",
                acme.signature(&other_digest)["dsseEnvelope"]["payload"].clone(),
            ),
            "is signed with none of the keys",
        ),
        (
            provenance.to_string(),
            "is an attestation of the type https://slsa.dev/provenance/v1, which is not a signature",
        ),
        (
            acme.bundle("[]").to_string(),
            "is signed by acme, but is not a valid in-toto statement",
        ),
        (
            several,
            "is signed by acme, but is not a valid in-toto statement of one subject",
        ),
        (
            "{".to_owned(),
            "is not a valid Sigstore bundle: it is not JSON at line 1, column 1",
        ),
        ("[]".to_owned(), "is not a valid Sigstore bundle: "),
        (
            as_array(""),
            "is not a valid Sigstore bundle: invalid type: sequence, expected an object",
        ),
        (
            as_array("/dsseEnvelope"),
            "is not a valid Sigstore bundle: invalid type: sequence, expected an object",
        ),
        (
            as_array("/dsseEnvelope/signatures/0"),
            "is not a valid Sigstore bundle: invalid type: sequence, expected an object",
        ),
        (
            as_array("/verificationMaterial/publicKey"),
            "is not a valid Sigstore bundle: invalid type: sequence, expected an object",
        ),
        (
            acme.bundle(
                &json!(["https://in-toto.io/Statement/v1", SIGN, [[[&digest[7..]]]]]).to_string(),
            )
            .to_string(),
            "is signed by acme, but is not a valid in-toto statement",
        ),
        (
            format!("{{\"mediaType\": 1, {}", &good.to_string()[1..]),
            "is not a valid Sigstore bundle: invalid type: integer `1`",
        ),
        (
            format!("{{\"mediaType\": \"{BUNDLE}\", {}", &good.to_string()[1..]),
            "is not a valid Sigstore bundle: duplicate field `mediaType`",
        ),
        (
            format!("{{\"also\": 1, {}", &good.to_string()[1..]),
            "is not a valid Sigstore bundle: unknown field `also`",
        ),
        (
            with(
                "/mediaType",
                json!("application/vnd.dev.sigstore.bundle+json;version=0.2"),
            ),
            "is a bundle of the media type application/vnd.dev.sigstore.bundle+json;version=0.2, but only",
        ),
        (
            material(json!({"certificate": {"rawBytes": ""}})),
            "is signed with a certificate (keyless), which Trainyard does not verify",
        ),
        (
            material(json!({"x509CertificateChain": {}})),
            "is signed with a certificate (keyless)",
        ),
        (
            without_envelope("messageSignature", json!({})),
            "signs a file, as `cosign sign-blob` does",
        ),
        (
            without_envelope("messageSignature", json!(null)),
            "has not exactly one DSSE envelope",
        ),
        (
            with("/dsseEnvelope/payloadType", json!("text/plain")),
            "signs something else than an in-toto statement",
        ),
        (
            with("/dsseEnvelope/signatures", json!([])),
            "has not exactly one signature in its envelope",
        ),
        (
            with("/dsseEnvelope/signatures", twice),
            "has not exactly one signature in its envelope",
        ),
        (
            with("/dsseEnvelope/signatures/0/sig", json!("%")),
            "has an envelope that is not valid base64",
        ),
        (
            with("/dsseEnvelope/signatures/0/sig", json!("")),
            "is signed with none of the keys",
        ),
        (
            " ".repeat(65 << 10),
            "has more than 65536 bytes, which no signature has",
        ),
    ] {
        let net = Net::of(&[HOST]);
        push(&net, REFERENCE, "one").await;
        let referrer = attach(net.registry(HOST), "team/x", &digest, &bundle);
        net.forget();
        let error = signed(&net, &policy).await.unwrap_err();
        let start = format!("no signature of {digest} counts: {referrer} {expected}");
        assert!(error.starts_with(&start), "{expected}: {error}");
        assert!(!was_fetched(&net), "{expected}");
        // One that counts is found behind it.
        acme.sign_in(net.registry(HOST), "team/x", &digest);
        assert_eq!(signed(&net, &policy).await.unwrap(), ["acme"], "{expected}");
    }
}

#[tokio::test]
async fn what_transparency_logs_say_is_neither_needed_nor_read() {
    let (net, digest) = plugin().await;
    let key = Key::new();
    let mut bundle = key.signature(&digest);
    bundle["verificationMaterial"]["tlogEntries"] = json!([{"logIndex": "1"}, 2]);
    bundle["verificationMaterial"]["timestampVerificationData"] = json!({"rfc3161Timestamps": []});
    attach(net.registry(HOST), "team/x", &digest, bundle.to_string());
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    assert_eq!(signed(&net, &policy).await.unwrap(), ["acme"]);
}

#[tokio::test]
async fn manifest_that_is_not_one_of_a_signature_is_refused() {
    let (net, digest) = plugin().await;
    let key = Key::new();
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    let bundle = key.signature(&digest).to_string();
    let made = |change: &dyn Fn(&mut Value)| {
        let mut manifest = referrer(
            net.registry(HOST),
            "team/x",
            &digest,
            SIGN,
            bundle.as_bytes(),
        );
        change(&mut manifest);
        manifest
    };
    let elsewhere = json!(format!("sha256:{:064}", 7));
    for (manifest, expected) in [
        (
            made(&|it| it["subject"]["digest"] = elsewhere.clone()),
            "it refers to another manifest",
        ),
        (
            made(&|it| it["subject"] = Value::Null),
            "it refers to another manifest",
        ),
        (
            made(&|it| it["layers"] = json!([])),
            "it does not have exactly one layer",
        ),
        (
            made(&|it| it["layers"] = json!([it["layers"][0], it["layers"][0]])),
            "it does not have exactly one layer",
        ),
        (
            made(&|it| it["layers"][0]["mediaType"] = json!("application/json")),
            "its layer is not a Sigstore bundle",
        ),
        (
            made(&|it| it["layers"][0]["digest"] = elsewhere.clone()),
            "cannot be read: r.example.com has no blob",
        ),
        (
            made(&|it| it["layers"][0]["size"] = json!(3)),
            "cannot be read: r.example.com sent more of a file",
        ),
        (
            made(&|it| it["annotations"] = json!({"a": "x".repeat(65 << 10)})),
            "has more than 65536 bytes",
        ),
        (
            made(&|it| it["layers"] = json!(1)),
            "cannot be read: its manifest is not valid",
        ),
    ] {
        let path = format!("/v2/team/x/manifests/{}", digest.replace(':', "-"));
        net.registry(HOST).content.lock().unwrap().remove(&path);
        list(net.registry(HOST), "team/x", &digest, &manifest);
        let error = signed(&net, &policy).await.unwrap_err();
        assert!(
            error.starts_with("no signature of") && error.contains(expected),
            "{expected}: {error}"
        );
    }
}

#[tokio::test]
async fn stolen_key_signs_only_the_names_of_its_owner() {
    let (net, digest) = plugin().await;
    let (acme, other) = (Key::new(), Key::new());
    let policy = signers(
        &[
            ("acme", &acme, &["acme-*", "torch"], None),
            ("other", &other, &["x", "*"], None),
        ],
        &[],
    );
    acme.sign_in(net.registry(HOST), "team/x", &digest);
    let client = client(&net);
    for (plugin, expected) in [
        (PluginName::Custom("acme-x"), None),
        (PluginName::BuiltIn("torch"), None),
        (PluginName::Custom("torch"), None),
        (
            X,
            Some("is signed by acme, who may not sign the plugin `x`"),
        ),
        (
            PluginName::Custom("acme"),
            Some("may not sign the plugin `acme`"),
        ),
        (
            PluginName::Custom("torch-2"),
            Some("may not sign the plugin `torch-2`"),
        ),
        (
            PluginName::BuiltIn("acme-x"),
            Some("a built-in plugin's name has to be written out"),
        ),
    ] {
        let pulled = pull_as(&client, REFERENCE, &policy, plugin).await;
        let error = pulled.err().map(|problem| problem.to_string());
        assert_eq!(error.is_some(), expected.is_some(), "{plugin:?}: {error:?}");
        assert!(
            error.is_none_or(|error| error.contains(expected.unwrap())),
            "{plugin:?}"
        );
    }
    // A `*` covers no built-in plugin.
    other.sign_in(net.registry(HOST), "team/x", &digest);
    let torch = pull_as(&client, REFERENCE, &policy, PluginName::BuiltIn("jax")).await;
    let error = torch.unwrap_err().to_string();
    assert!(
        error.contains("is signed by other, who may not sign the plugin `jax`"),
        "{error}"
    );
}

#[tokio::test]
async fn name_that_only_the_file_has_is_checked_afterwards() {
    let (net, digest) = plugin().await;
    let (acme, other) = (Key::new(), Key::new());
    let policy = signers(
        &[
            ("acme", &acme, &["a"], None),
            ("other", &other, &["x"], None),
        ],
        &["r.example.com/open/*"],
    );
    acme.sign_in(net.registry(HOST), "team/x", &digest);
    let client = client(&net);
    let unknown = || pull_as(&client, REFERENCE, &policy, PluginName::Unknown);
    let mut pulled = unknown().await.unwrap();
    assert_eq!(pulled.signed.signers, ["acme"]);
    let error = pulled.signed.check(&policy, X).unwrap_err().to_string();
    assert!(
        error.contains("is signed by acme, who may not sign the plugin `x`"),
        "{error}"
    );
    other.sign_in(net.registry(HOST), "team/x", &digest);
    let mut pulled = unknown().await.unwrap();
    pulled.signed.check(&policy, X).unwrap_err();
    // With the name, the signature of whoever may sign it is found.
    let mut pulled = pull_as(&client, REFERENCE, &policy, X).await.unwrap();
    pulled.signed.check(&policy, X).unwrap();
    assert_eq!(pulled.signed.signers, ["other"]);
    // An unsigned file cannot turn out to be a built-in plugin.
    push(&net, "r.example.com/open/x:1.0", "one").await;
    let mut open = pull_as(
        &client,
        "r.example.com/open/x:1.0",
        &policy,
        PluginName::Unknown,
    )
    .await
    .unwrap();
    open.signed.check(&policy, X).unwrap();
    let error = open
        .signed
        .check(&policy, PluginName::BuiltIn("torch"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("built in and can be replaced only by a signed one"),
        "{error}"
    );
}

#[tokio::test]
async fn signer_counts_only_in_its_repositories() {
    let key = Key::new();
    for (pattern, counts) in [
        ("r.example.com/team/x", true),
        ("r.example.com/team/*", true),
        ("r.example.com/te*", true),
        ("r.example.com/*", true),
        ("r.example.com/team", false),
        ("r.example.com/team/x/*", false),
        ("r.example.co/*", false),
        ("r.example.com.evil.org/*", false),
    ] {
        let (net, digest) = plugin().await;
        key.sign_in(net.registry(HOST), "team/x", &digest);
        let policy = signers(&[("acme", &key, &["x"], Some(pattern))], &[]);
        let found = signed(&net, &policy).await;
        assert_eq!(found.is_ok(), counts, "{pattern}: {found:?}");
        assert!(
            found.err().is_none_or(|error| error.contains(
                "is signed by acme, whose plugins may not come from r.example.com/team/x"
            ))
        );
    }
}

#[tokio::test]
async fn only_listed_repositories_need_no_signature_and_no_built_in_plugin_is_unsigned() {
    let (net, digest) = plugin().await;
    let client = client(&net);
    for (unsigned, is_pulled) in [
        ("r.example.com/team/*", true),
        ("r.example.com/team/x", true),
        ("r.example.com/team", false),
        ("r.example.com/other/*", false),
    ] {
        let policy = signers(&[("acme", &Key::new(), &["*"], None)], &[unsigned]);
        net.forget();
        let pulled = pull_as(&client, REFERENCE, &policy, X).await;
        assert_eq!(pulled.is_ok(), is_pulled, "{unsigned}");
        if let Ok(pulled) = pulled {
            assert_eq!(
                (pulled.signed.signer(), pulled.signed.digest.as_str()),
                (None, digest.as_str())
            );
            assert!(!net.seen().iter().any(|seen| seen.url.contains("referrers")));
        }
        let torch = pull_as(&client, REFERENCE, &policy, PluginName::BuiltIn("torch")).await;
        let error = torch.unwrap_err().to_string();
        assert!(error.contains("is not signed"), "{error}");
    }
    // A directory is no repository, whatever names it has. So what is in it has to be signed, but the signer's repositories do not matter.
    let folder = tempfile::tempdir().unwrap();
    let name = format!("oci:{}", folder.path().display());
    client
        .copy(&at(REFERENCE), &at(&name), None, &Progress::NONE)
        .await
        .unwrap();
    let policy = signers(&[("acme", &Key::new(), &["*"], None)], &["r.example.com/*"]);
    let error = pull_as(&client, &name, &policy, X)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("is not signed"), "{error}");
    let key = Key::new();
    key.sign_in(net.registry(HOST), "team/x", &digest);
    client
        .copy(&at(REFERENCE), &at(&name), None, &Progress::NONE)
        .await
        .unwrap();
    let policy = signers(
        &[("acme", &key, &["x"], Some("elsewhere.example.com/*"))],
        &[],
    );
    pull_as(&client, &name, &policy, X).await.unwrap();
    pull_as(&client, REFERENCE, &policy, X).await.unwrap_err();
}

#[tokio::test]
async fn manifest_that_changes_meanwhile_is_not_used() {
    let (net, digest) = plugin().await;
    let key = Key::new();
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    key.sign_in(net.registry(HOST), "team/x", &digest);
    // After the first request for the tag, it is that of another file.
    push(&net, "r.example.com/team/evil:1.0", "evil").await;
    let content = net.registry(HOST).content.lock().unwrap().clone();
    let (_, evil) = content.get("/v2/team/evil/manifests/1.0").unwrap().clone();
    let asked = std::sync::atomic::AtomicUsize::new(0);
    net.answer(move |seen| {
        let is_tag = seen.url.ends_with("/manifests/1.0");
        let is_later = is_tag && asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 0;
        is_later.then(|| Reply::new(200, evil.clone()).header("content-type", MANIFEST_TYPE))
    });
    net.forget();
    let pulled = pull_as(&client(&net), REFERENCE, &policy, X).await.unwrap();
    assert_eq!(pulled.file, [WASM, b"one"].concat());
    assert_eq!(pulled.signed.digest.as_str(), digest);
    let asked = net.seen();
    let asked = asked
        .iter()
        .filter(|seen| seen.url.ends_with("/manifests/1.0"));
    assert_eq!(asked.count(), 1);
    // From now on, the tag has no signature.
    let error = signed(&net, &policy).await.unwrap_err();
    assert!(error.contains("is not signed"), "{error}");
}

#[tokio::test]
async fn mirror_without_the_signature_is_passed_over() {
    let net = Net::of(&[HOST, "mirror.example.com"]);
    let digest = push(&net, REFERENCE, "one").await;
    push(&net, "mirror.example.com/team/x:1.0", "one").await;
    let key = Key::new();
    key.sign_in(net.registry(HOST), "team/x", &digest);
    let mirrors =
        registries("mirrors: {r.example.com: {endpoint: [\"https://mirror.example.com\"]}}");
    let client = client_of(&net, Default::default(), mirrors);
    // The repository is that of the reference, and not that of the mirror.
    let policy = signers(&[("acme", &key, &["x"], Some("r.example.com/team/*"))], &[]);
    let pulled = pull_as(&client, REFERENCE, &policy, X).await.unwrap();
    assert_eq!(pulled.signed.signer(), Some("acme"));
    let error = pull_as(
        &client,
        REFERENCE,
        &signers(&[("other", &Key::new(), &["x"], None)], &[]),
        X,
    )
    .await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("no signature of {digest} counts"))
            && error.contains("(mirrors failed, too: "),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn mirrors_do_not_use_up_the_time_of_the_registry() {
    let net = Net::of(&[HOST, "a.example.com", "b.example.com"]);
    let digest = push(&net, REFERENCE, "one").await;
    let key = Key::new();
    key.sign_in(net.registry(HOST), "team/x", &digest);
    for mirror in ["a.example.com/team/x:1.0", "b.example.com/team/x:1.0"] {
        push(&net, mirror, "one").await;
    }
    // Each signature of a mirror takes as long as an answer may.
    let mut slow = Vec::new();
    for number in 0..300 {
        for mirror in ["a.example.com", "b.example.com"] {
            let bundle = format!("{number}");
            slow.push(attach(net.registry(mirror), "team/x", &digest, bundle));
        }
    }
    net.answer(move |seen| {
        let is_slow = slow.iter().any(|digest| seen.url.contains(digest));
        is_slow.then(|| Reply::new(200, "").body(Body::Hangs(Vec::new())))
    });
    let mirrors = registries(
        "mirrors: {r.example.com: {endpoint: [\"https://a.example.com\", \"https://b.example.com\"]}}",
    );
    let client = client_of(&net, Default::default(), mirrors);
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    let pulled = pull_as(&client, REFERENCE, &policy, X).await.unwrap();
    assert_eq!(pulled.signed.signer(), Some("acme"));
    // A mirror that is slow is worth another attempt, whatever the registry says.
    let policy = signers(&[("other", &Key::new(), &["x"], None)], &[]);
    let problem = pull_as(&client, REFERENCE, &policy, X).await.unwrap_err();
    let subject = REFERENCE.to_owned();
    assert!(OciError { subject, problem }.is_transient());
}

#[tokio::test]
async fn stored_plugin_is_verified_again_without_a_registry() {
    let (net, digest) = plugin().await;
    let (acme, other) = (Key::new(), Key::new());
    other.sign_in(net.registry(HOST), "team/x", &digest);
    acme.sign_in(net.registry(HOST), "team/x", &digest);
    let policy = signers(
        &[("acme", &acme, &["x"], Some("r.example.com/team/*"))],
        &[],
    );
    let folder = tempfile::tempdir().unwrap();
    let client = client(&net);
    let reference = REFERENCE.parse().unwrap();
    let requirement = Requirement {
        signers: &policy,
        plugin: X,
    };
    let stored = client.store_verified(&reference, folder.path(), &requirement, &Progress::NONE);
    assert_eq!(stored.await.unwrap().signed.signer(), Some("acme"));
    // The plugin, its configuration, its manifest, and one signature of three files.
    assert_eq!(
        std::fs::read_dir(folder.path().join("blobs/sha256"))
            .unwrap()
            .count(),
        6
    );
    net.take_down(HOST);
    let pinned = format!("{REFERENCE}@{digest}").parse().unwrap();
    let pulled = client
        .pull_stored(&pinned, folder.path(), &requirement)
        .await
        .unwrap();
    assert_eq!(
        (pulled.file, pulled.signed.signers),
        ([WASM, b"one"].concat(), vec!["acme".to_owned()])
    );
    let error = client
        .pull_stored(&reference, folder.path(), &requirement)
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("has no digest, by which plugins are stored"),
        "{error}"
    );
    let elsewhere = format!("r.example.com/team/y@{digest}").parse().unwrap();
    let error = client
        .pull_stored(&elsewhere, folder.path(), &requirement)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("the folder has no plugin"),
        "{error}"
    );
    // The key does not count any more.
    let policy = signers(&[("acme", &other, &["x"], None)], &[]);
    let requirement = Requirement {
        signers: &policy,
        plugin: X,
    };
    let error = client
        .pull_stored(&pinned, folder.path(), &requirement)
        .await
        .unwrap_err();
    assert!(
        matches!(
            error.problem,
            Problem::Signature(SignatureError::NoneCounts { .. })
        ),
        "{error}"
    );
}

#[tokio::test]
async fn only_signed_plugins_are_copied_if_that_is_required() {
    let (net, digest) = plugin().await;
    let key = Key::new();
    let policy = Signers::of_keys([("key".to_owned(), PublicKey::from_pem(&key.pem()).unwrap())]);
    let requirement = Requirement {
        signers: &policy,
        plugin: PluginName::BuiltIn("torch"),
    };
    let client = client(&net);
    let target = at("r.example.com/copy/x:1.0");
    let copy = || client.copy(&target, &target, Some(&requirement), &Progress::NONE);
    copy().await.unwrap_err();
    let source = at(REFERENCE);
    let copy = || client.copy(&source, &target, Some(&requirement), &Progress::NONE);
    let error = copy().await.unwrap_err().to_string();
    assert!(error.contains("is not signed"), "{error}");
    assert!(!net.registry(HOST).has("/v2/copy/x/manifests/1.0"));
    key.sign_in(net.registry(HOST), "team/x", &digest);
    assert_eq!(copy().await.unwrap().referrers, 1);
    let copied = pull_as(&client, "r.example.com/copy/x:1.0", &policy, X).await;
    assert_eq!(copied.unwrap().signed.signer(), Some("key"));
}

#[tokio::test]
async fn inspect_says_of_each_bundle_who_signed_it_or_why_it_does_not_count() {
    let (net, digest) = plugin().await;
    let (acme, other) = (Key::new(), Key::new());
    let registry = net.registry(HOST);
    let predicate = "https://spdx.dev/Document";
    let sbom = acme
        .bundle(&statement(&digest, predicate).to_string())
        .to_string();
    let sbom = referrer(registry, "team/x", &digest, predicate, sbom.as_bytes());
    list(registry, "team/x", &digest, &sbom);
    other.sign_in(registry, "team/x", &digest);
    let policy = signers(&[("acme", &acme, &["x"], None)], &[]);
    let requirement = Requirement {
        signers: &policy,
        plugin: X,
    };
    let client = client(&net);
    let location = at(REFERENCE);
    let inspect = |requirement| client.inspect(&location, requirement, &Progress::NONE);
    let inspected = inspect(Some(&requirement)).await.unwrap();
    let error = inspected.signed.unwrap().unwrap_err().to_string();
    assert!(
        error.contains("is an attestation of the type https://spdx.dev/Document"),
        "{error}"
    );
    let [sbom, signature] = inspected.referrers.as_slice() else {
        panic!()
    };
    assert_eq!(
        (sbom.signer.as_deref(), sbom.predicate_type.as_deref()),
        (Some("acme"), Some(predicate))
    );
    assert!(!sbom.is_signature());
    assert!(signature.is_signature() && signature.signer.is_none());
    assert!(
        signature
            .problem
            .as_ref()
            .unwrap()
            .contains("is signed with none of the keys")
    );
    acme.sign_in(registry, "team/x", &digest);
    let inspected = inspect(Some(&requirement)).await.unwrap();
    assert_eq!(inspected.signed.unwrap().unwrap().signers, ["acme"]);
    let inspected = inspect(None).await.unwrap();
    assert!(inspected.signed.is_none());
    assert!(
        inspected
            .referrers
            .iter()
            .all(|one| one.signer.is_none() && one.problem.is_none())
    );
}

#[tokio::test]
async fn registry_that_fails_is_not_taken_for_a_missing_signature() {
    let (net, digest) = plugin().await;
    let key = Key::new();
    let policy = signers(&[("acme", &key, &["x"], None)], &[]);
    let first = attach(net.registry(HOST), "team/x", &digest, "{}");
    net.answer(move |seen| seen.url.ends_with(&first).then(|| Reply::new(503, "")));
    let error = signed(&net, &policy).await.unwrap_err();
    assert!(error.starts_with("r.example.com answered 503"), "{error}");
    let problem = pull_as(&client(&net), REFERENCE, &policy, X).await;
    let subject = REFERENCE.to_owned();
    let problem = problem.unwrap_err();
    assert!(OciError { subject, problem }.is_transient());
    // One that can be read counts.
    key.sign_in(net.registry(HOST), "team/x", &digest);
    assert_eq!(signed(&net, &policy).await.unwrap(), ["acme"]);
}

#[test]
fn pulls_can_run_on_any_thread() {
    fn is_send(_: impl Send) {}
    let net = Net::with([(HOST, Registry::default())]);
    let (client, policy, location) = (client(&net), Signers::default(), at(REFERENCE));
    let requirement = Requirement {
        signers: &policy,
        plugin: X,
    };
    is_send(client.pull_verified(&location, &requirement, &Progress::NONE));
    let reference = REFERENCE.parse().unwrap();
    is_send(client.store_verified(&reference, "x".as_ref(), &requirement, &Progress::NONE));
    is_send(client.pull_stored(&reference, "x".as_ref(), &requirement));
    is_send(client.copy(&location, &location, Some(&requirement), &Progress::NONE));
    is_send(client.inspect(&location, Some(&requirement), &Progress::NONE));
}
