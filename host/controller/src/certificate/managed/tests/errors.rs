//! Errors say what is wrong with which key of the Secret.

use std::sync::Arc;

use rcgen::KeyPair;
use zeroize::Zeroizing;

use super::{
    super::{
        change::Change,
        issue::{self, IssueError},
        material::{
            CA_CERTIFICATE, CA_KEY, CERTIFICATE, Material, MaterialError, PrivateKey,
            SigningAuthority,
        },
    },
    data, names, start,
};

#[test]
fn an_invalid_secret_is_described_without_quoting_it() {
    let valid = data(&issue::make(&names(), start()).unwrap());
    let leaf = String::from_utf8(valid[CERTIFICATE].to_vec()).unwrap();
    let other = KeyPair::generate().unwrap().serialize_pem();
    for (key, broken, wanted) in [
        (CA_KEY, None, "ca.key is missing"),
        (CA_CERTIFICATE, None, "ca.crt is missing"),
        (CA_CERTIFICATE, Some("secret"), "ca.crt has no certificate"),
        (
            CA_CERTIFICATE,
            Some("-----BEGIN CERTIFICATE-----\nsecret"),
            "ca.crt is not valid PEM: a BEGIN or END line is incomplete; were its line breaks lost?",
        ),
        (
            CA_CERTIFICATE,
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            "ca.crt is not an X.509 certificate",
        ),
        (
            CA_CERTIFICATE,
            Some(&leaf),
            "ca.crt is not the certificate of an authority",
        ),
        (
            CA_KEY,
            Some("secret"),
            "ca.key is not the key of a certificate in ca.crt: it is not a private key",
        ),
        (
            CA_KEY,
            Some(&other),
            "ca.key is not the key of a certificate in ca.crt: keys may not be consistent: KeyMismatch",
        ),
    ] {
        let mut secret = valid.clone();
        secret.remove(key);
        let broken = broken.map(|text| Zeroizing::new(text.as_bytes().to_vec()));
        secret.extend(broken.map(|text| (key.to_owned(), text)));
        let error = Material::parse(&secret).err().unwrap();
        assert_eq!(error.to_string(), wanted);
    }
}

#[test]
fn a_certificate_that_cannot_be_issued_says_what_to_correct() {
    let material = issue::make(&names(), start()).unwrap();
    let unusable = Material {
        signer: SigningAuthority {
            key: PrivateKey::new("secret".to_owned()),
            ..material.signer.clone()
        },
        ..material.clone()
    };
    let renewed = |material: &Material, names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned());
        let change = Change::RenewLeaf(Arc::new(material.clone()));
        change.apply(&names.collect::<Vec<_>>(), start())
    };
    let refused = [
        renewed(&material, &["w\u{f6}bhooks.a.svc"]),
        renewed(&material, &["web hooks.a.svc"]),
        renewed(&unusable, &["webhooks.a.svc"]),
    ];
    let refused = refused.map(|material| material.err().unwrap().to_string());
    assert_eq!(
        refused,
        [
            "a certificate cannot be created: Invalid IA5String: 'w\u{f6}bhooks.a.svc'; correct certManagement.webhookServiceName if it is not the name of a Service",
            "clients do not accept a certificate of the authority in ca.crt for web hooks.a.svc, because of its constraints, its dates or these names; delete the Secret to have another authority created, or correct certManagement.webhookServiceName",
            "ca.key cannot sign: it is not a private key; delete the Secret to have another authority created",
        ]
    );
    let bug = IssueError::Created(MaterialError::NotX509(CERTIFICATE));
    assert_eq!(
        bug.to_string(),
        "a certificate that was just created is invalid: tls.crt is not an X.509 certificate; this is a bug in Trainyard"
    );
}
