//! Key material: what the host makes when it creates the Secret in which it stands.
//!
//! Nothing here holds a byte of it. Until a Secret is created in a cluster, key material is its plugin's id for it, an
//! algorithm and an encoding; a plugin places it and never reads it.

use std::{fmt, ops::RangeInclusive, sync::Arc};

use crate::names::is_dns_label;

/// How key material is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// A key pair of ECDSA over the curve P-521, for SSH.
    EcdsaP521,
    /// A key pair of Curve25519, for CURVE of ZeroMQ.
    Curve25519,
    /// Random bytes, which have one encoding.
    Random {
        /// How many.
        bytes: u16,
        /// As what text.
        encoding: RandomEncoding,
    },
}

/// How random bytes become text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RandomEncoding {
    /// Two lower-case digits a byte.
    Hex,
    /// Base64 with padding.
    Base64,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Of a key pair of P-521.
    P521(P521Text),
    /// A half of a key pair of Curve25519, in Z85.
    Curve25519(Half),
    /// Random bytes.
    Random {
        /// How many.
        bytes: u16,
        /// As what text.
        encoding: RandomEncoding,
    },
}

/// A text of a key pair of P-521.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum P521Text {
    /// The private key in the PEM of SEC 1: `EC PRIVATE KEY`.
    Sec1,
    /// The private key in the PEM of PKCS #8: `PRIVATE KEY`.
    Pkcs8,
    /// The public key as a line of `authorized_keys`.
    OpenSsh,
    /// The public key as a SubjectPublicKeyInfo in PEM: `PUBLIC KEY`.
    Spki,
}

impl Algorithm {
    /// All that make a key pair.
    pub const OF_KEY_PAIRS: [Self; 2] = [Self::EcdsaP521, Self::Curve25519];

    /// The name: the contract's, if it makes a key pair.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EcdsaP521 => "ecdsa-p521",
            Self::Curve25519 => "curve25519",
            Self::Random { .. } => "random",
        }
    }

    /// That of a key pair, by the contract's spelling.
    #[must_use]
    pub fn of_key_pair(name: &str) -> Option<Self> {
        Self::OF_KEY_PAIRS.into_iter().find(|it| it.name() == name)
    }

    /// The texts of a half of its key pairs.
    pub fn key_texts(self, half: Half) -> impl Iterator<Item = Form> {
        let all = Form::OF_KEY_PAIRS.into_iter();
        all.filter(move |form| form.algorithm() == self && form.half() == Some(half))
    }
}

impl RandomEncoding {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Hex, Self::Base64];

    /// As the contract spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hex => "hex",
            Self::Base64 => "base64",
        }
    }
}

impl P521Text {
    const fn half(self) -> Half {
        match self {
            Self::Sec1 | Self::Pkcs8 => Half::Private,
            Self::OpenSsh | Self::Spki => Half::Public,
        }
    }
}

impl Half {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Private => "private key",
            Self::Public => "public key",
        }
    }
}

impl Form {
    /// All texts of key pairs.
    pub const OF_KEY_PAIRS: [Self; 6] = [
        Self::P521(P521Text::Sec1),
        Self::P521(P521Text::Pkcs8),
        Self::P521(P521Text::OpenSsh),
        Self::P521(P521Text::Spki),
        Self::Curve25519(Half::Private),
        Self::Curve25519(Half::Public),
    ];

    /// How many random bytes there can be.
    pub const RANDOM_BYTES: RangeInclusive<u16> = 16..=1024;

    /// Random bytes as text; none if there can't be so many, or the encoding is unknown.
    #[must_use]
    pub fn random(bytes: u32, encoding: &str) -> Option<Self> {
        let bytes = u16::try_from(bytes).ok()?;
        let mut all = RandomEncoding::ALL.into_iter();
        let encoding = all.find(|it| it.name() == encoding)?;
        let is_allowed = Self::RANDOM_BYTES.contains(&bytes);
        is_allowed.then_some(Self::Random { bytes, encoding })
    }

