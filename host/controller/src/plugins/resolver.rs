//! PolicyPlugins are resolved to digests.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use trainyard_config::policy_plugin::{
    BuiltInOrigin, OciOrigin, Origin, PolicyPlugin, ResolvedPlugin, Source,
};

use super::{
    Leader, Pinned, PluginCondition, Problem, SourceError, Verified, is_newer, memory::Proposed,
    objects::PolicyPluginState,
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
    /// Not available, for this reason, and not needed, because the plugin is disabled. It is that of the newest revision with the plugin.
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
        let now = plugins.clock.now();
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
                    Err(problem) => return (name, state, Err(invalid(problem))),
                };
                let content = match (&policy.spec.source, pin) {
                    (None, _) => Ok(Content::BuiltIn),
                    (Some(_), Some(pin)) => Ok(Content::Pinned(pin)),
                    (Some(source), None) => match self.unused(&policy) {
                        Some(kept) => Ok(Content::Kept(kept)),
                        None => {
                            let pinned = plugins.program.source.pin(name, source).await;
                            pinned.map(Content::Pinned)
                        }
                    },
                };
                let content = match content {
                    Err(error) if policy.spec.disabled => {
                        let kept = self.newest_with(name);
                        Ok(Content::Disabled(error.into_problem(), kept))
                    }
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

    /// Returns a plugin as the newest revision with it has it.
    fn newest_with(&self, name: &str) -> Option<ResolvedPlugin> {
        let revisions = self.plugins.readable().into_iter().rev();
        let mut plugins = revisions.flat_map(|(.., spec)| spec.plugins.clone());
        plugins.find(|plugin| plugin.name == name)
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
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

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
