//! A manifest is read without running the plugin, and all its errors name their field.

use std::sync::Arc;

use serde_json::{Value, json};
use trainyard_model::{
    contract::{VERSION, VersionSupport, interface_of, short_name, version_support},
    manifest::{ActiveWhen, MAX_BYTES, Manifest, ManifestError, Union},
    plugin::Phase,
    plugin_info::{PluginError, PluginInfo, Settings},
};

use crate::common::{self, manifest, parsed, with};

fn error(manifest: &Value) -> String {
    Manifest::parse(manifest.to_string().as_bytes())
        .unwrap_err()
        .to_string()
}

#[test]
fn complete_manifest_round_trips() {
    let whole = json!({
        "name": "torch", "version": "0.1.0", "contract": VERSION, "description": "d", "activeWhen": "mlPolicy.torch",
        "phases": ["transform", "check"], "nodeSets": [{"podSet": "node"}, {"podSet": "launcher", "when": "/runLauncherAsNode"}],
        "claims": {"reads": ["labels[a]"], "creates": ["pod-sets[*].containers[x]"], "writes": ["pod-sets[@trainer].containers[node].env[PET_*]"]},
        "after": ["a"], "before": ["b"],
        "reservedEnv": ["PET_NNODES", {"names": ["A", "B"], "when": {"at": "/kind", "in": ["x", ""]}}, {"names": ["C"], "when": "/on"}],
        "configSchema": {"type": "object"}, "operatorConfigSchema": {"type": "object"},
    });
    let read = parsed(&whole);
    assert_eq!(serde_json::to_value(&read).unwrap(), whole);
    assert!(read.has(Phase::Check) && !read.has(Phase::Build));
    let least = json!({"name": "a", "version": "1.0.0", "contract": VERSION, "activeWhen": "always", "phases": ["build"]});
    assert_eq!(parsed(&least).claims.iter().count(), 0);
}

