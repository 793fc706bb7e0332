//! Key pairs and random bytes. Each is generated on first use, and each text is encoded once.

use std::collections::{BTreeMap, btree_map::Entry};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use p521::{
    SecretKey,
    elliptic_curve::{Generate as _, sec1::ToSec1Point as _},
    pkcs8::{EncodePrivateKey as _, EncodePublicKey as _, LineEnding},
};
use trainyard_model::{
    material::{Form, KeyText, RandomEncoding, RandomText, SecretText},
    object::{Part, SecretValue},
};
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use super::{KeyError, quoted::KeyTexts};

/// The key material of one Secret, by the plugin's ids. One plugin emits a Secret.
#[derive(Default)]
pub(super) struct KeyMaterial {
    pairs: Pairs,
    texts: BTreeMap<(String, Form), Zeroizing<String>>,
}

/// Key pairs. They are boxed, because moving a key would leave a copy behind.
#[derive(Default)]
struct Pairs {
    p521: BTreeMap<String, Box<SecretKey>>,
    curve25519: BTreeMap<String, Box<StaticSecret>>,
}

/// The name of the algorithm in SSH, and of its curve (RFC 5656).
const SSH_ALGORITHM: &str = "ecdsa-sha2-nistp521";
const SSH_CURVE: &[u8] = b"nistp521";

impl KeyMaterial {
    /// Returns the text of a key of the Secret.
    pub(super) fn text(&mut self, value: &SecretValue) -> Result<Zeroizing<String>, KeyError> {
        // Reallocation would leave a copy behind.
        let most = value.parts().iter().map(|part| match part {
            Part::Plain(text) => text.len(),
            Part::Material(text) => text.form().most_bytes(),
        });
        let mut whole = Zeroizing::new(String::with_capacity(most.sum()));
        for part in value.parts() {
            match part {
                Part::Plain(text) => whole.push_str(text),
                Part::Material(text) => whole.push_str(self.material(text)?),
            }
        }
        Ok(whole)
    }

    /// Returns all texts of the generated keys.
    pub(super) fn into_texts(self) -> KeyTexts {
        KeyTexts::new(self.texts.into_values())
    }

    fn material(&mut self, text: &SecretText) -> Result<&str, KeyError> {
        let Self { pairs, texts } = self;
        let (id, form) = (text.id(), text.form());
        Ok(match texts.entry((id.to_owned(), form)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(match form {
                Form::Key(text) => pairs.text(id, text)?,
                Form::Random(text) => random(text)?,
            }),
        })
    }
}

impl Pairs {
    fn text(&mut self, id: &str, text: KeyText) -> Result<Zeroizing<String>, KeyError> {
        match text {
            KeyText::Sec1 => self.p521(id)?.to_sec1_pem(LineEnding::LF).ok(),
            KeyText::Pkcs8 => self.p521(id)?.to_pkcs8_pem(LineEnding::LF).ok(),
            KeyText::OpenSsh => Some(Zeroizing::new(authorized_key(self.p521(id)?))),
            KeyText::Spki => {
                let public = self.p521(id)?.public_key();
                let pem = public.to_public_key_pem(LineEnding::LF);
                pem.ok().map(Zeroizing::new)
            }
            KeyText::CurvePrivate => {
                let key = self.curve25519(id)?;
                Some(Zeroizing::new(z85::encode(key.as_bytes())))
            }
            KeyText::CurvePublic => {
                let public = PublicKey::from(self.curve25519(id)?);
                Some(Zeroizing::new(z85::encode(public.as_bytes())))
            }
        }
        .ok_or(KeyError::Encoding(text))
    }

    fn p521(&mut self, id: &str) -> Result<&SecretKey, KeyError> {
        once(&mut self.p521, id, || Ok(SecretKey::try_generate()?))
    }

    fn curve25519(&mut self, id: &str) -> Result<&StaticSecret, KeyError> {
        once(&mut self.curve25519, id, || {
            let mut bytes = Zeroizing::new([0; 32]);
            getrandom::fill(&mut *bytes)?;
            Ok(StaticSecret::from(*bytes))
        })
    }
}

/// Returns the value of the id, generated on first use.
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

fn random(text: RandomText) -> Result<Zeroizing<String>, KeyError> {
    let mut bytes = Zeroizing::new(vec![0; text.bytes().into()]);
    getrandom::fill(&mut bytes)?;
    Ok(Zeroizing::new(match text.encoding() {
        RandomEncoding::Hex => hex::encode(&bytes),
        RandomEncoding::Base64 => BASE64_STANDARD.encode(&*bytes),
    }))
}

/// Returns a line of `authorized_keys` (RFC 4253, section 6.6, and RFC 5656, section 3.1).
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A key that is used nowhere: 66 bytes of 1.
    fn key() -> SecretKey {
        SecretKey::from_slice(&[1; 66]).unwrap()
    }

    fn text(form: KeyText) -> Zeroizing<String> {
        let mut pairs = Pairs {
            p521: BTreeMap::from([("a".to_owned(), Box::new(key()))]),
            ..Pairs::default()
        };
        pairs.text("a", form).unwrap()
    }

    /// The expected line and PEM were printed by ssh-keygen and OpenSSL.
    #[test]
    fn the_public_key_is_spelled_as_openssh_and_openssl_do() {
        assert_eq!(*text(KeyText::OpenSsh), include_str!("testdata/p521.pub"));
        assert_eq!(*text(KeyText::Spki), include_str!("testdata/p521.spki"));
    }

    #[test]
    fn the_private_key_is_read_back_from_each_of_its_texts() {
        let (sec1, pkcs8) = (text(KeyText::Sec1), text(KeyText::Pkcs8));
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
            let mut pairs = Pairs {
                curve25519: BTreeMap::from([("a".to_owned(), Box::new(StaticSecret::from(bytes)))]),
                ..Pairs::default()
            };
            assert_eq!(*pairs.text("a", KeyText::CurvePrivate).unwrap(), private);
            assert_eq!(*pairs.text("a", KeyText::CurvePublic).unwrap(), public);
        }
    }
}
