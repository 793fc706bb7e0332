//! The status of PolicyPlugins.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use k8s_openapi::jiff::Timestamp;
use trainyard_config::policy_plugin::{
    Condition, ConditionStatus, DigestCount, MAX_DIGESTS, MAX_LINES, Origin, PluginRevisionSpec, PolicyPluginStatus,
    ReplicaCount, ResolvedPlugin, Stage, TrainJobCount,
};
use trainyard_model::text::clean_to;

use super::{
    Leader, PluginCondition, Problem,
    comparison::is_same,
    loading::LoadedRevision,
    objects::{PolicyPluginState, RevisionState},
    proposer::Proposed,
    rollout::{RevisionFacts, running},
};

/// How often TrainJobs are counted. Each change of a count is a write.
const COUNTS: Duration = Duration::from_secs(30);

/// The most characters of a message.
const MESSAGE: usize = 4_096;

/// A revision with everything that is known of it.
pub(super) struct KnownRevision {
    pub(super) facts: RevisionFacts,
    pub(super) state: Arc<RevisionState>,
    pub(super) spec: Arc<PluginRevisionSpec>,
    pub(super) loaded: Option<Arc<LoadedRevision>>,
}

/// What the status of all PolicyPlugins follows from.
pub(super) struct StatusFacts<'f> {
    pub(super) now: Timestamp,
    pub(super) proposed: &'f Proposed,
    /// The revisions that can be read, the oldest first.
    pub(super) revisions: &'f [KnownRevision],
    /// The number of the running revision.
    pub(super) running: Option<u64>,
    /// How many TrainJobs use each plugin, if they were counted now.
    pub(super) train_jobs: Option<&'f BTreeMap<String, TrainJobCount>>,
}

impl Leader {
    /// Writes the status of all PolicyPlugins that is not as it should be.
    pub(super) async fn write_statuses(&self) {
        let plugins = &self.plugins;
        let facts = plugins.facts();
        let number = running(&facts).map(|it| it.number);
        let known = facts.into_iter().filter_map(|facts| {
            let state = plugins.revision(&facts.name)?;
            let spec = state.spec.as_ref().ok()?.clone();
            let loaded = plugins.loaded.any(&facts.name);
            Some(KnownRevision {
                facts,
                state,
                spec,
                loaded,
            })
        });
        let revisions: Vec<_> = known.collect();
        let train_jobs = self.count_train_jobs();
        let (mut changed, mut inactive) = (Vec::new(), Vec::new());
        {
            let proposed = self.proposed();
            let facts = StatusFacts {
                now: plugins.now(),
                proposed: &proposed,
                revisions: &revisions,
                running: number,
                train_jobs: train_jobs.as_ref(),
            };
            for (name, state) in plugins.policies.objects() {
                // It was created after they were considered.
                if !proposed.generations.contains_key(&*name.0) {
                    continue;
                }
                let status = status(&name.0, &state, &facts);
                inactive.extend(inactive_reason(&status).map(|reason| (name.0.clone(), reason)));
                if status != state.status {
                    changed.push((name.0.clone(), status));
                }
            }
        }
        let inactive = inactive.iter().map(|(name, reason)| (&**name, &**reason));
        plugins.metrics.set_inactive_policies(inactive);
        for (name, status) in changed {
            if let Err(error) = plugins.write_policy_status(&name, &status).await {
                tracing::warn!(plugin = &*name, %error, "the status of a PolicyPlugin cannot be written; it is written with the next change");
            }
        }
    }
}

impl Leader {
    /// Counts the TrainJobs that use each plugin, if that is due.
    fn count_train_jobs(&self) -> Option<BTreeMap<String, TrainJobCount>> {
        let plugins = &self.plugins;
        let now = plugins.clock.now();
        {
            let mut due = self.counts_due();
            if due.is_some_and(|due| now < due) {
                return None;
            }
            *due = Some(plugins.after(COUNTS));
        }
        let job_sets = self.work.stores.job_sets.objects();
        let live = job_sets.iter().filter(|(_, it)| it.end.is_none() && !it.deleting);
        let noted: Vec<_> = live.map(|(_, it)| it.plugins.as_deref()).collect();
        let names = plugins.policies.keys().into_iter();
        let names = names.map(|name| name.0.to_string());
        Some(train_jobs(names, &noted))
    }