#[test]
fn errors_name_their_field() {
    let table = [
        (
            json!({"nmae": "x", "claims": {"write": []}}),
            "`nmae`: unknown field; did you mean `name`?; `claims.write`: unknown field; did you mean `writes`?",
        ),
        (
            json!({"secret": "x"}),
            "`secret`: unknown field; valid fields are name, version, ",
        ),
        (
            json!({"nmae": "x", "reservedEnv": [{"names": [], "wen": "/x"}]}),
            "`reservedEnv[0].wen`: unknown field; did you mean `when`?",
        ),
        (
            json!({"nodeSets": [{"podSet": "a", "when": 1}]}),
            "`nodeSets[0].when`: must be a string or a mapping; found 1",
        ),
        (json!({"name": "Torch"}), "`name` must be a DNS label"),
        (json!({"name": ""}), "`name` must be a DNS label"),
        (
            json!({"name": "x".repeat(64)}),
            "`name` must be a DNS label",
        ),
        (
            json!({"version": ""}),
            "`version` must be a semantic version",
        ),
        (json!({"version": "1 0"}), "such as 1.2.3; found `1 0`"),
        (json!({"version": "1"}), "such as 1.2.3; found `1`"),
        (
            json!({"version": "1.0.0\",evil=\""}),
            "`version` must be a semantic version",
        ),
        (
            json!({"version": format!("1.0.0-{}", "a".repeat(60))}),
            "`version` must be a semantic version of at most 64 characters",
        ),
        (
            json!({"after": ["a\nb"]}),
            "`after` has `a b`, which is not the name of a plugin",
        ),
        (
            json!({"before": [""]}),
            "`before` has ``, which is not the name of a plugin",
        ),
        (
            json!({"reservedEnv": ["A=B"]}),
            "`reservedEnv` has `A=B`, which is not the name of an env var",
        ),
        (
            json!({"reservedEnv": [{"names": ["A", "B C"], "when": "/x"}]}),
            "`reservedEnv` has `B C`, which is not the name of an env var",
        ),
        (
            json!({"reservedEnv": [{"names": ["A"]}]}),
            "`reservedEnv[0].when`: is missing",
        ),
        (
            json!({"reservedEnv": [{"names": ["A"], "when": {"at": "kind", "in": ["x"]}}]}),
            "`reservedEnv` has the pointer `kind` into the configuration, which is not a JSON pointer",
        ),
        (
            json!({"nodeSets": [{"podSet": "a", "when": {"at": "/kind", "is": "x"}}]}),
            "`nodeSets[0].when.is`: unknown field; did you mean `in`?",
        ),
        (
            json!({"nodeSets": [{"podSet": "a", "when": "on"}]}),
            "`nodeSets` has the pointer `on` into the configuration, which is not a JSON pointer",
        ),
        (
            json!({"nodeSets": [{"podSet": "A"}]}),
            "`nodeSets` has `A`, which is not the name of a pod set",
        ),
        (
            json!({"before": vec!["b"; 257]}),
            "`before` has 257 names, but at most 256 are allowed",
        ),
        (
            json!({"version": 1, "phases": 5}),
            "`version`: must be a string; found 1; `phases`: must be a list; found 5",
        ),
        (json!({"phases": []}), "`phases` must have at least one"),
        (
            json!({"phases": ["transform", "build", "transform"]}),
            "`phases` has a duplicate phase; remove it",
        ),
        (
            json!({"phases": ["derive"]}),
            "`phases[0]`: must be `transform`, `build` or `check`; found `derive`",
        ),
        (
            json!({"activeWhen": "sometimes"}),
            "`activeWhen`: must be one of mlPolicy.KEY, ",
        ),
        (
            json!({"activeWhen": "mlPolicy."}),
            "and always; found `mlPolicy.`",
        ),
        (json!({"after": ["p"]}), "names the plugin itself"),
        (json!({"before": ["p"]}), "names the plugin itself"),
        (json!({"after": ["q"], "before": ["q"]}), "both name `q`"),
        (
            json!({"claims": {"writes": ["nodes[x]"]}}),
            "unknown field `nodes`; valid fields are ",
        ),
        (
            json!({"claims": {"writes": ["pod-set[x].labels[a]", "pod-sets[x].container[a].env[A]"]}}),
            "unknown field `pod-set`; did you mean `pod-sets`?",
        ),
        (
            json!({"claims": {"writes": ["pod-sets[x].container[a].env[A]"]}}),
            "unknown field `container`; did you mean `containers`?",
        ),
        (
            json!({"claims": {"write": []}}),
            "`claims.write`: unknown field; did you mean `writes`?",
        ),
        (
            json!({"nodeSets": [{"podSet": "a", "if": "/x"}]}),
            "`nodeSets[0].if`: unknown field; ",
        ),
        (
            json!({"configSchema": {"type": "objekt"}}),
            "`configSchema`: not a schema that Trainyard supports",
        ),
        (
            json!({"operatorConfigSchema": {"minimum": "x"}}),
            "`operatorConfigSchema`: not a schema that Trainyard supports",
        ),
    ];
    for (change, problem) in table {
        let error = error(&with(manifest("p", &[]), change));
        assert!(error.contains(problem), "{problem}: {error}");
    }
    assert!(
        Manifest::parse(b"{").is_err()
            && Manifest::parse(b"[]").is_err()
            && Manifest::parse(b"").is_err()
    );
}

#[test]
fn all_errors_are_reported_at_once() {
    let wrong = json!({"name": "A", "version": "", "phases": [], "after": ["A"]});
    let printed = error(&with(manifest("p", &[]), wrong));
    for field in [
        "`name` must",
        "`version` must",
        "`phases` must",
        "`after` or",
    ] {
        assert!(printed.contains(field), "{field}: {printed}");
    }
    let claims = json!({"reads": ["labels"], "writes": ["nodes[x]", "labels[a]", "labels[b"]});
    let printed = error(&with(manifest("p", &[]), json!({ "claims": claims })));
    for path in [
        "reads: `labels`",
        "writes: `nodes[x]`",
        "writes: `labels[b`",
    ] {
        assert!(printed.contains(path), "{path}: {printed}");
    }
}

