//! Events have the fields that the SDK reads, repeated ones are counted, each object has a limit, namespaces take turns, and no reconcile
//! waits for them.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use http::Method;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::{Value, json};
use trainyard_controller::{
    client::{ClientOptions, client},
    events::{EventWriter, Recorder, Reporter, recorder},
    metrics::Metrics,
};

use crate::stub::{self, answer, metrics, serve, status};

/// The writes that the server received, and its answer to each by number.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(Method, String, Value)>>>);

impl Seen {
    fn all(&self) -> Vec<(Method, String, Value)> {
        self.0.lock().unwrap().clone()
    }

    fn of(&self, method: &Method) -> Vec<(String, Value)> {
        self.all()
            .into_iter()
            .filter(|(m, _, _)| m == method)
            .map(|(_, path, body)| (path, body))
            .collect()
    }
}

async fn start(
    codes: impl Fn(usize) -> u16 + Clone + Send + Sync + 'static,
) -> (Recorder, EventWriter, Seen, Arc<Metrics>) {
    let seen = Seen::default();
    let config = serve({
        let seen = seen.clone();
        move |request| {
            let (seen, codes) = (seen.clone(), codes.clone());
            Box::pin(async move {
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                let body = stub::json(request).await;
                let mut seen = seen.0.lock().unwrap();
                seen.push((method, path, body.clone()));
                match codes(seen.len()) {
                    200 => {
                        let mut event = body;
                        event["metadata"]["name"] = json!("any");
                        event["involvedObject"] = json!({});
                        answer(200, &event)
                    }
                    code => status(code, "Refused"),
                }
            })
        }
    })
    .await;
    let metrics = metrics();
    let options = ClientOptions {
        answer: Duration::from_secs(2),
        ..ClientOptions::default()
    };
    let client = client(config, options, Arc::clone(&metrics)).unwrap();
    let reporter = Reporter {
        component: "trainjob_controller".to_owned(),
        instance: "trainyard-0".to_owned(),
    };
    let (recorder, writer) = recorder(client, reporter, Arc::clone(&metrics));
    (recorder, writer, seen, metrics)
}

fn job(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("trainer.kubeflow.org/v1alpha1".to_owned()),
        kind: Some("TrainJob".to_owned()),
        namespace: Some("team".to_owned()),
        name: Some(name.to_owned()),
        uid: Some(format!("uid-{name}")),
        ..ObjectReference::default()
    }
}

const REASON: &str = "TrainJobResourcesCreationFailed";

/// Waits until that many Events were written.
async fn until_written(seen: &Seen, count: usize) {
    let written = async {
        while seen.all().len() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let written = tokio::time::timeout(Duration::from_secs(600), written).await;
    written.expect("the Events are written");
}

fn warn(recorder: &Recorder, name: &str, note: &str) {
    recorder.warn(&job(name), REASON, "Reconciling", &[note]);
}

#[tokio::test]
async fn event_has_the_fields_that_sdk_and_kubectl_read() {
    let (recorder, writer, seen, _) = start(|_| 200).await;
    warn(
        &recorder,
        "one",
        "plugin torch: \u{1b}[31mn\u{200b}o\u{202e}\n",
    );
    drop(recorder);
    writer.run().await;
    let created = seen.of(&Method::POST);
    assert_eq!(created.len(), 1);
    let (path, event) = &created[0];
    assert_eq!(path, "/api/v1/namespaces/team/events");
    assert_eq!(event["apiVersion"], "v1");
    assert_eq!(event["kind"], "Event");
    assert_eq!(event["metadata"]["namespace"], "team");
    assert!(
        event["metadata"]["name"]
            .as_str()
            .unwrap()
            .starts_with("one.")
    );
    assert_eq!(event["involvedObject"]["uid"], "uid-one");
    assert_eq!(event["involvedObject"]["kind"], "TrainJob");
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["reason"], REASON);
    assert_eq!(event["action"], "Reconciling");
    assert_eq!(event["count"], 1);
    assert_eq!(event["source"]["component"], "trainjob_controller");
    assert_eq!(event["reportingComponent"], "trainjob_controller");
    assert_eq!(event["reportingInstance"], "trainyard-0");
    let first = event["firstTimestamp"].as_str().unwrap();
    assert!(first.ends_with('Z') && first.len() == 20, "{first}");
    assert_eq!(event["lastTimestamp"], first);
    // With an eventTime the API server checks it as another kind of Event.
    assert!(event["eventTime"].is_null());
    let message = event["message"].as_str().unwrap();
    assert_eq!(message, r"plugin torch: \u{1b}[31mn\u{200b}o\u{202e} ");
}