    fn counts_due(&self) -> MutexGuard<'_, Option<SystemTime>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts the TrainJobs that use each plugin, by the notes of their JobSets.
fn train_jobs(
    names: impl Iterator<Item = String>,
    noted: &[Option<&str>],
) -> BTreeMap<String, TrainJobCount> {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let mut by_plugin: HashMap<&str, HashMap<&str, usize>> = HashMap::new();
    for plugins in noted.iter().flatten() {
        for (plugin, digits) in plugins.split(',').filter_map(|it| it.split_once('@')) {
            let digests = by_plugin.entry(plugin).or_default();
            *digests.entry(digits).or_default() += 1;
        }
    }
    let without = noted.iter().filter(|it| it.is_none()).count();
    let count = |name: String| {
        let digests = by_plugin.get(&*name).into_iter().flatten();
        let mut digests: Vec<_> = digests.map(|(digest, count)| (*count, *digest)).collect();
        digests.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        let total = digests.iter().map(|(count, _)| count).sum();
        let further = digests.iter().skip(MAX_DIGESTS).map(|(count, _)| count);
        let unknown = without + further.sum::<usize>();
        digests.truncate(MAX_DIGESTS);
        let digests = digests.into_iter().map(|(count, digest)| DigestCount {
            digest: digest.to_owned(),
            train_jobs: number(count),
        });
        let counted = TrainJobCount {
            total: number(total),
            digests: digests.collect(),
            unknown: number(unknown),
        };
        (name, counted)
    };
    names.map(count).collect()
}

/// Returns the status of the PolicyPlugin of this name.
fn status(name: &str, state: &PolicyPluginState, facts: &StatusFacts<'_>) -> PolicyPluginStatus {
    let Plugin { newest, running } = Plugin::of(name, facts);
    let generation = facts.proposed.generations.get(name).copied();
    let shown = newest.or(running);
    let resolved = facts.proposed.resolved.get(name);
    let plugin = resolved.or(shown.map(|(_, plugin)| plugin));
    let revision = shown.map(|(revision, _)| revision);
    let loaded = revision.and_then(|revision| revision.loaded.as_ref());
    let claims = loaded.and_then(|loaded| {
        let generation = loaded.generation.renderer().generation();
        let plugin = generation.plugin(name)?;
        let claims = plugin.manifest.claims.iter();
        Some(claims.map(|(verb, path)| format!("{verb} {path}")).collect())
    });
    let signer = facts.proposed.signers.get(name);
    let signer = signer.or_else(|| loaded?.signers.get(name));
    let grants = state.object.as_ref().ok().map(|policy| &policy.spec.grants);
    let grants = grants.into_iter().flatten().map(ToString::to_string);
    let train_jobs = match facts.train_jobs {
        Some(counts) => counts.get(name).cloned(),
        None => state.status.train_jobs.clone(),
    };
    PolicyPluginStatus {
        observed_generation: generation,
        conditions: conditions(name, state, facts),
        revision: revision.map(|it| it.facts.name.clone()),
        version: plugin.and_then(|plugin| plugin.version.clone()),
        digest: plugin.and_then(|plugin| plugin.digest.clone()),
        manifest_digest: plugin.and_then(|plugin| match &plugin.origin {
            Origin::Oci(oci) => Some(oci.manifest_digest.clone()),
            _ => None,
        }),
        signer: signer.cloned(),
        plan: revision.and_then(|it| it.state.status.as_ref()?.plan.clone()),
        claims: lines(claims.unwrap_or_else(|| state.status.claims.clone())),
        grants: lines(grants.collect()),
        replicas: revision.map(|revision| replicas(revision, facts)),
        train_jobs,
    }
}

/// A plugin in the newest revision that has it, and in the running one.
struct Plugin<'f> {
    newest: Option<(&'f KnownRevision, &'f ResolvedPlugin)>,
    running: Option<(&'f KnownRevision, &'f ResolvedPlugin)>,
}