#[test]
fn keys_without_a_default_are_required() {
    for key in ["name", "version", "contract", "activeWhen", "phases"] {
        let mut manifest = manifest("p", &[]);
        manifest.as_object_mut().unwrap().remove(key);
        assert!(error(&manifest).contains(&format!("`{key}`: is missing")));
    }
}

#[test]
fn other_contract_version_is_reported_first() {
    let reported = |version: &str| {
        let manifest = with(
            manifest("p", &[]),
            json!({"contract": version, "keyOfLater": true}),
        );
        Manifest::parse(manifest.to_string().as_bytes()).unwrap_err()
    };
    for version in ["1.998.0", "1.998.1", "2.0.0"] {
        let error = reported(version);
        assert!(matches!(error, ManifestError::Newer { .. }), "{error}");
        assert_eq!(
            error.to_string(),
            format!(
                "built for contract {version}, but this host supports contracts up to {VERSION}; upgrade the host, or build the plugin with the SDK of this host's release"
            )
        );
    }
    for version in ["0.9.0", "1.0", "1.0.0-rc", "1.0.0+b", ""] {
        let error = reported(version);
        assert!(matches!(error, ManifestError::Contract { .. }), "{error}");
        assert!(
            error.to_string().contains(&format!("contract `{version}`")),
            "{error}"
        );
    }
    let spoken = with(manifest("p", &[]), json!({"contract": "1.0.0"}));
    Manifest::parse(spoken.to_string().as_bytes()).unwrap();
    let evil = with(manifest("p", &[]), json!({"contract": "\u{1b}[31m"}));
    assert!(!error(&evil).contains('\u{1b}'));
}

#[test]
fn host_supports_all_earlier_versions_of_its_contract() {
    use VersionSupport::{Newer, Supported, Unknown};
    for (theirs, ours, expected) in [
        ("1.0.0", "1.0.0", Supported),
        ("1.0.0", "1.1.0", Supported),
        ("1.0.3", "1.1.0", Supported),
        ("1.1.0", "1.1.0", Supported),
        ("1.1.1", "1.1.0", Newer),
        ("1.2.0", "1.1.0", Newer),
        ("1.10.0", "1.9.0", Newer),
        ("2.0.0", "1.1.0", Newer),
        ("1.1.0", "2.0.0", Unknown),
        ("0.9.0", "1.1.0", Unknown),
        ("1.1.0-rc.1", "1.1.0", Unknown),
        ("1.1", "1.1.0", Unknown),
    ] {
        assert_eq!(
            version_support(theirs, ours),
            expected,
            "{theirs} on {ours}"
        );
        let interface = interface_of("context", theirs);
        let short = (expected == Supported).then_some("context");
        assert_eq!(short_name(&interface, ours), short, "{theirs} on {ours}");
    }
    for other in [
        "wasi:cli/context@1.0.0",
        "trainyard:policyx/context@1.0.0",
        "context",
        "",
    ] {
        assert_eq!(short_name(other, "1.1.0"), None, "{other}");
    }
}

#[test]
fn manifest_size_is_limited() {
    let long = with(
        manifest("p", &[]),
        json!({"description": "x".repeat(MAX_BYTES)}),
    );
    assert!(error(&long).contains("bytes, but at most 262144 are allowed"));
}

