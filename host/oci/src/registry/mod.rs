//! The client of one repository in a registry, by the distribution specification.

mod auth;
mod challenge;
mod endpoint;
mod link;
mod referrers;
mod wire;

use bytes::Bytes;
use http::{Method, StatusCode, header};
use trainyard_text::clean;

pub(crate) use self::{endpoint::Endpoint, referrers::Pages, wire::Wire};
use self::{
    endpoint::{resolved, with_query},
    wire::{Call, Received},
};
use crate::{
    artifact::{ACCEPTED, Blob, MANIFEST_TYPE, Manifest},
    digest::Digest,
    error::{Problem, RegistryError},
    progress::Progress,
    transport::host,
};

/// The header with the digest of a manifest.
const DIGEST: &str = "docker-content-digest";
/// The header of a registry that lists the referrers of a manifest by itself.
const SUBJECT: &str = "oci-subject";

/// A repository in a registry, or in a mirror.
#[derive(Debug)]
pub(crate) struct Repository<'w> {
    pub(crate) wire: &'w Wire,
    pub(crate) endpoint: Endpoint,
    pub(crate) name: String,
    /// Whether requests need the right to push.
    pub(crate) pushes: bool,
}

impl Repository<'_> {
    fn request(&self, method: Method, rest: &str) -> Result<Call, Problem> {
        let uri = self.endpoint.url(&self.name, rest);
        let uri = uri.ok_or_else(|| self.missing(format!("repository `{}`", clean(&self.name))))?;
        Ok(Call::new(method, uri))
    }

    fn missing(&self, what: String) -> Problem {
        let host = self.endpoint.host();
        RegistryError::NotFound { host, what }.into()
    }

    /// Returns the manifest of a tag or digest, which is not larger than the limit.
    pub(crate) async fn manifest(
        &self,
        wanted: &str,
        limit: u64,
        progress: &Progress,
    ) -> Result<Manifest, Problem> {
        let read = self.manifest_bytes(wanted, ACCEPTED, limit, progress);
        let (bytes, media_type) = read.await?;
        Ok(Manifest::parse(bytes, media_type.as_deref())?)
    }

    async fn manifest_bytes(
        &self,
        wanted: &str,
        accepted: &str,
        limit: u64,
        progress: &Progress,
    ) -> Result<(Vec<u8>, Option<String>), Problem> {
        let call = self.request(Method::GET, &format!("manifests/{wanted}"))?;
        let received = self.call(&call.header(header::ACCEPT, accepted)).await?;
        if received.status() != StatusCode::OK {
            let what = format!("manifest `{wanted}` in `{}`", self.name);
            return Err(self.wire.refused(received, what).await);
        }
        let host = host(&received.uri);
        let declared = received.header(DIGEST).map(str::to_owned);
        let media_type = received.header(header::CONTENT_TYPE.as_str());
        let media_type = media_type
            .and_then(|text| text.split(';').next())
            .map(|text| text.trim().to_owned());
        let bytes = self
            .wire
            .read(received, "a manifest", limit, progress)
            .await?;
        let found = Digest::of(&bytes);
        // Other algorithms than sha256 cannot be compared.
        let declared = declared.filter(|declared| declared.starts_with("sha256:"));
        let by_digest = wanted.contains(':').then(|| wanted.to_owned());
        let wrong = by_digest.into_iter().chain(declared);
        if let Some(wanted) = wrong.into_iter().find(|wanted| wanted != found.as_str()) {
            let wanted = clean(&wanted);
            return Err(RegistryError::ManifestDigest {
                host,
                wanted,
                found,
            }
            .into());
        }
        Ok((bytes, media_type))
    }

    /// Returns a blob, which has the size and the digest that its manifest says.
    pub(crate) async fn blob(&self, blob: &Blob, progress: &Progress) -> Result<Vec<u8>, Problem> {
        let call = self.request(Method::GET, &format!("blobs/{}", blob.digest))?;
        let received = self.call(&call).await?;
        if received.status() != StatusCode::OK {
            let what = format!(
                "blob {} in `{}`, which its manifest names",
                blob.digest, self.name
            );
            return Err(self.wire.refused(received, what).await);
        }
        let host = host(&received.uri);
        let size = |found: String| RegistryError::BlobSize {
            host: host.clone(),
            declared: blob.size,
            found,
        };
        if let Some(length) = received.length().filter(|length| *length != blob.size) {
            return Err(size(format!("{length} bytes")).into());
        }
        let read = self
            .wire
            .read(received, "a file", blob.size, progress)
            .await;
        let bytes = read.map_err(|problem| match problem {
            Problem::Registry(RegistryError::TooLarge { .. }) => size("more".to_owned()).into(),
            problem => problem,
        })?;
        if bytes.len() as u64 != blob.size {
            return Err(size(format!("{} bytes", bytes.len())).into());
        }
        let found = Digest::of(&bytes);
        if found != blob.digest {
            let wanted = blob.digest.clone();
            return Err(RegistryError::BlobDigest {
                host,
                wanted,
                found,
            }
            .into());
        }
        Ok(bytes)
    }

    /// Whether there is a manifest under a tag.
    pub(crate) async fn has_tag(&self, tag: &str) -> bool {
        let call = self.request(Method::HEAD, &format!("manifests/{tag}"));
        let Ok(call) = call.map(|call| call.header(header::ACCEPT, ACCEPTED)) else {
            return false;
        };
        let answer = self.call(&call).await;
        answer.is_ok_and(|answer| answer.status() == StatusCode::OK)
    }

    async fn has_blob(&self, digest: &Digest) -> Result<bool, Problem> {
        let call = self.request(Method::HEAD, &format!("blobs/{digest}"))?;
        Ok(self.call(&call).await?.status() == StatusCode::OK)
    }

    /// Uploads a blob that the repository does not have.
    pub(crate) async fn put_blob(
        &self,
        digest: &Digest,
        bytes: Bytes,
        progress: &Progress,
    ) -> Result<(), Problem> {
        if self.has_blob(digest).await? {
            progress.advance(bytes.len());
            return Ok(());
        }
        let begin = self.request(Method::POST, "blobs/uploads/")?;
        let begun = self.call(&begin).await?;
        if begun.status() != StatusCode::ACCEPTED {
            return Err(self
                .wire
                .refused(
                    begun,
                    format!("repository `{}` that accepts uploads", self.name),
                )
                .await);
        }
        let uri = self.upload_uri(&begun, digest)?;
        let call = Call::new(Method::PUT, uri)
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .upload(bytes, progress.clone());
        let done = self.call(&call).await?;
        if done.status() != StatusCode::CREATED {
            return Err(self.wire.refused(done, format!("upload of {digest}")).await);
        }
        Ok(())
    }

    /// Returns where a blob is sent: where the registry says, which is not allowed to be less encrypted.
    fn upload_uri(&self, begun: &Received, digest: &Digest) -> Result<http::Uri, RegistryError> {
        let location = begun.header(header::LOCATION.as_str()).unwrap_or_default();
        let uri = resolved(&begun.uri, location);
        let uri = uri.filter(|uri| self.endpoint.may_send_to(uri));
        let uri = uri.and_then(|uri| with_query(&uri, &[("digest", digest.as_str())]));
        uri.ok_or_else(|| RegistryError::Upload {
            host: self.endpoint.host(),
        })
    }

    /// Uploads a manifest under a tag or its digest, and adds it to the list of referrers of what it refers to.
    pub(crate) async fn put_manifest(
        &self,
        name: &str,
        manifest: &Manifest,
    ) -> Result<(), Problem> {
        let stored = self.put(name, &manifest.bytes, MANIFEST_TYPE).await?;
        if let Some(subject) = manifest.subject()
            && stored.header(SUBJECT).is_none()
            && let Ok(subject) = subject.parse()
        {
            self.add_referrer(&subject, manifest).await?;
        }
        Ok(())
    }

    async fn put(&self, name: &str, bytes: &[u8], media_type: &str) -> Result<Received, Problem> {
        let call = self
            .request(Method::PUT, &format!("manifests/{name}"))?
            .header(header::CONTENT_TYPE, media_type)
            .upload(Bytes::copy_from_slice(bytes), Progress::NONE);
        let stored = self.call(&call).await?;
        if stored.status() != StatusCode::CREATED {
            return Err(self
                .wire
                .refused(stored, format!("repository `{}`", self.name))
                .await);
        }
        let found = Digest::of(bytes);
        let said = stored.header(DIGEST);
        if let Some(wanted) =
            said.filter(|said| said.starts_with("sha256:") && *said != found.as_str())
        {
            let (host, wanted) = (host(&stored.uri), clean(wanted));
            return Err(RegistryError::ManifestDigest {
                host,
                wanted,
                found,
            }
            .into());
        }
        Ok(stored)
    }
}
