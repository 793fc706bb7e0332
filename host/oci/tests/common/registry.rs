//! A registry in memory, as the distribution specification has it.

use std::{collections::BTreeMap, sync::Mutex};

use trainyard_oci::{Digest, MANIFEST_TYPE};

use super::{Reply, Seen};

/// Who may use a registry.
#[derive(Clone, Debug, Default)]
pub enum Access {
    /// Everybody.
    #[default]
    Open,
    /// Whoever sends this `Authorization`.
    Basic(String),
    /// Whoever has the token `Bearer token`, which this header leads to.
    Bearer(String),
}

#[derive(Debug, Default)]
pub struct Registry {
    /// Content by its path.
    pub content: Mutex<BTreeMap<String, (String, Vec<u8>)>>,
    pub access: Access,
    /// Whether it lists referrers by itself.
    pub lists_referrers: bool,
}

impl Registry {
    pub fn for_holders_of(access: Access) -> Self {
        Self {
            access,
            ..Self::default()
        }
    }

    /// Puts content under a path.
    pub fn put(&self, path: &str, media_type: &str, bytes: impl Into<Vec<u8>>) {
        let content = (media_type.to_owned(), bytes.into());
        self.content
            .lock()
            .unwrap()
            .insert(path.to_owned(), content);
    }

    /// Puts a manifest under a tag and its digest.
    pub fn put_manifest(&self, repository: &str, tag: &str, manifest: &str) -> String {
        let digest = Digest::of(manifest.as_bytes()).to_string();
        for name in [tag, &digest] {
            self.put(
                &format!("/v2/{repository}/manifests/{name}"),
                MANIFEST_TYPE,
                manifest,
            );
        }
        digest
    }

    /// Puts a blob under its digest.
    pub fn put_blob(&self, repository: &str, bytes: &[u8]) -> String {
        let digest = Digest::of(bytes).to_string();
        let path = format!("/v2/{repository}/blobs/{digest}");
        self.put(&path, "application/octet-stream", bytes);
        digest
    }

    pub fn has(&self, path: &str) -> bool {
        self.content.lock().unwrap().contains_key(path)
    }

    fn refusal(&self, seen: &Seen) -> Option<Reply> {
        let sent = seen.authorization.as_deref();
        let challenge = match &self.access {
            Access::Open => return None,
            Access::Basic(wanted) if sent == Some(wanted) => return None,
            Access::Bearer(_) if sent == Some("Bearer token") => return None,
            Access::Basic(_) => "Basic realm=\"test\"",
            Access::Bearer(challenge) => challenge,
        };
        Some(Reply::new(401, "").header("www-authenticate", challenge))
    }

    pub fn reply(&self, seen: &Seen) -> Reply {
        if let Some(refusal) = self.refusal(seen) {
            return refusal;
        }
        let uri: http::Uri = seen.url.parse().unwrap();
        let (path, query) = (uri.path(), uri.query().unwrap_or_default());
        match seen.method.as_str() {
            "POST" if path.ends_with("/blobs/uploads/") => {
                Reply::new(202, "").header("location", format!("{path}upload?state=x"))
            }
            "PUT" => self.stored(path, query, seen),
            method => {
                let content = self.content.lock().unwrap();
                match content.get(path) {
                    Some((media_type, bytes)) => {
                        let body = if method == "HEAD" {
                            Vec::new()
                        } else {
                            bytes.clone()
                        };
                        Reply::new(200, body)
                            .header("content-type", media_type)
                            .header("docker-content-digest", Digest::of(bytes).as_str())
                    }
                    None if self.lists_referrers && path.contains("/referrers/") => {
                        Reply::new(200, r#"{"schemaVersion": 2, "manifests": []}"#)
                    }
                    None => Reply::new(
                        404,
                        r#"{"errors": [{"code": "UNKNOWN", "message": "unknown"}]}"#,
                    ),
                }
            }
        }
    }

    fn stored(&self, path: &str, query: &str, seen: &Seen) -> Reply {
        let bytes = seen.body.to_vec();
        if let Some((repository, _)) = path
            .strip_prefix("/v2/")
            .and_then(|path| path.split_once("/blobs/"))
        {
            let digest = self.put_blob(repository, &bytes);
            let wanted = query.rsplit("digest=").next().unwrap().replace("%3A", ":");
            assert_eq!(digest, wanted);
            return Reply::new(201, "");
        }
        let (repository, tag) = path
            .strip_prefix("/v2/")
            .and_then(|path| path.split_once("/manifests/"))
            .unwrap();
        let manifest = String::from_utf8(bytes).unwrap();
        self.put_manifest(repository, tag, &manifest);
        let value: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        let subject = value
            .pointer("/subject/digest")
            .and_then(|digest| digest.as_str());
        match subject.filter(|_| self.lists_referrers) {
            Some(subject) => {
                self.list(repository, subject, &value, &manifest);
                Reply::new(201, "").header("oci-subject", subject)
            }
            None => Reply::new(201, ""),
        }
    }

    fn list(&self, repository: &str, subject: &str, manifest: &serde_json::Value, text: &str) {
        let path = format!("/v2/{repository}/referrers/{subject}");
        let listed = self.content.lock().unwrap().get(&path).cloned();
        let mut index = listed.map_or_else(
            || serde_json::json!({"schemaVersion": 2, "manifests": []}),
            |(_, bytes)| serde_json::from_slice(&bytes).unwrap(),
        );
        let descriptor = serde_json::json!({
            "mediaType": MANIFEST_TYPE,
            "digest": Digest::of(text.as_bytes()).as_str(),
            "size": text.len(),
            "artifactType": manifest.get("artifactType"),
        });
        index
            .get_mut("manifests")
            .unwrap()
            .as_array_mut()
            .unwrap()
            .push(descriptor);
        self.put(
            &path,
            "application/vnd.oci.image.index.v1+json",
            index.to_string(),
        );
    }
}
