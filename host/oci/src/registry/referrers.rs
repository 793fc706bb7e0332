//! What refers to a manifest, such as signatures: the registry's own list, or the tag that replaces it.

use http::{HeaderMap, Method, StatusCode, header};
use trainyard_text::clean;

use super::{Repository, endpoint::resolved, link, wire::Call};
use crate::{
    artifact::{Blob, INDEX_TYPE, Manifest},
    budget::Budget,
    digest::Digest,
    error::{Problem, RegistryError},
    index::{self, Listed, NAME},
    limits::{LIST_BYTES, MANIFEST_BYTES},
    progress::Progress,
};

/// What refers to a manifest, page by page.
#[derive(Debug)]
pub(crate) struct Pages<'r> {
    repository: &'r Repository<'r>,
    digest: Digest,
    /// The request for the next page, or why it is not sent.
    next: Option<Result<Call, RegistryError>>,
    is_first: bool,
    budget: Budget,
}

impl<'r> Pages<'r> {
    /// Returns the pages of what refers to a manifest.
    pub(crate) fn of(
        repository: &'r Repository<'r>,
        digest: &Digest,
        budget: &Budget,
    ) -> Result<Self, Problem> {
        let call = repository.request(Method::GET, &format!("referrers/{digest}"))?;
        Ok(Self {
            repository,
            digest: digest.clone(),
            next: Some(Ok(call.header(header::ACCEPT, INDEX_TYPE))),
            is_first: true,
            budget: budget.clone(),
        })
    }

    /// Returns the next page; `None` after the last one. After a page that cannot be used, there may be further ones.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Blob>>, Problem> {
        let Some(call) = self.next.take() else {
            return Ok(None);
        };
        let call = call?;
        let repository = self.repository;
        let progress = self.budget.request();
        let received = repository.call(&call).await?;
        let status = received.status();
        let is_unknown = matches!(
            status,
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::BAD_REQUEST
        );
        if std::mem::take(&mut self.is_first) && is_unknown {
            let progress = self.budget.request();
            let list = repository.tagged_list(&self.digest, &progress).await?;
            return Ok(Some(repository.manifests(&list)?));
        }
        let wire = repository.wire;
        if status != StatusCode::OK {
            return Err(wire.refused(received, "referrers".to_owned()).await);
        }
        let next = next_page(received.headers()).map(|next| resolved(&received.uri, &next));
        self.next = next.map(|next| match next {
            Some(uri) if repository.endpoint.has(&uri) => Ok(Call { uri, ..call }),
            _ => Err(repository.list_error("continues on another host".to_owned())),
        });
        let limit = self.budget.rest().min(LIST_BYTES);
        let bytes = wire.read(received, "referrers", limit, &progress).await?;
        Ok(Some(repository.manifests(&bytes)?))
    }
}

impl Repository<'_> {
    /// Returns the content of the tag that lists referrers; an empty list if there is none.
    async fn tagged_list(&self, digest: &Digest, progress: &Progress) -> Result<Vec<u8>, Problem> {
        let tag = fallback_tag(digest);
        let read = self.manifest_bytes(&tag, INDEX_TYPE, MANIFEST_BYTES, progress);
        match read.await {
            Ok((bytes, _)) => Ok(bytes),
            Err(Problem::Registry(RegistryError::NotFound { .. })) => Ok(b"{}".to_vec()),
            Err(problem) => Err(problem),
        }
    }

    fn manifests(&self, list: &[u8]) -> Result<Vec<Blob>, RegistryError> {
        index::parse_manifests(list).map_err(|error| self.not_an_index(&error))
    }

    fn not_an_index(&self, error: &serde_json::Error) -> RegistryError {
        self.list_error(format!("is not an index: {}", clean(&error.to_string())))
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
        let list = self.tagged_list(subject, &Progress::NONE).await?;
        let listed = index::parse(&list);
        let mut listed = listed.map_err(|error| self.not_an_index(&error))?;
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

/// Returns the URL of the next page.
fn next_page(headers: &HeaderMap) -> Option<String> {
    let links = headers.get_all(header::LINK).iter();
    let mut links = links.filter_map(|link| link.to_str().ok());
    links.find_map(|links| link::find(links, "next").map(str::to_owned))
}
