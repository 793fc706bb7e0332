//! What users ask for: pull, push, copy and inspect.

mod results;
mod verified;

use std::{fmt::Display, sync::Arc};

use tokio::time::{Instant, timeout};

pub use self::results::{Inspected, Pulled, Pushed, Referrer, Signed, Verified};
use crate::{
    artifact::{Artifact, Manifest},
    budget::Budget,
    copy::{self, Copied, CopyError, Referring},
    credentials::Credentials,
    error::{OciError, Problem, RegistryError},
    layout::Layout,
    limits::{Limits, MANIFEST_BYTES},
    progress::Progress,
    reference::{LayoutReference, Location, Reference},
    registries::Registries,
    registry::{Endpoint, Repository, Wire},
    search::{self, Signature, Wanted},
    signature::Requirement,
    store::{Fetched, Store},
    transport::Transport,
};

/// A client of registries and folders.
#[derive(Debug)]
pub struct Client {
    wire: Wire,
    registries: Registries,
    plain_http: bool,
}

impl Client {
    /// Returns a client. With `plain_http`, registries that are not on this machine are reached without TLS, too.
    pub fn new(
        transport: Arc<dyn Transport>,
        credentials: Credentials,
        registries: Registries,
        limits: Limits,
        plain_http: bool,
    ) -> Self {
        Self {
            wire: Wire::new(transport, credentials, limits),
            registries,
            plain_http,
        }
    }

    /// Pulls a plugin, whoever made it.
    ///
    /// # Errors
    /// Why there is no plugin. Nothing was written then.
    pub async fn pull(&self, location: &Location, progress: &Progress) -> Result<Pulled, OciError> {
        let found = self.limited(location, self.fetch(location, None, progress));
        found.await.map(|found| Pulled::of(found.plugin))
    }

    /// Pushes a plugin under a tag.
    ///
    /// # Errors
    /// Why it is not there.
    pub async fn push(
        &self,
        artifact: &Artifact,
        target: &Location,
        progress: &Progress,
    ) -> Result<Pushed, OciError> {
        self.limited(target, async {
            let (store, name) = self.target(target, None)?;
            let plugin = Fetched::of(artifact, &self.wire.limits)?;
            copy::push(&plugin, &store, &name, progress).await?;
            Ok(Pushed {
                digest: plugin.manifest.digest,
            })
        })
        .await
    }

    /// Copies a plugin with what refers to it, such as signatures, SBOM and provenance. With a requirement, only a plugin that is signed so.
    ///
    /// # Errors
    /// Why it is not there. Its name is then what it was before.
    pub async fn copy(
        &self,
        source: &Location,
        target: &Location,
        requirement: Option<&Requirement<'_>>,
        progress: &Progress,
    ) -> Result<Copied, OciError> {
        let of_source = |problem| OciError::new(source, problem);
        let of_target = |problem| OciError::new(target, problem);
        self.within(source, async {
            // The rest of the time is for the name.
            let until = Instant::now() + self.wire.limits.total / 10 * 9;
            let (to, name) = self.target(target, Some(source)).map_err(of_target)?;
            let repository = source.repository();
            let wanted = requirement.map(|requirement| Wanted {
                requirement,
                repository: repository.as_deref(),
            });
            let found = self.fetch(source, wanted, progress).await;
            let found = found.map_err(of_source)?;
            let referring = match requirement {
                Some(_) => Referring::Verified(found.signature.as_ref(), until),
                None => Referring::All,
            };
            let (to, limits) = ((&to, name.as_str()), &self.wire.limits);
            let copied = copy::write(&found.plugin, &found.store, to, referring, limits, progress);
            copied.await.map_err(|error| match error {
                CopyError::Source(problem) => of_source(problem),
                CopyError::Target(problem) => of_target(problem),
            })
        })
        .await
    }

