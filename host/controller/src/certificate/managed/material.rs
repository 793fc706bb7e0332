//! Certificates with their keys, as a Secret has them.
//!
//! The Secret has the keys of the reference's: `ca.crt`, `ca.key`, `tls.crt` and `tls.key`. `ca.crt` has all authorities that clients should
//! trust, and the first is the one of `ca.key`, because the reference reads only that one. `next-ca.key` is the key of the authority that
//! will sign next. No type with a private key implements `Debug`.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
    sign::CertifiedKey,
};
use thiserror::Error;
use x509_parser::parse_x509_certificate;
use zeroize::Zeroizing;

use crate::certificate::pem::{self, Problem};
pub(super) use crate::certificate::pem::{AUTHORITIES as CA_CERTIFICATE, CERTIFICATE, KEY};

/// The other keys of the Secret.
pub(super) const CA_KEY: &str = "ca.key";
pub(super) const NEXT_CA_KEY: &str = "next-ca.key";

/// All keys of the Secret.
pub(super) const KEYS: [&str; 5] = [CA_CERTIFICATE, CA_KEY, NEXT_CA_KEY, CERTIFICATE, KEY];

/// The common name of the reference's authority, and of ours.
pub(super) const AUTHORITY_NAME: &str = "kubeflow-trainer-ca";

/// What is wrong with the content of a Secret. Nothing of the content is quoted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum MaterialError {
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error("{0} is not valid PEM: {1}")]
    Pem(&'static str, &'static str),
    #[error("{0} has no certificate")]
    NoCertificate(&'static str),
    #[error("{0} is not an X.509 certificate")]
    NotX509(&'static str),
    #[error("{0} is not the certificate of an authority")]
    NotAuthority(&'static str),
    #[error("{0} is not the key of a certificate in {1}: {2}")]
    Key(&'static str, &'static str, String),
}

/// A private key as PEM. Clones share it, and it is overwritten when the last one is dropped.
#[derive(Clone)]
pub(super) struct PrivateKey(Arc<Zeroizing<String>>);

impl PrivateKey {
    pub(super) fn new(pem: String) -> Self {
        Self(Arc::new(Zeroizing::new(pem)))
    }

    pub(super) fn pem(&self) -> &str {
        &self.0
    }

    pub(super) fn parse(&self) -> Result<PrivateKeyDer<'static>, String> {
        pem::private_key(self.0.as_bytes()).map_err(|problem| match problem {
            Problem::Missing => "it is not a private key".to_owned(),
            Problem::Invalid(why) => format!("it is not valid PEM: {why}"),
        })
    }

    /// Returns the certificate of this key with the key.
    pub(super) fn certified(
        &self,
        chain: Vec<CertificateDer<'static>>,
    ) -> Result<CertifiedKey, String> {
        let key = self.parse()?;
        let provider = ring::default_provider();
        CertifiedKey::from_der(chain, key, &provider).map_err(|error| error.to_string())
    }
}

/// The certificate of an authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Authority {
    pub(super) der: CertificateDer<'static>,
    pub(super) not_before: SystemTime,
    pub(super) not_after: SystemTime,
    /// Whether it has the name of the reference's, which ours has, too.
    pub(super) is_ours: bool,
}

impl Authority {
    /// Reads a certificate of the text `name`.
    pub(super) fn parse(
        name: &'static str,
        der: CertificateDer<'static>,
    ) -> Result<Self, MaterialError> {
        let ((not_before, not_after), is_ours) = {
            let parsed = parse_x509_certificate(&der);
            let (_, certificate) = parsed.map_err(|_| MaterialError::NotX509(name))?;
            if !certificate.is_ca() {
                return Err(MaterialError::NotAuthority(name));
            }
            let mut names = certificate.subject().iter_common_name();
            let is_ours = names.any(|name| name.as_str() == Ok(AUTHORITY_NAME));
            (lifetime(&certificate), is_ours)
        };
        RootCertStore::empty()
            .add(der.clone())
            .map_err(|_| MaterialError::NotAuthority(name))?;
        Ok(Self {
            der,
            not_before,
            not_after,
            is_ours,
        })
    }

    /// Reads all valid authorities of a text, and skips everything else.
    pub(super) fn all_of(name: &'static str, text: &[u8]) -> Vec<Self> {
        let found = CertificateDer::pem_slice_iter(text).filter_map(Result::ok);
        let found = found.filter_map(|der| Self::parse(name, der.into_owned()).ok());
        found.collect()
    }

    pub(super) fn pem(&self) -> String {
        pem::text([&self.der])
    }

    pub(super) fn has_expired(&self, now: SystemTime) -> bool {
        self.not_after <= now
    }
}

/// Returns when a certificate begins and ends to be valid.
fn lifetime(
    certificate: &x509_parser::certificate::X509Certificate<'_>,
) -> (SystemTime, SystemTime) {
    let at = |seconds: i64| {
        let since = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        SystemTime::UNIX_EPOCH + since
    };
    let validity = certificate.validity();
    (
        at(validity.not_before.timestamp()),
        at(validity.not_after.timestamp()),
    )
}

/// Returns authorities as PEM.
pub(super) fn bundle<'a>(authorities: impl IntoIterator<Item = &'a Authority>) -> String {
    authorities.into_iter().map(Authority::pem).collect()
}

/// An authority with its key.
#[derive(Clone)]
pub(super) struct SigningAuthority {
    pub(super) authority: Authority,
    pub(super) key: PrivateKey,
}

