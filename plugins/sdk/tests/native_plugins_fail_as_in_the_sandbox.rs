//! A native plugin fails as in the sandbox: a fault or a panic ends the call, nothing of it is kept, and it does not affect the next call.

use std::sync::Arc;

use trainyard_model::{
    call::Fault,
    job::Job,
    plugin::{CallFailure, Phase, Plugin},
    plugin_info::Settings,
    record::Record,
    session::Session,
};
use trainyard_sdk::{Context, Failure, Phases, PluginParts, Transform, native::NativePlugin};

struct Labels;

/// What the job asks for by a label: every way in which a call can end.
impl Transform for Labels {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        ctx.info().set_label("mine/first", "written");
        match ctx.job().label("end").as_deref() {
            Some("refuse") => {
                return Err(Failure::from("no\u{1b}[31m").at("spec.trainer"));
            }
            Some("fault") => ctx.info().set_label("other", "not claimed"),
            Some("panic") => panic!("lost at {}", ctx.job().name()),
            Some("swallow") => {
                let _ = std::panic::catch_unwind(|| panic!("the plugin's own business"));
            }
            _ => {}
        }
        ctx.info().set_label("mine/last", "written");
        Ok(())
    }
}

fn plugin(claim: &str) -> Arc<dyn Plugin> {
    let manifest = format!(
        r#"{{"name":"labels","activeWhen":"plugins","claims":{{"writes":["labels[{claim}]"]}}}}"#
    );
    let parts = PluginParts {
        manifest: manifest.leak(),
        parts: r#"{"version":"0.1.0","contract":"1.0.0","phases":["transform"]}"#,
        phases: Phases {
            transform: Some(Labels::transform),
            ..Phases::NONE
        },
    };
    Arc::new(NativePlugin::new(&parts, Settings::default()).unwrap())
}

/// How a call ends, and the labels that count after it.
fn call(plugin: &dyn Plugin, end: &str) -> (Result<(), CallFailure>, usize) {
    let job = Job {
        name: "bert".into(),
        labels: [("end".to_owned(), end.to_owned())].into(),
        ..Job::default()
    };
    let mut session = Session::new(Arc::new(job), Record::new("bert", "bert", "cluster.local"));
    let result = session.call(plugin, Phase::Transform, 0, Arc::default());
    let labels = session
        .record()
        .fields
        .all(trainyard_model::record::Field::Labels);
    assert_eq!(session.committed().len(), usize::from(result.is_ok()));
    (result.map_err(|error| error.cause), labels.len())
}

#[test]
fn successful_call_is_committed() {
    let plugin = plugin("mine/*");
    assert!(matches!(call(&*plugin, ""), (Ok(()), 2)));
}

#[test]
fn refusal_drops_all_writes_and_its_field_is_sanitized() {
    let (end, labels) = call(&*plugin("mine/*"), "refuse");
    let Err(CallFailure::Refused(failure)) = end else {
        panic!("{end:?}");
    };
    assert_eq!(failure.field.as_deref(), Some("spec.trainer"));
    assert!(
        !failure.message.chars().any(char::is_control),
        "{failure:?}"
    );
    assert_eq!(labels, 0);
}

#[test]
fn write_outside_the_claims_is_a_fault_with_the_missing_claim() {
    let (end, labels) = call(&*plugin("mine/*"), "fault");
    let Err(CallFailure::Broke(faulted)) = end else {
        panic!("{end:?}");
    };
    assert!(matches!(faulted.fault, Fault::NotClaimed { .. }));
    let printed = faulted.to_string();
    assert!(
        printed.ends_with(r#"add `"labels[other]"` to `claims.writes` in the manifest"#),
        "{printed}"
    );
    assert_eq!(labels, 0);
}

#[test]
fn panic_is_a_trap_with_its_message() {
    let (end, labels) = call(&*plugin("mine/*"), "panic");
    let Err(CallFailure::Trap { message, .. }) = end else {
        panic!("{end:?}");
    };
    assert_eq!(message.as_deref(), Some("lost at bert"));
    assert_eq!(labels, 0);
}

#[test]
fn one_policy_runs_on_many_threads_and_after_failures() {
    let plugin = plugin("mine/*");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for end in ["panic", "", "fault", "refuse", "swallow"] {
                    let (result, labels) = call(&*plugin, end);
                    let well = ["", "swallow"].contains(&end);
                    assert_eq!((result.is_ok(), labels), (well, if well { 2 } else { 0 }));
                }
            });
        }
    });
}

#[test]
fn covering_claim_allows_the_write() {
    assert!(matches!(call(&*plugin("*"), "fault"), (Ok(()), 3)));
}
