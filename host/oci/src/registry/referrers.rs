//! What refers to a manifest, such as signatures: the registry's own list, or the tag that replaces it.

use http::{Method, StatusCode, header};
use trainyard_text::clean;

use super::{Repository, endpoint::resolved};
use crate::{
    artifact::{Blob, INDEX_TYPE, Manifest},
    digest::Digest,
    error::{Problem, RegistryError},
    index::{self, Listed, NAME},
    limits::MANIFEST_BYTES,
    progress::Progress,
};

/// The most pages of referrers.
const PAGES: usize = 8;

impl Repository<'_> {
    /// Returns the descriptors of what refers to a manifest, and at most one more than so many. The list as a whole may be as large as one
    /// manifest.
    pub(crate) async fn referrers(
        &self,
        digest: &Digest,
        limit: usize,
    ) -> Result<Vec<Blob>, Problem> {
        let mut call = self.request(Method::GET, &format!("referrers/{digest}"))?;
        let mut found = Vec::new();
        let mut rest = MANIFEST_BYTES;
        for page in 0..PAGES {
            let received = self
                .call(&call.clone().header(header::ACCEPT, INDEX_TYPE))
                .await?;
            let status = received.status();
            let is_unknown = matches!(
                status,
                StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::BAD_REQUEST
            );
            if page == 0 && is_unknown {
                let listed = self.tagged_referrers(digest).await?;
                return Ok(index::manifests(listed).take(limit + 1).collect());
            }
            if status != StatusCode::OK {
                return Err(self.wire.refused(received, "referrers".to_owned()).await);
            }
            let next = received.header(header::LINK.as_str()).and_then(next_page);
            let next = next.map(|next| resolved(&received.uri, &next));
            let read = self.wire.read(received, "referrers", rest, &Progress::NONE);
            let bytes = read.await?;
            rest = rest.saturating_sub(bytes.len() as u64);
            let wanted = (limit + 1).saturating_sub(found.len());
            found.extend(index::manifests(self.listed(&bytes)?).take(wanted));
            match next {
                _ if found.len() > limit => return Ok(found),
                None => return Ok(found),
                Some(Some(uri)) if self.endpoint.has(&uri) => call.uri = uri,
                Some(_) => {
                    return Err(self
                        .list_error("continues on another host".to_owned())
                        .into());
                }
            }
        }
        Err(self
            .list_error(format!("has more than {PAGES} pages"))
            .into())
    }

    async fn tagged_referrers(&self, digest: &Digest) -> Result<Vec<Listed>, Problem> {
        let tag = fallback_tag(digest);
        match self.manifest_bytes(&tag, INDEX_TYPE).await {
            Ok((bytes, _)) => Ok(self.listed(&bytes)?),
            Err(Problem::Registry(RegistryError::NotFound { .. })) => Ok(Vec::new()),
            Err(problem) => Err(problem),
        }
    }

    fn listed(&self, bytes: &[u8]) -> Result<Vec<Listed>, RegistryError> {
        index::parse(bytes).map_err(|error| {
            self.list_error(format!("is not an index: {}", clean(&error.to_string())))
        })
    }

    fn list_error(&self, problem: String) -> RegistryError {
        let host = self.endpoint.host();
        RegistryError::Referrers { host, problem }
    }

    /// Adds a manifest to the tag that lists the referrers of another, in a registry that has no list of its own. The distribution
    /// specification wants its annotations there.
    pub(super) async fn add_referrer(
        &self,
        subject: &Digest,
        manifest: &Manifest,
    ) -> Result<(), Problem> {
        let mut listed = self.tagged_referrers(subject).await?;
        if listed
            .iter()
            .any(|one| one.digest == manifest.digest.as_str())
        {
            return Ok(());
        }
        let mut annotations = manifest.annotations();
        annotations.remove(NAME);
        listed.push(Listed {
            annotations: (!annotations.is_empty()).then_some(annotations),
            ..Listed::of(manifest)
        });
        let index = index::write(&listed)?;
        self.put(&fallback_tag(subject), &index, INDEX_TYPE).await?;
        Ok(())
    }
}

/// The tag that lists the referrers of a manifest where the registry does not, by the distribution specification.
fn fallback_tag(digest: &Digest) -> String {
    format!("sha256-{}", digest.hex())
}

/// Returns the URL of the next page from a `Link` header.
fn next_page(link: &str) -> Option<String> {
    let mut links = link.split(',').filter(|link| link.contains("rel=\"next\""));
    let (url, _) = links.next()?.trim().strip_prefix('<')?.split_once('>')?;
    Some(url.to_owned())
}
