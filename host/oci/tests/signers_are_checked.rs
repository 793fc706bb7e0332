//! The operator's list of signers is checked as a whole, and keys are read strictly.

use serde_json::json;
use trainyard_oci::{KeyError, PublicKey, Signer, Signers};

use crate::common::signing::Key;

#[test]
fn keys_in_pem_are_read_back_and_named_by_their_fingerprint() {
    let key = Key::new();
    let read = PublicKey::from_pem(&format!("# made by cosign\n{}", key.pem())).unwrap();
    assert_eq!(PublicKey::from_pem(&read.to_pem()).unwrap(), read);
    assert_eq!(read.fingerprint().to_string(), key.fingerprint());
}

#[test]
fn what_is_not_one_public_key_is_refused() {
    let pem = Key::new().pem();
    let block = |label: &str, base64: &str| {
        format!("-----BEGIN {label}-----\n{base64}\n-----END {label}-----\n")
    };
    // A point in compressed form, and keys of P-384 and Ed25519.
    let compressed =
        "MDkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDIgACYWnm/eplO9BFtXszMRQNl5UtZ8lPWBwvLw4Zm0mWVOE=";
    let ed25519 = "MCowBQYDK2VwAyEAHiNIrRWNGmCfxAhIefI6LdxPffwsW+y8XLPCrxjsOuI=";
    let p384 = "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE";
    for (text, expected) in [
        (String::new(), KeyError::Pem),
        ("ssh-ed25519 AAAA".to_owned(), KeyError::Pem),
        (format!("{pem}{pem}"), KeyError::Pem),
        (pem.replace("END", "FIN"), KeyError::Pem),
        (format!("{}{pem}", " ".repeat(2048)), KeyError::Pem),
        (block("CERTIFICATE", "AAAA"), KeyError::Pem),
        (
            block("ENCRYPTED SIGSTORE PRIVATE KEY", "AAAA"),
            KeyError::Private,
        ),
        (block("PRIVATE KEY", "AAAA"), KeyError::Private),
        (block("PUBLIC KEY", compressed), KeyError::Algorithm),
        (block("PUBLIC KEY", p384), KeyError::Algorithm),
        (block("PUBLIC KEY", ed25519), KeyError::Algorithm),
        (block("PUBLIC KEY", "AAAA"), KeyError::Algorithm),
    ] {
        assert_eq!(PublicKey::from_pem(&text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn signers_are_written_as_they_are_read() {
    let key = Key::new();
    let with = json!({"name": "acme", "publicKey": key.pem(), "plugins": ["acme-*"], "repositories": ["r.example.com/acme/*"]});
    let signer: Signer = serde_json::from_value(with).unwrap();
    let written = serde_json::to_value(&signer).unwrap();
    assert_eq!(serde_json::from_value::<Signer>(written).unwrap(), signer);
}

#[test]
fn names_and_keys_are_given_once() {
    let (one, two) = (Key::new(), Key::new());
    let signer = |name: &str, key: &str| json!({"name": name, "publicKey": key, "plugins": ["*"]});
    let section = json!({"signers": [
        signer("a", &one.pem()),
        signer("b", &one.pem().replace("KEY-----\n", "KEY-----\n\n")),
        signer("a", &two.pem()),
        signer("c", "-----BEGIN PRIVATE KEY-----\nsecret"),
    ]});
    let errors = Signers::check(&section, &"plugins".parse().unwrap());
    let errors: Vec<_> = errors
        .iter()
        .map(|error| format!("{}: {}", error.field, error.problem))
        .collect();
    let [key, name, private] = errors.as_slice() else {
        panic!("{errors:?}")
    };
    assert!(
        key.starts_with("plugins.signers[1].publicKey: is the key of signers[0], too"),
        "{key}"
    );
    assert!(
        name.starts_with("plugins.signers[2].name: is the name of signers[0], too"),
        "{name}"
    );
    assert!(
        private.starts_with("plugins.signers[3].publicKey: is a private key; replace it"),
        "{private}"
    );
    assert!(!private.contains("secret"));
}
