#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeSet;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::json;
use trainyard_model::material::{Form, RandomText, SecretText};

use super::*;

fn text(id: &str, form: Form) -> SecretText {
    SecretText::new(id, form).unwrap()
}

/// A key of the Secret that holds those texts.
fn value(texts: &[SecretText]) -> SecretValue {
    let mut value = SecretValue::default();
    value.append("<");
    for text in texts {
        value.append_material(text.clone());
        value.append("\n");
    }
    value.append(">");
    value
}

fn secret(material: &BTreeMap<String, SecretValue>) -> Value {
    let mut secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "type": "Opaque",
        "data": {"plain": "cGxhaW4="}, "immutable": true,
    });
    for (key, value) in material {
        secret["data"][key] = value.shown().into();
    }
    secret
}

/// The Secret as it goes to the API server, and the texts of its keys.
fn filled(material: &BTreeMap<String, SecretValue>) -> (Value, BTreeMap<String, String>) {
    decoded(&fill(&secret(material), material).unwrap())
}

fn decoded(filled: &SecretWithKeys) -> (Value, BTreeMap<String, String>) {
    let sent: Value = serde_json::from_slice(&filled.json).unwrap();
    let data = sent["data"].as_object().unwrap().iter();
    let decoded = data.map(|(key, value)| {
        let bytes = BASE64_STANDARD.decode(value.as_str().unwrap()).unwrap();
        (key.clone(), String::from_utf8(bytes).unwrap())
    });
    let decoded = decoded.collect();
    (sent, decoded)
}

#[test]
fn keys_replace_exactly_their_placeholders() {
    let keys = [
        text("curve", Form::Key(KeyText::CurvePublic)),
        text("curve", Form::Key(KeyText::CurvePrivate)),
    ];
    let material = BTreeMap::from([("curve.cert".to_owned(), value(&keys))]);
    let (mut sent, texts) = filled(&material);
    let cert = &texts["curve.cert"];
    // The keys may begin and end with these characters as well.
    let inner = cert
        .strip_prefix('<')
        .and_then(|cert| cert.strip_suffix("\n>"));
    let lines: Vec<_> = inner.unwrap_or_default().lines().collect();
    assert_eq!(lines.len(), 2, "{cert}");
    assert!(lines.iter().all(|line| line.len() == 40), "{cert}");
    let mut shown = secret(&material);
    for secret in [&mut sent, &mut shown] {
        secret["data"]["curve.cert"].take();
    }
    assert_eq!(sent, shown);
}

#[test]
fn one_id_is_one_key_pair_and_another_is_another() {
    let public = |id| text(id, Form::Key(KeyText::OpenSsh));
    let private = |id| text(id, Form::Key(KeyText::Sec1));
    let material = BTreeMap::from([
        ("a".to_owned(), value(&[public("a")])),
        ("b".to_owned(), value(&[public("a")])),
        ("c".to_owned(), value(&[public("c")])),
        ("private".to_owned(), value(&[private("a")])),
    ]);
    let (_, texts) = filled(&material);
    assert_eq!(texts["a"], texts["b"]);
    assert_ne!(texts["a"], texts["c"]);
    let pem = texts["private"].trim_matches(['<', '>']).trim_end();
    let key = p521::SecretKey::from_sec1_pem(&format!("{pem}\n")).unwrap();
    let point = key.public_key().to_sec1_bytes();
    let line = texts["a"]
        .split(' ')
        .nth(1)
        .unwrap()
        .trim_end_matches(['\n', '>']);
    assert!(BASE64_STANDARD.decode(line).unwrap().ends_with(&point));
}

#[test]
fn random_text_has_the_requested_length_and_encoding() {
    let random = |id: &str, bytes, encoding| {
        text(id, Form::Random(RandomText::new(bytes, encoding).unwrap()))
    };
    let material = BTreeMap::from([
        ("hex".to_owned(), value(&[random("hex", 16, "hex")])),
        (
            "base64".to_owned(),
            value(&[random("base64", 1024, "base64")]),
        ),
    ]);
    let (_, texts) = filled(&material);
    let inner = |key: &str| texts[key].trim_start_matches('<').trim_end_matches("\n>");
    assert_eq!(inner("hex").len(), 32);
    assert!(inner("hex").bytes().all(|b| b.is_ascii_hexdigit()));
    assert_eq!(BASE64_STANDARD.decode(inner("base64")).unwrap().len(), 1024);
}

