//! Keys, and bundles as cosign makes them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use trainyard_oci::{Digest, MANIFEST_TYPE, Signer, Signers};

use super::Registry;

pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
pub const SIGN: &str = "https://sigstore.dev/cosign/sign/v1";
pub const PREDICATE: &str = "dev.sigstore.bundle.predicateType";

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const P256: &str = "3059301306072a8648ce3d020106082a8648ce3d030107034200";

/// A key pair.
pub struct Key(EcdsaKeyPair);

impl Key {
    pub fn new() -> Self {
        let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_ASN1_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).unwrap())
    }

    fn der(&self) -> Vec<u8> {
        [&hex::decode(P256).unwrap(), self.0.public_key().as_ref()].concat()
    }

    /// Returns the public key.
    pub fn pem(&self) -> String {
        let text = STANDARD.encode(self.der());
        format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
    }

    pub fn fingerprint(&self) -> String {
        Digest::of(&self.der()).to_string()
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let signature = self.0.sign(&SystemRandom::new(), message).unwrap();
        signature.as_ref().to_vec()
    }

    /// Returns a bundle with a signed text.
    pub fn bundle(&self, payload: &str) -> Value {
        let kind = "application/vnd.in-toto+json";
        let message = format!("DSSEv1 {} {kind} {} {payload}", kind.len(), payload.len());
        let hint = STANDARD.encode(hex::decode(&self.fingerprint()[7..]).unwrap());
        json!({
            "mediaType": BUNDLE,
            "verificationMaterial": {"publicKey": {"hint": hint}},
            "dsseEnvelope": {
                "payload": STANDARD.encode(payload),
                "payloadType": kind,
                "signatures": [{"sig": STANDARD.encode(self.sign(message.as_bytes()))}],
            },
        })
    }

    /// Returns the signature of a manifest.
    pub fn signature(&self, digest: &str) -> Value {
        self.bundle(&statement(digest, SIGN).to_string())
    }

    /// Signs a manifest in a repository.
    pub fn sign_in(&self, registry: &Registry, repository: &str, digest: &str) -> String {
        attach(
            registry,
            repository,
            digest,
            self.signature(digest).to_string(),
        )
    }
}

/// Returns what cosign says of a manifest.
pub fn statement(digest: &str, predicate: &str) -> Value {
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"digest": {"sha256": digest.strip_prefix("sha256:").unwrap()}}],
        "predicateType": predicate,
        "predicate": {},
    })
}

/// Returns the manifest of a bundle, whose content it puts into a repository.
pub fn referrer(
    registry: &Registry,
    repository: &str,
    subject: &str,
    predicate: &str,
    bundle: &[u8],
) -> Value {
    let (config, layer) = (
        registry.put_blob(repository, b"{}"),
        registry.put_blob(repository, bundle),
    );
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "artifactType": BUNDLE,
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": config, "size": 2},
        "layers": [{"mediaType": BUNDLE, "digest": layer, "size": bundle.len()}],
        "subject": {"mediaType": MANIFEST_TYPE, "digest": subject, "size": 1},
        "annotations": {"dev.sigstore.bundle.content": "dsse-envelope", PREDICATE: predicate},
    })
}

/// Puts a bundle into a repository, as cosign does. Returns the digest of its manifest.
pub fn attach(
    registry: &Registry,
    repository: &str,
    subject: &str,
    bundle: impl AsRef<[u8]>,
) -> String {
    let manifest = referrer(registry, repository, subject, SIGN, bundle.as_ref());
    list(registry, repository, subject, &manifest)
}

/// Puts a manifest into a repository, and at the end of the tag that lists what refers to its subject.
pub fn list(registry: &Registry, repository: &str, subject: &str, manifest: &Value) -> String {
    let path = format!("/v2/{repository}/manifests/{}", subject.replace(':', "-"));
    let digest = registry.put_manifest(repository, "any", &manifest.to_string());
    let listed = registry.content.lock().unwrap().get(&path).cloned();
    let mut index: Value = listed.map_or_else(
        || json!({"schemaVersion": 2, "manifests": []}),
        |(_, bytes)| serde_json::from_slice(&bytes).unwrap(),
    );
    let entry = json!({
        "mediaType": MANIFEST_TYPE,
        "digest": digest,
        "size": manifest.to_string().len(),
        "artifactType": manifest["artifactType"],
        "annotations": manifest["annotations"],
    });
    index["manifests"].as_array_mut().unwrap().push(entry);
    registry.put(&path, INDEX, index.to_string());
    digest
}

/// Returns a policy of signers, each with its names, its key and its repositories, of which `None` is all.
pub fn signers(signers: &[(&str, &Key, &[&str], Option<&str>)], unsigned: &[&str]) -> Signers {
    let signers = signers.iter().map(|(name, key, plugins, repository)| {
        let signer = json!({
            "name": name,
            "publicKey": key.pem(),
            "plugins": plugins,
            "repositories": [repository.unwrap_or("*")],
        });
        serde_json::from_value::<Signer>(signer).unwrap()
    });
    let unsigned = unsigned.iter().map(|&one| one.to_owned());
    Signers::new(signers.collect(), unsigned.collect())
}