impl<'f> Plugin<'f> {
    fn of(name: &str, facts: &StatusFacts<'f>) -> Self {
        let resolved = facts.proposed.resolved.get(name);
        let with = |revision: &'f KnownRevision| {
            let mut plugins = revision.spec.plugins.iter();
            Some((revision, plugins.find(|plugin| plugin.name == name)?))
        };
        let mut newest_first = facts.revisions.iter().rev().filter_map(with);
        let is_wanted = |(_, plugin): &(_, &ResolvedPlugin)| {
            resolved.is_none_or(|resolved| is_same(plugin, resolved))
        };
        let newest = newest_first.find(is_wanted);
        let running = facts.revisions.iter();
        let mut running = running.filter(|it| Some(it.facts.number) == facts.running);
        Self {
            newest,
            running: running.next().and_then(with),
        }
    }
}

fn conditions(name: &str, state: &PolicyPluginState, facts: &StatusFacts<'_>) -> Vec<Condition> {
    let generation = facts.proposed.generations.get(name).copied();
    let conditions = PluginCondition::ALL.into_iter().map(|kind| {
        let (status, reason, message) = match kind {
            PluginCondition::Active => active(name, facts),
            other => found(other, name, facts),
        };
        let known = state.status.conditions.iter();
        let known = known.into_iter().find(|it| it.kind == kind.name());
        let since = known.filter(|known| known.status == status);
        Condition {
            kind: kind.name().to_owned(),
            status,
            reason,
            message: clean_to(&message, MESSAGE),
            last_transition_time: since.map_or_else(
                || facts.now.to_string(),
                |known| known.last_transition_time.clone(),
            ),
            observed_generation: generation,
        }
    });
    conditions.collect()
}

type Found = (ConditionStatus, String, String);

fn of(status: ConditionStatus, reason: &str, message: impl Into<String>) -> Found {
    (status, reason.to_owned(), message.into())
}

/// Returns a condition that follows from resolving and loading the plugin.
fn found(kind: PluginCondition, name: &str, facts: &StatusFacts<'_>) -> Found {
    let proposed = facts.proposed;
    if let Some(problem) = proposed.problems.get(name) {
        let Problem {
            condition,
            reason,
            message,
        } = problem;
        if *condition == kind {
            let status = match kind {
                PluginCondition::Conflicting => ConditionStatus::True,
                _ => ConditionStatus::False,
            };
            return of(status, reason, message.as_str());
        }
        // What comes before it holds.
        if kind > *condition {
            return of(
                ConditionStatus::Unknown,
                "NotReached",
                format!("the condition {condition} comes first"),
            );
        }
    }
    if let Some(message) = proposed.waiting.get(name) {
        let message = format!("{message}; it is tried again");
        return match kind {
            PluginCondition::Pulled => of(ConditionStatus::False, "Retrying", message),
            _ => of(ConditionStatus::Unknown, "NotReached", "the condition Pulled comes first"),
        };
    }
    let is_built_in = matches!(
        proposed.resolved.get(name).map(|plugin| &plugin.origin),
        Some(Origin::BuiltIn(_))
    );
    let others_fail = !proposed.is_loaded && (!proposed.problems.is_empty() || proposed.is_waiting());
    let is_in_revision = Plugin::of(name, facts).newest.is_some();
    match kind {
        PluginCondition::Pulled if is_built_in => of(ConditionStatus::True, "BuiltIn", "it is part of the controller"),
        PluginCondition::Pulled => match proposed.notes.get(name) {
            Some(note) => of(ConditionStatus::True, "NotFollowed", note.as_str()),
            None => of(ConditionStatus::True, "Pulled", "its content has the digest of the status"),
        },
        PluginCondition::Verified if is_built_in => of(ConditionStatus::True, "BuiltIn", "it is part of the controller"),
        PluginCondition::Verified => match proposed.signers.get(name) {
            Some(signer) => of(ConditionStatus::True, "Signed", format!("signed by {signer}")),
            None => of(ConditionStatus::True, "Accepted", "the controller's configuration accepts it without a signature"),
        },
        // The set was not loaded.
        _ if others_fail && !is_in_revision => of(
            ConditionStatus::Unknown,
            "OthersFail",
            "all PolicyPlugins are loaded together, and another one has a problem; see its conditions",
        ),
        PluginCondition::Loaded => of(ConditionStatus::True, "Loaded", "it is loaded with the settings of this object"),
        PluginCondition::Permitted if is_built_in => of(ConditionStatus::True, "BuiltIn", "the role of the controller has its permissions"),
        PluginCondition::Permitted => of(
            ConditionStatus::True,
            "Permitted",
            "the controller had the permissions for what it looks up and emits when its PluginRevision was created",
        ),
        _ => of(ConditionStatus::False, "NoConflict", "it does not conflict with another plugin"),
    }
}

