//! The plugins that PolicyPlugins of the cluster declare.
//!
//! The leader resolves the PolicyPlugins to digests and loads them together; if that succeeds, it creates a PluginRevision, which is immutable
//! (`resolver`, `proposer`). It brings the revision from stage to stage (`roller`), by the decisions of [`rollout`], after a `comparison` of how
//! TrainJobs and runtimes are rendered, checks which TrainJobs of a share fail (`share`), restores a revision that was deleted (`restore`), and writes the `status` of the PolicyPlugins. Every
//! replica loads the revisions that are in use (`follower`), and keeps what it has if it cannot.
//!
//! `permitted` asks the API server whether the controller may do what plugins need. `audit` tells about it. `objects` has what is kept of both
//! kinds, `calls` the calls that write them, and `boundary` the traits by which the program brings the content of plugins. `loading` loads a
//! revision, `memory` has what the leader remembers, `difference` says what two revisions do not have in common, and `page` shows comparisons.
//! `retry` has the pauses before something is tried again, and `words` texts of a status.

mod audit;
mod boundary;
mod calls;
mod comparison;
mod difference;
mod follower;
mod leader;
mod loading;
mod memory;
mod objects;
mod page;
mod permitted;
mod proposer;
mod resolver;
mod restore;
mod retry;
mod roller;
pub(crate) mod rollout;
mod share;
mod status;
mod words;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

pub use boundary::{
    ClusterPlugins, FetchedPlugin, LoadedPlugins, Mode, Pinned, PluginCondition, PluginLoader,
    PluginSource, Problem, Refusal, SourceError, Verified, is_newer,
};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
pub(crate) use leader::Leader;
pub use leader::NotLeading;
use tokio::sync::watch;
use trainyard_config::policy_plugin::{PLUGIN_REVISION, POLICY_PLUGIN, Stage};

use self::{
    follower::NamedRevision,
    loading::Loaded,
    objects::{ObjectName, PolicyPluginObject, PolicyPluginState, RevisionObject, RevisionState},
    page::Page,
    rollout::RevisionFacts,
};
use crate::{
    certificate::Clock,
    declared::RolloutSettings,
    events::Recorder,
    generation::Generations,
    metrics::Metrics,
    serve::Readiness,
    watch::{Change, Decode, Follower, Health, StateReplaced, Store, follow},
};

/// The part of the readiness that needs the revisions in use.
pub(crate) const REVISIONS_HELD: &str = PLUGIN_REVISION;

/// What the parts of this module share.
pub(crate) struct Plugins {
    parts: Parts,
    policies: Store<ObjectName, PolicyPluginState>,
    revisions: Store<ObjectName, RevisionState>,
    are_policies_served: AtomicBool,
    /// Whether this process is the leader.
    leads: AtomicBool,
    loaded: Loaded,
    page: Mutex<Page>,
    /// Held while the revisions in use are loaded.
    holding: tokio::sync::Mutex<()>,
    /// Notified of every change of the objects and of what is held.
    changes: watch::Sender<()>,
}

/// What [`Plugins`] gets from the process.
pub(crate) struct Parts {
    pub(crate) client: Client,
    pub(crate) program: ClusterPlugins,
    pub(crate) generations: Arc<Generations>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The name of this process in the status of revisions.
    pub(crate) pod: String,
    pub(crate) settings: RolloutSettings,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) readiness: Arc<Readiness>,
}

