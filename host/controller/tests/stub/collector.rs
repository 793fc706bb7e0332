//! A collector of OpenTelemetry, over HTTP.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{body::to_bytes, extract::Request, response::Response};
use futures_util::FutureExt as _;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value},
    trace::v1::{Span, status::StatusCode},
};
use prost::Message as _;
use trainyard_controller::spans::Endpoint;

/// A collector that serves for as long as the test lasts.
#[derive(Clone, Default)]
pub(crate) struct Collector(Arc<Mutex<Received>>);

#[derive(Default)]
struct Received {
    does: Does,
    bodies: Vec<Vec<u8>>,
    requests: usize,
}

/// What a collector does with a request.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Does {
    /// It keeps the spans.
    #[default]
    Accept,
    /// It answers 500.
    Fail,
    /// It never answers.
    Hang,
}

/// A span as the collector received it.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedSpan {
    pub(crate) name: String,
    pub(crate) id: Vec<u8>,
    pub(crate) parent: Vec<u8>,
    pub(crate) trace: Vec<u8>,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) has_failed: bool,
}

impl Collector {
    /// Serves on a free port, and returns the URL.
    pub(crate) async fn serve(&self) -> Endpoint {
        let collector = self.clone();
        let answer = move |request| {
            let collector = collector.clone();
            async move { collector.answer(request).await }.boxed()
        };
        let url = super::serve(answer).await.cluster_url.to_string();
        url.parse().unwrap()
    }

    async fn answer(&self, request: Request) -> Response {
        assert_eq!(request.uri().path(), "/v1/traces");
        assert_eq!(request.headers()["content-type"], "application/x-protobuf");
        assert!(!request.headers().contains_key("authorization"));
        let body = to_bytes(request.into_body(), 1 << 24).await.unwrap();
        let does = {
            let mut received = self.0.lock().unwrap();
            received.requests += 1;
            if received.does == Does::Accept {
                received.bodies.push(body.to_vec());
            }
            received.does
        };
        let code = match does {
            Does::Accept => 200,
            Does::Fail => 500,
            Does::Hang => std::future::pending().await,
        };
        Response::builder().status(code).body("".into()).unwrap()
    }

    /// Does something else from now on.
    pub(crate) fn set(&self, does: Does) {
        self.0.lock().unwrap().does = does;
    }

    /// Returns the number of requests.
    pub(crate) fn requests(&self) -> usize {
        self.0.lock().unwrap().requests
    }

    /// Returns all bytes that it kept.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().bodies.concat()
    }

    fn decoded(&self) -> Vec<ExportTraceServiceRequest> {
        let received = self.0.lock().unwrap();
        let bodies = received.bodies.iter();
        bodies
            .map(|body| ExportTraceServiceRequest::decode(&**body).unwrap())
            .collect()
    }

    /// Returns the attributes of the process.
    pub(crate) fn resource(&self) -> BTreeMap<String, String> {
        let decoded = self.decoded();
        attributes(
            &decoded[0].resource_spans[0]
                .resource
                .as_ref()
                .unwrap()
                .attributes,
        )
    }

    /// Returns the spans that it kept.
    pub(crate) fn spans(&self) -> Vec<ReceivedSpan> {
        let resources = self.decoded().into_iter().flat_map(|it| it.resource_spans);
        let scopes = resources.flat_map(|it| it.scope_spans);
        scopes.flat_map(|it| it.spans).map(received).collect()
    }
}

fn received(span: Span) -> ReceivedSpan {
    assert!(span.events.is_empty() && span.links.is_empty());
    let status = span.status.unwrap_or_default();
    assert_eq!(status.message, "");
    ReceivedSpan {
        attributes: attributes(&span.attributes),
        name: span.name,
        id: span.span_id,
        parent: span.parent_span_id,
        trace: span.trace_id,
        has_failed: status.code == StatusCode::Error as i32,
    }
}

fn attributes(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| {
        let value = attribute.value.clone().unwrap().value.unwrap();
        let value = match value {
            any_value::Value::StringValue(text) => text,
            any_value::Value::IntValue(number) => number.to_string(),
            other => panic!("{other:?}"),
        };
        (attribute.key.clone(), value)
    };
    attributes.iter().map(text).collect()
}
