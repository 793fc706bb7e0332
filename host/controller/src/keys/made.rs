//! Key pairs and random bytes, each made when it is first asked for.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use p521::SecretKey;
use p521::elliptic_curve::Generate as _;
use p521::elliptic_curve::sec1::ToSec1Point as _;
use p521::pkcs8::{EncodePrivateKey as _, EncodePublicKey as _, LineEnding};
use trainyard_model::material::{Form, Half, P521Text, RandomEncoding, SecretText};
use trainyard_model::names::hex;
use trainyard_model::object::{Part, SecretValue};
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use super::KeyError;

/// The key material of one Secret, by the plugin's ids. One plugin emits a Secret. A box keeps a key in its place: moved, it would
/// leave a copy behind.
#[derive(Default)]
pub(super) struct Made {
    p521: BTreeMap<String, Box<SecretKey>>,
    curve25519: BTreeMap<String, Box<StaticSecret>>,
    random: BTreeMap<String, Box<Zeroizing<Vec<u8>>>>,
}

/// The name of the algorithm in SSH, and of its curve (RFC 5656).
const SSH_ALGORITHM: &str = "ecdsa-sha2-nistp521";
const SSH_CURVE: &[u8] = b"nistp521";

impl Made {
    /// The text of a key of the Secret.
    pub(super) fn text(&mut self, value: &SecretValue) -> Result<Zeroizing<String>, KeyError> {
        // Text that outgrows its memory leaves a copy behind.
        let most = value.parts().iter().map(|part| match part {
            Part::Plain(text) => text.len(),
            Part::Material(text) => text.form().most_bytes(),
        });
        let mut whole = Zeroizing::new(String::with_capacity(most.sum()));
        for part in value.parts() {
            match part {
                Part::Plain(text) => whole.push_str(text),
                Part::Material(text) => whole.push_str(&self.material(text)?),
            }
        }
        Ok(whole)
    }

    fn material(&mut self, text: &SecretText) -> Result<Zeroizing<String>, KeyError> {
        let id = text.id();
        match text.form() {
            Form::P521(form) => {
                let key = once(&mut self.p521, id, || Ok(SecretKey::try_generate()?))?;
                p521_text(key, form).ok_or(KeyError::Encoding(form))
            }
            Form::Curve25519(half) => {
                let key = once(&mut self.curve25519, id, || {
                    let mut bytes = Zeroizing::new([0; 32]);
                    getrandom::fill(&mut *bytes)?;
                    Ok(StaticSecret::from(*bytes))
                })?;
                Ok(curve25519_text(key, half))
            }
            Form::Random { bytes, encoding } => {
                let bytes = once(&mut self.random, id, || {
                    let mut random = Zeroizing::new(vec![0; bytes.into()]);
                    getrandom::fill(&mut random)?;
                    Ok(random)
                })?;
                Ok(Zeroizing::new(match encoding {
                    RandomEncoding::Hex => hex(bytes),
                    RandomEncoding::Base64 => BASE64_STANDARD.encode(&**bytes),
                }))
            }
        }
    }
}

/// What is known by the id, made if it is the first time.
fn once<'m, T>(
    known: &'m mut BTreeMap<String, Box<T>>,
    id: &str,
    make: impl FnOnce() -> Result<T, KeyError>,
) -> Result<&'m T, KeyError> {
    Ok(match known.entry(id.to_owned()) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(new) => new.insert(Box::new(make()?)),
    })
}

fn p521_text(key: &SecretKey, form: P521Text) -> Option<Zeroizing<String>> {
    match form {
        P521Text::Sec1 => key.to_sec1_pem(LineEnding::LF).ok(),
        P521Text::Pkcs8 => key.to_pkcs8_pem(LineEnding::LF).ok(),
        P521Text::OpenSsh => Some(Zeroizing::new(authorized_key(key))),
        P521Text::Spki => {
            let pem = key.public_key().to_public_key_pem(LineEnding::LF);
            pem.ok().map(Zeroizing::new)
        }
    }
}

/// A line of `authorized_keys` (RFC 4253, section 6.6, and RFC 5656, section 3.1).
fn authorized_key(key: &SecretKey) -> String {
    let point = key.public_key().to_sec1_point(false);
    let mut blob = Vec::new();
    for field in [SSH_ALGORITHM.as_bytes(), SSH_CURVE, point.as_bytes()] {
        // The longest of them has 133 bytes.
        let length = u32::try_from(field.len()).unwrap_or(u32::MAX);
        blob.extend_from_slice(&length.to_be_bytes());
        blob.extend_from_slice(field);
    }
    format!("{SSH_ALGORITHM} {}\n", BASE64_STANDARD.encode(blob))
}

fn curve25519_text(key: &StaticSecret, half: Half) -> Zeroizing<String> {
    Zeroizing::new(match half {
        Half::Private => z85::encode(key.as_bytes()),
        Half::Public => z85::encode(PublicKey::from(key).as_bytes()),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A key that nobody uses: 66 bytes of 1.
    fn key() -> SecretKey {
        SecretKey::from_slice(&[1; 66]).unwrap()
    }

    fn text(form: P521Text) -> Zeroizing<String> {
        p521_text(&key(), form).unwrap()
    }

    /// The expected line and PEM are those that OpenSSL and ssh-keygen make of this key.
    #[test]
    fn the_public_key_is_spelled_as_openssh_and_openssl_do() {
        assert_eq!(*text(P521Text::OpenSsh), include_str!("testdata/p521.pub"));
        assert_eq!(*text(P521Text::Spki), include_str!("testdata/p521.spki"));
    }

    #[test]
    fn the_private_key_is_read_back_from_each_of_its_texts() {
        let (sec1, pkcs8) = (text(P521Text::Sec1), text(P521Text::Pkcs8));
        assert!(sec1.starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
        assert!(pkcs8.starts_with("-----BEGIN PRIVATE KEY-----\n"));
        for pem in [sec1, pkcs8] {
            assert!(SecretKey::from_pem(&pem).unwrap() == key());
        }
    }

    /// The key pairs of the manual page zmq_curve(7).
    #[test]
    fn the_halves_of_a_curve_pair_are_those_of_zeromq() {
        for (private, public) in [
            (
                "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6",
                "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7",
            ),
            (
                "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs",
                "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID",
            ),
        ] {
            let bytes: [u8; 32] = z85::decode(private).unwrap().try_into().unwrap();
            let key = StaticSecret::from(bytes);
            assert_eq!(*curve25519_text(&key, Half::Private), private);
            assert_eq!(*curve25519_text(&key, Half::Public), public);
        }
    }
}
