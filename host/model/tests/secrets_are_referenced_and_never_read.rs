//! A plugin declares Secrets and the key material in them. It gets handles, and no byte of a key.

use serde_json::json;
use trainyard_model::{
    call::{Call, Fault, Write},
    contract::handle,
    object::{ApplyMode, Content},
    plugin::Phase,
    plugin_info::PluginInfo,
    value::KeyFile,
};

use crate::common::{self, call, container, granted, manifest, plugin_under, pod_set};

#[test]
fn own_secrets_are_referenced_by_name_in_volumes_and_env_vars() {
    let claims = [
        ("writes", "pod-sets[*].volumes[keys]"),
        ("writes", "pod-sets[*].containers[*].env[TOKEN]"),
        ("writes", "objects[v1/Secret/-keys]"),
    ];
    let granted = granted(&["objects[v1/Secret/-keys]"]);
    let mut call = call(
        Phase::Transform,
        &plugin_under(&manifest("p", &claims), granted),
    );
    let set = pod_set(&mut call, "node");
    let node = container(&mut call, "node", "node");
    let items = [KeyFile {
        key: "a".to_owned(),
        path: "id_rsa".to_owned(),
        mode: Some(0o600),
    }];
    call.pod_set_put_own_secret(set, "keys", "-keys", Some(0o400), &items)
        .unwrap();
    call.container_put_env_own_secret(node, "TOKEN", "-keys", "token")
        .unwrap();
    let new = |write: &Write| write.change.new.as_ref().unwrap().to_json().unwrap();
    assert_eq!(
        call.writes().iter().map(new).collect::<Vec<_>>(),
        [
            json!({"name": "keys", "secret": {
                "secretName": "llama-keys", "defaultMode": 0o400,
                "items": [{"key": "a", "path": "id_rsa", "mode": 0o600}],
            }}),
            json!({"secretKeyRef": {"name": "llama-keys", "key": "token"}}),
        ]
    );
}

/// A call of a plugin that may emit the Secrets `-a` and `-b`.
fn secrets(phase: Phase) -> Call {
    let claims = [
        ("writes", "objects[v1/Secret/-*]"),
        ("writes", "objects[v1/ConfigMap/-*]"),
    ];
    let granted = granted(&["objects[v1/Secret/-*]"]);
    call(phase, &plugin_under(&manifest("p", &claims), granted))
}

const OBJECTS: handle::Objects = handle::Objects(0);

#[test]
fn secrets_need_a_grant_and_are_emitted_once() {
    let manifest = manifest("p", &[("writes", "objects[v1/Secret/-a]")]);
    let error = PluginInfo::new(common::parsed(&manifest), "native", granted(&[])).unwrap_err();
    assert!(error.to_string().contains("is not granted"), "{error}");

    let mut call = secrets(Phase::Build);
    let object = call
        .objects_emit(OBJECTS, "v1", "Secret", "-a", None)
        .unwrap();
    call.objects_emit(OBJECTS, "v1", "Secret", "-b", None)
        .unwrap();
    call.object_append(object, "text", "a").unwrap();
    call.object_set_binary(object, "bytes", &[0xff]).unwrap();
    call.object_set_immutable(object).unwrap();
    call.object_set_type(object, "kubernetes.io/ssh-auth")
        .unwrap();
    call.object_set_apply(object, "once").unwrap();
    for fault in [
        call.object_set_apply(object, "with-jobset"),
        call.object_set_apply(object, "while-suspended"),
        call.object_set_apply(object, "live"),
        call.object_set_body(object, "{}"),
        call.object_append(object, "bytes", "x"),
        call.object_append(object, "..", "x"),
        call.object_set_binary(object, "text", b"x"),
        call.object_set_binary(object, "", b"x"),
        // Kubernetes would fill it with a token of an account.
        call.object_set_type(object, "kubernetes.io/service-account-token"),
        call.object_set_type(object, "bootstrap.kubernetes.io/token"),
        call.object_set_type(object, ""),
        call.object_set_type(object, "a b"),
    ] {
        assert!(matches!(fault, Err(Fault::Argument(_))), "{fault:?}");
    }
    let objects = call.finish().objects;
    assert!(objects.iter().all(|object| object.apply == ApplyMode::Once));
    let Content::Secret { secret_type, data } = &objects[0].content else {
        panic!("{objects:?}")
    };
    assert_eq!(secret_type.as_str(), "kubernetes.io/ssh-auth");
    assert!(data.immutable);
}

