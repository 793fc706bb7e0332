//! What a pod reports, and how it is written.

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use trainyard_api::names;

use crate::watch::TrainJobObject;

/// The field manager of the reference.
const MANAGER: &str = "trainer-status";

/// The body of a request, and of its answer.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct StatusUpdate {
    #[serde(skip_serializing_if = "Option::is_none")]
    trainer_status: Option<TrainerStatus>,
}

/// `status.trainerStatus` of a TrainJob. The API server checks the values.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
struct TrainerStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    progress_percentage: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_remaining_seconds: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<Vec<Metric>>,
    /// In whole seconds, as Kubernetes writes times.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_updated_time: Option<Time>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(default)]
struct Metric {
    name: String,
    value: String,
}

impl StatusUpdate {
    /// Reads a body. Unknown fields are ignored, as by the reference.
    ///
    /// # Errors
    /// It is not JSON, or a field has another type.
    pub(super) fn read(body: &str) -> Result<Self, serde_json::Error> {
        let value: Value = serde_json::from_str(body)?;
        // serde would read the members of an object from an array, too.
        let status = value.get("trainerStatus");
        let metrics = status.and_then(|status| status.get("metrics"));
        let metrics = metrics.and_then(Value::as_array).into_iter().flatten();
        if value.is_array() || status.into_iter().chain(metrics).any(Value::is_array) {
            return Err(serde::de::Error::custom("an array is not an object"));
        }
        let mut update: Self = Option::deserialize(value)?.unwrap_or_default();
        if let Some(time) = update.time_mut() {
            let seconds = Timestamp::from_second(time.0.as_second());
            time.0 = seconds.map_err(serde::de::Error::custom)?;
        }
        Ok(update)
    }

    fn time_mut(&mut self) -> Option<&mut Time> {
        self.trainer_status.as_mut()?.last_updated_time.as_mut()
    }

    /// Whether it says nothing.
    pub(super) const fn is_empty(&self) -> bool {
        self.trainer_status.is_none()
    }

    /// Replaces the trainer's status of a TrainJob. No other field of it is written, and an object is never created. The API server ignores
    /// the UID in such a patch.
    pub(super) async fn write(
        &self,
        client: &Client,
        (namespace, name): (&str, &str),
    ) -> Result<(), kube::Error> {
        let patch = json!({
            "apiVersion": names::TRAINER_API_VERSION,
            "kind": names::TRAIN_JOB,
            "metadata": {"name": name, "namespace": namespace},
            "status": self,
        });
        let jobs = Api::<TrainJobObject>::namespaced(client.clone(), namespace);
        let params = PatchParams::apply(MANAGER).force();
        // The answer is the whole TrainJob, which is not decoded.
        let path = jobs.resource_url();
        let request = kube::core::Request::new(path).patch_subresource(
            "status",
            name,
            &params,
            &Patch::Apply(&patch),
        );
        let request = request.map_err(kube::Error::BuildRequest)?;
        client.request_text(request).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The answer repeats what was read, as in the reference.
    #[test]
    fn an_update_is_read_and_repeated() {
        for (body, answer) in [
            ("{}", "{}"),
            ("null", "{}"),
            (r#"{"trainerStatus": null, "other": 1}"#, "{}"),
            (
                r#"{"trainerStatus": {"progressPercentage": 42, "estimatedRemainingSeconds": 120, "metrics": [{"name": "loss", "value": "0.1", "more": []}], "lastUpdatedTime": "2026-01-02T05:04:05.678901+02:00"}}"#,
                r#"{"trainerStatus":{"progressPercentage":42,"estimatedRemainingSeconds":120,"metrics":[{"name":"loss","value":"0.1"}],"lastUpdatedTime":"2026-01-02T03:04:05Z"}}"#,
            ),
            (
                r#"{"trainerStatus": {"metrics": null, "lastUpdatedTime": null}}"#,
                r#"{"trainerStatus":{}}"#,
            ),
        ] {
            let read = StatusUpdate::read(body).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), answer);
        }
    }

    #[test]
    fn a_body_with_wrong_types_is_refused() {
        for body in [
            "",
            "invalid payload",
            "[]",
            "1",
            r#"{"trainerStatus": []}"#,
            r#"{"trainerStatus": 1}"#,
            r#"{"trainerStatus": {"progressPercentage": "1"}}"#,
            r#"{"trainerStatus": {"progressPercentage": 1.5}}"#,
            r#"{"trainerStatus": {"progressPercentage": 2147483648}}"#,
            r#"{"trainerStatus": {"metrics": [["loss", "1"]]}}"#,
            r#"{"trainerStatus": {"metrics": [{"name": "loss", "value": 1}]}}"#,
            r#"{"trainerStatus": {"lastUpdatedTime": "yesterday"}}"#,
            &format!("{}{}", r#"{"a":"#.repeat(200), "}".repeat(200)),
        ] {
            assert!(StatusUpdate::read(body).is_err(), "{body}");
        }
    }
}
