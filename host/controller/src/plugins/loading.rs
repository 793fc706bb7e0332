//! Loading the plugins of a revision.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{sync::oneshot, time::timeout};
use trainyard_config::policy_plugin::{Origin, PluginRevisionSpec, ResolvedPlugin};
use trainyard_render::{Renderer, SkippedPlugin};

use super::{
    FetchedPlugin, LoadedPlugins, Mode, PluginCondition, PluginSource, Plugins, Problem, Refusal,
    SourceError, Verified,
};
use crate::generation::Generation;

/// How long the content of a plugin that is in use may take to be fetched.
const FETCH_LIMIT: Duration = Duration::from_secs(30);

/// A loaded revision.
pub(super) struct LoadedRevision {
    /// The name of the revision.
    pub(super) name: String,
    pub(super) spec: PluginRevisionSpec,
    pub(super) generation: Arc<Generation>,
    /// Who signed each plugin.
    pub(super) signers: BTreeMap<String, String>,
    /// The plugins that were skipped, with the reason.
    pub(super) skipped: BTreeMap<String, String>,
    /// The warnings of each plugin that has any.
    pub(super) warnings: BTreeMap<String, Vec<String>>,
}

impl LoadedRevision {
    /// Returns why a plugin is left out on purpose, such as that its feature gate is off.
    pub(super) fn left_out(&self, name: &str) -> Option<&str> {
        let skipped = skipped(self.generation.renderer(), name)?;
        skipped.is_disabled.then_some(&*skipped.why)
    }
}

/// Returns why a plugin is not loaded.
fn skipped<'r>(renderer: &'r Renderer, name: &str) -> Option<&'r SkippedPlugin> {
    let mut all = renderer.skipped().iter();
    all.find(|it| it.declared.as_ref().is_some_and(|it| it.name == name))
}

/// The loaded revisions that may be used.
#[derive(Default)]
pub(super) struct Loaded(Mutex<Vec<Arc<LoadedRevision>>>);

impl Loaded {
    /// Returns a loaded revision, if no plugin of it was skipped.
    pub(super) fn get(&self, name: &str) -> Option<Arc<LoadedRevision>> {
        let loaded = self.all();
        let mut loaded = loaded.iter().filter(|it| it.skipped.is_empty());
        loaded.find(|it| it.name == name).cloned()
    }

    /// The same, also if plugins of it were skipped.
    pub(super) fn any(&self, name: &str) -> Option<Arc<LoadedRevision>> {
        self.all().iter().find(|it| it.name == name).cloned()
    }

    /// Replaces those of the same number: one that cannot be created, such as for lack of permissions, leaves its number to another one.
    fn put(&self, revision: Arc<LoadedRevision>) {
        let mut all = self.all();
        all.retain(|it| it.spec.number != revision.spec.number);
        all.push(revision);
    }

    /// Returns the loaded revision of a generation, which may have been loaded again since.
    pub(super) fn of(&self, generation: &Arc<Generation>) -> Option<Arc<LoadedRevision>> {
        let all = self.all();
        let number = generation.number();
        let of_number = all.iter().filter(|it| it.generation.number() == number);
        let found = of_number.max_by_key(|it| Arc::ptr_eq(&it.generation, generation));
        found.cloned()
    }

    /// Drops all others.
    pub(super) fn keep(&self, is_used: impl Fn(&str, u64) -> bool) {
        self.all().retain(|it| is_used(&it.name, it.spec.number));
    }