/// Returns why the plugin is not used as its PolicyPlugin says; `None` if it is, or is disabled.
fn inactive_reason(status: &PolicyPluginStatus) -> Option<String> {
    let mut conditions = status.conditions.iter();
    let active = conditions.find(|it| it.kind == PluginCondition::Active.name())?;
    let is_inactive = active.status == ConditionStatus::False && active.reason != "Disabled";
    is_inactive.then(|| active.reason.clone())
}

/// Returns whether the plugin is used as its PolicyPlugin says, and if not, why.
fn active(name: &str, facts: &StatusFacts<'_>) -> Found {
    let Plugin { newest, running } = Plugin::of(name, facts);
    let keeps = match running {
        Some((revision, plugin)) => format!(
            "PluginRevision {} keeps running with {}",
            revision.facts.name,
            plugin.version.as_ref().map_or_else(
                || "its earlier settings".to_owned(),
                |version| format!("version {version} of it"),
            )
        ),
        None => "no PluginRevision that runs has it".to_owned(),
    };
    if let Some(problem) = facts.proposed.problems.get(name) {
        return of(ConditionStatus::False, &problem.reason, format!("see the condition {}; {keeps}", problem.condition));
    }
    if facts.proposed.waiting.contains_key(name) {
        return of(ConditionStatus::False, "Retrying", format!("see the condition Pulled; {keeps}"));
    }
    let Some((revision, plugin)) = newest else {
        return of(ConditionStatus::False, "OthersFail", format!("another PolicyPlugin has a problem; {keeps}"));
    };
    let is_running = running.is_some_and(|(_, running)| is_same(running, plugin));
    if is_running && plugin.settings.disabled {
        return of(ConditionStatus::False, "Disabled", "spec.disabled is true");
    }
    if is_running {
        return of(ConditionStatus::True, "Running", "TrainJobs that have not started are rendered with it");
    }
    let RevisionFacts { name, stage, percent, .. } = &revision.facts;
    let status = revision.state.status.as_ref();
    let message = status.map_or("", |status| &status.message);
    match stage {
        None => of(ConditionStatus::False, "RollingOut", format!("PluginRevision {name} is about to be rolled out; {keeps}")),
        Some(Stage::Share) => of(ConditionStatus::False, "RollingOut", format!("PluginRevision {name} has {percent} % of the namespaces; {keeps} for the others")),
        Some(Stage::Shadow) => {
            let reason = status.map_or("Comparing", |status| &status.reason);
            of(ConditionStatus::False, reason, format!("PluginRevision {name}: {message}; {keeps}"))
        }
        Some(stage) => of(ConditionStatus::False, &format!("{stage:?}"), format!("PluginRevision {name}: {message}; {keeps}")),
    }
}

/// Counts the replicas that have loaded a revision.
fn replicas(revision: &KnownRevision, facts: &StatusFacts<'_>) -> ReplicaCount {
    let running = facts.revisions.iter();
    let running = running.filter(|it| Some(it.facts.number) == facts.running);
    let both = running.chain([revision]).flat_map(|it| &it.state.replicas);
    let pods: std::collections::BTreeSet<_> = both.map(|replica| &replica.pod).collect();
    let has_it = |pod: &&&String| {
        let mut replicas = revision.state.replicas.iter();
        replicas.any(|it| it.pod == ***pod && it.plan.is_some() && it.problem.is_none())
    };
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    ReplicaCount::new(number(pods.iter().filter(has_it).count()), number(pods.len()))
}

/// Cuts a list to the lines that a status has.
fn lines(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > MAX_LINES {
        let left = lines.len() - (MAX_LINES - 1);
        lines.truncate(MAX_LINES - 1);
        lines.push(format!("and {left} more"));
    }
    lines
}
