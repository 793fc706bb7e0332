//! What cosign 3.1.3 signed is verified without cosign. `cosign/make.sh` made the keys and the folder.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use serde_json::json;
use trainyard_oci::{
    Copied, Inspected, OciError, PluginName, Progress, PublicKey, Requirement, Signers, Verified,
};

use crate::common::{HOST, Net, Registry, WASM, at, client};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cosign");

/// Returns a policy of these keys.
fn keys(names: &[&str]) -> Signers {
    Signers::of_keys(names.iter().map(|name| {
        let file = Path::new(FOLDER).join(format!("{name}.pub"));
        let pem = std::fs::read_to_string(file).unwrap();
        ((*name).to_owned(), PublicKey::from_pem(&pem).unwrap())
    }))
}

fn folder(tag: &str) -> String {
    format!("oci:{FOLDER}/layout:{tag}")
}

const fn requirement(signers: &Signers) -> Requirement<'_> {
    let plugin = PluginName::Unknown;
    Requirement { signers, plugin }
}

async fn pull(net: &Arc<Net>, source: &str, signers: &Signers) -> Result<Verified, OciError> {
    let requirement = requirement(signers);
    let client = client(net);
    client
        .pull_verified(&at(source), &requirement, &Progress::NONE)
        .await
}

#[tokio::test]
async fn signatures_of_cosign_count_in_a_folder_and_in_registries_of_both_kinds() {
    let lists = Registry {
        lists_referrers: true,
        ..Registry::default()
    };
    let net = Net::with([(HOST, lists), ("old.example.com", Registry::default())]);
    for target in ["r.example.com/acme/x:1.0", "old.example.com/acme/x:1.0"] {
        let copied = client(&net)
            .copy(&at(&folder("signed")), &at(target), None, &Progress::NONE)
            .await;
        let copied: Copied = copied.unwrap();
        assert_eq!(copied.referrers, 4);
        for source in [folder("signed").as_str(), target] {
            for name in ["acme", "other"] {
                let pulled = pull(&net, source, &keys(&[name])).await.unwrap();
                assert_eq!(pulled.file, [WASM, b"signed"].concat());
                assert_eq!(pulled.signed.signers, [name]);
            }
            // One of the keys is enough.
            let pulled = pull(&net, source, &keys(&["acme", "other"])).await.unwrap();
            assert_eq!(pulled.signed.signers.len(), 1);
        }
    }
}

#[tokio::test]
async fn attestation_of_cosign_is_not_a_signature() {
    let net = Net::of(&[]);
    let error = pull(&net, &folder("attested"), &keys(&["acme"])).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains(
            "is an attestation of the type https://spdx.dev/Document, which is not a signature"
        ),
        "{error}"
    );
}

#[tokio::test]
async fn bundles_of_cosign_are_shown_with_their_types_and_signers() {
    let net = Net::of(&[]);
    let (signers, location) = (keys(&["acme"]), at(&folder("signed")));
    let requirement = requirement(&signers);
    let client = client(&net);
    let inspected = client.inspect(&location, Some(&requirement), &Progress::NONE);
    let inspected: Inspected = inspected.await.unwrap();
    assert_eq!(inspected.signed.unwrap().unwrap().signers, ["acme"]);
    let shown = inspected.referrers.iter().map(|one| {
        let predicate = one.predicate_type.clone().unwrap();
        (one.signer.is_some(), predicate)
    });
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for one in shown {
        *counts.entry(one).or_default() += 1;
    }
    let expected = [
        (false, "https://sigstore.dev/cosign/sign/v1"),
        (true, "https://sigstore.dev/cosign/sign/v1"),
        (true, "https://slsa.dev/provenance/v1"),
        (true, "https://spdx.dev/Document"),
    ];
    let expected = expected.map(|(signed, predicate)| ((signed, predicate.to_owned()), 1));
    assert_eq!(json!(Vec::from_iter(counts)), json!(expected));
}
