//! Key material, which the host generates when it creates the Secret that contains it.
//!
//! Plugins place key material and never read it. Until the Secret is created in a cluster, it is only described: by the plugin's id, the
//! kind and the encoding.

use std::{fmt, ops::RangeInclusive, sync::Arc};

use crate::names::is_dns_label;

/// A kind of key material, which is generated once per id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Material {
    /// A key pair.
    KeyPair(Algorithm),
    /// Random text.
    Random(RandomText),
}

/// The algorithm of a key pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// ECDSA over the curve P-521, for SSH.
    EcdsaP521,
    /// Curve25519, for ZeroMQ's CURVE.
    Curve25519,
}

/// One half of a key pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The private key.
    Private,
    /// The public key.
    Public,
}

/// A text of key material.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// A text of a key pair.
    Key(KeyText),
    /// Random text.
    Random(RandomText),
}

/// A text of a key pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyText {
    /// The private key of P-521 in the PEM of SEC 1: `EC PRIVATE KEY`.
    Sec1,
    /// The private key of P-521 in the PEM of PKCS #8: `PRIVATE KEY`.
    Pkcs8,
    /// The public key of P-521 as a line of `authorized_keys`.
    OpenSsh,
    /// The public key of P-521 as a SubjectPublicKeyInfo in PEM: `PUBLIC KEY`.
    Spki,
    /// The private key of Curve25519 in Z85.
    CurvePrivate,
    /// The public key of Curve25519 in Z85.
    CurvePublic,
}

/// Random bytes as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RandomText {
    bytes: u16,
    encoding: RandomEncoding,
}

/// The encoding of random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RandomEncoding {
    /// Two lower-case hexadecimal digits per byte.
    Hex,
    /// Base64 with padding.
    Base64,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::EcdsaP521, Self::Curve25519];

    /// The name in the contract.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EcdsaP521 => "ecdsa-p521",
            Self::Curve25519 => "curve25519",
        }
    }

    /// The algorithm with that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// The texts of one half of a key pair.
    pub fn texts(self, half: Half) -> impl Iterator<Item = KeyText> {
        let all = KeyText::ALL.into_iter();
        all.filter(move |text| (text.algorithm(), text.half()) == (self, half))
    }
}

impl Half {
    /// The name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Private => "private key",
            Self::Public => "public key",
        }
    }
}

impl KeyText {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Sec1,
        Self::Pkcs8,
        Self::OpenSsh,
        Self::Spki,
        Self::CurvePrivate,
        Self::CurvePublic,
    ];

    /// The algorithm, the half, the name of the encoding in the contract, and the maximum length in bytes.
    const fn row(self) -> (Algorithm, Half, &'static str, usize) {
        match self {
            Self::Sec1 => (Algorithm::EcdsaP521, Half::Private, "sec1-pem", 512),
            Self::Pkcs8 => (Algorithm::EcdsaP521, Half::Private, "pkcs8-pem", 512),
            Self::OpenSsh => (Algorithm::EcdsaP521, Half::Public, "openssh", 512),
            Self::Spki => (Algorithm::EcdsaP521, Half::Public, "spki-pem", 512),
            Self::CurvePrivate => (Algorithm::Curve25519, Half::Private, "z85", 40),
            Self::CurvePublic => (Algorithm::Curve25519, Half::Public, "z85", 40),
        }
    }

    /// The algorithm of the key pair.
    #[must_use]
    pub const fn algorithm(self) -> Algorithm {
        self.row().0
    }

    /// The half of the key pair.
    #[must_use]
    pub const fn half(self) -> Half {
        self.row().1
    }

    /// The name of its encoding in the contract.
    #[must_use]
    pub const fn encoding(self) -> &'static str {
        self.row().2
    }
}

impl RandomText {
    /// The allowed number of random bytes.
    pub const BYTES: RangeInclusive<u16> = 16..=1024;

    /// Returns random text. `None` if the number of bytes is not allowed, or the encoding is unknown.
    #[must_use]
    pub fn new(bytes: u32, encoding: &str) -> Option<Self> {
        let bytes = u16::try_from(bytes).ok()?;
        let mut all = RandomEncoding::ALL.into_iter();
        let encoding = all.find(|it| it.name() == encoding)?;
        let is_allowed = Self::BYTES.contains(&bytes);
        is_allowed.then_some(Self { bytes, encoding })
    }

    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u16 {
        self.bytes
    }

