//! AdmissionReviews: reading requests, and writing answers.

use std::sync::Arc;

use kube::core::{
    DynamicObject,
    admission::{
        AdmissionRequest, AdmissionResponse, AdmissionReview, META_API_VERSION_V1, META_KIND,
        Operation,
    },
};
use serde_json::{Value, json};
use thiserror::Error;
use trainyard_model::names::is_dns_label;

use super::{Webhook, verdict::Verdict};

/// A request to create or update an object.
#[derive(Debug)]
pub(super) struct Review {
    request: AdmissionRequest<DynamicObject>,
    /// The object, as it is to be stored.
    pub(super) new: Value,
    /// The object as it is stored, if it exists.
    pub(super) old: Option<Value>,
    /// The namespace; empty for the cluster's objects.
    pub(super) namespace: Arc<str>,
}

/// Why a body cannot be answered.
#[derive(Debug, Error)]
pub(super) enum ReviewError {
    #[error("the body is not an AdmissionReview of {META_API_VERSION_V1}: {0}")]
    NotAReview(String),
    #[error(
        "the request of the AdmissionReview is about a {found}, but this path is for {wanted}; correct the rules of the webhook configuration"
    )]
    OtherKind { found: String, wanted: &'static str },
}

/// Returns the namespace in the metadata of an object; empty for the cluster's objects.
fn namespace_of(object: &Value) -> &str {
    let namespace = object.pointer("/metadata/namespace");
    namespace.and_then(Value::as_str).unwrap_or_default()
}

/// The contents of a body.
#[derive(Debug)]
pub(super) enum Body {
    /// An object is created or updated.
    Review(Box<Review>),
    /// Anything else, which is admitted, such as a deletion.
    Other(Box<AdmissionRequest<DynamicObject>>),
}

impl Body {
    /// Reads the body of a request to a webhook.
    pub(super) fn read(webhook: Webhook, body: &str) -> Result<Self, ReviewError> {
        let wrong = |why: &dyn ToString| ReviewError::NotAReview(why.to_string());
        let review: AdmissionReview<DynamicObject> =
            serde_json::from_str(body).map_err(|error| wrong(&error))?;
        let types = &review.types;
        if types.kind != META_KIND || types.api_version != META_API_VERSION_V1 {
            return Err(wrong(&format!(
                "it is a {} of {}",
                types.kind, types.api_version
            )));
        }
        let mut request: AdmissionRequest<DynamicObject> =
            review.try_into().map_err(|_| wrong(&"it has no request"))?;
        let wanted = webhook.kind();
        if request.kind.kind != wanted {
            let found = request.kind.kind;
            return Err(ReviewError::OtherKind { found, wanted });
        }
        let value =
            |object: DynamicObject| serde_json::to_value(object).map_err(|error| wrong(&error));
        let new = request.object.take().map(value).transpose()?;
        let old = request.old_object.take().map(value).transpose()?;
        let is_update = match request.operation {
            Operation::Create => false,
            Operation::Update => true,
            Operation::Delete | Operation::Connect => {
                return Ok(Self::Other(Box::new(request)));
            }
        };
        let missing = |what| wrong(&format!("its request has no {what}"));
        let new = new.ok_or_else(|| missing("object"))?;
        let old = match old {
            None if is_update => return Err(missing("oldObject")),
            old => old.filter(|_| is_update),
        };
        let namespace: Arc<str> = request.namespace.as_deref().unwrap_or_default().into();
        if !(namespace.is_empty() || is_dns_label(&namespace)) || namespace_of(&new) != &*namespace
        {
            return Err(wrong(&"its namespace is not that of its object"));
        }
        Ok(Self::Review(Box::new(Review {
            request,
            new,
            old,
            namespace,
        })))
    }

    /// Returns the namespace and the name of the object. They are empty for an object of the cluster, and one without a name yet.
    pub(super) fn object(&self) -> (&str, &str) {
        let request = match self {
            Self::Review(review) => &review.request,
            Self::Other(request) => request,
        };
        let namespace = request.namespace.as_deref().unwrap_or_default();
        (namespace, &request.name)
    }

    /// Returns the answer with that verdict.
    pub(super) fn answer(&self, verdict: Verdict) -> Value {
        let request = match self {
            Self::Review(review) => &review.request,
            Self::Other(request) => request,
        };
        let mut response = AdmissionResponse::from(request);
        if let Some(message) = &verdict.denial {
            response = response.deny(message);
            // As the reference answers: the API server repeats the code and the reason.
            response.result.code = 403;
            response.result.reason = "Forbidden".to_owned();
        }
        if !verdict.warnings.is_empty() {
            response.warnings = Some(verdict.warnings);
        }
        if let Some(patch) = verdict.patch.filter(|patch| !patch.is_empty()) {
            response = match response.clone().with_patch(patch) {
                Ok(patched) => patched,
                Err(error) => {
                    tracing::error!(%error, "the patch of an object is not written");
                    response
                }
            };
        }
        json!(response.into_review())
    }
}
