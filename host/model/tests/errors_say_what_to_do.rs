//! Errors say what is wrong, with the value found, and what to do. These are the texts that no other test has as a whole.

use std::fmt::Display;

use serde_json::{Value, json};
use trainyard_model::{
    call::Fault,
    claims::{ClaimError, ClaimPath, MAX_CLAIMS, MAX_PATH, Verb},
    manifest::{Manifest, ManifestError},
    object::{
        Data, DataError, ObjectKind, ObjectKindError, ObjectName, ObjectNameError, SecretType,
    },
    plan::{PlanError, WaysOut},
    plugin::Busy,
    plugin_info::{PluginError, PluginId},
    reserved::RESERVED,
    schema::{Exhausted, Schema, SchemaProblem},
};

use crate::common::{
    manifest,
    plans::{errors, of},
    with,
};

fn each_is(table: &[(&dyn Display, &str)]) {
    for (error, text) in table {
        assert_eq!(error.to_string(), *text);
    }
}

#[test]
fn claims_say_what_is_wrong_with_the_path() {
    for (path, text) in [
        (
            "nodes[x]",
            "`nodes[x]`: unknown field `nodes`; valid fields are labels, annotations, objects, job, lookups, catalog, pod-sets",
        ),
        (
            "labels",
            "`labels`: `labels` needs a key, such as `labels[NAME]`, `labels[PREFIX*]` or `labels[*]`",
        ),
        (
            "pod-sets[a].containers[b].image[x]",
            "`pod-sets[a].containers[b].image[x]`: `image` is a single value and takes no key",
        ),
    ] {
        let error = path.parse::<ClaimPath>().unwrap_err();
        assert_eq!(error.to_string(), text);
    }
    let long = format!("labels[{}]", "x".repeat(MAX_PATH));
    let error = long.parse::<ClaimPath>().unwrap_err().to_string();
    assert!(
        error.ends_with("`: longer than 512 bytes; shorten it"),
        "{error}"
    );
    let impossible = ClaimError::Impossible {
        path: "objects[*]".to_owned(),
        list: "reads",
        problem: "objects are emitted, not read".to_owned(),
    };
    each_is(&[
        (
            &ClaimError::TooMany(MAX_CLAIMS + 1),
            "declares 129 claims, but at most 128 are allowed; combine some with a prefix or `*`",
        ),
        (
            &impossible,
            "the claim `objects[*]` in `claims.reads`: objects are emitted, not read",
        ),
    ]);
}