    /// The encoding.
    #[must_use]
    pub const fn encoding(self) -> RandomEncoding {
        self.encoding
    }
}

impl RandomEncoding {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Hex, Self::Base64];

    /// The name in the contract.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hex => "hex",
            Self::Base64 => "base64",
        }
    }
}

impl Form {
    /// The key material that it is a text of.
    #[must_use]
    pub const fn material(self) -> Material {
        match self {
            Self::Key(text) => Material::KeyPair(text.algorithm()),
            Self::Random(text) => Material::Random(text),
        }
    }

    /// The name of its encoding in the contract.
    #[must_use]
    pub const fn encoding(self) -> &'static str {
        match self {
            Self::Key(text) => text.encoding(),
            Self::Random(text) => text.encoding.name(),
        }
    }

    /// The maximum length in bytes.
    #[must_use]
    pub const fn most_bytes(self) -> usize {
        match self {
            Self::Key(text) => text.row().3,
            Self::Random(RandomText { bytes, encoding }) => match encoding {
                RandomEncoding::Hex => bytes as usize * 2,
                RandomEncoding::Base64 => (bytes as usize).div_ceil(3) * 4,
            },
        }
    }
}

/// Key material as text, which the host generates when it creates the Secret. `Display` writes the placeholder that is used until then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretText {
    id: Arc<str>,
    form: Form,
}

impl SecretText {
    /// Returns a text of the key material with an id. `None` if the id is not a DNS label.
    #[must_use]
    pub fn new(id: &str, form: Form) -> Option<Self> {
        let id = is_dns_label(id).then(|| id.into())?;
        Some(Self { id, form })
    }

    /// The plugin's id for the key material. The same id means the same key material.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The form of the key material.
    #[must_use]
    pub const fn form(&self) -> Form {
        self.form
    }
}

impl fmt::Display for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, form } = self;
        let encoding = form.encoding();
        match form {
            Form::Key(text) => {
                let (half, algorithm) = (text.half().name(), text.algorithm().name());
                write!(
                    f,
                    "<placeholder for the {half} of key pair {id} ({algorithm}, {encoding})>"
                )
            }
            Form::Random(RandomText { bytes, .. }) => {
                write!(
                    f,
                    "<placeholder for random text {id} ({bytes} bytes, {encoding})>"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_placeholder_says_what_it_stands_for() {
        for (form, expected) in [
            (
                Form::Key(KeyText::Sec1),
                "<placeholder for the private key of key pair a-1 (ecdsa-p521, sec1-pem)>",
            ),
            (
                Form::Key(KeyText::CurvePublic),
                "<placeholder for the public key of key pair a-1 (curve25519, z85)>",
            ),
            (
                Form::Random(RandomText::new(32, "hex").unwrap()),
                "<placeholder for random text a-1 (32 bytes, hex)>",
            ),
        ] {
            assert_eq!(SecretText::new("a-1", form).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn random_text_has_neither_too_few_bytes_nor_too_many() {
        for (bytes, is_allowed) in [
            (15, false),
            (16, true),
            (1024, true),
            (1025, false),
            (65_552, false),
        ] {
            assert_eq!(
                RandomText::new(bytes, "hex").is_some(),
                is_allowed,
                "{bytes}"
            );
        }
        assert_eq!(RandomText::new(16, "z85"), None);
    }

    #[test]
    fn each_half_of_a_key_pair_has_encodings() {
        let names = |algorithm: Algorithm, half| -> Vec<_> {
            algorithm.texts(half).map(KeyText::encoding).collect()
        };
        assert_eq!(
            names(Algorithm::EcdsaP521, Half::Private),
            ["sec1-pem", "pkcs8-pem"]
        );
        assert_eq!(
            names(Algorithm::EcdsaP521, Half::Public),
            ["openssh", "spki-pem"]
        );
        assert_eq!(names(Algorithm::Curve25519, Half::Private), ["z85"]);
        assert_eq!(names(Algorithm::Curve25519, Half::Public), ["z85"]);
    }
}