    fn generations(&self) -> Vec<Arc<Generation>> {
        self.all().iter().map(|it| it.generation.clone()).collect()
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<LoadedRevision>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a revision is not loaded.
#[derive(Clone, Debug)]
pub(super) enum LoadError {
    /// A retry may succeed.
    Retry {
        after: Option<Duration>,
        /// By plugin.
        messages: BTreeMap<String, String>,
    },
    /// A retry does not help.
    Refused(Vec<Refusal>),
}

impl LoadError {
    /// Returns the reason in one sentence.
    pub(super) fn sentence(&self) -> String {
        let sentences: Vec<_> = match self {
            Self::Retry { messages, .. } => {
                let each = messages.iter();
                each.map(|(plugin, message)| format!("plugin {plugin}: {message}"))
                    .collect()
            }
            Self::Refused(refusals) => {
                let each = refusals.iter();
                let sentence = |it: &Refusal| {
                    format!("plugin {}: {}", it.plugins.join(", "), it.problem.message)
                };
                each.map(sentence).collect()
            }
        };
        sentences.join("; ")
    }
}

impl Plugins {
    /// Loads the plugins of a revision; those that were loaded are not loaded again. With `may_skip`, a follower skips plugins whose content
    /// is not available now.
    pub(super) async fn load(
        &self,
        spec: &PluginRevisionSpec,
        mode: Mode,
        may_skip: bool,
    ) -> Result<Arc<LoadedRevision>, LoadError> {
        let name = spec.name();
        if let Some(loaded) = self.loaded.get(&name) {
            return Ok(loaded);
        }
        let set = join_all(spec.plugins.iter().map(|plugin| self.fetch(plugin, mode))).await;
        check(&set, mode, may_skip)?;
        let mut reuse = self.loaded.generations();
        reuse.extend(self.parts.generations.held().all().cloned());
        let signers = set.iter().filter_map(|it| {
            let signer = it.content.as_ref().ok()?.signer.clone()?;
            Some((it.plugin.name.clone(), signer))
        });
        let signers = signers.collect();
        let unavailable: BTreeMap<_, _> = set
            .iter()
            .filter_map(|it| {
                let error = it.content.as_ref().err()?;
                Some((it.plugin.name.clone(), error.message().to_owned()))
            })
            .collect();
        let (loader, host) = (
            self.parts.program.loader.clone(),
            self.parts.generations.host_facts().clone(),
        );
        let loaded = on_thread(move || loader.load(&set, mode, &reuse, &host)).await;
        let LoadedPlugins { renderer, warnings } = loaded?.map_err(LoadError::Refused)?;
        let skipped = spec.plugins.iter().filter_map(|plugin| {
            let skipped = skipped(&renderer, &plugin.name);
            if plugin.settings.disabled
                || skipped.is_some_and(|it| it.is_disabled)
                || renderer.generation().plugin(&plugin.name).is_some()
            {
                return None;
            }
            let why = unavailable.get(&plugin.name).cloned();
            let why = why.or_else(|| Some(skipped?.why.clone()));
            let why = why.unwrap_or_else(|| "this release cannot load it".to_owned());
            Some((plugin.name.clone(), why))
        });
        let skipped: BTreeMap<_, _> = skipped.collect();
        // Without a change, what is held stays, so that nothing follows it in vain.
        let known = self.loaded.any(&name);
        if let Some(known) = known.filter(|known| known.skipped == skipped) {
            return Ok(known);
        }
        let revision = Arc::new(LoadedRevision {
            name,
            spec: spec.clone(),
            signers,
            skipped,
            warnings,
            generation: self
                .parts
                .generations
                .generation((spec.number, &spec.hash()), renderer),
        });
        for (plugin, messages) in &revision.warnings {
            let warnings = messages.join("; ");
            tracing::warn!(plugin, warnings, "a plugin is loaded with warnings");
        }
        self.loaded.put(revision.clone());
        Ok(revision)
    }

    /// Returns why a built-in plugin is used in the place of a plugin.
    pub(super) fn built_in_instead(&self, plugin: &ResolvedPlugin) -> Option<String> {
        self.parts.program.loader.built_in_instead(plugin)
    }

    /// Fetches the content of a plugin, unless it is disabled or a built-in plugin is used in its place.
    async fn fetch(&self, plugin: &ResolvedPlugin, mode: Mode) -> FetchedPlugin {
        let needs_none = plugin.settings.disabled
            || matches!(plugin.origin, Origin::BuiltIn(_))
            || self.built_in_instead(plugin).is_some();
        let content = match needs_none {
            true => Ok(Verified::default()),
            false => content(&*self.parts.program.source, plugin, mode).await,
        };
        FetchedPlugin {
            plugin: plugin.clone(),
            content,
        }
    }
}

/// Fetches the content of a plugin. Nothing waits for a candidate, but what is in use must not wait for a slow registry.
async fn content(
    source: &dyn PluginSource,
    plugin: &ResolvedPlugin,
    mode: Mode,
) -> Result<Verified, SourceError> {
    let too_slow = |_| SourceError::Retry {
        after: None,
        message: format!("its registry has not sent it within {FETCH_LIMIT:?}; retrying"),
    };
    match mode {
        Mode::Strict => source.fetch(plugin).await,
        Mode::Lenient => timeout(FETCH_LIMIT, source.fetch(plugin))
            .await
            .map_err(too_slow)
            .flatten(),
    }
}

/// Fails if the set cannot be loaded in this mode.
fn check(set: &[FetchedPlugin], mode: Mode, may_skip: bool) -> Result<(), LoadError> {
    let (mut messages, mut refusals, mut wait) = (BTreeMap::new(), Vec::new(), None);
    for FetchedPlugin { plugin, content } in set {
        match content {
            Ok(_) => {}
            Err(SourceError::Retry { after, message }) => {
                wait = wait.max(*after);
                messages.insert(plugin.name.clone(), message.clone());
            }
            Err(SourceError::Refused(problem)) => refusals.push(Refusal {
                plugins: vec![plugin.name.clone()],
                problem: problem.clone(),
            }),
        }
    }
    if mode == Mode::Strict && !refusals.is_empty() {
        return Err(LoadError::Refused(refusals));
    }
    if !messages.is_empty() && !may_skip {
        return Err(LoadError::Retry {
            after: wait,
            messages,
        });
    }
    Ok(())
}

/// Runs a task that may take minutes on a thread of its own.
async fn on_thread<T: Send + 'static>(
    task: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LoadError> {
    let (result, loaded) = oneshot::channel();
    // The receiver is gone if nobody waits any more.
    let task = move || drop(result.send(task()));
    let failed = |problem: String| {
        LoadError::Refused(vec![Refusal {
            plugins: Vec::new(),
            problem: Problem {
                condition: PluginCondition::Loaded,
                reason: "InternalError".to_owned(),
                message: problem,
            },
        }])
    };
    let thread = std::thread::Builder::new().name("load-plugins".to_owned());
    if let Err(error) = thread.spawn(task) {
        return Err(failed(format!(
            "no thread can be started to load the plugins: {error}"
        )));
    }
    let panicked =
        |_| failed("loading the plugins panicked; this is a bug in Trainyard".to_owned());
    loaded.await.map_err(panicked)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{collections::BTreeSet, future::pending};

    use futures_util::future::BoxFuture;
    use serde_json::json;
    use tokio::time::Instant;
    use trainyard_config::policy_plugin::Source;

    use super::*;
    use crate::plugins::Pinned;

    /// A registry that takes so long to answer, or never does.
    struct Slow(Option<Duration>);

    impl PluginSource for Slow {
        fn pin<'a>(
            &'a self,
            _: &'a str,
            _: &'a Source,
        ) -> BoxFuture<'a, Result<Pinned, SourceError>> {
            Box::pin(pending())
        }

        fn fetch<'a>(
            &'a self,
            _: &'a ResolvedPlugin,
        ) -> BoxFuture<'a, Result<Verified, SourceError>> {
            Box::pin(async {
                match self.0 {
                    Some(time) => tokio::time::sleep(time).await,
                    None => pending().await,
                }
                Ok(Verified::default())
            })
        }

        fn keep(&self, _: &BTreeSet<String>) {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_registry_delays_a_candidate_and_not_what_is_in_use() {
        let seconds = Duration::from_secs;
        let origin = json!({"file": {"name": "a.wasm", "digest": "sha256:0"}});
        let file = json!({"name": "a", "generation": 1, "origin": origin, "settings": {}});
        let file = serde_json::from_value(file).unwrap();
        for (takes, mode, is_fetched, after) in [
            (Some(seconds(29)), Mode::Lenient, true, seconds(29)),
            (Some(seconds(31)), Mode::Lenient, false, seconds(30)),
            (None, Mode::Lenient, false, seconds(30)),
            (Some(seconds(3_600)), Mode::Strict, true, seconds(3_600)),
        ] {
            let started = Instant::now();
            let fetched = content(&Slow(takes), &file, mode).await;
            assert_eq!((fetched.is_ok(), started.elapsed()), (is_fetched, after));
            if let Err(error) = fetched {
                assert!(matches!(&error, SourceError::Retry { .. }));
                assert!(error.message().contains("30s"), "{error:?}");
            }
        }
    }
}
