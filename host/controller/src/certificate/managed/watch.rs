//! Notices changes of the objects. What has changed is read again, so nothing is lost if a watch fails.

use std::time::Duration;

use futures_util::StreamExt as _;
use kube::{
    api::{PartialObjectMeta, WatchParams},
    core::Request,
};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use super::cluster::{CONFIGURATIONS, Objects, resource};
use crate::client::{watching, without_content};

/// How long a watch lasts, in seconds.
const WATCH: u32 = 290;

/// The pause before a watch is started again.
const AGAIN: Duration = Duration::from_secs(5);

impl Objects {
    /// Notifies `changed` of changes of the objects. If a watch is not allowed, changes are noticed later.
    pub(super) async fn watch(&self, changed: &Notify) {
        let secrets = format!("/api/v1/namespaces/{}/secrets", self.namespace);
        let [mutating, validating] = CONFIGURATIONS.map(|(kind, name)| {
            let resource = resource(kind);
            let path = format!("/apis/{}/{}", resource.api_version, resource.plural);
            async move { self.watch_one(path, name, changed).await }
        });
        tokio::join!(
            self.watch_one(secrets, &self.secret, changed),
            mutating,
            validating
        );
    }

    async fn watch_one(&self, path: String, name: &str, changed: &Notify) {
        let request = Request::new(path);
        let params = WatchParams {
            timeout: Some(WATCH),
            ..WatchParams::default()
        };
        let params = params.fields(&format!("metadata.name={name}"));
        loop {
            if let Err(error) = self.follow(&request, &params, changed).await {
                let error = without_content(error);
                tracing::debug!(name, %error, "a watch of certificates failed; it is started again");
            }
            sleep(AGAIN).await;
            changed.notify_one();
        }
    }

    async fn follow(
        &self,
        request: &Request,
        params: &WatchParams,
        changed: &Notify,
    ) -> Result<(), kube::Error> {
        let request = request.watch_metadata(params, "0");
        let request = watching(request.map_err(kube::Error::BuildRequest)?);
        let events = self.client.request_events::<PartialObjectMeta>(request);
        let mut events = Box::pin(events.await?);
        let longest = Duration::from_secs(u64::from(WATCH) + 30);
        while let Ok(Some(event)) = timeout(longest, events.next()).await {
            event?;
            changed.notify_one();
        }
        Ok(())
    }
}