#[test]
fn manifests_say_which_part_is_wrong() {
    let parts = |file: &str, from_macro: &str| {
        Manifest::from_parts(file.as_bytes(), from_macro.as_bytes()).unwrap_err()
    };
    let no_phase = with(manifest("p", &[]), json!({"phases": []}));
    let no_phase = Manifest::parse(no_phase.to_string().as_bytes()).unwrap_err();
    assert!(
        no_phase
            .to_string()
            .starts_with("the manifest's `phases` must have at least one"),
        "{no_phase}"
    );
    let contract = ManifestError::Contract {
        theirs: "0.9.0".to_owned(),
        ours: "1.0.0".to_owned(),
    };
    each_is(&[
        (
            &Manifest::parse(b"{").unwrap_err(),
            "the manifest is not valid JSON: EOF while parsing an object at line 1 column 1",
        ),
        (
            &contract,
            "built for contract `0.9.0`, which this host (contract 1.0.0) does not support; build the plugin with the SDK of this host's release",
        ),
        (
            &parts("1", "{}"),
            "manifest.json is not a JSON object: invalid type: integer `1`, expected a map at line 1 column 1",
        ),
        (
            &parts("{}{}", "{}"),
            "two plugins are linked into one module; call `trainyard_sdk::plugin!` in only one of the linked crates",
        ),
        (
            &parts(r#"{"phases": []}"#, r#"{"phases": []}"#),
            "manifest.json has `phases`, which is derived from the code; remove it from manifest.json",
        ),
    ]);
}

#[test]
fn plugins_that_cannot_be_loaded_together_name_the_ways_out() {
    let torch = || of("torch", &[]);
    assert_eq!(
        errors([torch(), torch()]),
        ["two plugins have the name `torch`; remove or rename one of them"]
    );
    let many = PlanError::TooMany {
        plugins: vec!["a".into(); 65],
    };
    let node_sets = PlanError::NodeSets {
        first: "flux".into(),
        second: "mpi".into(),
        ways: WaysOut {
            disabled: vec!["flux".into(), "mpi".into()],
            ..WaysOut::default()
        },
    };
    each_is(&[
        (
            &many,
            "65 plugins are loaded, but at most 64 are supported; remove some, or disable them in their PolicyPlugins",
        ),
        (
            &node_sets,
            "plugins `flux` and `mpi` both have `nodeSets`, but only one plugin can define which pods are the nodes; remove `nodeSets` from one of the manifests, activate both by `mlPolicy`, which has one member at a time, or set one of these in a PolicyPlugin: `disabled: true` for `flux` or `disabled: true` for `mpi` to disable one",
        ),
    ]);
}

#[test]
fn plugins_that_are_not_loaded_name_their_policy_plugin() {
    let id = PluginId {
        name: "torch".into(),
        version: "1.2.3".into(),
        digest: "native".into(),
    };
    let digest = PluginError::Digest {
        id: id.clone(),
        wanted: "sha256:ab".to_owned(),
    };
    let schema = Schema::new(json!({"type": "object"})).unwrap();
    let config = PluginError::OperatorConfig {
        id,
        errors: schema.field_errors(&json!(1), &[]),
    };
    each_is(&[
        (
            &digest,
            "plugin torch 1.2.3 (native): its PolicyPlugin accepts only digest sha256:ab",
        ),
        (
            &config,
            "plugin torch 1.2.3 (native): `config` in its PolicyPlugin: must be a mapping; found 1",
        ),
    ]);
}

#[test]
fn ended_calls_name_the_claim_the_grant_or_the_way_around() {
    let not_claimed = Fault::NotClaimed {
        verb: Verb::Write,
        path: "labels[a]".to_owned(),
        claim: "labels[*]".to_owned(),
    };
    let not_granted = Fault::NotGranted {
        path: "labels[a]".to_owned(),
        claim: "labels[*]".to_owned(),
        what: "a label of Kubernetes",
        allowed: "other labels",
    };
    let not_reserved = Fault::NotReserved {
        path: "env[A]".to_owned(),
        owner: "TrainJob",
    };
    let reserved = Fault::Reserved {
        name: "a-runtime-snapshot".to_owned(),
        reserved: &RESERVED[0],
    };
    let too_large = Fault::TooLarge {
        path: "objects[v1/ConfigMap/-a]".to_owned(),
        written: 1_048_577,
    };
    each_is(&[
        (
            &not_claimed,
            "cannot write `labels[a]`, because no claim allows it; add `\"labels[*]\"` to `claims.writes` in the manifest",
        ),
        (
            &not_granted,
            "`labels[a]`: a label of Kubernetes needs a grant; without one, only other labels are allowed; add `grants: [\"labels[*]\"]` to its PolicyPlugin",
        ),
        (
            &not_reserved,
            "cannot change `env[A]`, which the TrainJob set; use `default-env` to leave it unchanged, or reserve the name with `reservedEnv` in the manifest",
        ),
        (
            &reserved,
            "cannot use the object name `a-runtime-snapshot`: names that end in `-runtime-snapshot` are reserved for the runtime snapshots of TrainJobs; choose another suffix, or rename the TrainJob",
        ),
        (
            &Fault::BaseWritten,
            "cannot write the base record; write the record that `context.info` returns",
        ),
        (
            &Fault::DeadHandle { what: "container" },
            "the handle refers to a container that does not exist",
        ),
        (
            &too_large,
            "`objects[v1/ConfigMap/-a]`: 1048577 bytes exceed the limit of 1048576 bytes per object; use fewer nodes, or emit less for each node",
        ),
    ]);
}

#[test]
fn busy_hosts_say_which_setting_to_raise() {
    let open = Busy::Open {
        calls: 3,
        within: 60,
    };
    let everywhere = Busy::OpenEverywhere {
        namespaces: 3,
        within: 600,
    };
    each_is(&[
        (
            &Busy::WallClock(50),
            "exceeded 50 ms of wall-clock time; it may be looping, or the machine may be busy; raise `limits.wallClockMs` in its PolicyPlugin",
        ),
        (&Busy::Pool, "all sandbox instances are in use"),
        (
            &open,
            "is paused for TrainJobs in this namespace, because 3 of its calls exhausted their time or fuel within 60 s; see the metric trainyard_plugin_errors_total, and raise `limits.wallClockMs` or `limits.fuel` in its PolicyPlugin if the plugin needs more",
        ),
        (
            &everywhere,
            "is paused for all namespaces, because its calls failed in 3 of them or more and none succeeded within 600 s; it is called again after a while; the condition `Paused` of its PolicyPlugin, or the log of the controller, says why it fails",
        ),
    ]);
}

#[test]
fn objects_say_which_part_of_them_is_refused() {
    let kind = |api_version, kind| ObjectKind::new(api_version, kind).unwrap_err();
    let config_map = ObjectKind::new("v1", "ConfigMap").unwrap();
    let name = |text: &str| ObjectName::new(&config_map, "job", text.to_owned()).unwrap_err();
    let mut data = Data::<String>::default();
    data.set_bytes("bytes", b"x").unwrap();
    "x".clone_into(data.text_mut("text").unwrap());
    each_is(&[
        (
            &kind("v1", "config map"),
            "is not a kind, such as `v1/ConfigMap`",
        ),
        (
            &kind("v1", "Namespace"),
            "is a cluster-scoped kind; plugins can emit objects only in the TrainJob's namespace",
        ),
        (
            &ObjectKindError::Powerful,
            "is a kind that plugins cannot emit",
        ),
        (
            &name("other"),
            "is not the TrainJob's name with a suffix that begins with `-`",
        ),
        (
            &name("job-A"),
            "is not a DNS subdomain of at most 253 characters",
        ),
        (
            &ObjectNameError::Reserved(&RESERVED[1]),
            "is reserved: names that end in `-trainyard` are reserved for objects of later releases",
        ),
        (
            &SecretType::new("a b").unwrap_err(),
            "the type of a Secret must be 1 to 253 letters, digits, `.`, `-`, `_` and `/`, such as `kubernetes.io/ssh-auth`",
        ),
        (
            &SecretType::new("bootstrap.kubernetes.io/token").unwrap_err(),
            "plugins cannot emit Secrets of this type, because it holds a token for a ServiceAccount or for joining a cluster",
        ),
        (
            &data.text_mut("a/b").unwrap_err(),
            "the key of a ConfigMap or Secret must be 1 to 253 letters, digits, `-`, `_` and `.`",
        ),
        (
            &data.set_bytes("text", b"").unwrap_err(),
            "the key already has text",
        ),
        (
            &data.text_mut("bytes").unwrap_err(),
            "the key already has bytes",
        ),
    ]);
    assert_eq!(data.text_mut("bytes"), Err(DataError::HoldsBytes));
}

#[test]
fn schemas_say_what_is_not_supported() {
    let refused = |schema: Value| Schema::new(schema).unwrap_err().to_string();
    for (schema, text) in [
        (
            json!({"properties": {"a": 1}}),
            "not a schema that Trainyard supports: /properties/a: a schema must be an object, true or false",
        ),
        (
            json!({"if": true}),
            "not a schema that Trainyard supports: unsupported keyword `if`; supported keywords are $defs, $ref, additionalProperties, allOf, anyOf, const, default, definitions, enum, exclusiveMaximum, exclusiveMinimum, items, maxItems, maxLength, maxProperties, maximum, minItems, minLength, minProperties, minimum, multipleOf, not, oneOf, pattern, properties, required, type, uniqueItems, description",
        ),
        (
            json!({"$ref": "other.json"}),
            "not a schema that Trainyard supports: `$ref` must be `#/$defs/NAME` or `#/definitions/NAME` of a definition at the top level of the schema; found `other.json`",
        ),
    ] {
        assert_eq!(refused(schema), text);
    }
    let pattern = refused(json!({"pattern": "("}));
    assert!(
        pattern.contains("`pattern` is not supported: "),
        "{pattern}"
    );
    let manifest = with(
        manifest("p", &[]),
        json!({"configSchema": {"pattern": "("}}),
    );
    let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap_err();
    assert!(
        manifest
            .to_string()
            .contains("`pattern` is not supported: "),
        "{manifest}"
    );
    each_is(&[
        (
            &SchemaProblem::Defaults(Exhausted::Filled),
            "an empty configuration gets more than 1048576 bytes of defaults from the plugin's schema; shorten its lists and maps",
        ),
        (
            &Exhausted::Steps,
            "takes more than 4000000 steps to check with the plugin's schema; shorten it",
        ),
        (
            &Exhausted::Levels,
            "nests deeper than 32 levels; flatten it",
        ),
        (
            &SchemaProblem::Levels,
            "schemas nest deeper than 64 levels, or one refers to itself",
        ),
        (
            &SchemaProblem::DeepDefault,
            "the default nests deeper than 32 levels",
        ),
    ]);
}