    /// Returns a plugin with what refers to it. With a requirement, it says which signatures count, but returns a plugin without one, too.
    ///
    /// # Errors
    /// Why there is no plugin.
    pub async fn inspect(
        &self,
        location: &Location,
        requirement: Option<&Requirement<'_>>,
        progress: &Progress,
    ) -> Result<Inspected, OciError> {
        self.limited(location, async {
            let found = self.fetch(location, None, progress).await?;
            let (digest, limits) = (&found.plugin.manifest.digest, &self.wire.limits);
            let budget = Budget::of(limits.referrer_bytes);
            let listed = found.store.referrers(digest, limits.referrers, &budget);
            let listed = listed.await?;
            let has_more_referrers = listed.len() > limits.referrers;
            let listed = listed.into_iter().take(limits.referrers);
            let (referrers, signed) = match requirement {
                None => (listed.map(Referrer::of).collect(), None),
                Some(requirement) => {
                    let repository = location.repository();
                    let wanted = Wanted {
                        requirement,
                        repository: repository.as_deref(),
                    };
                    let signed = search::find(&found.store, digest, wanted, limits).await;
                    let most = limits.blob_bytes;
                    let mut referrers = Vec::new();
                    for blob in listed {
                        let signers = requirement.signers;
                        let limit = budget.rest().min(most);
                        let one =
                            verified::referrer(&found.store, digest, signers, blob, limit, &budget);
                        referrers.push(one.await);
                    }
                    (
                        referrers,
                        Some(signed.map(|found| Signed::of(digest, repository, found))),
                    )
                }
            };
            Ok(Inspected {
                plugin: Pulled::of(found.plugin),
                signed,
                referrers,
                has_more_referrers,
            })
        })
        .await
    }

    /// Ends an operation at the deadline, and names the reference in its error.
    async fn limited<T>(
        &self,
        subject: &(dyn Display + Sync),
        operation: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, OciError> {
        let named = async {
            operation
                .await
                .map_err(|problem| OciError::new(subject, problem))
        };
        self.within(subject, named).await
    }

    /// Ends an operation at the deadline.
    async fn within<T>(
        &self,
        subject: &(dyn Display + Sync),
        operation: impl Future<Output = Result<T, OciError>>,
    ) -> Result<T, OciError> {
        let after = self.wire.limits.total;
        let late = |_| OciError::new(subject, Problem::Deadline { after });
        timeout(after, operation).await.map_err(late)?
    }

    /// Returns a plugin with the place that has it, and the signature that counts there if one is wanted.
    async fn fetch(
        &self,
        location: &Location,
        wanted: Option<Wanted<'_>>,
        progress: &Progress,
    ) -> Result<Found<'_>, Problem> {
        match location {
            Location::Registry(reference) => self.ask_registry(reference, wanted, progress).await,
            Location::Layout(LayoutReference {
                folder,
                name,
                digest,
            }) => {
                let layout = Layout::new(folder);
                let manifest = layout.find(name.as_deref(), digest.as_ref())?;
                let store = Store::Layout(layout);
                self.take(store, manifest, wanted, progress).await
            }
        }
    }

