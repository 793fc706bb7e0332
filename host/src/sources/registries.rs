//! Where the content of plugins comes from.

use std::{
    collections::{BTreeSet, HashMap},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use trainyard_config::policy_plugin::{
    FileOrigin, FileSource, OciOrigin, OciSource, Origin, ResolvedPlugin, Source,
};
use trainyard_controller::plugins::{Pinned, PluginCondition, PluginSource, SourceError, Verified};
use trainyard_model::{names::sha256_digest, text::clean};
use trainyard_oci::{
    OciError, PluginName, Problem as OciProblem, Progress, Reference, Requirement, Signers,
    Verified as Pulled, discard_others,
};
use trainyard_sandbox::{
    CompileError, LoadLimits, ScreenError,
    screen::{self, Screened},
};

use super::{
    content::{Content, check_digest},
    refusal::{of_oci, problem, retry},
    replaced::file_of_built_in,
};
use crate::{args::RegistryArgs, built_ins::plugin_name, compile_worker};

/// How long content stays that no revision has, because one may be about to be made with it.
const YOUNG: Duration = Duration::from_secs(3_600);

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, SourceError>> + Send + 'a>>;

/// Registries and the plugin directory.
pub(crate) struct Registries {
    content: Arc<Content>,
    signers: Signers,
    registry: RegistryArgs,
    /// When this process asked for the content of each digest.
    used: Mutex<HashMap<String, Instant>>,
}

impl Registries {
    pub(crate) fn new(content: Arc<Content>, signers: Signers, registry: RegistryArgs) -> Self {
        Self {
            content,
            signers,
            registry,
            used: Mutex::default(),
        }
    }

    /// Pulls a plugin into the store, unless it is there, and verifies its signature in either case.
    async fn pull(&self, name: &str, reference: &Reference) -> Result<Pulled, SourceError> {
        let plugin = plugin_name(name);
        self.check_allowed(plugin, name, reference)?;
        let requirement = Requirement {
            signers: &self.signers,
            plugin,
        };
        // Credentials and authorities are read each time, because Secrets that are mounted change.
        let client = self.registry.client();
        let client =
            client.map_err(|errors| retry(errors.lines().collect::<Vec<_>>().join("; ")))?;
        let store = &self.content.store;
        let mut stored = None;
        if reference.digest().is_some() {
            match client.pull_stored(reference, store, &requirement).await {
                Ok(pulled) => return Ok(pulled),
                Err(error) => stored = Some(error),
            }
        }
        let pulled = client
            .store_verified(reference, store, &requirement, &Progress::NONE)
            .await;
        pulled.map_err(|error| match (of_oci(&error), stored) {
            // Whatever the registry has, what is stored is not signed as required any more.
            (SourceError::Retry { .. }, Some(stored)) if is_of_signature(&stored) => {
                of_oci(&stored)
            }
            (error, _) => error,
        })
    }

    /// Fails if the registry may not be asked for a plugin.
    fn check_allowed(
        &self,
        plugin: PluginName<'_>,
        name: &str,
        reference: &Reference,
    ) -> Result<(), SourceError> {
        let repository = reference.full_repository();
        if self.signers.allow(plugin, &repository) {
            return Ok(());
        }
        let signed = match plugin {
            PluginName::BuiltIn(_) => " (a built-in plugin's name has to be written out there)",
            _ => "",
        };
        Err(SourceError::Refused(problem(
            PluginCondition::Pulled,
            "RepositoryNotAllowed",
            format!(
                "no signer of the controller's configuration may sign `{}`{signed} for {}, so nothing was requested from it; add the name to `plugins` and the repository to `repositories` of an entry of `plugins.signers`, or correct the reference",
                clean(name),
                clean(&repository)
            ),
        )))
    }

    async fn pin_oci(&self, name: &str, source: &OciSource) -> Result<Pinned, SourceError> {
        let reference: Reference = source.reference.parse().map_err(|error| {
            let message = format!("source.oci.reference: {error}");
            SourceError::Refused(problem(
                PluginCondition::Pulled,
                "InvalidReference",
                message,
            ))
        })?;
        let pulled = self.pull(name, &reference).await?;
        let signer = pulled.signed.signer().map(str::to_owned);
        let origin = Origin::Oci(OciOrigin {
            repository: reference.full_repository(),
            manifest_digest: pulled.signed.digest.to_string(),
        });
        self.pinned(name, pulled.file, origin, signer).await
    }

    async fn pin_file(&self, name: &str, source: &FileSource) -> Result<Pinned, SourceError> {
        file_of_built_in(name).map_err(SourceError::Refused)?;
        let (content, file) = (self.content.clone(), source.name.clone());
        let bytes = blocking(move || content.file(&file).map_err(SourceError::Refused)).await?;
        let digest = sha256_digest(&bytes);
        let origin = Origin::File(FileOrigin {
            name: source.name.clone(),
            digest,
        });
        self.pinned(name, bytes, origin, None).await
    }

    /// Reads the manifest of a plugin whose signature was verified, without running it.
    async fn pinned(
        &self,
        name: &str,
        bytes: Vec<u8>,
        origin: Origin,
        signer: Option<String>,
    ) -> Result<Pinned, SourceError> {
        let Screened {
            digest, manifest, ..
        } = blocking(move || screened(bytes)).await?;
        if manifest.name != name {
            return Err(SourceError::Refused(problem(
                PluginCondition::Loaded,
                "WrongName",
                format!(
                    "the source has the plugin `{}`, and not `{name}`; rename the PolicyPlugin, or correct its source",
                    manifest.name
                ),
            )));
        }
        self.note_used(&digest);
        Ok(Pinned {
            origin,
            digest,
            version: manifest.version,
            active_when: manifest.active_when.to_string(),
            signer,
        })
    }

    async fn available(&self, plugin: &ResolvedPlugin) -> Result<Verified, SourceError> {
        let wanted = plugin.digest.as_deref().unwrap_or_default();
        self.note_used(wanted);
        match &plugin.origin {
            Origin::BuiltIn(_) => Ok(Verified::default()),
            Origin::File(_) => {
                let (content, plugin) = (self.content.clone(), plugin.clone());
                blocking(move || content.of(&plugin).map_err(SourceError::Refused)).await?;
                Ok(Verified::default())
            }
            Origin::Oci(oci) => {
                let reference = format!("{}@{}", oci.repository, oci.manifest_digest);
                let reference: Reference = reference.parse().map_err(|error| {
                    let message = format!("{error}");
                    SourceError::Refused(problem(
                        PluginCondition::Pulled,
                        "InvalidReference",
                        message,
                    ))
                })?;
                let pulled = self.pull(&plugin.name, &reference).await?;
                let checked = check_digest(&pulled.file, wanted, "the registry");
                checked.map_err(SourceError::Refused)?;
                Ok(Verified {
                    signer: pulled.signed.signer().map(str::to_owned),
                })
            }
        }
    }

    fn note_used(&self, digest: &str) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, since| since.elapsed() < YOUNG);
        used.insert(digest.to_owned(), Instant::now());
    }
}