/// Such a plugin could stop every TrainJob of another one.
#[test]
fn plugins_that_no_runtime_names_exclude_none() {
    let excludes = json!({"excludes": ["torch"]});
    let named = with(manifest("p", &[]), json!({"activeWhen": "plugins"}));
    assert_eq!(parsed(&with(named, excludes.clone())).excludes, ["torch"]);
    for when in ["always", "resourceClaims"] {
        let unnamed = with(manifest("p", &[]), json!({"activeWhen": when}));
        let refused = error(&with(unnamed, excludes.clone()));
        let wanted = format!(
            "`excludes` is only for plugins that a runtime names, but this one is active by `{when}`"
        );
        assert!(refused.contains(&wanted), "{refused}");
    }
    let itself = with(
        manifest("p", &[]),
        json!({"activeWhen": "plugins", "excludes": ["p"]}),
    );
    assert!(error(&itself).contains("`excludes` names the plugin itself"));
}

#[test]
fn activation_round_trips() {
    for text in [
        "mlPolicy.torch",
        "mlPolicy.plugin",
        "podGroupPolicy.volcano",
        "podGroupPolicy.plugin",
        "plugins",
        "resourceClaims",
        "always",
    ] {
        let when: ActiveWhen = text.parse().unwrap();
        assert_eq!(when.to_string(), text);
        assert_eq!(
            when.union().map(Union::name),
            text.split_once('.').map(|(union, _)| union)
        );
    }
}