    /// Asks the mirrors of a registry in order, and then the registry.
    async fn ask_registry(
        &self,
        reference: &Reference,
        wanted: Option<Wanted<'_>>,
        progress: &Progress,
    ) -> Result<Found<'_>, Problem> {
        let mut mirrors = Vec::new();
        let urls = self.registries.mirrors(reference.registry());
        let endpoints: Vec<_> = urls
            .filter_map(|url| Endpoint::of_mirror(&url, reference.registry()))
            .collect();
        // No mirror can use up the time of the others and of the registry.
        let endpoints_with_registry = u32::try_from(endpoints.len()).unwrap_or(u32::MAX) + 1;
        let after = self.wire.limits.total / endpoints_with_registry;
        for endpoint in endpoints {
            let host = endpoint.host();
            let asked = self.ask_endpoint(endpoint, reference, wanted, progress);
            let asked = timeout(after, asked).await;
            match asked.unwrap_or(Err(Problem::Deadline { after })) {
                Ok(found) => return Ok(found),
                Err(problem) => {
                    tracing::warn!(%reference, mirror = host, %problem, "a mirror does not have a plugin; asking the next one, or the registry");
                    mirrors.push(problem);
                }
            }
        }
        let endpoint = self.endpoint(reference)?;
        let found = self
            .ask_endpoint(endpoint, reference, wanted, progress)
            .await;
        found.map_err(|registry| match mirrors.is_empty() {
            true => registry,
            false => Problem::Everywhere {
                registry: Box::new(registry),
                mirrors,
            },
        })
    }

    async fn ask_endpoint(
        &self,
        endpoint: Endpoint,
        reference: &Reference,
        wanted: Option<Wanted<'_>>,
        progress: &Progress,
    ) -> Result<Found<'_>, Problem> {
        let repository = self.repository(endpoint, reference, false);
        let manifest = manifest(&repository, reference).await?;
        self.take(Store::Registry(repository), manifest, wanted, progress)
            .await
    }

    /// Fetches the file of a manifest, after its signatures were verified. The manifest is never asked for again, so that it cannot change
    /// in between.
    async fn take<'c>(
        &'c self,
        store: Store<'c>,
        manifest: Manifest,
        wanted: Option<Wanted<'_>>,
        progress: &Progress,
    ) -> Result<Found<'c>, Problem> {
        let limits = &self.wire.limits;
        let signature = match wanted {
            Some(wanted) => search::find(&store, &manifest.digest, wanted, limits).await?,
            None => None,
        };
        let plugin = store.plugin(manifest, limits, progress).await?;
        Ok(Found {
            plugin,
            signature,
            store,
        })
    }

    fn endpoint(&self, reference: &Reference) -> Result<Endpoint, Problem> {
        let endpoint = Endpoint::of(reference.registry(), self.plain_http);
        let missing = || RegistryError::NotFound {
            host: reference.registry().to_owned(),
            what: "valid port".to_owned(),
        };
        Ok(endpoint.ok_or_else(missing)?)
    }

    fn repository(
        &self,
        endpoint: Endpoint,
        reference: &Reference,
        pushes: bool,
    ) -> Repository<'_> {
        Repository {
            wire: &self.wire,
            endpoint,
            name: reference.repository().to_owned(),
            pushes,
        }
    }

    /// Returns where a plugin is written, and under which name.
    fn target(
        &self,
        target: &Location,
        source: Option<&Location>,
    ) -> Result<(Store<'_>, String), Problem> {
        match target {
            Location::Registry(reference) => {
                let tag = reference.tag().filter(|_| reference.digest().is_none());
                let tag = tag.ok_or(Problem::TargetDigest)?.to_owned();
                // Never a mirror, which would only copy it.
                let repository = self.repository(self.endpoint(reference)?, reference, true);
                Ok((Store::Registry(repository), tag))
            }
            Location::Layout(LayoutReference {
                digest: Some(_), ..
            }) => Err(Problem::TargetDigest),
            Location::Layout(LayoutReference { folder, name, .. }) => {
                let store = Store::Layout(Layout::new(folder));
                let of_source = || match source? {
                    Location::Registry(reference) => Some(reference.to_string()),
                    Location::Layout(layout) => layout.name.clone(),
                };
                let name = name.clone().or_else(of_source);
                Ok((store, name.unwrap_or_else(|| UNNAMED.to_owned())))
            }
        }
    }
}

/// A plugin, the signature of it that counts, and the place that has them.
struct Found<'c> {
    plugin: Fetched,
    signature: Option<Signature>,
    store: Store<'c>,
}

/// The name in a folder of what has none.
const UNNAMED: &str = "latest";

/// Returns the manifest of a reference. A tag beside a digest must name the same manifest.
async fn manifest(repository: &Repository<'_>, reference: &Reference) -> Result<Manifest, Problem> {
    let (Some(tag), Some(wanted)) = (reference.tag(), reference.digest()) else {
        let read = repository.manifest(reference.wanted(), MANIFEST_BYTES, &Progress::NONE);
        return read.await;
    };
    let read = repository.manifest(tag, MANIFEST_BYTES, &Progress::NONE);
    let manifest = read.await?;
    if manifest.digest != *wanted {
        return Err(Problem::TagMoved {
            tag: tag.to_owned(),
            wanted: wanted.clone(),
            found: manifest.digest,
        });
    }
    Ok(manifest)
}
