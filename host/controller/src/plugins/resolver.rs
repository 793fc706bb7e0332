//! PolicyPlugins are resolved to digests.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use trainyard_config::policy_plugin::{
    BuiltInOrigin, OciOrigin, Origin, PolicyPlugin, ResolvedPlugin, Source, Stage,
};

use super::{
    Leader, Pinned, PluginCondition, Problem, SourceError, Verified,
    follower::NamedRevision,
    is_newer,
    memory::Proposed,
    objects::{InvalidPolicy, PolicyPluginState, RevisionState},
};

/// How often tags that are followed, and files, are read again; and how much more it may be, so that clusters do not ask at the same time.
pub(super) const FOLLOWS: Duration = Duration::from_secs(270);
const JITTER: Duration = Duration::from_secs(60);

/// The content of a PolicyPlugin.
enum Content {
    /// Part of this program.
    BuiltIn,
    /// Pulled and verified.
    Pinned(Pinned),
    /// As the newest revision has it. It was neither pulled nor verified again.
    Kept(ResolvedPlugin),
    /// Not available, for this reason, and not needed, because the plugin is disabled. It is that of the newest revision with the plugin that
    /// has run.
    Disabled(Problem, Option<ResolvedPlugin>),
}

impl Leader {
    /// Resolves all PolicyPlugins. Returns how long a registry asks to wait.
    pub(super) async fn resolve(
        &self,
        policies: &[(Arc<str>, Arc<PolicyPluginState>)],
        proposed: &mut Proposed,
    ) -> Option<Duration> {
        let plugins = &self.plugins;
        let mut pins = self.pins.lock().await;
        let now = plugins.parts.clock.now();
        let renew = pins.renews.is_none_or(|renews| now >= renews);
        let may_change = |state: &PolicyPluginState| {
            let source = state
                .object
                .as_ref()
                .ok()
                .and_then(|it| it.spec.source.as_ref());
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
                    Err(InvalidPolicy { problem, disabled }) => {
                        let error = invalid(problem);
                        let disabled = disabled
                            .clone()
                            .map(|it| (it, self.disabled(name, error.clone())));
                        return (name, state, disabled.ok_or(error));
                    }
                };
                let content = match (&policy.spec.source, pin) {
                    (None, _) => Ok(Content::BuiltIn),
                    (Some(_), Some(pin)) => Ok(Content::Pinned(pin)),
                    (Some(source), None) => match self.unused(&policy) {
                        Some(kept) => Ok(Content::Kept(kept)),
                        None => {
                            let pinned = plugins.parts.program.source.pin(name, source).await;
                            pinned.map(Content::Pinned)
                        }
                    },
                };
                let content = match content {
                    Err(error) if policy.spec.disabled => Ok(self.disabled(name, error)),
                    content => content,
                };
                (name, state, content.map(|content| (policy, content)))
            }
        }))
        .await;
        let mut wait = None;
        for (name, state, pinned) in pinned {
            match pinned {
                Ok((policy, content)) => {
                    if let Content::Pinned(pinned) = &content {
                        pins.pins.insert(key(state), pinned.clone());
                    }
                    self.note_content(&policy, content, proposed);
                }
                Err(SourceError::Retry { after, message }) => {
                    wait = wait.max(after);
                    proposed.plugin_mut(name).waiting = Some(message);
                }
                Err(SourceError::Refused(problem)) => {
                    proposed.plugin_mut(name).problem = Some(problem);
                }
            }
        }
        wait
    }

    /// Returns the content of a disabled plugin that is not available.
    fn disabled(&self, name: &str, why: SourceError) -> Content {
        let kept = newest_with(&self.plugins.readable(), name);
        Content::Disabled(why.into_problem(), kept)
    }

    fn note_content(&self, policy: &PolicyPlugin, content: Content, proposed: &mut Proposed) {
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
        let plugin = proposed.plugin_mut(&name);
        match content {
            Content::BuiltIn => {}
            Content::Pinned(pinned) => {
                plugin.verified = Some(Verified {
                    signer: pinned.signer,
                });
                resolved = ResolvedPlugin {
                    origin: pinned.origin,
                    version: Some(pinned.version),
                    digest: Some(pinned.digest),
                    active_when: Some(pinned.active_when),
                    ..resolved
                };
            }
            Content::Kept(kept) => resolved = with_settings_of(&resolved, kept),
            Content::Disabled(problem, kept) => {
                plugin.unavailable = Some(problem);
                // Without a revision that has its content, a built-in plugin of its name is disabled.
                plugin.resolved = Some(match kept {
                    Some(kept) => with_settings_of(&resolved, kept),
                    None => resolved,
                });
                return;
            }
        }
        let follows = match &policy.spec.source {
            Some(Source::Oci(oci)) => oci.follow,
            _ => false,
        };
        let newest = follows.then(|| self.newest(&name)).flatten();
        let newest = newest.filter(|newest| is_moved_back(newest, &resolved));
        if let Some(newest) = newest {
            let version = |plugin: &ResolvedPlugin| plugin.version.clone().unwrap_or_default();
            plugin.verified = None;
            plugin.note = Some(format!(
                "the tag was moved to version {} with another digest, which is not newer than {}; it is not followed, so push a newer version, or write its digest into the reference",
                version(&resolved),
                version(&newest)
            ));
            resolved = with_settings_of(&resolved, newest);
        }
        plugin.resolved = Some(resolved);
    }

    /// Returns a plugin as the newest revision has it, if a built-in plugin is used in its place and its reference has not changed. No registry is
    /// asked about what is not used.
    fn unused(&self, policy: &PolicyPlugin) -> Option<ResolvedPlugin> {
        let Some(Source::Oci(source)) = &policy.spec.source else {
            return None;
        };
        let newest = self.newest(&policy.name)?;
        let Origin::Oci(origin) = &newest.origin else {
            return None;
        };
        let is_it = is_reference_to(&source.reference, origin);
        (is_it && self.plugins.built_in_instead(&newest).is_some()).then_some(newest)
    }

    /// Returns a plugin as the newest revision has it.
    fn newest(&self, name: &str) -> Option<ResolvedPlugin> {
        let newest = self.plugins.facts().pop()?;
        let state = self.plugins.revision(&newest.name)?;
        let spec = state.spec.as_ref().ok()?;
        spec.plugins
            .iter()
            .find(|plugin| plugin.name == name)
            .cloned()
    }
}

