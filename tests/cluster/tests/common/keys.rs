//! The test plugin that requests keys, and the keys in its Secrets.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;
use trainyard_cluster::Resource;

/// The folder of the plugin's crate.
pub(crate) fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/keys")
}

pub(crate) fn secrets() -> Resource {
    Resource::namespaced("/api/v1", "secrets")
}

/// Returns the text of a key of a Secret.
pub(crate) fn text(secret: &Value, key: &str) -> Result<String> {
    let encoded = secret["data"][key].as_str();
    let encoded = encoded.with_context(|| format!("no key {key}: {secret:#}"))?;
    Ok(String::from_utf8(BASE64_STANDARD.decode(encoded)?)?)
}

/// Returns the private keys of a Secret, as bytes and in each text form that the controller handles.
pub(crate) fn private(secret: &Value) -> Result<Vec<Vec<u8>>> {
    let pem = text(secret, "ssh-privatekey")?;
    let lines: Vec<_> = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let der = BASE64_STANDARD.decode(lines.concat())?;
    // SEQUENCE, version 1, and an OCTET STRING of 66 bytes.
    let scalar = der.get(8..74).context("no private key")?.to_vec();
    let token = text(secret, "token")?;
    let curve = text(secret, "curve.cert")?;
    let curve = curve.split('"').nth(3).context("no secret key")?;
    let mut found = vec![
        scalar,
        der,
        BASE64_STANDARD.decode(&token)?,
        token.into_bytes(),
        curve.as_bytes().to_vec(),
    ];
    // The third line contains only the public key.
    found.extend(lines.iter().take(2).map(|line| line.as_bytes().to_vec()));
    for key in ["ssh-privatekey", "token", "curve.cert"] {
        let encoded = secret["data"][key].as_str().unwrap_or_default();
        // In a certificate, the part after the public key.
        let at = if key == "token" { 0 } else { 120 };
        found.extend(
            encoded
                .get(at..at + 40)
                .map(|part| part.as_bytes().to_vec()),
        );
    }
    Ok(found)
}
