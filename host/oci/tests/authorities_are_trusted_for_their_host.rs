//! A certificate authority that the operator's file has for one host is trusted for that host alone.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use trainyard_oci::{Client, Credentials, Https, Limits};

use crate::common::{pull, registries};

/// Writes a certificate, and returns the port of a server with it, which has no plugins.
fn server(certificate: &Path) -> u16 {
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(certificate, own.cert.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(tls, stream.unwrap());
            // A client that does not trust it sends nothing.
            if stream.read(&mut [0; 4096]).is_ok() {
                let answer =
                    "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                stream.write_all(answer.as_bytes()).unwrap();
            }
        }
    });
    port
}

/// Returns the error of a pull from a mirror on a port, where only hosts with this key trust an authority.
async fn error(port: u16, key: &str, certificate: &Path) -> String {
    let certificate = certificate.display();
    let registries = registries(&format!(
        "mirrors: {{r.invalid: {{endpoint: [\"https://127.0.0.1:{port}\"]}}}}\n\
         configs: {{\"{key}\": {{tls: {{ca_file: {certificate}}}}}}}"
    ));
    let https = Https::new(&registries, &[], Duration::from_secs(15)).unwrap();
    let (credentials, limits) = (Credentials::default(), Limits::default());
    let client = Client::new(Arc::new(https), credentials, registries, limits, false);
    pull(&client, "r.invalid/team/x:1.0").await.unwrap_err()
}

#[tokio::test]
async fn authority_of_one_host_is_not_trusted_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = folder.path().join("ca.pem");
    let port = server(&certificate);
    for (key, is_trusted) in [
        (format!("127.0.0.1:{port}"), true),
        ("*".to_owned(), true),
        ("127.0.0.1".to_owned(), false),
        (format!("other.example.com:{port}"), false),
    ] {
        let error = error(port, &key, &certificate).await;
        let answered = format!("127.0.0.1:{port} has no manifest `1.0`");
        assert_eq!(error.contains(&answered), is_trusted, "{key}: {error}");
        assert_eq!(
            !error.contains("UnknownIssuer"),
            is_trusted,
            "{key}: {error}"
        );
    }
}