/// Returns a plugin as the newest of these revisions with it has it that runs or ran before. What others have was never used everywhere, or was
/// rolled back.
fn newest_with(revisions: &[NamedRevision], name: &str) -> Option<ResolvedPlugin> {
    let has_run = |state: &RevisionState| {
        let stage = state.stage();
        matches!(stage, Some(Stage::Running | Stage::Previous))
    };
    let revisions = revisions.iter().rev();
    let mut plugins = revisions
        .filter(|(_, state, _)| has_run(state))
        .flat_map(|(.., spec)| &spec.plugins);
    plugins.find(|plugin| plugin.name == name).cloned()
}

/// Returns the content of a plugin with the settings of another one.
fn with_settings_of(settings: &ResolvedPlugin, content: ResolvedPlugin) -> ResolvedPlugin {
    ResolvedPlugin {
        generation: settings.generation,
        settings: settings.settings.clone(),
        ..content
    }
}

/// Whether a reference has this repository and digest, as it is written.
fn is_reference_to(reference: &str, origin: &OciOrigin) -> bool {
    let rest = reference.strip_prefix(&*origin.repository);
    let rest = rest.filter(|rest| rest.starts_with([':', '@']));
    let tag = rest.and_then(|rest| rest.strip_suffix(&*origin.manifest_digest));
    tag.is_some_and(|tag| tag.ends_with('@'))
}

fn invalid(problem: &str) -> SourceError {
    SourceError::Refused(Problem {
        condition: PluginCondition::Loaded,
        reason: "Invalid".to_owned(),
        message: problem.to_owned(),
    })
}