#[test]
fn claims_that_match_nothing_are_refused_with_their_path() {
    for (list, path, problem) in [
        (
            "reads",
            "pod-sets[*].containers[@base]",
            "`@base` must be followed by a field",
        ),
        (
            "creates",
            "pod-sets[*].init-containers[@base]",
            "`@base` must be followed by a field",
        ),
        (
            "reads",
            "pod-sets[*].containers[@base*]",
            "no container name begins with `@base`",
        ),
        (
            "creates",
            "pod-sets[*].containers[A_B]",
            "`A_B` is not a valid container name",
        ),
        (
            "writes",
            "pod-sets[*].containers[A_B].image",
            "`A_B` is not a valid container name",
        ),
        (
            "reads",
            "pod-sets[A_B].count",
            "`A_B` is not a valid pod set name",
        ),
        (
            "reads",
            "pod-sets[a.*].count",
            "no pod set name begins with `a.`",
        ),
        ("reads", "pod-sets[@-a].count", "no pod set is `@-a`"),
        (
            "writes",
            "pod-sets[*].volumes[A_B]",
            "`A_B` is not a valid volume name",
        ),
        (
            "writes",
            "pod-sets[*].tolerations[A_B]",
            "`A_B` is not a valid toleration name",
        ),
        (
            "writes",
            "pod-sets[*].affinity-terms[A_B]",
            "`A_B` is not a valid affinity term name",
        ),
        (
            "writes",
            "pod-sets[*].resource-claims[A_B]",
            "`A_B` is not a valid resource claim name",
        ),
        (
            "writes",
            "pod-sets[*].scheduling-gates[///]",
            "`///` is not a valid scheduling gate name",
        ),
        (
            "writes",
            "pod-sets[*].scheduling-gates[a/b/*]",
            "no scheduling gate name begins with `a/b/`",
        ),
        (
            "writes",
            "pod-sets[*].dns-searches[UPPER CASE]",
            "`UPPER CASE` is not a valid search domain name",
        ),
        (
            "writes",
            "pod-sets[*].containers[*].env[A=B]",
            "`A=B` is not a valid env var name",
        ),
        (
            "writes",
            "pod-sets[*].containers[*].ports[29500]",
            "`29500` is not a port",
        ),
        (
            "writes",
            "pod-sets[*].containers[*].ports[70000/TCP]",
            "`70000/TCP` is not a port",
        ),
        (
            "writes",
            "pod-sets[*].containers[*].ports[http*]",
            "`http` is not a port",
        ),
        (
            "writes",
            "pod-sets[*].containers[*].ports[http/TCP*]",
            "`http/TCP` is not a port",
        ),
        (
            "writes",
            "pod-sets[*].containers[*].ports[80/http*]",
            "`80/http` is not a port",
        ),
        (
            "writes",
            "pod-sets[*].containers[*].ports[0/TCP]",
            "`0/TCP` is not a port",
        ),
        (
            "writes",
            "pod-sets[*].containers[*].ports[080/TCP]",
            "`080/TCP` is not a port",
        ),
        (
            "writes",
            "pod-sets[*].containers[*].ports[+80/TCP]",
            "`+80/TCP` is not a port",
        ),
        (
            "reads",
            "pod-sets[*].init-containers[a].placement[first]",
            "placements cannot be read",
        ),
        ("reads", "job[trainer]", "`trainer` is not a JSON pointer"),
        ("reads", "job[/a~b]", "`/a~b` is not a JSON pointer"),
        ("reads", "job[trainer*]", "`trainer` is not a JSON pointer"),
        ("reads", "job[#]", "is read by pointer"),
        ("reads", "lookups[#]", "`lookups[VERSION/KIND/#]`"),
        (
            "reads",
            "lookups[v1/ConfigMap/a/b]",
            "name an API version, a kind and an object",
        ),
        (
            "reads",
            "lookups[v1/ConfigMap/]",
            "the name is not a valid object name",
        ),
        (
            "reads",
            "lookups[v1/ConfigMap]",
            "name an API version, a kind and an object",
        ),
        (
            "reads",
            "lookups[a/b/c/Kind/x*]",
            "name an API version, a kind and an object",
        ),
        (
            "reads",
            "lookups[v1/CONFIGMAP/x]",
            "and the kind one such as `ConfigMap`",
        ),
        (
            "reads",
            "lookups[v1/Secret/x]",
            "plugins cannot look up Secrets",
        ),
        (
            "reads",
            "lookups[v1/Secret/*]",
            "plugins cannot look up Secrets",
        ),
        (
            "reads",
            "lookups[v1/SECRET/x*]",
            "plugins cannot look up Secrets",
        ),
        (
            "writes",
            "pod-sets[@trainr].containers[node].env[A]",
            "no pod set is `@trainr`; did you mean `@trainer`?",
        ),
        (
            "writes",
            "pod-sets[@node].containers[node].env[A]",
            "no pod set is `@node`; did you mean `@nodes`?",
        ),
        (
            "writes",
            "pod-sets[@hdea].containers[node].env[A]",
            "no pod set is `@hdea`; write `@nodes`, an ancestor (`@dataset-initializer`, `@model-initializer`, `@trainer`), or the name of the pod set without `@`",
        ),
        (
            "reads",
            "lookups[v1/ConfigMap/a-runtime-snapshot]",
            "plugins cannot look up runtime snapshots of TrainJobs",
        ),
        ("reads", "catalog[#]", "are looked up one by one"),
        (
            "reads",
            "catalog[v1/ConfigMap/#]",
            "are looked up one by one",
        ),
        (
            "reads",
            "catalog[\"v1/ConfigMap/*\"]",
            "are looked up one by one",
        ),
        (
            "reads",
            "catalog[v1/Secret/x]",
            "plugins cannot look up Secrets",
        ),
        ("writes", "objects[v1/Secret/]", "must begin with `-`"),
        (
            "writes",
            "objects[v1/ConfigMap/]",
            "only an object outside the core group may have no suffix",
        ),
        (
            "writes",
            "objects[scheduling.x-k8s.io/v1alpha1/PodGroup/a]",
            "must begin with `-`",
        ),
        (
            "writes",
            "objects[v1/ConfigMap/-A_B]",
            "with the suffix `-A_B`, the object's name",
        ),
        (
            "writes",
            "objects[v1/ConfigMap/-A*]",
            "with the suffix `-A`, the object's name",
        ),
    ] {
        // A grant makes nothing possible.
        let error = common::load(&[(list, path)], &["lookups[*]", path]).unwrap_err();
        let place = format!("in `claims.{list}`: ");
        let PluginError::Claims { errors, .. } = &error else {
            panic!("{path}: {error}")
        };
        assert_eq!(errors.len(), 1, "{path}: {error}");
        let reported = errors[0].to_string();
        assert!(
            reported.contains(&place) && reported.contains(problem),
            "{path}: {reported}"
        );
    }
    for (list, path) in [
        ("creates", "pod-sets[node].containers[$job]"),
        ("creates", "pod-sets[@trainer].containers[a-*]"),
        ("reads", "pod-sets[node-*].containers[@base].env[#]"),
        ("writes", "pod-sets[*].scheduling-gates[example.com/*]"),
        ("writes", "pod-sets[*].dns-searches[team.svc.*]"),
        ("writes", "pod-sets[*].dns-searches[team.svc.]"),
        ("writes", "pod-sets[*].containers[*].env[a.b-C*]"),
        ("writes", "pod-sets[*].containers[*].ports[29*]"),
        ("writes", "pod-sets[*].containers[*].ports[29500/*]"),
        ("reads", "job[\"\"]"),
        ("reads", "job[/trainer/*]"),
        ("reads", "job[/a~*]"),
        ("reads", "lookups[v1/*]"),
        ("reads", "lookups[apps/v1/Depl*]"),
        ("reads", "lookups[v1/ConfigMap/*]"),
        ("reads", "lookups[\"v1/ConfigMap/*\"]"),
        ("reads", "lookups[v1/ConfigMap/#]"),
        ("reads", "catalog[v1/ConfigMap/*]"),
        (
            "reads",
            "lookups[rbac.authorization.k8s.io/v1/Role/system:a]",
        ),
        ("writes", "objects[v1/ConfigMap/*]"),
        ("writes", "objects[v1/ConfigMap/-]"),
        ("writes", "objects[v1/ConfigMap/-a.*]"),
        ("writes", "objects[scheduling.x-k8s.io/v1alpha1/PodGroup/]"),
    ] {
        common::load(&[(list, path)], &["lookups[*]", path])
            .unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}

fn configured(schema: Value) -> PluginInfo {
    let manifest = with(
        manifest("p", &[]),
        json!({"configSchema": schema, "operatorConfigSchema": schema}),
    );
    PluginInfo::new(parsed(&manifest), "native", Settings::built_in()).unwrap()
}

#[test]
fn configuration_gets_defaults_and_errors_have_fields() {
    let plugin = configured(json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "port": {"type": "integer", "minimum": 1, "default": 29500},
            "nested": {"type": "object", "default": {}, "properties": {"deep": {"default": true}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"default": 1}}}},
        },
    }));
    let config = plugin.config(Value::Null).unwrap();
    assert_eq!(*config, json!({"port": 29500, "nested": {"deep": true}}));
    assert_eq!(
        *plugin.config(json!({"list": [{}], "port": 1})).unwrap(),
        json!({"list": [{"a": 1}], "port": 1, "nested": {"deep": true}})
    );
    assert_eq!(
        *plugin.settings.operator_config,
        json!({"port": 29500, "nested": {"deep": true}})
    );
    let errors = plugin.config(json!({"port": 0, "extra": 1})).unwrap_err();
    let fields: Vec<_> = errors.iter().map(|error| error.field.to_string()).collect();
    assert_eq!(fields, ["", "port"], "{errors:?}");
}

#[test]
fn configuration_without_a_schema_is_refused() {
    let plugin = common::plugin(&manifest("p", &[]));
    assert_eq!(*plugin.config(json!({})).unwrap(), json!({}));
    let errors = plugin.config(json!({"a": 1})).unwrap_err();
    assert_eq!(errors[0].to_string(), "this plugin takes no configuration");
    let settings = Settings {
        operator_config: Arc::new(json!({"a": 1})),
        ..Settings::built_in()
    };
    let error = PluginInfo::new(parsed(&manifest("p", &[])), "native", settings).unwrap_err();
    assert!(
        matches!(error, PluginError::OperatorConfig { .. }),
        "{error}"
    );
}
