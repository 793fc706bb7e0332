//! A plugin that repeatedly exhausts its time or fuel is not called for a while, for TrainJobs of that namespace only; TrainJobs that need
//! it fail at once, with the reason.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use trainyard_api::{Admitted, Inputs};
use trainyard_controller::{guarded, measured, metrics::Metrics};
use trainyard_model::{
    call::Call,
    deadline::Deadline,
    plugin::{Busy, CallFailure, Limit},
};
use trainyard_render::{Catalog, ClusterFacts, Problem, Rendered, Renderer, Stopped};

use crate::stub::{
    controller::{job, runtime},
    metrics,
    plugin::plugin,
};

/// Returns a renderer with a plugin whose calls have this end for TrainJobs of the namespace `bad`, and the number of its calls.
fn renderer(end: fn() -> CallFailure, metrics: &Arc<Metrics>) -> (Renderer, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let run = move |call: &mut Call| {
        counted.fetch_add(1, Ordering::Relaxed);
        if &*call.job().namespace == "bad" {
            return Err(end());
        }
        Ok(())
    };
    let plugin = measured(guarded(plugin("loops", &[], run), metrics), metrics);
    let renderer = Renderer::new([plugin], ClusterFacts::default()).unwrap();
    (renderer, calls)
}

fn render(renderer: &Renderer, namespace: &str) -> Result<Rendered, Vec<Problem>> {
    let text = format!(
        "{}\n---\n{}",
        runtime("runtime", &["loops"]),
        job(namespace, "job", "runtime", false)
    );
    let objects = Inputs::read_text("input.yaml", &text).objects.into_iter();
    let (catalog, errors) = Catalog::new(objects.map(|object| Admitted::new(object, namespace)));
    assert!(errors.is_empty(), "{}", errors[0]);
    let job = &catalog.jobs[0];
    let (lookups, deadline) = (Arc::default(), Deadline::none());
    let rendered = renderer.render(&job.train_job, &job.runtime, namespace, &lookups, &deadline);
    rendered.map_err(Stopped::into_problems)
}

#[test]
fn plugin_is_paused_after_five_calls_in_that_namespace_only() {
    for end in [
        || CallFailure::Busy(Busy::WallClock(2_000)),
        || CallFailure::limit(Limit::Fuel(100_000_000)),
    ] {
        let metrics = metrics();
        let (renderer, calls) = renderer(end, &metrics);
        for _ in 0..20 {
            let problems = render(&renderer, "bad").unwrap_err();
            assert_eq!(problems.len(), 1);
        }
        assert_eq!(calls.load(Ordering::Relaxed), 5);
        let problem = render(&renderer, "bad").unwrap_err().remove(0);
        assert!(problem.is_transient());
        let printed = problem.to_string();
        let begins = "plugin loops 1.0.0 (native) in transform: is paused for TrainJobs in this namespace, because 5 of its calls ";
        assert!(printed.starts_with(begins), "{printed}");
        let text = metrics.text().unwrap();
        for line in [
            r#"trainyard_plugin_errors_total{plugin="loops",phase="transform",kind="open",digest="native"} "#,
            r#"trainyard_plugin_breakers_open{plugin="loops"} 1"#,
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        render(&renderer, "good").unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), 6);
    }
}

#[test]
fn plugin_that_refuses_or_crashes_is_never_paused() {
    let trap = || CallFailure::Trap {
        kind: "unreachable".to_owned(),
        message: None,
    };
    for end in [trap, || CallFailure::limit(Limit::Writes(1))] {
        let (renderer, calls) = renderer(end, &metrics());
        for _ in 0..20 {
            let problems = render(&renderer, "bad").unwrap_err();
            assert!(!problems[0].is_transient());
        }
        assert_eq!(calls.load(Ordering::Relaxed), 20);
    }
}