/// Whether a tag was moved to other content that is not newer than that of the newest revision.
fn is_moved_back(newest: &ResolvedPlugin, resolved: &ResolvedPlugin) -> bool {
    newest.digest != resolved.digest
        && newest.digest.is_some()
        && !is_newer(resolved.version.as_deref(), newest.version.as_deref())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use serde_json::json;
    use trainyard_config::policy_plugin::PluginRevisionSpec;

    use super::*;
    use crate::{
        plugins::objects::{RevisionObject, revision_object},
        watch::Decode as _,
    };

    /// A revision with this version of a plugin.
    fn revision(number: u64, stage: Option<&str>, version: &str) -> NamedRevision {
        let plugin = json!({"name": "stamp", "origin": {"builtIn": {}}, "version": version});
        let spec = json!({"format": 1, "number": number, "plugins": [plugin]});
        let spec: PluginRevisionSpec = serde_json::from_value(spec).unwrap();
        let mut object = revision_object(&spec, false);
        if let Some(stage) = stage {
            object["status"] = json!({"stage": stage});
        }
        let state = RevisionObject::decode(&object.to_string(), 1).unwrap();
        (spec.name().into(), Arc::new(state), Arc::new(spec))
    }

    #[test]
    fn a_disabled_plugin_keeps_no_content_that_never_ran_or_was_rolled_back() {
        let stages = [
            None,
            Some("Shadow"),
            Some("Share"),
            Some("Superseded"),
            Some("Refused"),
            Some("RolledBack"),
        ];
        for ran in ["Running", "Previous"] {
            for stage in stages {
                let revisions = [revision(1, Some(ran), "1.0.0"), revision(2, stage, "2.0.0")];
                let kept = newest_with(&revisions, "stamp").unwrap();
                assert_eq!(kept.version.as_deref(), Some("1.0.0"), "{ran} {stage:?}");
                assert_eq!(newest_with(&revisions[1..], "stamp"), None, "{stage:?}");
            }
            let both = [
                revision(1, Some("Previous"), "1.0.0"),
                revision(2, Some(ran), "2.0.0"),
            ];
            let kept = newest_with(&both, "stamp").unwrap();
            assert_eq!(kept.version.as_deref(), Some("2.0.0"), "{ran}");
        }
    }

    #[test]
    fn build_metadata_does_not_make_a_version_newer() {
        let plugin = |version: &str, digit: char| -> ResolvedPlugin {
            let digest = format!("sha256:{}", digit.to_string().repeat(64));
            serde_json::from_value(json!({
                "name": "stamp", "generation": 1, "origin": {"builtIn": {}}, "version": version, "digest": digest,
            }))
            .unwrap()
        };
        for (newest, resolved, is_back) in [
            ("1.2.0+alpha", "1.2.0+zeta", true),
            ("1.2.0", "1.2.0+zeta", true),
            ("1.2.0", "1.1.0", true),
            ("1.2.0", "1.2.1-rc.1", false),
            ("1.2.0+zeta", "1.2.1+alpha", false),
        ] {
            let moved = is_moved_back(&plugin(newest, 'a'), &plugin(resolved, 'b'));
            assert_eq!(moved, is_back, "{newest} {resolved}");
        }
    }

    #[test]
    fn a_reference_is_compared_with_repository_and_digest_as_it_is_written() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let origin = OciOrigin {
            repository: "registry.example/stamp".to_owned(),
            manifest_digest: digest.clone(),
        };
        for (reference, is_it) in [
            (format!("registry.example/stamp@{digest}"), true),
            (format!("registry.example/stamp:1.0@{digest}"), true),
            (format!("registry.example/stamp-2@{digest}"), false),
            (format!("registry.example/stamp/more@{digest}"), false),
            (format!("registry.example/stamp:{digest}"), false),
            ("registry.example/stamp:1.0".to_owned(), false),
        ] {
            assert_eq!(is_reference_to(&reference, &origin), is_it, "{reference}");
        }
    }
}
