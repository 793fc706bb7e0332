//! A folder of the OCI image layout carries plugins to a site without a network, with what refers to them: signatures, SBOM, provenance.

use std::{fs, sync::Arc};

use serde_json::json;
use trainyard_oci::{Digest, MANIFEST_TYPE, Progress};

use crate::common::{HOST, Net, Registry, WASM, at, client, pull, push};

const REFERENCE: &str = "r.example.com/team/x:1.0";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// Returns a manifest that refers to another one, as cosign writes it.
fn referrer(
    registry: &Registry,
    repository: &str,
    subject: &str,
    kind: &str,
    content: &str,
) -> String {
    let (config, layer) = (
        registry.put_blob(repository, b"{}"),
        registry.put_blob(repository, content.as_bytes()),
    );
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "artifactType": kind,
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": config, "size": 2},
        "layers": [{"mediaType": kind, "digest": layer, "size": content.len()}],
        "subject": {"mediaType": MANIFEST_TYPE, "digest": subject, "size": 1},
    })
    .to_string()
}

/// Puts a signature of a plugin, and a signature of an SBOM of it, into a registry that lists referrers by a tag.
fn sign(registry: &Registry, digest: &str) {
    let signature = referrer(registry, "team/x", digest, BUNDLE, "signature");
    let sbom = referrer(registry, "team/x", digest, "application/spdx+json", "sbom");
    let of_sbom = referrer(
        registry,
        "team/x",
        Digest::of(sbom.as_bytes()).as_str(),
        BUNDLE,
        "of the sbom",
    );
    let list = |manifests: &[&String]| {
        let manifests = manifests.iter().map(|manifest| {
            let digest = registry.put_manifest("team/x", "any", manifest);
            json!({"mediaType": MANIFEST_TYPE, "digest": digest, "size": manifest.len()})
        });
        let manifests: Vec<_> = manifests.collect();
        json!({"schemaVersion": 2, "manifests": manifests}).to_string()
    };
    let index = "application/vnd.oci.image.index.v1+json";
    let path = |digest: &str| format!("/v2/team/x/manifests/{}", digest.replace(':', "-"));
    registry.put(&path(digest), index, list(&[&signature, &sbom]));
    registry.put(
        &path(Digest::of(sbom.as_bytes()).as_str()),
        index,
        list(&[&of_sbom]),
    );
}

async fn copy(net: &Arc<Net>, from: &str, to: &str) -> usize {
    let copied = client(net)
        .copy(&at(from), &at(to), None, &Progress::NONE)
        .await;
    copied.unwrap().referrers
}

async fn kinds(net: &Arc<Net>, of: &str) -> Vec<String> {
    let inspected = client(net)
        .inspect(&at(of), None, &Progress::NONE)
        .await
        .unwrap();
    let mut kinds: Vec<_> = inspected
        .referrers
        .into_iter()
        .map(|one| one.artifact_type)
        .collect();
    kinds.sort();
    kinds
}

#[tokio::test]
async fn plugins_travel_through_a_folder_with_what_refers_to_them() {
    let lists = Registry {
        lists_referrers: true,
        ..Registry::default()
    };
    let net = Net::with([
        (HOST, Registry::default()),
        ("new.example.com", lists),
        ("old.example.com", Registry::default()),
    ]);
    let digest = push(&net, REFERENCE, "one").await;
    sign(net.registry(HOST), &digest);
    let folder = tempfile::tempdir().unwrap();
    let folder = format!("oci:{}", folder.path().join("bundle").display());
    assert_eq!(copy(&net, REFERENCE, &folder).await, 3);
    net.take_down(HOST);
    assert_eq!(
        kinds(&net, &folder).await,
        ["application/spdx+json", BUNDLE]
    );
    assert_eq!(
        pull(&client(&net), &folder).await.unwrap(),
        [WASM, b"one"].concat()
    );
    // One registry lists referrers itself, and for the other one the client writes the list.
    for host in ["new.example.com", "old.example.com"] {
        let target = format!("{host}/site/x:1.0");
        assert_eq!(copy(&net, &folder, &target).await, 3);
        assert_eq!(
            kinds(&net, &target).await,
            ["application/spdx+json", BUNDLE]
        );
        assert_eq!(
            pull(&client(&net), &format!("{host}/site/x@{digest}"))
                .await
                .unwrap(),
            [WASM, b"one"].concat()
        );
        // Again, nothing is listed twice.
        assert_eq!(copy(&net, &folder, &target).await, 3);
    }
    assert!(net.registry("old.example.com").has(&format!(
        "/v2/site/x/manifests/{}",
        digest.replace(':', "-")
    )));
    assert!(!net.registry("new.example.com").has(&format!(
        "/v2/site/x/manifests/{}",
        digest.replace(':', "-")
    )));
}

