//! Creates authorities and certificates.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use rustls::{SignatureScheme, crypto::ring, pki_types::CertificateDer};
use thiserror::Error;
use x509_parser::parse_x509_certificate;

use super::material::{
    AUTHORITY_NAME, Authority, CA_CERTIFICATE, CA_KEY, Leaf, Material, MaterialError, PrivateKey,
    SigningAuthority,
};

/// The lifetimes of the reference's.
pub(super) const AUTHORITY_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
pub(super) const LEAF_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long before it is made a certificate begins to be valid, because clocks of other machines may be late.
pub(super) const BACKDATED: Duration = Duration::from_secs(3600);

/// Why a certificate cannot be created.
#[derive(Debug, Error)]
pub(super) enum IssueError {
    #[error(
        "a certificate cannot be created: {0}; correct certManagement.webhookServiceName if it is not the name of a Service"
    )]
    Create(#[from] rcgen::Error),
    #[error("a certificate that was just created is invalid: {0}; this is a bug in Trainyard")]
    Created(#[from] MaterialError),
    #[error(
        "clients do not accept a certificate of the authority in {CA_CERTIFICATE} for {0}, because of its constraints, its dates or these names; \
         delete the Secret to have another authority created, or correct certManagement.webhookServiceName"
    )]
    NotAccepted(String),
    #[error("{CA_KEY} cannot sign: {0}; delete the Secret to have another authority created")]
    Key(String),
}

/// The key of an authority, of any kind that rustls reads. The reference's are RSA keys, which rcgen does not read.
struct Signer {
    key: Arc<dyn rustls::sign::SigningKey>,
    scheme: SignatureScheme,
    algorithm: &'static rcgen::SignatureAlgorithm,
    public: Vec<u8>,
}

impl PublicKeyData for Signer {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        self.algorithm
    }
}

impl rcgen::SigningKey for Signer {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let signer = self.key.choose_scheme(&[self.scheme]);
        let signer = signer.ok_or(rcgen::Error::UnsupportedSignatureAlgorithm)?;
        let signed = signer.sign(message);
        signed.map_err(|_| rcgen::Error::RemoteKeyError)
    }
}

impl Signer {
    /// The signature algorithms that certificates are signed with.
    const SCHEMES: [(SignatureScheme, &'static rcgen::SignatureAlgorithm); 4] = [
        (
            SignatureScheme::ECDSA_NISTP256_SHA256,
            &rcgen::PKCS_ECDSA_P256_SHA256,
        ),
        (
            SignatureScheme::ECDSA_NISTP384_SHA384,
            &rcgen::PKCS_ECDSA_P384_SHA384,
        ),
        (SignatureScheme::ED25519, &rcgen::PKCS_ED25519),
        (SignatureScheme::RSA_PKCS1_SHA256, &rcgen::PKCS_RSA_SHA256),
    ];

    fn new(signer: &SigningAuthority) -> Result<Self, IssueError> {
        let key = signer.key.parse().map_err(IssueError::Key)?;
        let key = ring::sign::any_supported_type(&key);
        let key = key.map_err(|error| IssueError::Key(error.to_string()))?;
        let mut schemes = Self::SCHEMES.into_iter();
        let scheme = schemes.find(|(scheme, _)| key.choose_scheme(&[*scheme]).is_some());
        let (scheme, algorithm) =
            scheme.ok_or_else(|| IssueError::Key("its kind is not supported".to_owned()))?;
        let parsed = parse_x509_certificate(&signer.authority.der);
        let (_, certificate) =
            parsed.map_err(|_| IssueError::Key("its certificate is not valid".to_owned()))?;
        Ok(Self {
            key,
            scheme,
            algorithm,
            public: certificate.public_key().subject_public_key.data.to_vec(),
        })
    }
}

/// Creates an authority, and a certificate of it.
pub(super) fn make(names: &[String], now: SystemTime) -> Result<Material, IssueError> {
    let signer = authority(now)?;
    Ok(Material {
        leaf: Some(leaf(&signer, names, now)?),
        signer,
        next: None,
        others: Vec::new(),
    })
}

/// Creates an authority.
///
/// Its certificate has no DNS name, unlike the reference's. So the reference's controller does not accept it, and creates another one: it
/// would not start with a key that is not an RSA key.
pub(super) fn authority(now: SystemTime) -> Result<SigningAuthority, IssueError> {
    let key = KeyPair::generate()?;
    let mut params = params(AUTHORITY_NAME, now, now + AUTHORITY_LIFETIME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key)?;
    Ok(SigningAuthority {
        authority: Authority::parse(CA_CERTIFICATE, certificate.der().clone())?,
        key: PrivateKey::new(key.serialize_pem()),
    })
}

/// Creates a certificate for the DNS names. It does not outlast its authority.
pub(super) fn leaf(
    signer: &SigningAuthority,
    names: &[String],
    now: SystemTime,
) -> Result<Leaf, IssueError> {
    let key = KeyPair::generate()?;
    let end = (now + LEAF_LIFETIME).min(signer.authority.not_after);
    let name = names.first().map_or(AUTHORITY_NAME, String::as_str);
    let mut params = params(name, now, end);
    for name in names {
        let name = rcgen::string::Ia5String::try_from(name.as_str())?;
        params.subject_alt_names.push(rcgen::SanType::DnsName(name));
    }
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let der: &CertificateDer<'_> = &signer.authority.der;
    let issuer = Issuer::from_ca_cert_der(der, Signer::new(signer)?)?;
    let certificate = params.signed_by(&key, &issuer)?;
    let chain = vec![certificate.der().clone()];
    Ok(Leaf::parse(chain, PrivateKey::new(key.serialize_pem()))?)
}

fn params(name: &str, now: SystemTime, end: SystemTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    let begin = now.checked_sub(BACKDATED).unwrap_or(now);
    (params.not_before, params.not_after) = (begin.into(), end.into());
    let mut subject = rcgen::DistinguishedName::new();
    // X.509 allows 64 characters.
    let name: String = name.chars().take(64).collect();
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    params
}
