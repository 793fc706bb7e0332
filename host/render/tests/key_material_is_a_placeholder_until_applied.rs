//! A rendering contains no keys: each is a placeholder, which is the same in every rendering and which an API server refuses.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::json;
use trainyard_model::{
    call::{Call, Fault},
    contract::handle,
    object::{ApplyMode, Part},
    plugin::Phase,
};
use trainyard_render::Rendered;

use crate::common::{Scripted, render};

const OBJECTS: handle::Objects = handle::Objects(0);

fn keys() -> Scripted {
    let claims = [("writes", "objects[v1/Secret/-keys]")];
    Scripted::new("keys", &claims, |phase, call| match phase {
        Phase::Build => emit(call),
        Phase::Transform | Phase::Check => Ok(()),
    })
}

fn emit(call: &mut Call) -> Result<(), Fault> {
    let secret = call.objects_emit(OBJECTS, "v1", "Secret", "-keys", None)?;
    let pair = call.objects_key_pair(OBJECTS, "curve", "curve25519")?;
    let public = call.key_pair_public(pair, "z85")?;
    let private = call.key_pair_private(pair, "z85")?;
    call.object_append(secret, "curve.cert", "curve\n    public-key = \"")?;
    call.object_append_secret(secret, "curve.cert", public)?;
    call.object_append(secret, "curve.cert", "\"\n    secret-key = \"")?;
    call.object_append_secret(secret, "curve.cert", private)?;
    call.object_append(secret, "curve.cert", "\"\n")?;
    call.object_append(secret, "plain", "text")?;
    call.object_set_binary(secret, "bytes", &[0xff, 0])
}

fn rendered() -> Rendered {
    render(&[keys()]).unwrap()
}

#[test]
fn secret_has_a_placeholder_for_each_key() {
    let rendered = rendered();
    assert_eq!(
        rendered.objects[0].value,
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "job-keys", "namespace": "default"},
            "type": "Opaque",
            "data": {
                "bytes": "/wA=",
                "curve.cert":
                    "curve\n    public-key = \"<placeholder for the public key of key pair curve (curve25519, z85)>\"\n    \
                     secret-key = \"<placeholder for the private key of key pair curve (curve25519, z85)>\"\n",
                "plain": "dGV4dA==",
            },
        })
    );
    assert_eq!(rendered.objects[0].apply, ApplyMode::Once);
}

#[test]
fn key_requests_are_passed_apart_from_the_placeholder_text() {
    let rendered = rendered();
    let material = &rendered.objects[0].material;
    let keys: Vec<_> = material.keys().collect();
    assert_eq!(keys, ["curve.cert"]);
    let made = material["curve.cert"].parts().iter();
    let made: Vec<_> = made
        .filter_map(|part| match part {
            Part::Plain(_) => None,
            Part::Material(text) => Some((text.id(), text.form().encoding())),
        })
        .collect();
    assert_eq!(made, [("curve", "z85"); 2]);
}

/// Otherwise, `render | kubectl apply` would create a Secret with a public key value.
#[test]
fn placeholders_are_not_valid_base64() {
    let rendered = rendered();
    let data = &rendered.objects[0].value["data"];
    for (key, is_base64) in [("plain", true), ("bytes", true), ("curve.cert", false)] {
        let text = data[key].as_str().unwrap();
        assert_eq!(BASE64_STANDARD.decode(text).is_ok(), is_base64, "{key}");
    }
}

#[test]
fn placeholders_are_deterministic() {
    let texts = [rendered(), rendered()].map(|it| it.objects[0].value.to_string());
    assert_eq!(texts[0], texts[1]);
}
