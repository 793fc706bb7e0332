//! The CRDs of PolicyPlugin and PluginRevision are generated from their types, and an API server applies their rules. `UPDATE=1` writes the
//! files again.

use std::{fs, path::Path};

use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_config::policy_plugin::{
    BuiltInOrigin, Crd, Origin, PluginRevisionSpec, PluginRevisionStatus, PolicyPlugin,
    PolicyPluginStatus, ReplicaCount, ResolvedPlugin, Stage,
};
use trainyard_structural::{Options, Schema};

#[test]
fn each_crd_is_generated_from_its_type() {
    for kind in Crd::ALL {
        let crd = kind.definition().unwrap_or_else(|error| panic!("{error}"));
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../charts/trainyard/files/crds")
            .join(format!("{}.yaml", kind.plural()));
        let text = yaml::write(&crd);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == text,
            "{} is outdated; write it again with UPDATE=1",
            path.display()
        );
    }
}

/// An API server would store defaults, and users read descriptions with `kubectl explain`.
#[test]
fn fields_have_descriptions_and_no_defaults() {
    fn check(schema: &Value, at: &str) {
        assert!(schema.get("default").is_none(), "{at}");
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let at = format!("{at}.{name}");
            let is_described = property["description"]
                .as_str()
                .is_some_and(|text| !text.is_empty());
            assert!(is_described || name == "metadata", "{at}");
            check(property, &at);
        }
        for below in ["items", "additionalProperties"] {
            if let Some(schema) = schema.get(below) {
                check(schema, &format!("{at}[]"));
            }
        }
    }
    for kind in Crd::ALL {
        check(&kind.schema(), kind.name());
    }
}

/// Returns what an API server answers, without the object.
fn admit(kind: Crd, object: &Value, old: Option<&Value>) -> Vec<String> {
    let schema = Schema::compile(&kind.schema()).unwrap();
    let mut object = object.clone();
    // The status is written by its subresource.
    let options = Options {
        status_subresource: false,
        ..kind.options()
    };
    let outcome = schema.admit(&mut object, old, &options);
    let unknown = outcome
        .unknown
        .iter()
        .map(|field| format!("unknown: {field:?}"));
    let errors = outcome.errors.iter().map(ToString::to_string);
    unknown.chain(errors).collect()
}

fn policy_plugin(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "trainyard.dev/v1alpha1", "kind": "PolicyPlugin", "metadata": {"name": name}, "spec": spec})
}

/// A PolicyPlugin with every field.
fn full() -> Value {
    let digest = format!("sha256:{}", "0a".repeat(32));
    policy_plugin(
        "rdma",
        json!({
            "source": {"oci": {"reference": format!("registry.example.com/plugins/rdma:1.2@{digest}")}},
            "digest": digest,
            "grants": ["pod-sets[*].containers[*].image", "lookups[v1/Node/*]"],
            "limits": {"fuel": 5, "memoryBytes": 1 << 20},
            "compile": {"seconds": 5},
            "config": {"any": {"thing": [1, null, "x"]}},
            "facts": {"rdma/device": "mlx5"},
            "after": ["torch"], "before": ["volcano"], "excludes": ["mpi"],
            "disabled": true,
            "enabledFor": {"namespaces": ["ml"], "runtimes": ["ClusterTrainingRuntime/x"]},
            "trainJobsMayDisable": true,
        }),
    )
}

#[test]
fn api_server_and_reader_accept_a_policy_plugin_with_every_field() {
    assert_eq!(admit(Crd::PolicyPlugin, &full(), None), [""; 0]);
    let read = PolicyPlugin::decode(&full(), Default::default()).unwrap();
    assert_eq!(json!(read.spec), full()["spec"]);
}

/// Configuration is the plugin's own, so nothing of it is pruned.
#[test]
fn configuration_is_stored_as_written() {
    let schema = Schema::compile(&Crd::PolicyPlugin.schema()).unwrap();
    let mut object = full();
    schema.admit(&mut object, None, &Crd::PolicyPlugin.options());
    assert_eq!(object["spec"], full()["spec"]);
}

#[test]
fn api_server_refuses_what_the_reader_refuses() {
    let reference = "r.example.com/x";
    for (spec, server, reader) in [
        (
            json!({"source": {}}),
            "exactly one of oci and file must be set",
            "spec.source: has no source",
        ),
        (
            json!({"source": {"oci": {"reference": reference, "follow": true}, "file": {"name": "x.wasm"}}}),
            "exactly one of oci and file must be set",
            "spec.source: has both `oci` and `file`",
        ),
        (
            json!({"disabledFor": {"namespaces": ["a"]}, "enabledFor": {"namespaces": ["b"]}}),
            "disabledFor and enabledFor cannot be combined",
            "spec.enabledFor: cannot be combined with `disabledFor`",
        ),
        (
            json!({"digest": "sha256:1"}),
            "spec.digest: Invalid value",
            "spec.digest:",
        ),
        (
            json!({"limits": {"fuel": 0}}),
            "spec.limits.fuel",
            "spec.limits.fuel:",
        ),
        (json!({"grant": []}), "unknown: ", "did you mean `grants`?"),
    ] {
        let object = policy_plugin("rdma", spec);
        let answers = admit(Crd::PolicyPlugin, &object, None);
        assert!(
            answers.iter().any(|one| one.contains(server)),
            "{answers:?}"
        );
        let errors = PolicyPlugin::decode(&object, Default::default()).unwrap_err();
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert!(errors.iter().any(|one| one.contains(reader)), "{errors:?}");
    }
    for name in ["a.b".to_owned(), "a".repeat(64)] {
        let object = policy_plugin(&name, json!({}));
        let answers = admit(Crd::PolicyPlugin, &object, None);
        assert!(
            answers.iter().any(|one| one.contains("the name must be")),
            "{answers:?}"
        );
        let errors = PolicyPlugin::decode(&object, Default::default()).unwrap_err();
        assert!(
            errors
                .iter()
                .any(|one| one.to_string().contains("metadata.name"))
        );
    }
}

