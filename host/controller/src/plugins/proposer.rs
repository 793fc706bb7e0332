//! PolicyPlugins become a revision.

use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures_util::future::join_all;
use trainyard_config::policy_plugin::{
    BuiltInOrigin, Origin, PluginRevisionSpec, PolicyPlugin, ResolvedPlugin, Source,
};

use super::{
    Leader, Mode, Pinned, PluginCondition, Problem, SourceError,
    follower::backoff,
    loading::LoadError,
    objects::PolicyPluginState,
    rollout::{Proposal, proposal, running},
};
use crate::kubernetes::code;

/// How long PolicyPlugins have to stay the same before they become a revision, and the longest wait for that. Several are usually applied
/// together.
const SETTLES: Duration = Duration::from_secs(5);
const LONGEST_SETTLING: Duration = Duration::from_secs(30);

/// How often tags that are followed, and files, are read again; and how much more it may be, so that clusters do not ask at the same time.
const FOLLOWS: Duration = Duration::from_secs(270);
const JITTER: Duration = Duration::from_secs(60);

/// What became of the PolicyPlugins when they were considered last.
#[derive(Default)]
pub(super) struct Proposed {
    /// The digest of the plugins that they ask for.
    pub(super) wanted: Option<String>,
    /// The generations of the objects that were considered.
    pub(super) generations: BTreeMap<String, i64>,
    /// What is wrong, by plugin.
    pub(super) problems: BTreeMap<String, Problem>,
    /// What is waited for, by plugin.
    pub(super) waiting: BTreeMap<String, String>,
    /// The plugins as they were resolved.
    pub(super) resolved: BTreeMap<String, ResolvedPlugin>,
    pub(super) signers: BTreeMap<String, String>,
    /// What is worth knowing of a plugin that was resolved, such as that its tag was moved to an older version.
    pub(super) notes: BTreeMap<String, String>,
    /// Whether all plugins were loaded together, even if permissions are missing.
    pub(super) is_loaded: bool,
    /// Whether permissions are missing, which an administrator may add at any time.
    lacks_permissions: bool,
    /// Whether the revision could not be created.
    not_created: bool,
    /// The revision with these plugins that was rolled back or refused before.
    pub(super) blocked: Option<String>,
}

impl Proposed {
    /// Whether a retry may help.
    pub(super) fn is_waiting(&self) -> bool {
        self.not_created || self.lacks_permissions || !self.waiting.is_empty()
    }
}

/// The sources that were resolved, so that a change of one PolicyPlugin asks no registry about the others.
#[derive(Default)]
pub(super) struct PinCache {
    pins: HashMap<(Box<str>, i64), Pinned>,
    /// When sources that may change are resolved again.
    renews: Option<SystemTime>,
    /// How often resolving has failed in a row.
    failed: u32,
}

/// What identifies the PolicyPlugins, whether a revision runs, and the revisions that are to be tried again.
type Inputs = (Vec<(Arc<str>, Box<str>, i64)>, bool, Vec<u64>);

impl Leader {
    /// Makes revisions from the PolicyPlugins.
    pub(super) async fn propose(&self) -> Infallible {
        let plugins = &self.plugins;
        let mut changes = plugins.changes.subscribe();
        let mut considered: Option<Inputs> = None;
        let mut retry: Option<SystemTime> = None;
        loop {
            changes.borrow_and_update();
            let inputs = self.inputs();
            let is_due = retry.is_some_and(|retry| plugins.clock.now() >= retry);
            let is_known = considered.as_ref() == Some(&inputs);
            if !plugins.are_policies_known() || is_known && !is_due {
                plugins.change_or(&mut changes, retry).await;
                continue;
            }
            // What was there before this process led has settled.
            if considered.is_some() && !is_known {
                self.settle(&mut changes).await;
            }
            considered = Some(self.inputs());
            retry = self.consider().await;
            plugins.changed();
        }
    }

    fn inputs(&self) -> Inputs {
        let all = self.plugins.policies.objects().into_iter();
        let all = all.map(|(name, state)| (name.0, state.uid.clone(), state.generation));
        let mut all: Vec<_> = all.collect();
        all.sort();
        let revisions = self.plugins.facts();
        let asked = revisions.iter().filter(|it| it.asked.retry);
        let asked = asked.map(|it| it.number).collect();
        (all, running(&revisions).is_some(), asked)
    }

    /// Waits until the PolicyPlugins stay the same.
    async fn settle(&self, changes: &mut tokio::sync::watch::Receiver<()>) {
        let plugins = &self.plugins;
        let end = plugins.after(LONGEST_SETTLING);
        let (mut inputs, mut until) = (self.inputs(), plugins.after(SETTLES));
        while plugins.clock.now() < until.min(end) {
            plugins.change_or(changes, Some(until.min(end))).await;
            let now = self.inputs();
            if now != inputs {
                (inputs, until) = (now, plugins.after(SETTLES));
            }
        }
    }

