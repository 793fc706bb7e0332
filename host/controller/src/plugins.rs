//! The plugins of a controller, and the threads on which they are called.

use std::sync::Arc;

use trainyard_model::deadline::Deadline;
use trainyard_render::Renderer;

use crate::threads::{NotDone, Threads};
use crate::workers::Worker;

/// The plugins of a controller.
#[derive(Clone)]
pub struct Plugins {
    /// The plugins that were loaded, with what was left out.
    pub renderer: Arc<Renderer>,
    /// The threads on which they are called: never those that answer probes.
    pub threads: Threads,
}

impl Plugins {
    /// Does something with them on a thread once it is the namespace's turn.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        worker: &Worker,
        namespace: &Arc<str>,
        work: impl FnOnce(&Renderer, &Deadline) -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        let renderer = self.renderer.clone();
        let work = move |deadline: &Deadline| work(&renderer, deadline);
        self.threads.run(worker, namespace, work).await
    }
}