fn revision(number: u64) -> Value {
    let settings = PolicyPlugin::decode(&full(), Default::default())
        .unwrap()
        .spec;
    let spec = PluginRevisionSpec::new(
        number,
        vec![ResolvedPlugin {
            name: "torch".to_owned(),
            generation: 3,
            origin: Origin::BuiltIn(BuiltInOrigin {}),
            version: None,
            digest: None,
            active_when: None,
            settings: settings.without_source(),
        }],
    );
    json!({
        "apiVersion": "trainyard.dev/v1alpha1", "kind": "PluginRevision",
        "metadata": {"name": spec.name()}, "spec": spec,
    })
}

#[test]
fn plugin_revision_can_be_created_but_its_spec_never_changes() {
    let old = revision(1);
    assert_eq!(admit(Crd::PluginRevision, &old, None), [""; 0]);
    assert_eq!(admit(Crd::PluginRevision, &old, Some(&old)), [""; 0]);
    let name = &old["metadata"]["name"];
    for (pointer, value) in [
        ("/spec/number", json!(2)),
        ("/spec/plugins/0/settings/config/any/thing", json!([2])),
        ("/spec/plugins", json!([])),
        ("/spec/plugins/0/generation", json!(4)),
    ] {
        let mut new = old.clone();
        *new.pointer_mut(pointer).unwrap() = value;
        let answers = admit(Crd::PluginRevision, &new, Some(&old));
        assert!(
            answers.iter().any(|one| one.contains("is immutable")),
            "{pointer} of {name}: {answers:?}"
        );
    }
}

#[test]
fn written_statuses_are_valid() {
    let mut object = full();
    let condition = json!({
        "type": "Active", "status": "True", "reason": "Running", "message": "", "lastTransitionTime": "2026-11-27T16:00:00Z",
    });
    let status = PolicyPluginStatus {
        observed_generation: Some(1),
        conditions: vec![serde_json::from_value(condition).unwrap()],
        replicas: Some(ReplicaCount::new(1, 3)),
        ..PolicyPluginStatus::default()
    };
    object["status"] = json!(status);
    assert_eq!(admit(Crd::PolicyPlugin, &object, None), [""; 0]);
    assert_eq!(object["status"]["replicas"]["summary"], "1/3");
    let conditions = object["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(conditions[0].clone());
    let answers = admit(Crd::PolicyPlugin, &object, None);
    assert!(
        answers.iter().any(|one| one.contains("Duplicate value")),
        "{answers:?}"
    );

    let mut object = revision(1);
    let status = PluginRevisionStatus {
        stage: Stage::RolledBack,
        percent: 10,
        since: Some("2026-11-27T16:00:00Z".to_owned()),
        reason: "Failures".to_owned(),
        message: String::new(),
        plan: None,
        signers: [("stamp".to_owned(), "acme".to_owned())].into(),
        shadow: Some(Default::default()),
        replicas: vec![Default::default()],
    };
    object["status"] = json!(status);
    assert_eq!(admit(Crd::PluginRevision, &object, None), [""; 0]);
    object["status"]["stage"] = json!("Done");
    let answers = admit(Crd::PluginRevision, &object, None);
    assert!(
        answers.iter().any(|one| one.contains("Unsupported value")),
        "{answers:?}"
    );
}

/// Columns of `kubectl get` show them, so they have no other text.
#[test]
fn digests_in_a_status_have_only_digits() {
    let digits = "0a".repeat(32);
    let digest = format!("sha256:{digits}");
    let status = |kind, status: Value| {
        let mut object = match kind {
            Crd::PolicyPlugin => full(),
            Crd::PluginRevision => revision(1),
        };
        object["status"] = status;
        admit(kind, &object, None)
    };
    let of_train_jobs = |digest: &str| {
        let counts = [json!({"digest": digest, "trainJobs": 1})];
        json!({"trainJobs": {"total": 1, "digests": counts}})
    };
    let at_stage = |field: &str, value: &Value| json!({"stage": "Running", field: value});
    let of_pod = |digest: &str| json!([{"pod": "a", "plan": digest}]);
    for (kind, good, bad) in [
        (
            Crd::PolicyPlugin,
            json!({"digest": digest}),
            json!({"digest": digits}),
        ),
        (
            Crd::PolicyPlugin,
            json!({"manifestDigest": digest}),
            json!({"manifestDigest": "sha256:1"}),
        ),
        (
            Crd::PolicyPlugin,
            json!({"plan": digest}),
            json!({"plan": "all is well"}),
        ),
        (
            Crd::PolicyPlugin,
            of_train_jobs(&digits[..12]),
            of_train_jobs(&digits[..13]),
        ),
        (
            Crd::PolicyPlugin,
            of_train_jobs(&digits),
            of_train_jobs("all is well!"),
        ),
        (
            Crd::PluginRevision,
            at_stage("plan", &json!(digest)),
            at_stage("plan", &json!("none")),
        ),
        (
            Crd::PluginRevision,
            at_stage("replicas", &of_pod(&digest)),
            at_stage("replicas", &of_pod("none")),
        ),
    ] {
        assert_eq!(status(kind, good), [""; 0]);
        let answers = status(kind, bad.clone());
        assert!(
            answers.iter().any(|one| one.contains("Invalid value")),
            "{bad}: {answers:?}"
        );
    }
}
