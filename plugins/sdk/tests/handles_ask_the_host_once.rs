//! A handle asks the host once for what cannot change during a call, because each question costs time in a sandbox.

use trainyard_sdk::{Context, Failure, Phases, PluginParts, Transform, mock::MockJob};

struct Curious;

impl Transform for Curious {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let node = ctx.info().pod_set("node").unwrap();
        for _ in 0..1000 {
            ctx.info();
            ctx.base();
            ctx.lookups();
            ctx.objects();
            ctx.job().config();
            assert_eq!(ctx.job().name(), "llama");
            assert_eq!(node.name(), "node");
            assert_eq!((node.address_count(), node.count()), (1, 1));
        }
        Ok(())
    }
}

const PARTS: PluginParts = PluginParts {
    manifest: r#"{"name": "curious", "activeWhen": "plugins"}"#,
    parts: r#"{"version": "0.1.0", "contract": "1.0.0", "phases": ["transform"]}"#,
    phases: Phases {
        transform: Some(Curious::transform),
        ..Phases::NONE
    },
};

#[test]
fn repeated_questions_reach_the_host_once() {
    // The context's five handles, the pod set and the configuration.
    let handles = 7;
    let names = ("node".len() + "llama".len() + "node".len()) as u64;
    let job = MockJob::new("llama").pod_set("node", |set| set.ancestor("trainer"));
    let job = job.limit("handles", handles).limit("importBytes", names);
    job.transform(&PARTS).unwrap();
}