#[tokio::test]
async fn tag_appears_only_after_the_signatures() {
    let net = Net::of(&[HOST, "to.example.com"]);
    let digest = push(&net, REFERENCE, "one").await;
    sign(net.registry(HOST), &digest);
    // The last signature cannot be read.
    let content = net.registry(HOST).content.lock().unwrap().clone();
    let path = content
        .keys()
        .find(|path| path.ends_with(&Digest::of(b"of the sbom").to_string()))
        .unwrap()
        .clone();
    net.registry(HOST)
        .put(&path, "application/octet-stream", "forged text");
    let copied = client(&net)
        .copy(
            &at(REFERENCE),
            &at("to.example.com/x:1.0"),
            None,
            &Progress::NONE,
        )
        .await;
    let error = copied.unwrap_err().to_string();
    assert!(error.contains("sent a file with the digest"), "{error}");
    assert!(!net.registry("to.example.com").has("/v2/x/manifests/1.0"));
}

#[tokio::test]
async fn number_of_referrers_is_bounded() {
    let net = Net::of(&[HOST]);
    let digest = push(&net, REFERENCE, "one").await;
    let many: Vec<_> = (0..65)
        .map(|number| json!({"mediaType": MANIFEST_TYPE, "digest": format!("sha256:{number:064}"), "size": 1}))
        .collect();
    let list = json!({"schemaVersion": 2, "manifests": many}).to_string();
    net.registry(HOST).put(
        &format!("/v2/team/x/referrers/{digest}"),
        "application/json",
        list,
    );
    let inspected = client(&net)
        .inspect(&at(REFERENCE), None, &Progress::NONE)
        .await;
    let inspected = inspected.unwrap();
    assert_eq!(inspected.referrers.len(), 64);
    assert!(inspected.has_more_referrers);
    let target = at("r.example.com/team/y:1.0");
    let copied = client(&net)
        .copy(&at(REFERENCE), &target, None, &Progress::NONE)
        .await;
    let error = copied.unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("{REFERENCE}: more than 64 manifests refer to it")),
        "{error}"
    );
}

#[tokio::test]
async fn one_folder_has_several_plugins() {
    let net = Net::of(&[HOST]);
    let folder = tempfile::tempdir().unwrap();
    let folder = format!("oci:{}", folder.path().display());
    let one = push(&net, REFERENCE, "one").await;
    push(&net, "r.example.com/team/y:1.0", "two").await;
    copy(&net, REFERENCE, &folder).await;
    copy(&net, "r.example.com/team/y:1.0", &folder).await;
    let client = client(&net);
    let error = pull(&client, &folder).await.unwrap_err();
    assert!(error.contains("the folder has several plugins; name one of r.example.com/team/x:1.0, r.example.com/team/y:1.0"), "{error}");
    for name in [":r.example.com/team/x:1.0", &format!("@{one}")] {
        assert_eq!(
            pull(&client, &format!("{folder}{name}")).await.unwrap(),
            [WASM, b"one"].concat()
        );
    }
    let error = pull(&client, &format!("{folder}:z")).await.unwrap_err();
    assert!(
        error.contains("the folder has no plugin z; it has r.example.com/team/x:1.0"),
        "{error}"
    );
    push(&net, &format!("{folder}:1.0"), "three").await;
    push(&net, &format!("{folder}:1.0"), "four").await;
    assert_eq!(
        pull(&client, &format!("{folder}:1.0")).await.unwrap(),
        [WASM, b"four"].concat()
    );
}

#[tokio::test]
async fn folders_that_are_damaged_or_forged_are_refused() {
    let net = Net::of(&[HOST]);
    push(&net, REFERENCE, "one").await;
    for (damage, expected) in [
        (
            Damage::Marker,
            "is not a folder of the OCI image layout, because it has no valid oci-layout",
        ),
        (Damage::Index("{"), "no valid index.json"),
        (
            Damage::Index(
                r#"{"manifests": [{"mediaType": "a", "digest": "sha256:../../../etc/passwd", "size": 1, "annotations": {"org.opencontainers.image.ref.name": "x"}}]}"#,
            ),
            "the digest `sha256:../../../etc/passwd` in its manifest is not `sha256:`",
        ),
        (
            Damage::Content("evil"),
            "the folder is damaged, so copy the plugin into it again",
        ),
        (Damage::Pipe, "it is not a regular file"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("oci:{}", folder.path().display());
        copy(&net, REFERENCE, &name).await;
        let blobs = folder.path().join("blobs/sha256");
        match damage {
            Damage::Marker => fs::remove_file(folder.path().join("oci-layout")).unwrap(),
            Damage::Index(text) => fs::write(folder.path().join("index.json"), text).unwrap(),
            Damage::Content(text) => {
                for file in fs::read_dir(blobs).unwrap() {
                    fs::write(file.unwrap().path(), text).unwrap();
                }
            }
            Damage::Pipe => {
                let index = folder.path().join("index.json");
                fs::remove_file(&index).unwrap();
                assert!(
                    std::process::Command::new("mkfifo")
                        .arg(&index)
                        .status()
                        .unwrap()
                        .success()
                );
            }
        }
        let error = pull(&client(&net), &name).await.unwrap_err();
        assert!(
            error.starts_with(&name) && error.contains(expected),
            "{expected}: {error}"
        );
    }
}

/// What happened to a folder.
enum Damage {
    Marker,
    Index(&'static str),
    Content(&'static str),
    Pipe,
}
