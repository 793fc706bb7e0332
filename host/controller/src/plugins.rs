//! The plugins of a controller, and the threads on which they are called.

use std::sync::Arc;

use trainyard_model::deadline::Deadline;
use trainyard_render::Renderer;

use crate::threads::{TaskError, Threads};

/// The plugins of a controller.
#[derive(Clone)]
pub struct Plugins {
    /// The loaded plugins, and those that were skipped.
    pub renderer: Arc<Renderer>,
    /// The threads on which plugins are called, apart from those that answer probes.
    pub threads: Threads,
}

impl Plugins {
    /// Runs a task with the renderer on a thread when it is the namespace's turn.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        namespace: &Arc<str>,
        work: impl FnOnce(&Renderer, &Deadline) -> T + Send + 'static,
    ) -> Result<T, TaskError> {
        let renderer = self.renderer.clone();
        let work = move |deadline: &Deadline| work(&renderer, deadline);
        self.threads.run(namespace, work).await
    }
}