#[tokio::test]
async fn repeated_event_is_counted_on_the_first() {
    let (recorder, writer, seen, _) = start(|_| 200).await;
    let writer = tokio::spawn(writer.run());
    for count in 1..=3 {
        warn(&recorder, "one", "same");
        until_written(&seen, count).await;
    }
    warn(&recorder, "one", "another");
    drop(recorder);
    writer.await.unwrap();
    let created = seen.of(&Method::POST);
    assert_eq!(created.len(), 2, "{created:?}");
    let patched = seen.of(&Method::PATCH);
    let first = created[0].1["metadata"]["name"].as_str().unwrap();
    for ((path, patch), count) in patched.iter().zip([2, 3]) {
        assert_eq!(path, &format!("/api/v1/namespaces/team/events/{first}"));
        assert_eq!(patch["count"], count);
        assert!(patch["lastTimestamp"].is_string());
    }
    assert_eq!(patched.len(), 2);
}

#[tokio::test]
async fn deleted_event_is_created_again() {
    let (recorder, writer, seen, _) = start(|n| if n == 2 { 404 } else { 200 }).await;
    let writer = tokio::spawn(writer.run());
    // The second one is written twice.
    for count in [1, 3, 4] {
        warn(&recorder, "one", "same");
        until_written(&seen, count).await;
    }
    drop(recorder);
    writer.await.unwrap();
    let methods: Vec<_> = seen
        .all()
        .into_iter()
        .map(|(method, _, _)| method)
        .collect();
    assert_eq!(
        methods,
        [Method::POST, Method::PATCH, Method::POST, Method::PATCH]
    );
    assert_eq!(seen.all()[3].2["count"], 2);
}

#[tokio::test]
async fn one_object_can_not_flood_the_server_or_silence_others() {
    let (recorder, writer, seen, metrics) = start(|_| 200).await;
    for n in 0..40 {
        let reason = format!("Problem{n}");
        recorder.warn(&job("noisy"), &reason, "Reconciling", &["a problem"]);
    }
    warn(&recorder, "quiet", "a word");
    drop(recorder);
    writer.run().await;
    let created = seen.of(&Method::POST);
    assert_eq!(created.len(), 26);
    assert_eq!(created[25].1["involvedObject"]["name"], "quiet");
    let text = metrics.text().unwrap();
    let line = r#"trainyard_events_dropped_total{reason="spam"} 15"#;
    assert!(text.contains(line), "{text}");
}

#[tokio::test]
async fn a_busy_namespace_does_not_delay_the_events_of_another() {
    let (recorder, writer, seen, metrics) = start(|_| 200).await;
    for n in 0..3_000 {
        warn(&recorder, &n.to_string(), "busy");
    }
    let quiet = ObjectReference {
        namespace: Some("quiet".to_owned()),
        ..job("quiet")
    };
    recorder.warn(&quiet, REASON, "Reconciling", &["quiet"]);
    drop(recorder);
    writer.run().await;
    let created = seen.of(&Method::POST);
    assert_eq!(created.len(), 1_024);
    let namespaces = created.iter().map(|(path, _)| path.contains("/quiet/"));
    assert_eq!(namespaces.clone().position(|is_quiet| is_quiet), Some(1));
    let text = metrics.text().unwrap();
    let line = r#"trainyard_events_dropped_total{reason="full"} 1977"#;
    assert!(text.contains(line), "{text}");
}