impl Plugins {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            parts,
            policies: Store::default(),
            revisions: Store::default(),
            are_policies_served: AtomicBool::new(true),
            leads: AtomicBool::new(false),
            loaded: Loaded::default(),
            page: Mutex::default(),
            holding: tokio::sync::Mutex::default(),
            changes: watch::Sender::new(()),
        }
    }

    /// Watches both kinds until the state of the API server is replaced by an older one.
    pub(crate) async fn watch(&self) -> StateReplaced {
        let policies = Watcher {
            plugins: self,
            kind: POLICY_PLUGIN,
            store: &self.policies,
            is_same: PolicyPluginState::is_as,
            updated: Self::resume_if_asked,
        };
        let revisions = Watcher {
            plugins: self,
            kind: PLUGIN_REVISION,
            store: &self.revisions,
            is_same: |_, _| false,
            updated: |_, _, _, _| {},
        };
        tokio::select! {
            replaced = follow::<PolicyPluginObject>(&self.parts.client, &self.policies, &policies) => replaced,
            replaced = follow::<RevisionObject>(&self.parts.client, &self.revisions, &revisions) => replaced,
        }
    }

    /// Calls a plugin again that is paused, if somebody asks for it. Every replica does, because each has its own breakers.
    fn resume_if_asked(
        &self,
        plugin: &ObjectName,
        before: &PolicyPluginState,
        after: &PolicyPluginState,
    ) {
        if after.asks_again(before) && self.parts.metrics.breakers().resume(&plugin.0) {
            tracing::info!(
                plugin = &*plugin.0,
                "the plugin is no longer paused, because of the annotation trainyard.dev/retry"
            );
        }
    }

    /// Returns the page.
    pub(crate) fn page(&self) -> String {
        let page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        page.text(&self.facts())
    }

    /// Returns the revisions that can be read, the oldest first.
    fn facts(&self) -> Vec<RevisionFacts> {
        let all = self.readable().into_iter();
        all.filter_map(|(name, state, _)| state.facts(&name))
            .collect()
    }

    /// Returns the revisions that can be read, the oldest first.
    fn readable(&self) -> Vec<NamedRevision> {
        let all = self.revisions.objects().into_iter();
        let named = |(name, state): (ObjectName, Arc<RevisionState>)| {
            let spec = state.spec.as_ref().ok()?.clone();
            Some((name.0, state, spec))
        };
        one_of_each_number(all.filter_map(named).collect())
    }

    /// Returns a revision by its name.
    fn revision(&self, name: &str) -> Option<Arc<RevisionState>> {
        self.revisions.get(&ObjectName(name.into()))
    }

    /// Whether all PolicyPlugins are known. If their CRD is removed, all of them are deleted, which nobody asked for.
    fn are_policies_known(&self) -> bool {
        self.policies.is_synced()
            && self.are_policies_served.load(Ordering::SeqCst)
            && self.policies.count_unreadable() == 0
    }

    fn changed(&self) {
        self.changes.send_replace(());
    }

    fn now(&self) -> Timestamp {
        Timestamp::try_from(self.parts.clock.now()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Waits until something changes, or the time comes.
    async fn change_or(&self, changes: &mut watch::Receiver<()>, until: Option<SystemTime>) {
        let time = async {
            match until {
                None => std::future::pending().await,
                Some(until) => {
                    while self.parts.clock.now() < until {
                        self.parts.clock.sleep_until(until).await;
                    }
                }
            }
        };
        tokio::select! {
            // The sender lives as long as this.
            _ = changes.changed() => {}
            () = time => {}
        }
    }

    fn after(&self, wait: Duration) -> SystemTime {
        let now = self.parts.clock.now();
        now.checked_add(wait).unwrap_or(now)
    }
}

/// Returns the revisions, the oldest first. Nobody but a controller creates one, and a number is used once, unless the call of an earlier leader is
/// late. Then the one that runs is kept, or one with a stage, and every replica keeps the same one.
fn one_of_each_number(mut all: Vec<NamedRevision>) -> Vec<NamedRevision> {
    let rank = |state: &RevisionState| match state.stage() {
        Some(Stage::Running) => 0,
        Some(_) => 1,
        None => 2,
    };
    all.sort_by_cached_key(|(name, state, spec)| (spec.number, rank(state), name.clone()));
    all.dedup_by_key(|(_, _, spec)| spec.number);
    all
}

/// Returns a time as the API server has it, in seconds.
fn written(time: Timestamp) -> String {
    let seconds = Timestamp::from_second(time.as_second());
    seconds.unwrap_or(time).to_string()
}

/// A follower of one of the watches.
struct Watcher<'w, S> {
    plugins: &'w Plugins,
    kind: &'static str,
    store: &'w Store<ObjectName, S>,
    /// Whether nothing depends on what differs in two states of an object.
    is_same: fn(&S, &S) -> bool,
    /// Acts on an update.
    updated: fn(&Plugins, &ObjectName, &S, &S),
}

impl<W> Follower<W> for Watcher<'_, W::State>
where
    W: Decode<Key = ObjectName>,
{
    fn heard(&self) {
        self.plugins.parts.metrics.watch_heard(self.kind);
    }

    fn health(&self, health: Health) {
        if self.kind == POLICY_PLUGIN {
            let is_served = !matches!(health, Health::NotServed(_));
            self.plugins
                .are_policies_served
                .store(is_served, Ordering::SeqCst);
        }
        match health {
            Health::Working => self.plugins.changed(),
            // What is held stays.
            Health::NotServed(why) | Health::Lost(why) if !self.store.is_synced() => {
                self.plugins
                    .parts
                    .readiness
                    .note_missing(REVISIONS_HELD, why);
            }
            Health::NotServed(_) | Health::Lost(_) => {}
        }
    }

    fn changed(&self, name: &ObjectName, change: Change<W::State>) {
        let unreadable = self.store.count_unreadable();
        self.plugins
            .parts
            .metrics
            .set_unreadable(self.kind, unreadable);
        if let Change::Updated { before, after } = &change {
            (self.updated)(self.plugins, name, before, after);
        }
        let is_same =
            matches!(&change, Change::Updated { before, after } if (self.is_same)(before, after));
        if !is_same {
            self.plugins.changed();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use serde_json::json;
    use trainyard_config::policy_plugin::PluginRevisionSpec;

    use super::{objects::revision_object, *};

    /// A revision with a plugin of this name, whose hash depends on it.
    fn revision(plugin: &str, number: u64, stage: Option<&str>) -> NamedRevision {
        let plugin = json!({"name": plugin, "origin": {"builtIn": {}}});
        let spec = json!({"format": 1, "number": number, "plugins": [plugin]});
        let spec: PluginRevisionSpec = serde_json::from_value(spec).unwrap();
        let mut object = revision_object(&spec, false);
        if let Some(stage) = stage {
            object["status"] = json!({"stage": stage});
        }
        let state = RevisionObject::decode(&object.to_string(), 1).unwrap();
        let spec = state.spec.as_ref().unwrap().clone();
        (spec.name().into(), Arc::new(state), spec)
    }

    #[test]
    fn a_late_revision_does_not_hide_the_one_that_runs_under_its_number() {
        for (stage, of_late) in [
            (Some("Running"), Some("Shadow")),
            (Some("Running"), None),
            (Some("Previous"), None),
        ] {
            // Whichever name is first.
            for (one, other) in [("a", "b"), ("b", "a")] {
                let older = revision("c", 1, Some("Previous"));
                let kept = revision(one, 2, stage);
                let wanted = [older.0.clone(), kept.0.clone()];
                let late = revision(other, 2, of_late);
                let found = one_of_each_number(vec![late, kept, older]);
                let found: Vec<_> = found.into_iter().map(|it| it.0).collect();
                assert_eq!(found, wanted, "{stage:?} {of_late:?}");
            }
        }
    }
}
