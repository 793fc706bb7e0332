//! Reviews of tokens and of access.

use serde_json::{Value, json};

use super::Cluster;

impl Cluster {
    /// Accepts a token for this audience from now on.
    pub(crate) fn accept(&self, token: &str, audience: &str, user: Value) {
        let accepted = (audience.to_owned(), user);
        let mut state = self.state.lock().unwrap();
        state.tokens.insert(token.to_owned(), accepted);
    }

    /// Accepts a token no longer, as if its pod were deleted.
    pub(crate) fn refuse(&self, token: &str) {
        self.state.lock().unwrap().tokens.remove(token);
    }

    /// Answers a TokenReview.
    pub(super) fn review(&self, mut review: Value) -> Value {
        let state = self.state.lock().unwrap();
        let accepted = state.tokens.get(review["spec"]["token"].as_str().unwrap());
        review["status"] = match accepted {
            Some((audience, user)) if review["spec"]["audiences"] == json!([audience]) => {
                json!({"authenticated": true, "user": user, "audiences": [audience]})
            }
            _ => json!({"user": {}, "error": "[invalid bearer token]"}),
        };
        review
    }

    /// Takes the permissions for a resource away, as SelfSubjectAccessReviews show.
    pub(crate) fn deny(&self, resource: &'static str) {
        self.state.lock().unwrap().denied.insert(resource);
    }

    /// Gives the permissions for a resource back.
    pub(crate) fn permit(&self, resource: &'static str) {
        self.state.lock().unwrap().denied.remove(resource);
    }

    /// Answers a SelfSubjectAccessReview.
    pub(super) fn review_access(&self, mut review: Value) -> Value {
        let state = self.state.lock().unwrap();
        let resource = review["spec"]["resourceAttributes"]["resource"].as_str();
        let is_denied = state.denied.contains(resource.unwrap());
        review["status"] = json!({"allowed": !is_denied});
        review
    }
}