    /// Considers the PolicyPlugins: resolves them, and creates a revision if they can be loaded and differ from the newest one. Returns when
    /// to consider them again.
    pub(super) async fn consider(&self) -> Option<SystemTime> {
        let plugins = &self.plugins;
        if !plugins.are_policies_known() {
            return None;
        }
        let mut policies = plugins.policies.objects();
        policies.sort_by(|a, b| a.0.cmp(&b.0));
        let policies: Vec<_> = policies.into_iter().map(|(name, state)| (name.0, state)).collect();
        let mut proposed = Proposed {
            generations: policies
                .iter()
                .map(|(name, state)| (name.to_string(), state.generation))
                .collect(),
            ..Proposed::default()
        };
        let mut wait = self.resolve(&policies, &mut proposed).await;
        if proposed.problems.is_empty() && proposed.waiting.is_empty() {
            let again = self.decide(&mut proposed).await;
            wait = wait.max(again);
        }
        let failed = {
            let mut before = self.proposed();
            // What was asked for before stays in the rollout.
            proposed.wanted = proposed.wanted.or(before.wanted.take());
            let is_waiting = proposed.is_waiting();
            *before = proposed;
            is_waiting
        };
        let mut pins = self.pins.lock().await;
        let renews = pins.renews;
        match failed {
            true => {
                pins.failed = pins.failed.saturating_add(1);
                let wait = wait.unwrap_or_else(|| backoff(pins.failed));
                let retry = plugins.after(wait);
                Some(renews.map_or(retry, |renews| renews.min(retry)))
            }
            false => {
                pins.failed = 0;
                renews
            }
        }
    }

    /// Resolves all PolicyPlugins. Returns how long a registry asks to wait.
    async fn resolve(
        &self,
        policies: &[(Arc<str>, Arc<PolicyPluginState>)],
        proposed: &mut Proposed,
    ) -> Option<Duration> {
        let plugins = &self.plugins;
        let mut pins = self.pins.lock().await;
        let now = plugins.clock.now();
        let renew = pins.renews.is_none_or(|renews| now >= renews);
        let may_change = |state: &PolicyPluginState| {
            let source = state.object.as_ref().ok().and_then(|it| it.spec.source.as_ref());
            source.is_some_and(|source| match source {
                Source::Oci(oci) => oci.follow,
                Source::File(_) => true,
            })
        };
        let key = |state: &PolicyPluginState| (state.uid.clone(), state.generation);
        if renew {
            let changing = policies.iter().filter(|(_, state)| may_change(state));
            let changing: Vec<_> = changing.map(|(_, state)| key(state)).collect();
            pins.pins.retain(|pin, _| !changing.contains(pin));
            let jitter = JITTER.mul_f64(fastrand::f64());
            pins.renews = (!changing.is_empty()).then(|| plugins.after(FOLLOWS + jitter));
        }
        let known: Vec<_> = policies.iter().map(|(_, state)| key(state)).collect();
        pins.pins.retain(|pin, _| known.contains(pin));
        let pinned = join_all(policies.iter().map(|(name, state)| {
            let pin = pins.pins.get(&key(state)).cloned();
            async move {
                let policy = match &state.object {
                    Ok(policy) => policy.clone(),
                    Err(problem) => return (name, state, Err(invalid(problem))),
                };
                let pinned = match (&policy.spec.source, pin) {
                    (None, _) => Ok(None),
                    (Some(_), Some(pin)) => Ok(Some(pin)),
                    (Some(source), None) => plugins.program.source.pin(name, source).await.map(Some),
                };
                (name, state, pinned.map(|pinned| (policy, pinned)))
            }
        }))
        .await;
        let mut wait = None;
        for (name, state, pinned) in pinned {
            match pinned {
                Ok((policy, pinned)) => {
                    if let Some(pinned) = &pinned {
                        pins.pins.insert(key(state), pinned.clone());
                    }
                    self.note_pinned(&policy, pinned, proposed);
                }
                Err(SourceError::Retry { after, message }) => {
                    wait = wait.max(after);
                    proposed.waiting.insert(name.to_string(), message);
                }
                Err(SourceError::Refused(problem)) => {
                    proposed.problems.insert(name.to_string(), problem);
                }
            }
        }
        wait
    }