#[test]
fn key_material_of_one_id_is_used_in_one_secret() {
    let mut call = secrets(Phase::Build);
    let [first, second] = ["-a", "-b"].map(|suffix| {
        call.objects_emit(OBJECTS, "v1", "Secret", suffix, None)
            .unwrap()
    });
    let map = call
        .objects_emit(OBJECTS, "v1", "ConfigMap", "-a", None)
        .unwrap();
    let pair = call.objects_key_pair(OBJECTS, "ssh", "ecdsa-p521").unwrap();
    let same = call.objects_key_pair(OBJECTS, "ssh", "ecdsa-p521").unwrap();
    assert_eq!(pair, same);
    let private = call.key_pair_private(pair, "sec1-pem").unwrap();
    let public = call.key_pair_public(same, "openssh").unwrap();
    call.object_append_secret(first, "keys", private).unwrap();
    call.object_append(first, "keys", "\n").unwrap();
    call.object_append_secret(first, "keys", public).unwrap();
    call.object_append_secret(first, "public", public).unwrap();
    call.object_set_binary(first, "bytes", &[1]).unwrap();

    let other = call.objects_random(OBJECTS, "token", 16, "hex").unwrap();
    for fault in [
        call.object_append_secret(second, "public", public),
        call.object_append_secret(first, "bytes", public),
        call.object_append_secret(first, "/", public),
        call.object_append_secret(map, "public", other),
        call.objects_key_pair(OBJECTS, "ssh", "curve25519")
            .map(drop),
        call.objects_random(OBJECTS, "ssh", 16, "hex").map(drop),
        call.objects_key_pair(OBJECTS, "token", "ecdsa-p521")
            .map(drop),
        call.objects_random(OBJECTS, "token", 17, "hex").map(drop),
        call.objects_random(OBJECTS, "token", 16, "base64")
            .map(drop),
        call.objects_key_pair(OBJECTS, "a", "rsa").map(drop),
        call.objects_key_pair(OBJECTS, "", "ecdsa-p521").map(drop),
        call.objects_key_pair(OBJECTS, "a/b", "ecdsa-p521")
            .map(drop),
        call.objects_random(OBJECTS, "short", 15, "hex").map(drop),
        call.objects_random(OBJECTS, "long", 1025, "hex").map(drop),
        call.objects_random(OBJECTS, "much", 65_552, "hex")
            .map(drop),
        call.objects_random(OBJECTS, "odd", 16, "z85").map(drop),
        call.key_pair_private(pair, "openssh").map(drop),
        call.key_pair_public(pair, "sec1-pem").map(drop),
        call.key_pair_private(pair, "z85").map(drop),
    ] {
        assert!(matches!(fault, Err(Fault::Argument(_))), "{fault:?}");
    }
    assert_eq!(
        call.key_pair_private(handle::KeyPair(7), "sec1-pem"),
        Err(Fault::DeadHandle { what: "key pair" })
    );
    let dead = call.object_append_secret(first, "a", handle::SecretText(99));
    assert!(matches!(dead, Err(Fault::DeadHandle { .. })), "{dead:?}");
    let objects = call.finish().objects;
    assert_eq!(
        objects[0].text("keys"),
        Some(
            "<placeholder for the private key of key pair ssh (ecdsa-p521, sec1-pem)>\n\
             <placeholder for the public key of key pair ssh (ecdsa-p521, openssh)>"
        )
    );
}

#[test]
fn key_material_is_available_in_build_only() {
    for phase in [Phase::Transform, Phase::Check] {
        let mut call = secrets(phase);
        for fault in [
            call.objects_key_pair(OBJECTS, "a", "curve25519").map(drop),
            call.objects_random(OBJECTS, "a", 16, "hex").map(drop),
        ] {
            assert!(matches!(fault, Err(Fault::WrongPhase { .. })), "{fault:?}");
        }
    }
}
