//! The plugins of a controller, and the threads on which they are called.

use std::sync::Arc;

use tokio::sync::oneshot;
use trainyard_api::{Runtime, TrainJob};
use trainyard_model::lookup::Lookups;
use trainyard_render::{Problem, Rendered, Renderer};

/// Runs something on a thread that may be blocked for as long as a plugin may run.
pub type Spawn = Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// The plugins of a controller.
#[derive(Clone)]
pub struct Plugins {
    /// The plugins that were loaded, with what was left out.
    pub renderer: Arc<Renderer>,
    /// The threads on which they are called: never those that answer probes.
    pub spawn: Spawn,
}

impl Plugins {
    /// Renders a TrainJob; none where the call was abandoned.
    pub(crate) async fn render(
        &self,
        job: Arc<TrainJob>,
        runtime: Arc<Runtime>,
        namespace: Arc<str>,
        lookups: Arc<Lookups>,
    ) -> Option<Result<Rendered, Vec<Problem>>> {
        let (done, wait) = oneshot::channel();
        let renderer = self.renderer.clone();
        let span = tracing::Span::current();
        (self.spawn)(Box::new(move || {
            let rendered = span.in_scope(|| renderer.render(&job, &runtime, &namespace, &lookups));
            // Nobody waits where the reconcile was canceled.
            let _ = done.send(rendered);
        }));
        wait.await.ok()
    }
}