    /// How it is made.
    #[must_use]
    pub const fn algorithm(self) -> Algorithm {
        match self {
            Self::P521(_) => Algorithm::EcdsaP521,
            Self::Curve25519(_) => Algorithm::Curve25519,
            Self::Random { bytes, encoding } => Algorithm::Random { bytes, encoding },
        }
    }

    /// The half of a key pair that it is.
    #[must_use]
    pub const fn half(self) -> Option<Half> {
        match self {
            Self::P521(text) => Some(text.half()),
            Self::Curve25519(half) => Some(half),
            Self::Random { .. } => None,
        }
    }

    /// Its encoding, as the contract spells it.
    #[must_use]
    pub const fn encoding(self) -> &'static str {
        match self {
            Self::P521(P521Text::Sec1) => "sec1-pem",
            Self::P521(P521Text::Pkcs8) => "pkcs8-pem",
            Self::P521(P521Text::OpenSsh) => "openssh",
            Self::P521(P521Text::Spki) => "spki-pem",
            Self::Curve25519(_) => "z85",
            Self::Random { encoding, .. } => encoding.name(),
        }
    }

    /// The most bytes that the text has.
    #[must_use]
    pub const fn most_bytes(self) -> usize {
        match self {
            Self::P521(_) => 512,
            Self::Curve25519(_) => 40,
            Self::Random { bytes, encoding } => match encoding {
                RandomEncoding::Hex => bytes as usize * 2,
                RandomEncoding::Base64 => (bytes as usize).div_ceil(3) * 4,
            },
        }
    }
}

/// Key material as text, which the host makes when it creates the Secret. Its `Display` is the placeholder that stands for it until
/// then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretText {
    plugin: Arc<str>,
    id: Arc<str>,
    form: Form,
}

impl SecretText {
    /// A text of the key material that a plugin knows by an id; none if the id is not a DNS label.
    #[must_use]
    pub fn new(plugin: Arc<str>, id: &str, form: Form) -> Option<Self> {
        let id = is_dns_label(id).then(|| id.into())?;
        Some(Self { plugin, id, form })
    }

    /// The plugin whose key material it is.
    #[must_use]
    pub fn plugin(&self) -> &str {
        &self.plugin
    }

    /// The plugin's id for the key material: with the same one, it is the same.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What of the key material it is.
    #[must_use]
    pub const fn form(&self) -> Form {
        self.form
    }
}

impl fmt::Display for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, form, .. } = self;
        let encoding = form.encoding();
        let (half, algorithm) = match form {
            Form::Random { bytes, .. } => {
                return write!(
                    f,
                    "<placeholder for random text {id} ({bytes} bytes, {encoding})>"
                );
            }
            Form::P521(text) => (text.half(), Algorithm::EcdsaP521),
            Form::Curve25519(half) => (*half, Algorithm::Curve25519),
        };
        let (half, algorithm) = (half.name(), algorithm.name());
        write!(
            f,
            "<placeholder for the {half} of key pair {id} ({algorithm}, {encoding})>"
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_placeholder_says_what_it_stands_for() {
        let shown = |id, form| SecretText::new("mpi".into(), id, form).unwrap().to_string();
        let random = |bytes, encoding| Form::Random { bytes, encoding };
        for (form, expected) in [
            (
                Form::P521(P521Text::Sec1),
                "<placeholder for the private key of key pair a-1 (ecdsa-p521, sec1-pem)>",
            ),
            (
                Form::Curve25519(Half::Public),
                "<placeholder for the public key of key pair a-1 (curve25519, z85)>",
            ),
            (
                random(32, RandomEncoding::Hex),
                "<placeholder for random text a-1 (32 bytes, hex)>",
            ),
        ] {
            assert_eq!(shown("a-1", form), expected);
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
            assert_eq!(Form::random(bytes, "hex").is_some(), is_allowed, "{bytes}");
        }
        assert_eq!(Form::random(16, "z85"), None);
    }

    #[test]
    fn each_half_of_a_key_pair_has_encodings() {
        let names = |algorithm: Algorithm, half| -> Vec<_> {
            algorithm.key_texts(half).map(Form::encoding).collect()
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
