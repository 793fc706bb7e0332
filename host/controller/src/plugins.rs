//! The plugins of a controller, and the threads on which they are called.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::oneshot;
use trainyard_api::{Runtime, TrainJob};
use trainyard_model::{lookup::Lookups, text::clean};
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

/// Why a TrainJob was not rendered.
#[derive(Debug)]
pub(crate) enum NotRendered {
    /// What is wrong with it, or with its runtime or plugins.
    Problems(Vec<Problem>),
    /// The host panicked, with these words.
    Panicked(String),
    /// The threads end, as the process does.
    Abandoned,
}

impl Plugins {
    /// Renders a TrainJob.
    pub(crate) async fn render(
        &self,
        job: Arc<TrainJob>,
        runtime: Arc<Runtime>,
        namespace: Arc<str>,
        lookups: Arc<Lookups>,
    ) -> Result<Rendered, NotRendered> {
        let (done, wait) = oneshot::channel();
        let renderer = self.renderer.clone();
        let span = tracing::Span::current();
        (self.spawn)(Box::new(move || {
            let render = || renderer.render(&job, &runtime, &namespace, &lookups);
            // Unwind-safe: the renderer and what it is given are never written, and what a call writes to is its own and gone.
            let rendered = span.in_scope(|| catch_unwind(AssertUnwindSafe(render)));
            // Nobody waits where the reconcile was canceled.
            let _ = done.send(rendered);
        }));
        match wait.await {
            Ok(Ok(Ok(rendered))) => Ok(rendered),
            Ok(Ok(Err(problems))) => Err(NotRendered::Problems(problems)),
            Ok(Err(panic)) => Err(NotRendered::Panicked(words(&*panic))),
            Err(_) => Err(NotRendered::Abandoned),
        }
    }
}

/// What a panic says.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    clean(text.unwrap_or("it says nothing"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

    use serde_json::json;
    use trainyard_api::{Admitted, Inputs};
    use trainyard_model::call::Call;
    use trainyard_model::manifest::{CONTRACT, Manifest};
    use trainyard_model::plugin::{Plugin, Settings};
    use trainyard_model::policy::{Finished, Phase, Policy};
    use trainyard_render::{Catalog, ClusterFacts};

    use super::*;

    /// A policy whose host code has a bug that TrainJobs of the name `bad` meet.
    struct Buggy(Arc<Plugin>);

    impl Policy for Buggy {
        fn plugin(&self) -> &Arc<Plugin> {
            &self.0
        }

        fn run(&self, _: Phase, mut call: Box<Call>) -> Finished {
            let name = call.job_name(Call::CONTEXT).unwrap();
            assert!(name != "bad", "a bug that {name} meets");
            Finished {
                call,
                end: Ok(()),
                fuel: None,
            }
        }
    }

    fn plugins(spawn: Spawn) -> Plugins {
        let manifest = json!({
            "name": "buggy", "version": "1.0.0", "contract": CONTRACT, "activeWhen": "plugins", "phases": ["transform"],
        });
        let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
        let plugin = Plugin::new(manifest, "native", Settings::built_in()).unwrap();
        let policy: Arc<dyn Policy> = Arc::new(Buggy(Arc::new(plugin)));
        Plugins {
            renderer: Arc::new(Renderer::new([policy], ClusterFacts::default()).unwrap()),
            spawn,
        }
    }

    async fn render(plugins: &Plugins, name: &str) -> Result<Rendered, NotRendered> {
        let text = format!(
            r"
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {{name: runtime}}
spec:
  plugins: [{{name: buggy}}]
  template: {{spec: {{replicatedJobs: [
    {{name: node, template: {{spec: {{template: {{spec: {{containers: [{{name: node, image: image}}]}}}}}}}}}},
  ]}}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: {name}}}
spec: {{runtimeRef: {{name: runtime}}}}
"
        );
        let objects = Inputs::read_text("input.yaml", &text).objects.into_iter();
        let (catalog, _) = Catalog::new(objects.map(|object| Admitted::new(object, "default")));
        let job = &catalog.jobs[0];
        let (job, runtime) = (job.job.clone(), job.runtime.clone());
        plugins
            .render(Arc::new(job), runtime, "default".into(), Arc::default())
            .await
    }

    #[tokio::test]
    async fn a_panic_is_one_train_jobs_own_and_says_what_it_said() {
        let plugins = plugins(Arc::new(|call| drop(std::thread::spawn(call))));
        let bad = render(&plugins, "bad").await.map(drop);
        assert!(
            matches!(&bad, Err(NotRendered::Panicked(text)) if text == "a bug that bad meets"),
            "{bad:?}"
        );
        render(&plugins, "good").await.unwrap();
    }

    #[tokio::test]
    async fn a_call_that_nobody_makes_is_abandoned() {
        let plugins = plugins(Arc::new(drop));
        let job = render(&plugins, "good").await.map(drop);
        assert!(matches!(job, Err(NotRendered::Abandoned)), "{job:?}");
    }
}
