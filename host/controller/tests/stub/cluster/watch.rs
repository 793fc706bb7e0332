//! Watches.

use std::{collections::VecDeque, io, time::Duration};

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use super::{Act, Cluster, When, answers::shown, place::Place};

/// A running watch.
struct Watching {
    cluster: Cluster,
    changed: watch::Receiver<usize>,
    place: Place,
    partial: bool,
    /// The number of changes that it has delivered or left out.
    at: usize,
    end: Instant,
    /// How often the API server had broken all watches when it began.
    breaks: usize,
    /// It ends after these lines.
    is_over: bool,
}

impl Cluster {
    /// The changes since the requested version, and all later ones until the requested time is over.
    pub(super) fn watch(&self, place: Place, partial: bool) -> Response {
        self.note("watch", &place.plural, 0);
        let version = place.query.get("resourceVersion");
        let version = version.and_then(|text| text.parse().ok());
        let seconds = place.query.get("timeoutSeconds");
        let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(3_600);
        let watching = Watching {
            cluster: self.clone(),
            changed: self.changed.subscribe(),
            place,
            partial,
            at: version.unwrap_or(0),
            end: Instant::now() + Duration::from_secs(seconds),
            breaks: self.state.lock().unwrap().breaks,
            is_over: false,
        };
        let events = stream::unfold(watching, |mut watching| async move {
            let lines = watching.next().await?;
            Some((lines, watching))
        });
        Response::builder()
            .header("content-type", "application/json")
            .body(Body::from_stream(events))
            .unwrap()
    }
}

impl Watching {
    /// Returns the next lines; `None` at the end.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if self.is_over {
                return None;
            }
            match self.lines().await {
                Ok(lines) if lines.is_empty() && !self.is_over => {
                    let next = tokio::time::timeout_at(self.end, self.changed.changed());
                    next.await.ok()?.ok()?;
                }
                Ok(lines) if lines.is_empty() => return None,
                Ok(lines) => {
                    self.cluster.note("event", &self.place.plural, lines.len());
                    return Some(Ok(Bytes::from(lines)));
                }
                Err(lost) => return Some(Err(lost)),
            }
        }
    }

    /// Returns the lines of all changes that it has not delivered.
    async fn lines(&mut self) -> io::Result<String> {
        let mut lines = String::new();
        for (number, event) in self.undelivered()? {
            let call = ("event", self.place.plural.as_str());
            match self.cluster.ask(When::Event, call, &event["object"]).await {
                Act::Twice => lines.push_str(&format!("{event}\n")),
                Act::End => {
                    self.is_over = true;
                    return Ok(lines);
                }
                Act::Cut => return Err(io::ErrorKind::ConnectionReset.into()),
                Act::Answer(code) => {
                    let status = json!({"kind": "Status", "status": "Failure", "code": code, "reason": "Expired"});
                    lines.push_str(&format!("{}\n", json!({"type": "ERROR", "object": status})));
                    self.is_over = true;
                    return Ok(lines);
                }
                _ => {}
            }
            lines.push_str(&format!("{event}\n"));
            self.at = number;
        }
        Ok(lines)
    }

    /// Returns the changes that it has not delivered, with their numbers. The API server accepts a version that it has not reached, and is
    /// silent until then.
    fn undelivered(&mut self) -> io::Result<VecDeque<(usize, Value)>> {
        let state = self.cluster.state.lock().unwrap();
        if state.breaks != self.breaks {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let changes = state.log.get(self.at..).unwrap_or_default().iter();
        let numbered = changes.zip(self.at + 1..);
        let wanted = numbered.filter(|((id, ..), _)| self.place.has(id));
        let event = |((_, event, object), number): (&(_, &str, Value), usize)| {
            let object = shown(object, self.partial);
            (number, json!({"type": event, "object": object}))
        };
        let events: VecDeque<_> = wanted.map(event).collect();
        if events.is_empty() {
            self.at = self.at.max(state.log.len());
        }
        Ok(events)
    }
}
