//! Keys that sign plugins in a directory as cosign does.

use std::{fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use trainyard_oci::{Digest, MANIFEST_TYPE};

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// What precedes the point in the DER of a public key of P-256.
const P256: &str = "3059301306072a8648ce3d020106082a8648ce3d030107034200";

/// A key pair.
pub struct Key(EcdsaKeyPair);

impl Key {
    pub fn new() -> Self {
        let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_ASN1_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).unwrap())
    }

    /// Returns the public key in PEM.
    pub fn pem(&self) -> String {
        let der = [&hex::decode(P256).unwrap(), self.0.public_key().as_ref()].concat();
        let text = STANDARD.encode(der);
        format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
    }

    fn bundle(&self, digest: &str) -> Value {
        let payload = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"digest": {"sha256": digest.strip_prefix("sha256:").unwrap()}}],
            "predicateType": "https://sigstore.dev/cosign/sign/v1",
            "predicate": {},
        });
        let (payload, kind) = (payload.to_string(), "application/vnd.in-toto+json");
        let message = format!("DSSEv1 {} {kind} {} {payload}", kind.len(), payload.len());
        let signature = self.0.sign(&SystemRandom::new(), message.as_bytes());
        json!({
            "mediaType": BUNDLE,
            "verificationMaterial": {"publicKey": {"hint": ""}},
            "dsseEnvelope": {
                "payload": STANDARD.encode(payload),
                "payloadType": kind,
                "signatures": [{"sig": STANDARD.encode(signature.unwrap().as_ref())}],
            },
        })
    }

    /// Signs a plugin in a directory.
    pub fn sign(&self, folder: &Path, digest: &str) {
        let put = |kind: &str, content: &str| {
            let digest = Digest::of(content.as_bytes());
            fs::write(folder.join("blobs/sha256").join(digest.hex()), content).unwrap();
            json!({"mediaType": kind, "digest": digest.as_str(), "size": content.len()})
        };
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "artifactType": BUNDLE,
            "config": put("application/vnd.oci.empty.v1+json", "{}"),
            "layers": [put(BUNDLE, &self.bundle(digest).to_string())],
            "subject": {"mediaType": MANIFEST_TYPE, "digest": digest, "size": 1},
        });
        let listed = put(MANIFEST_TYPE, &manifest.to_string());
        let file = folder.join("index.json");
        let mut index: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let manifests = index.get_mut("manifests").unwrap();
        manifests.as_array_mut().unwrap().push(listed);
        fs::write(file, index.to_string()).unwrap();
    }
}