#[test]
fn every_secret_has_its_own_keys_of_the_counted_length() {
    let mut seen = BTreeSet::new();
    let random = Form::Random(RandomText::new(16, "base64").unwrap());
    let forms = KeyText::ALL.map(Form::Key).into_iter().chain([random]);
    for form in forms {
        for _ in 0..4 {
            let mut whole = SecretValue::default();
            whole.append_material(text("a", form));
            let material = BTreeMap::from([("key".to_owned(), whole)]);
            let (_, texts) = filled(&material);
            let length = texts["key"].len();
            assert!(length <= form.most_bytes(), "{form:?}: {length}");
            assert!(seen.insert(texts["key"].clone()), "{form:?}");
        }
    }
}

#[test]
fn a_message_that_quotes_a_key_is_known() {
    let material = BTreeMap::from([(
        "key".to_owned(),
        value(&[text("a", Form::Key(KeyText::Sec1))]),
    )]);
    let filled = fill(&secret(&material), &material).unwrap();
    let sent: Value = serde_json::from_slice(&filled.json).unwrap();
    let encoded = sent["data"]["key"].as_str().unwrap();
    let plain = String::from_utf8(BASE64_STANDARD.decode(encoded).unwrap()).unwrap();
    for (quoted, is_quoted) in [
        (&encoded[100..112], true),
        (&plain[100..112], true),
        (&encoded[100..111], false),
        (&format!("{:?}", &plain.as_bytes()[100..112]), true),
        (&format!("{:?}", &plain.as_bytes()[100..111]), false),
        ("Secret `a` is forbidden: exceeded quota", false),
        ("", false),
    ] {
        let message = format!("#10 byte of ...|{quoted}|...");
        assert_eq!(filled.texts.are_quoted_in(&message), is_quoted, "{quoted}");
    }
}

/// However often a Secret holds a text of a key, it is encoded once, and takes the memory of one to be looked for.
#[test]
fn repeated_texts_of_keys_are_made_once() {
    let public = text("a", Form::Key(KeyText::OpenSsh));
    let mut whole = SecretValue::default();
    for _ in 0..2_000 {
        whole.append_material(public.clone());
    }
    let material = BTreeMap::from([("a".to_owned(), whole.clone()), ("b".to_owned(), whole)]);
    let filled = fill(&secret(&material), &material).unwrap();
    assert_eq!(filled.texts.count(), 1);
    let (_, texts) = decoded(&filled);
    let lines: BTreeSet<_> = texts["a"].lines().chain(texts["b"].lines()).collect();
    assert_eq!((texts["a"].lines().count(), lines.len()), (2_000, 1));
}

/// A message often names the TrainJob, and `curve.cert` holds its name beside the keys.
#[test]
fn a_message_may_quote_what_stands_beside_a_key() {
    let mut cert = SecretValue::default();
    cert.append("    name = \"lammps-experiment-1\"\n    secret-key = \"");
    cert.append_material(text("curve", Form::Key(KeyText::CurvePrivate)));
    cert.append("\"\n    # of lammps-experiment-1, and nothing else\n");
    let material = BTreeMap::from([("curve.cert".to_owned(), cert)]);
    let filled = fill(&secret(&material), &material).unwrap();
    let sent: Value = serde_json::from_slice(&filled.json).unwrap();
    let encoded = sent["data"]["curve.cert"].as_str().unwrap();
    // The key begins at byte 51 and ends before byte 91: at characters 68 and 122 of the base64.
    let plain = BASE64_STANDARD.decode(encoded).unwrap();
    assert_eq!((plain[50], plain[91]), (b'"', b'"'));
    for (quoted, is_quoted) in [
        ("lammps-experiment-1", false),
        (&encoded[..68], false),
        (&encoded[122..], false),
        (&encoded[68..80], true),
        (&encoded[109..121], true),
    ] {
        let message = format!("Secret {quoted} is refused");
        assert_eq!(filled.texts.are_quoted_in(&message), is_quoted, "{quoted}");
    }
}

/// Fails to compile if a type has a trait: two impls then fit.
macro_rules! never {
    ($($type:ty: $($bound:path),+;)+) => {$($({
        trait Ambiguous<A> { fn is() {} }
        struct Has;
        impl<T: ?Sized> Ambiguous<()> for T {}
        impl<T: ?Sized + $bound> Ambiguous<Has> for T {}
        let () = <$type as Ambiguous<_>>::is();
    })+)+};
}

#[test]
fn what_holds_keys_can_be_neither_printed_nor_copied_nor_serialized() {
    never! {
        SecretWithKeys: std::fmt::Debug, std::fmt::Display, Clone, serde::Serialize;
        KeyTexts: std::fmt::Debug, std::fmt::Display, Clone, serde::Serialize;
        KeyMaterial: std::fmt::Debug, std::fmt::Display, Clone, serde::Serialize;
    }
}