/// The certificate of the servers, with its key.
#[derive(Clone)]
pub(super) struct Leaf {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKey,
    pub(super) not_after: SystemTime,
}

impl Leaf {
    pub(super) fn parse(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKey,
    ) -> Result<Self, MaterialError> {
        let not_after = {
            let first = chain.first();
            let first = first.ok_or(MaterialError::NoCertificate(CERTIFICATE))?;
            let parsed = parse_x509_certificate(first);
            let (_, certificate) = parsed.map_err(|_| MaterialError::NotX509(CERTIFICATE))?;
            lifetime(&certificate).1
        };
        key.certified(chain.clone())
            .map_err(|problem| MaterialError::Key(KEY, CERTIFICATE, problem))?;
        Ok(Self {
            chain,
            key,
            not_after,
        })
    }

    /// Whether clients that trust only `authority` accept it for all of those names.
    pub(super) fn is_accepted(
        &self,
        authority: &Authority,
        names: &[String],
        now: SystemTime,
    ) -> bool {
        let mut roots = RootCertStore::empty();
        let Some((first, intermediates)) = self.chain.split_first() else {
            return false;
        };
        let since = now.duration_since(SystemTime::UNIX_EPOCH);
        let now = UnixTime::since_unix_epoch(since.unwrap_or_default());
        if roots.add(authority.der.clone()).is_err() {
            return false;
        }
        let provider = Arc::new(ring::default_provider());
        let Ok(verifier) =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()
        else {
            return false;
        };
        names.iter().all(|name| {
            ServerName::try_from(name.as_str()).is_ok_and(|name| {
                verifier
                    .verify_server_cert(first, intermediates, &name, &[], now)
                    .is_ok()
            })
        })
    }
}

/// The content of a valid Secret.
#[derive(Clone)]
pub(super) struct Material {
    /// The authority of the certificate.
    pub(super) signer: SigningAuthority,
    /// The authority that will sign next.
    pub(super) next: Option<SigningAuthority>,
    /// Authorities of which a certificate may still be served.
    pub(super) others: Vec<Authority>,
    /// `None` if it is missing or broken. The authority then signs another one.
    pub(super) leaf: Option<Leaf>,
}

/// The data of a Secret.
pub(super) type Data = BTreeMap<String, Zeroizing<Vec<u8>>>;

impl Material {
    /// Reads the data of a Secret.
    pub(super) fn parse(data: &Data) -> Result<Self, MaterialError> {
        let mut others = Vec::new();
        for der in certificates(data, CA_CERTIFICATE)? {
            others.push(Authority::parse(CA_CERTIFICATE, der)?);
        }
        let signer = take_signer(&mut others, data, CA_KEY)?;
        let next = match data.contains_key(NEXT_CA_KEY) {
            true => take_signer(&mut others, data, NEXT_CA_KEY).ok(),
            false => None,
        };
        let leaf = private_key(data, KEY)
            .and_then(|key| Leaf::parse(certificates(data, CERTIFICATE)?, key))
            .ok();
        Ok(Self {
            signer,
            next,
            others,
            leaf,
        })
    }

    /// Returns all authorities that clients should trust. The first is the signer.
    pub(super) fn authorities(&self) -> impl Iterator<Item = &Authority> {
        let next = self.next.iter().map(|next| &next.authority);
        std::iter::once(&self.signer.authority)
            .chain(next)
            .chain(&self.others)
    }

    /// Returns the data of its Secret. Keys that are not needed are `None`.
    pub(super) fn data(&self) -> BTreeMap<&'static str, Option<Zeroizing<String>>> {
        let text = |text: &str| Some(Zeroizing::new(text.to_owned()));
        let leaf = self.leaf.as_ref();
        let chain = leaf.map(|leaf| pem::text(&leaf.chain));
        BTreeMap::from([
            (CA_CERTIFICATE, text(&bundle(self.authorities()))),
            (CA_KEY, text(self.signer.key.pem())),
            (
                NEXT_CA_KEY,
                self.next.as_ref().and_then(|next| text(next.key.pem())),
            ),
            (CERTIFICATE, chain.and_then(|chain| text(&chain))),
            (KEY, leaf.and_then(|leaf| text(leaf.key.pem()))),
        ])
    }
}

/// Takes the authority of a key out of a list.
fn take_signer(
    authorities: &mut Vec<Authority>,
    data: &Data,
    name: &'static str,
) -> Result<SigningAuthority, MaterialError> {
    let key = private_key(data, name)?;
    let mut problem = String::new();
    let found = authorities.iter().position(|authority| {
        let certified = key.certified(vec![authority.der.clone()]);
        certified.map_err(|error| problem = error).is_ok()
    });
    let found = found.ok_or(MaterialError::Key(name, CA_CERTIFICATE, problem))?;
    let authority = authorities.remove(found);
    Ok(SigningAuthority { authority, key })
}

fn private_key(data: &Data, name: &'static str) -> Result<PrivateKey, MaterialError> {
    let bytes = data.get(name).ok_or(MaterialError::Missing(name))?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PrivateKey::new(text.to_owned())),
        Err(_) => Err(MaterialError::Pem(name, "it is not UTF-8")),
    }
}

fn certificates(
    data: &Data,
    name: &'static str,
) -> Result<Vec<CertificateDer<'static>>, MaterialError> {
    let text = data.get(name).ok_or(MaterialError::Missing(name))?;
    pem::certificates(text).map_err(|problem| match problem {
        Problem::Missing => MaterialError::NoCertificate(name),
        Problem::Invalid(why) => MaterialError::Pem(name, why),
    })
}
