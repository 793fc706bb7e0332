//! A network in memory: registries that behave, and answers of one's own in front of them.

mod registry;
pub mod signing;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures_util::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self},
};
use http::{Method, Request, Response, header};
use trainyard_oci::{
    Answer, AnswerBody, Artifact, Client, Credentials, Limits, Location, Progress, Registries,
    Release, Transport, TransportError, Upload,
};

pub use self::registry::{Access, Registry};

/// The smallest WebAssembly file.
pub const WASM: &[u8] = b"\0asm\x0d\0\x01\0";

/// The host of the registry in most tests.
pub const HOST: &str = "r.example.com";

/// A request that was sent.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: Method,
    pub url: String,
    pub authorization: Option<String>,
    pub body: Bytes,
}

/// The content of an answer.
pub enum Body {
    /// All of it.
    Bytes(Vec<u8>),
    /// Pieces that never end.
    Endless,
    /// This, and then nothing.
    Hangs(Vec<u8>),
}

pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Body,
}

impl Reply {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Body::Bytes(body.into()),
        }
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn body(self, body: Body) -> Self {
        Self { body, ..self }
    }
}

type Override = Box<dyn Fn(&Seen) -> Option<Reply> + Send + Sync>;

/// Registries by their host, and what answers in front of them.
#[derive(Default)]
pub struct Net {
    registries: BTreeMap<String, Registry>,
    answer: Mutex<Option<Override>>,
    seen: Mutex<Vec<Seen>>,
    /// Hosts that cannot be reached.
    down: Mutex<Vec<String>>,
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Net")
    }
}

impl Net {
    /// Returns a network with these hosts, whose registries let everybody do everything.
    pub fn of(hosts: &[&str]) -> Arc<Self> {
        Self::with(hosts.iter().map(|host| (*host, Registry::default())))
    }

    pub fn with<'h>(registries: impl IntoIterator<Item = (&'h str, Registry)>) -> Arc<Self> {
        let registries = registries.into_iter();
        Arc::new(Self {
            registries: registries
                .map(|(host, one)| (host.to_owned(), one))
                .collect(),
            ..Self::default()
        })
    }

    /// Answers requests before the registries do.
    pub fn answer(&self, answer: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static) {
        *self.answer.lock().unwrap() = Some(Box::new(answer));
    }

    pub fn take_down(&self, host: &str) {
        self.down.lock().unwrap().push(host.to_owned());
    }

    pub fn registry(&self, host: &str) -> &Registry {
        self.registries.get(host).unwrap()
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Forgets the requests.
    pub fn forget(&self) {
        self.seen.lock().unwrap().clear();
    }

    fn reply(&self, seen: &Seen, host: &str) -> Reply {
        let answer = self.answer.lock().unwrap();
        if let Some(reply) = answer.as_ref().and_then(|answer| answer(seen)) {
            return reply;
        }
        match self.registries.get(host) {
            Some(registry) => registry.reply(seen),
            None => Reply::new(404, "no such host in the test"),
        }
    }
}

impl Transport for Net {
    fn send(&self, request: Request<Upload>) -> BoxFuture<'_, Result<Answer, TransportError>> {
        let host = request.uri().authority().unwrap().to_string();
        let authorization = request.headers().get(header::AUTHORIZATION);
        let seen = Seen {
            method: request.method().clone(),
            url: request.uri().to_string(),
            authorization: authorization.map(|value| value.to_str().unwrap().to_owned()),
            body: request.body().bytes.clone(),
        };
        self.seen.lock().unwrap().push(seen.clone());
        if self.down.lock().unwrap().contains(&host) {
            let reason = "connection refused".to_owned();
            return Box::pin(async { Err(TransportError::Unreachable { host, reason }) });
        }
        let reply = self.reply(&seen, &host);
        Box::pin(async move {
            if reply.status == 0 {
                std::future::pending::<()>().await;
            }
            let mut answer = Response::builder().status(reply.status);
            for (name, value) in reply.headers {
                answer = answer.header(name, value);
            }
            let body: AnswerBody = match reply.body {
                Body::Bytes(bytes) => {
                    let pieces: Vec<_> = bytes.chunks(7).map(Bytes::copy_from_slice).collect();
                    Box::pin(stream::iter(pieces.into_iter().map(Ok)))
                }
                Body::Endless => {
                    Box::pin(stream::repeat_with(|| Ok(Bytes::from_static(&[0; 4096]))))
                }
                Body::Hangs(bytes) => {
                    let first = stream::iter([Ok(Bytes::from(bytes))]);
                    Box::pin(first.chain(stream::pending()))
                }
            };
            Ok(answer.body(body).unwrap())
        })
    }
}

/// Returns a client without credentials.
pub fn client(net: &Arc<Net>) -> Client {
    client_of(net, Credentials::default(), Registries::default())
}

pub fn client_of(net: &Arc<Net>, credentials: Credentials, registries: Registries) -> Client {
    let limits = Limits {
        file_bytes: 1 << 16,
        blob_bytes: 1 << 16,
        ..Limits::default()
    };
    Client::new(net.clone(), credentials, registries, limits, false)
}

/// Returns the credentials of a document of Docker.
pub fn credentials(document: &serde_json::Value) -> Credentials {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    std::fs::write(&file, document.to_string()).unwrap();
    Credentials::of_user(Some(&file)).unwrap()
}

/// Returns the operator's file.
pub fn registries(text: &str) -> Registries {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("registries.yaml");
    std::fs::write(&file, text).unwrap();
    Registries::read(&file).unwrap()
}

pub fn at(text: &str) -> Location {
    text.parse().unwrap()
}

/// Returns a plugin whose file ends with this text.
pub fn plugin(text: &str) -> Artifact {
    let file = [WASM, text.as_bytes()].concat();
    let release = Release {
        title: Some("x.wasm".to_owned()),
        annotations: [("a".to_owned(), "b".to_owned())].into(),
    };
    Artifact::new(file, &release).unwrap()
}

/// Pushes a plugin, and returns the digest.
pub async fn push(net: &Arc<Net>, target: &str, text: &str) -> String {
    let pushed = client(net)
        .push(&plugin(text), &at(target), &Progress::NONE)
        .await;
    pushed.unwrap().digest.to_string()
}

/// Pulls a plugin, and returns its file or the error.
pub async fn pull(client: &Client, source: &str) -> Result<Vec<u8>, String> {
    let pulled = client.pull(&at(source), &Progress::NONE).await;
    pulled
        .map(|pulled| pulled.file)
        .map_err(|error| error.to_string())
}