impl PluginSource for Registries {
    fn pin<'a>(&'a self, name: &'a str, source: &'a Source) -> Answer<'a, Pinned> {
        Box::pin(async move {
            match source {
                Source::Oci(oci) => self.pin_oci(name, oci).await,
                Source::File(file) => self.pin_file(name, file).await,
            }
        })
    }

    fn fetch<'a>(&'a self, plugin: &'a ResolvedPlugin) -> Answer<'a, Verified> {
        Box::pin(self.available(plugin))
    }

    fn keep(&self, digests: &BTreeSet<String>) {
        let mut keep = digests.clone();
        {
            let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            let young = used.iter().filter(|(_, since)| since.elapsed() < YOUNG);
            keep.extend(young.map(|(digest, _)| digest.clone()));
        }
        let content = self.content.clone();
        tokio::spawn(async move {
            match discard_others(&content.store, &keep, YOUNG).await {
                Ok(0) => {}
                Ok(removed) => {
                    tracing::info!(
                        removed,
                        "plugins that no revision has were removed from the store"
                    );
                }
                Err(error) => {
                    tracing::warn!(%error, "plugins that no revision has cannot be removed from the store");
                }
            }
        });
    }
}

fn is_of_signature(error: &OciError) -> bool {
    matches!(error.problem, OciProblem::Signature(_))
}

/// Checks a plugin in a process with limits.
fn screened(bytes: Vec<u8>) -> Result<Screened, SourceError> {
    let compiler = compile_worker::compiler().map_err(retry)?;
    let screened = screen::screen(bytes, &LoadLimits::default(), &compiler);
    screened.map_err(|error| match error {
        // The machine's load, or an executable that is being replaced, says nothing about the plugin.
        ScreenError::Child(error @ CompileError::Child(_)) => retry(error),
        error => SourceError::Refused(problem(
            PluginCondition::Loaded,
            "NotAPlugin",
            format!("the plugin file {error}"),
        )),
    })
}

/// Runs what reads files or waits for a process.
async fn blocking<T: Send + 'static>(
    task: impl FnOnce() -> Result<T, SourceError> + Send + 'static,
) -> Result<T, SourceError> {
    let done = tokio::task::spawn_blocking(task).await;
    done.unwrap_or_else(|error| Err(retry(error)))
}
