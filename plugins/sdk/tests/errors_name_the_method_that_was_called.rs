//! An error names the method of the contract that the plugin called, even if several methods share the check.

use std::cell::Cell;

use trainyard_model::plugin::CallFailure;
use trainyard_sdk::{
    Build, Container, Context, Failure, KeyFile, Phases, PluginParts, PodSet, Port, Transform,
    mock::{MockError, MockJob},
};

type Wrong = (&'static str, fn(&Context));

thread_local! {
    /// What the policy does next.
    static NEXT: Cell<fn(&Context)> = const { Cell::new(|_| ()) };
}

struct Clumsy;

impl Transform for Clumsy {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        (NEXT.get())(ctx);
        Ok(())
    }
}

impl Build for Clumsy {
    fn build(ctx: &Context) -> Result<(), Failure> {
        Self::transform(ctx)
    }
}

const CLAIMS: &str = r#"{
    "reads": ["lookups[v1/ConfigMap/*]"],
    "creates": ["pod-sets[*].containers[*]", "pod-sets[*].init-containers[*]"],
    "writes": [
        "pod-sets[*].containers[node].env[*]", "pod-sets[*].containers[node].requests[*]",
        "pod-sets[*].containers[node].limits[*]", "pod-sets[*].containers[node].ports[*]",
        "pod-sets[*].volumes[*]", "objects[v1/ConfigMap/*]"
    ]
}"#;

fn parts(phase: &str) -> PluginParts {
    let manifest = format!(r#"{{"name": "clumsy", "activeWhen": "plugins", "claims": {CLAIMS}}}"#);
    let parts = format!(r#"{{"version": "0.1.0", "contract": "1.0.0", "phases": ["{phase}"]}}"#);
    PluginParts {
        manifest: manifest.leak(),
        parts: parts.leak(),
        phases: Phases {
            transform: Some(Clumsy::transform),
            build: Some(Clumsy::build),
            ..Phases::NONE
        },
    }
}

fn set(ctx: &Context) -> PodSet {
    ctx.info().pod_set("node").unwrap()
}

fn node(ctx: &Context) -> Container {
    set(ctx).container("node").unwrap()
}

/// How a call of one phase ends over a small job.
fn ended(phase: &str, act: fn(&Context)) -> CallFailure {
    ended_of(MockJob::new("llama").all_granted(), phase, act)
}

fn ended_of(job: MockJob, phase: &str, act: fn(&Context)) -> CallFailure {
    NEXT.set(act);
    let job = job.pod_set("node", |set| {
        set.ancestor("trainer").container("node", |c| c.image("i"))
    });
    match job.all_phases(&parts(phase)).unwrap_err() {
        MockError::Call(error) => error.cause,
        MockError::NoObject(lookup) => CallFailure::Missing(lookup.key),
        other => panic!("{other}"),
    }
}

fn broke(phase: &str, (method, act): Wrong) {
    let ended = ended(phase, act);
    let printed = ended.to_string();
    let CallFailure::Broke(faulted) = ended else {
        panic!("{method}: {ended:?}");
    };
    assert_eq!(faulted.method, Some(method), "{printed}");
    assert!(printed.starts_with(&format!("`{method}`: ")), "{printed}");
}

#[test]
fn invalid_argument_names_its_method() {
    let wrong: &[Wrong] = &[
        ("container.put-env", |c| node(c).put_env("", "")),
        ("container.default-env", |c| node(c).default_env("=", "")),
        ("container.put-env-field", |c| {
            node(c).put_env_field("", "a")
        }),
        ("container.put-env-resource", |c| {
            node(c).put_env_resource("", None, "limits.cpu", None)
        }),
        ("container.put-env-own-config-map", |c| {
            node(c).put_env_own_config_map("A", "no-dash", "a")
        }),
        ("container.remove-env", |c| node(c).remove_env("")),
        ("container.set-request", |c| {
            node(c).set_request("cpu", "many")
        }),
        ("container.set-limit", |c| node(c).set_limit("cpu", "many")),
        ("container.put-port", |c| node(c).put_port(&Port::tcp(0))),
        ("container.place-first", |c| node(c).place_first()),
        ("container.place-after", |c| node(c).place_after("a")),
        ("pod-set.add-container", |c| {
            set(c).add_container("A_B", "i");
        }),
        ("pod-set.add-init-container", |c| {
            set(c).add_init_container("A_B", "i");
        }),
        ("pod-set.put-empty-dir", |c| {
            set(c).put_empty_dir("A_B", None, None)
        }),
        ("pod-set.put-own-config-map", |c| {
            set(c).put_own_config_map("A_B", "-a", None, &[KeyFile::new("a", "a")])
        }),
        ("pod-set.put-raw-volume", |c| {
            set(c).put_raw_volume("a", "[]")
        }),
        ("pod-set.address", |c| {
            set(c).address(9, 9);
        }),
        ("lookups.get", |c| {
            c.lookups().get("v1", "Secret", "a");
        }),
        ("lookups.all", |c| {
            c.lookups().all("v1", "Secret");
        }),
        ("lookups.served", |c| {
            c.lookups().served("v1", "");
        }),
        ("document.text", |c| {
            c.job().config().text("no-slash");
        }),
        ("document.len", |c| {
            c.job().config().len("no-slash");
        }),
        ("context.log", |c| c.log("loud", "")),
        ("objects.name", |c| {
            c.objects().name("v1", "Pod", "-a", None);
        }),
    ];
    for wrong in wrong {
        broke("transform", *wrong);
    }
    broke(
        "build",
        ("objects.emit", |c| {
            c.objects().emit("v1", "Pod", "-a", None);
        }),
    );
    broke(
        "build",
        ("object.append", |c| {
            let object = c.objects().emit("v1", "ConfigMap", "-a", None);
            object.append("..", "");
        }),
    );
}

#[test]
fn missing_claim_wrong_phase_and_base_record_name_the_method() {
    broke(
        "transform",
        ("info.set-label", |c| c.info().set_label("a", "b")),
    );
    broke(
        "transform",
        ("container.args", |c| {
            node(c).args();
        }),
    );
    broke(
        "transform",
        ("info.set-annotation", |c| c.base().set_annotation("a", "b")),
    );
    broke("build", ("container.clear-args", |c| node(c).clear_args()));
    broke(
        "transform",
        ("objects.emit", |c| {
            c.objects().emit("v1", "ConfigMap", "-a", None);
        }),
    );
}

#[test]
fn exhausted_limit_names_the_method() {
    let twice = |c: &Context| {
        node(c).put_env("A", "");
        node(c).remove_env("A");
    };
    let ended = ended_of(
        MockJob::new("llama").all_granted().limit("writes", 1),
        "transform",
        twice,
    );
    assert_eq!(ended.kind(), "limit");
    assert_eq!(
        ended.to_string(),
        "`container.remove-env`: exceeded its limit of 1 writes; raise `limits.writes` in its PolicyPlugin"
    );
}

#[test]
fn missing_lookup_is_not_a_fault() {
    let ask = |c: &Context| {
        c.lookups().get("v1", "ConfigMap", "absent");
    };
    let ended = ended("transform", ask);
    assert!(matches!(ended, CallFailure::Missing(_)), "{ended:?}");
    assert_eq!((ended.kind(), ended.is_repeated()), ("missing", true));
}