/// The error of a TrainJob may change faster than Events are written.
#[tokio::test]
async fn newest_event_of_an_object_replaces_the_one_that_waits() {
    let (recorder, writer, seen, metrics) = start(|_| 200).await;
    for note in ["old", "old", "new", "new"] {
        warn(&recorder, "one", note);
    }
    recorder.warn_each(&job("one"), "TrainJobWarning", "Reconciling", &["a", "b"]);
    drop(recorder);
    writer.run().await;
    let created = seen.of(&Method::POST).into_iter();
    let created: Vec<_> = created
        .map(|(_, event)| (event["message"].clone(), event["count"].clone()))
        .collect();
    let expected = [("new", 2), ("a", 1), ("b", 1)];
    assert_eq!(
        created,
        expected.map(|(text, count)| (json!(text), json!(count)))
    );
    let text = metrics.text().unwrap();
    let line = r#"trainyard_events_dropped_total{reason="replaced"} 1"#;
    assert!(text.contains(line), "{text}");
}

#[tokio::test]
async fn long_messages_are_cut_at_character_boundaries() {
    let (recorder, writer, seen, _) = start(|_| 200).await;
    warn(&recorder, "one", &"ü".repeat(2_000));
    drop(recorder);
    writer.run().await;
    let message = seen.of(&Method::POST)[0].1["message"].clone();
    let message = message.as_str().unwrap();
    assert!(
        message.len() <= 954 && message.ends_with("ü ..."),
        "{message}"
    );
}

/// Returns the messages of the Events about an object with these problems.
async fn messages(sentences: &[String]) -> Vec<String> {
    let (recorder, writer, seen, _) = start(|_| 200).await;
    recorder.warn(&job("one"), REASON, "Reconciling", sentences);
    drop(recorder);
    writer.run().await;
    let created = seen.of(&Method::POST).into_iter();
    created
        .map(|(_, event)| event["message"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn long_errors_are_split_into_several_complete_events() {
    let sentence = |n: usize| format!("problem {n}: {}", "x".repeat(287));
    let some = |count| (0..count).map(sentence).collect::<Vec<_>>();
    assert_eq!(messages(&some(3)).await, [some(3).join("; ")]);
    let found = messages(&some(7)).await;
    assert_eq!(found.join("; "), some(7).join("; "));
    assert_eq!(found.len(), 3);
    // However many there are, it is four.
    let found = messages(&some(1_000)).await;
    let expected = some(12).join("; ") + "; and 988 more";
    assert_eq!((found.join("; "), found.len()), (expected, 4));
    // One that is too long is cut, and those beside it are whole.
    let found = messages(&[sentence(0), "y".repeat(2_000), sentence(2)]).await;
    let (first, last) = (sentence(0), sentence(2));
    assert_eq!([&found[0], &found[2]], [&first, &last]);
    assert!(found[1].ends_with("y ..."), "{found:?}");
    assert!(found.iter().all(|message| message.len() < 1_024));
}

#[tokio::test]
async fn busy_server_is_retried_and_refusal_is_not() {
    let (recorder, writer, seen, metrics) = start(|n| if n == 1 { 503 } else { 200 }).await;
    warn(&recorder, "one", "same");
    drop(recorder);
    writer.run().await;
    let names: Vec<_> = seen
        .of(&Method::POST)
        .into_iter()
        .map(|(_, event)| event["metadata"]["name"].clone())
        .collect();
    assert_eq!(names.len(), 2);
    // The same name: if the first answer was only lost, there is no second Event.
    assert_eq!(names[0], names[1]);
    assert!(
        !metrics
            .text()
            .unwrap()
            .contains(r#"dropped_total{reason="error"}"#)
    );

    let (recorder, writer, seen, metrics) = start(|_| 403).await;
    warn(&recorder, "one", "same");
    drop(recorder);
    writer.run().await;
    assert_eq!(seen.all().len(), 1);
    let text = metrics.text().unwrap();
    assert!(
        text.contains(r#"trainyard_events_dropped_total{reason="error"} 1"#),
        "{text}"
    );
}

#[tokio::test]
async fn events_never_block_a_reconcile() {
    let (recorder, writer, _, metrics) = start(|_| 200).await;
    let start = Instant::now();
    // Nothing is written, and far more are queued than may wait.
    for n in 0..5_000 {
        warn(&recorder, &n.to_string(), "same");
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    let text = metrics.text().unwrap();
    assert!(
        text.contains(r#"trainyard_events_dropped_total{reason="full"} 3976"#),
        "{text}"
    );
    drop(writer);
    warn(&recorder, "one", "same");
}
