//! The status of a pod in the API.

use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde_json::json;

use super::{PodRun, now};
use crate::kubelet::{
    AGAIN_AFTER,
    run::{
        HOST,
        problem::Problem,
        status::{self, About},
    },
};

impl PodRun {
    /// Writes the status if it has changed.
    pub(super) async fn report(&mut self, has_ended: bool, problem: Option<&Problem>) {
        if self.state.is_gone {
            return;
        }
        let about = About {
            now: now(),
            pod_ip: self.state.sandbox.as_ref().map(|_| self.address.into()),
            host_ip: HOST.into(),
            has_ended,
        };
        let before = self.state.written.clone();
        let before = before
            .or_else(|| self.pod.status.clone())
            .unwrap_or_default();
        let mut status = status::status(&self.state.records, before, &about);
        if let Some(problem) = problem {
            status.phase = Some("Failed".to_owned());
            status.reason = Some(problem.reason().to_owned());
            status.message = Some(problem.to_string());
        }
        if self.state.written.as_ref() == Some(&status) {
            return;
        }
        let patch = Patch::Strategic(json!({"metadata": {"uid": self.uid()}, "status": status}));
        self.state.written = Some(status);
        let (pods, name) = (self.pods(), self.pod.name_any());
        loop {
            let written = pods
                .patch_status(&name, &PatchParams::default(), &patch)
                .await;
            match written {
                Ok(_) => return,
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                    self.state.is_gone = true;
                    return;
                }
                Err(_) => tokio::time::sleep(AGAIN_AFTER).await,
            }
        }
    }

    pub(super) async fn delete(&self) {
        let params = DeleteParams::default()
            .grace_period(0)
            .preconditions(Preconditions {
                uid: self.pod.uid(),
                resource_version: None,
            });
        let (pods, name) = (self.pods(), self.pod.name_any());
        loop {
            match pods.delete(&name, &params).await {
                Ok(_) | Err(kube::Error::Api(_)) => return,
                Err(_) => tokio::time::sleep(AGAIN_AFTER).await,
            }
        }
    }
}
