//! What the token of a request says about itself, before the API server has confirmed any of it.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;

/// The claims of a token, which anybody can write.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    #[serde(default)]
    aud: Audiences,
    /// When it expires, in seconds.
    #[serde(default)]
    pub(super) exp: Option<i64>,
    #[serde(rename = "kubernetes.io")]
    kubernetes: KubernetesClaims,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audiences {
    One(String),
    Many(Vec<String>),
}

impl Default for Audiences {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

#[derive(Debug, Deserialize)]
struct KubernetesClaims {
    namespace: String,
    /// The pod that it is bound to.
    #[serde(default)]
    pod: Option<BoundPod>,
}

/// The pod of a token.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct BoundPod {
    pub(super) name: String,
    pub(super) uid: String,
}

impl Claims {
    /// Reads the claims of a JSON Web Token; `None` if it is not one of a ServiceAccount.
    pub(super) fn of(token: &str) -> Option<Self> {
        let mut parts = token.split('.');
        let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let is_jwt = parts.next().is_none() && payload.first() == Some(&b'{');
        serde_json::from_slice(&payload).ok().filter(|_| is_jwt)
    }

    /// Whether it is for this audience.
    pub(super) fn is_for(&self, audience: &str) -> bool {
        match &self.aud {
            Audiences::One(one) => one == audience,
            Audiences::Many(all) => all.iter().any(|one| one == audience),
        }
    }

    /// Returns the pod that it is bound to, if it is one of this namespace.
    pub(super) fn pod_in(&self, namespace: &str) -> Option<&BoundPod> {
        let is_there = self.kubernetes.namespace == namespace;
        self.kubernetes.pod.as_ref().filter(|_| is_there)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    fn token(claims: &Value) -> String {
        let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
        format!("e30.{claims}.c2ln")
    }

    #[test]
    fn claims_are_read_and_anything_else_is_refused() {
        let pod = json!({"name": "bert-node-0-0-abcde", "uid": "u"});
        let kubernetes = json!({"namespace": "ml", "pod": pod});
        for audience in [json!("a"), json!(["b", "a"])] {
            let claims = json!({"aud": audience, "exp": 7, "kubernetes.io": kubernetes});
            let read = Claims::of(&token(&claims)).unwrap();
            assert!(read.is_for("a") && !read.is_for("c"));
            assert_eq!(read.pod_in("ml").unwrap().uid, "u");
            assert_eq!((read.pod_in("other"), read.exp), (None, Some(7)));
        }
        // Not bound to a pod.
        let claims = json!({"aud": "a", "kubernetes.io": {"namespace": "ml"}});
        assert_eq!(Claims::of(&token(&claims)).unwrap().pod_in("ml"), None);
        let valid = token(&json!({"aud": "a", "kubernetes.io": kubernetes}));
        for wrong in [
            String::new(),
            "a.b.c".to_owned(),
            format!("{valid}.d"),
            valid.replacen('.', "", 1),
            token(&json!([])),
            token(&json!(["a", 7, kubernetes])),
            token(&json!({"aud": "a"})),
            token(&json!({"aud": 1, "kubernetes.io": kubernetes})),
        ] {
            assert!(Claims::of(&wrong).is_none(), "{wrong}");
        }
    }
}
