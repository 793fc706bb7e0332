//! The credentials of a control plane: an authority, a serving certificate, a key for service accounts, and a token.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use sha2::{Digest, Sha256};

const SERVING: &str = "serving";
const TOKENS: &str = "tokens.csv";
/// The name by which pods reach the controller's status server.
const STATUS_SERVER: &str = "kubeflow-trainer-controller-manager.kubeflow-system.svc";

/// The files of one control plane, and the token of its administrator.
#[derive(Debug)]
pub(crate) struct Certificates {
    folder: PathBuf,
    /// The authority's certificate, for clients.
    pub(crate) authority: Vec<u8>,
    /// The authority's certificate as PEM.
    pub(crate) authority_pem: String,
    /// The administrator's token.
    pub(crate) token: String,
}

impl Certificates {
    /// Creates new credentials in files of the folder.
    pub(crate) fn make(folder: &Path) -> Result<Self> {
        let (authority, issuer, secret) = authority()?;
        let server_key = KeyPair::generate()?;
        let server = server_params()?.signed_by(&server_key, &issuer)?;
        let service_accounts = KeyPair::generate()?;
        let token = token(&secret);
        fs::create_dir(folder.join(SERVING))?;
        let files = [
            ("serving/ca.crt", authority.pem()),
            ("serving/tls.crt", server.pem()),
            ("serving/tls.key", server_key.serialize_pem()),
            ("service-accounts.key", service_accounts.serialize_pem()),
            ("service-accounts.pub", service_accounts.public_key_pem()),
            (TOKENS, format!("{token},admin,admin,\"system:masters\"\n")),
        ];
        for (name, text) in files {
            fs::write(folder.join(name), text)?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            authority: authority.der().to_vec(),
            authority_pem: authority.pem(),
            token,
        })
    }

    /// Reads the credentials that [`Self::make`] wrote.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let authority = folder.join(SERVING).join("ca.crt");
        let tokens = fs::read_to_string(folder.join(TOKENS))?;
        let token = tokens.split(',').next().unwrap_or_default();
        Ok(Self {
            folder: folder.to_owned(),
            authority: CertificateDer::from_pem_file(&authority)?.to_vec(),
            authority_pem: fs::read_to_string(&authority)?,
            token: token.to_owned(),
        })
    }

    /// Returns the folder with the files of a server, named as in a TLS Secret: `tls.crt`, `tls.key` and `ca.crt`.
    pub(crate) fn serving(&self) -> PathBuf {
        self.folder.join(SERVING)
    }

    /// Returns the path of a file.
    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

fn authority() -> Result<(rcgen::Certificate, Issuer<'static, KeyPair>, Vec<u8>)> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyCertSign,
    ];
    params
        .distinguished_name
        .push(DnType::CommonName, "trainyard tests authority");
    let key = KeyPair::generate()?;
    let secret = key.serialize_der();
    let certificate = params.self_signed(&key)?;
    Ok((certificate, Issuer::new(params, key), secret))
}

fn server_params() -> Result<CertificateParams> {
    let names = ["localhost", "127.0.0.1", STATUS_SERVER];
    let mut params = CertificateParams::new(names.map(str::to_owned))?;
    params
        .distinguished_name
        .push(DnType::CommonName, "trainyard tests");
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

/// Derives a token that cannot be guessed without the authority's key.
fn token(secret: &[u8]) -> String {
    let digest = Sha256::new().chain_update("admin").chain_update(secret);
    hex::encode(digest.finalize())
}