    fn note_pinned(&self, policy: &PolicyPlugin, pinned: Option<Pinned>, proposed: &mut Proposed) {
        let name = policy.name.clone();
        let mut resolved = ResolvedPlugin {
            name: name.clone(),
            generation: policy.generation,
            origin: Origin::BuiltIn(BuiltInOrigin {}),
            version: None,
            digest: None,
            active_when: None,
            settings: policy.spec.without_source(),
        };
        if let Some(pinned) = pinned {
            if let Some(signer) = pinned.signer {
                proposed.signers.insert(name.clone(), signer);
            }
            resolved = ResolvedPlugin {
                origin: pinned.origin,
                version: Some(pinned.version),
                digest: Some(pinned.digest),
                active_when: Some(pinned.active_when),
                ..resolved
            };
        }
        let follows = match &policy.spec.source {
            Some(Source::Oci(oci)) => oci.follow,
            _ => false,
        };
        let newest = self.newest(&name).filter(|newest| follows && is_not_older(newest, &resolved));
        if let Some(newest) = newest {
            let version = |plugin: &ResolvedPlugin| plugin.version.clone().unwrap_or_default();
            proposed.notes.insert(
                name.clone(),
                format!(
                    "the tag was moved to version {} with another digest, which is not newer than {}; it is not followed, so push a newer version, or write its digest into the reference",
                    version(&resolved),
                    version(&newest)
                ),
            );
            resolved = ResolvedPlugin {
                generation: resolved.generation,
                settings: resolved.settings,
                ..newest
            };
        }
        proposed.resolved.insert(name, resolved);
    }

    /// Returns a plugin as the newest revision has it.
    fn newest(&self, name: &str) -> Option<ResolvedPlugin> {
        let newest = self.plugins.facts().pop()?;
        let state = self.plugins.revision(&newest.name)?;
        let spec = state.spec.as_ref().ok()?;
        spec.plugins.iter().find(|plugin| plugin.name == name).cloned()
    }

    /// Creates a revision of the resolved plugins, if there is none yet and they can be loaded. Returns how long to wait if they cannot be
    /// loaded now.
    async fn decide(&self, proposed: &mut Proposed) -> Option<Duration> {
        let plugins = &self.plugins;
        let facts = plugins.facts();
        let resolved: Vec<_> = proposed.resolved.values().cloned().collect();
        if facts.is_empty() && resolved.is_empty() {
            return None;
        }
        let mut spec = PluginRevisionSpec::new(1, resolved);
        let hash = spec.hash();
        let used = u64::try_from(plugins.generations.held().running.number()).unwrap_or(0);
        match proposal(&facts, &hash, used) {
            Proposal::Nothing => proposed.wanted = Some(hash),
            Proposal::Blocked(number) => {
                let blocked = facts.iter().find(|it| it.number == number);
                proposed.blocked = blocked.map(|it| it.name.clone());
                proposed.wanted = Some(hash);
            }
            Proposal::Create(number) => {
                spec.number = number;
                match plugins.load(&spec, Mode::Strict, false).await {
                    Ok(loaded) => {
                        proposed.is_loaded = true;
                        let missing = plugins.missing_permissions(&spec, &loaded).await;
                        if !missing.is_empty() {
                            proposed.problems.extend(missing);
                            proposed.lacks_permissions = true;
                            return None;
                        }
                        // Known before the revision is, so that the revision does not count as one that nobody asks for.
                        self.proposed().wanted = Some(hash.clone());
                        proposed.wanted = Some(hash);
                        self.create(&spec, proposed).await;
                    }
                    Err(LoadError::Retry { after, messages }) => {
                        proposed.waiting.extend(messages);
                        return after;
                    }
                    Err(LoadError::Refused(refusals)) => {
                        for refusal in refusals {
                            let all = || proposed.resolved.keys().cloned().collect();
                            let names = match refusal.plugins.is_empty() {
                                true => all(),
                                false => refusal.plugins,
                            };
                            for name in names {
                                proposed.problems.entry(name).or_insert_with(|| refusal.problem.clone());
                            }
                        }
                    }
                }
            }
        }
        None
    }
}

impl Leader {
    async fn create(&self, spec: &PluginRevisionSpec, proposed: &mut Proposed) {
        let revision = spec.name();
        match self.plugins.create(spec).await {
            Ok(()) => tracing::info!(revision, plugins = spec.plugins.len(), "a PluginRevision is created"),
            // It was created by an earlier attempt, whose answer was lost.
            Err(error) if code(&error) == Some(409) => {}
            Err(error) => {
                tracing::warn!(revision, %error, "a PluginRevision cannot be created; retrying");
                proposed.not_created = true;
            }
        }
    }
}

fn invalid(problem: &str) -> SourceError {
    SourceError::Refused(Problem {
        condition: PluginCondition::Loaded,
        reason: "Invalid".to_owned(),
        message: problem.to_owned(),
    })
}

/// Whether a tag was moved to other content that is not newer than that of the newest revision.
fn is_not_older(newest: &ResolvedPlugin, resolved: &ResolvedPlugin) -> bool {
    let version = |plugin: &ResolvedPlugin| plugin.version.as_ref()?.parse::<semver::Version>().ok();
    newest.digest != resolved.digest
        && newest.digest.is_some()
        && version(newest)
            .zip(version(resolved))
            .is_none_or(|(newest, resolved)| resolved <= newest)
}
