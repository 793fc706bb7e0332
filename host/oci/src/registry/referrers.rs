//! What refers to a manifest, such as signatures: the registry's own list, or the tag that replaces it.

use http::{Method, StatusCode, header};
use trainyard_text::clean;

use super::{Repository, endpoint::resolved, wire::Call};
use crate::{
    artifact::{Blob, INDEX_TYPE, Manifest},
    digest::Digest,
    error::{Problem, RegistryError},
    index::{self, Listed, NAME},
    limits::MANIFEST_BYTES,
    progress::Progress,
};

/// The most pages of referrers, if only the first referrers are wanted.
const PAGES: usize = 8;

/// What refers to a manifest, page by page.
#[derive(Debug)]
pub(crate) struct Pages<'r> {
    repository: &'r Repository<'r>,
    digest: Digest,
    /// The request for the next page, or why it is not sent.
    next: Option<Result<Call, RegistryError>>,
    /// How many pages were read.
    read: usize,
    /// How many bytes all further pages may have together.
    rest: u64,
}

impl<'r> Pages<'r> {
    /// Returns the pages of what refers to a manifest, which may have so many bytes together.
    pub(crate) fn of(
        repository: &'r Repository<'r>,
        digest: &Digest,
        bytes: u64,
    ) -> Result<Self, Problem> {
        let call = repository.request(Method::GET, &format!("referrers/{digest}"))?;
        Ok(Self {
            repository,
            digest: digest.clone(),
            next: Some(Ok(call.header(header::ACCEPT, INDEX_TYPE))),
            read: 0,
            rest: bytes,
        })
    }

    /// Returns the next page; `None` after the last one.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Listed>>, Problem> {
        let Some(call) = self.next.take() else {
            return Ok(None);
        };
        let call = call?;
        let repository = self.repository;
        let received = repository.call(&call).await?;
        let status = received.status();
        let is_unknown = matches!(
            status,
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::BAD_REQUEST
        );
        self.read += 1;
        if self.read == 1 && is_unknown {
            return Ok(Some(repository.tagged_referrers(&self.digest).await?));
        }
        let wire = repository.wire;
        if status != StatusCode::OK {
            return Err(wire.refused(received, "referrers".to_owned()).await);
        }
        let next = received.header(header::LINK.as_str()).and_then(next_page);
        let next = next.map(|next| resolved(&received.uri, &next));
        let limit = self.rest.min(MANIFEST_BYTES);
        let bytes = wire.read(received, "referrers", limit, &Progress::NONE);
        let bytes = bytes.await?;
        self.rest = self.rest.saturating_sub(bytes.len() as u64);
        let listed = repository.listed(&bytes)?;
        self.next = next.map(|next| match next {
            Some(uri) if repository.endpoint.has(&uri) => Ok(Call { uri, ..call }),
            _ => Err(repository.list_error("continues on another host".to_owned())),
        });
        Ok(Some(listed))
    }
}

impl Repository<'_> {
    /// Returns the descriptors of what refers to a manifest, and at most one more than so many. The list as a whole may be as large as one
    /// manifest.
    pub(crate) async fn referrers(
        &self,
        digest: &Digest,
        limit: usize,
    ) -> Result<Vec<Blob>, Problem> {
        let mut pages = Pages::of(self, digest, MANIFEST_BYTES)?;
        let mut found = Vec::new();
        while let Some(page) = pages.next().await? {
            let wanted = (limit + 1).saturating_sub(found.len());
            found.extend(index::manifests(page).take(wanted));
            if found.len() > limit {
                break;
            }
            if pages.read == PAGES && pages.next.is_some() {
                let problem = format!("has more than {PAGES} pages");
                return Err(self.list_error(problem).into());
            }
        }
        Ok(found)
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
