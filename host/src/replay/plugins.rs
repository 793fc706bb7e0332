//! Loads the plugins of a bundle.

use std::sync::Arc;

use serde_json::Value;
use trainyard_bundle::{Bundle, PluginEntry};
use trainyard_model::{limits::Limits, plugin::Plugin, plugin_info::PluginId, text::clean};
use trainyard_render::Renderer;
use trainyard_sandbox::Loader;

use crate::{built_ins::BUILT_INS, report::ErrorList};

/// The largest limits that a bundle may set for a plugin call, because bundles are untrusted.
const LARGEST: Limits = Limits {
    memory_bytes: 1 << 30,
    fuel: 100_000_000_000,
    wall_clock_ms: 60_000,
    import_bytes: 1 << 30,
    handles: 1 << 24,
    writes: 1 << 20,
    log_lines: 1 << 16,
    containers: 1 << 10,
    objects: 1 << 10,
    key_material: 1 << 10,
    kept_bytes: 1 << 24,
};

/// Loads the plugins of a bundle like any other plugin: screened, compiled in a process with limits, and with their grants.
pub(super) fn renderer(
    bundle: &mut Bundle,
    loader: &Loader,
    any_version: bool,
) -> Result<Renderer, ErrorList> {
    let mut failure = ErrorList::default();
    let mut plugins: Vec<Arc<dyn Plugin>> = Vec::new();
    for entry in std::mem::take(&mut bundle.index.plugins) {
        let place = format!("{}: `{}`", bundle.file, clean(&entry.file));
        if let Err(problem) = check_limits(entry.limits(), &LARGEST) {
            failure.add(format!("{place}: {problem}"));
            continue;
        }
        let bytes = match bundle.take(&entry.file) {
            Ok(bytes) => bytes,
            Err(error) => {
                failure.add(error);
                continue;
            }
        };
        if entry.is_built_in() && !any_version && !is_ours(&entry.name, &bytes) {
            failure.add(format!(
                "{place}: is recorded as the built-in plugin `{}`, but differs from the one in this build; the bundle was changed",
                clean(&entry.name)
            ));
            continue;
        }
        match loader.load_untrusted(bytes, |_| entry.settings()) {
            Ok(plugin) if is_named(&plugin.info().id, &entry) => plugins.push(Arc::new(plugin)),
            Ok(plugin) => failure.add(format!(
                "{place}: contains plugin {}, but the index names it `{} {}`",
                plugin.info().id,
                clean(&entry.name),
                clean(&entry.version)
            )),
            Err(problem) => failure.add(format!("{place}: {problem}")),
        }
    }
    failure.or_ok(())?;
    let renderer = Renderer::new(plugins, bundle.index.cluster.facts());
    renderer.map_err(ErrorList::from_iter)
}

/// Whether the component is this program's built-in plugin of this name.
fn is_ours(name: &str, component: &[u8]) -> bool {
    BUILT_INS
        .iter()
        .any(|built_in| built_in.name() == name && built_in.component() == component)
}

fn is_named(id: &PluginId, entry: &PluginEntry) -> bool {
    *id.name == *entry.name && id.version.to_string() == entry.version
}

/// Checks that no limit exceeds the largest one.
fn check_limits(limits: &Limits, largest: &Limits) -> Result<(), String> {
    let (limits, largest) = (serde_json::json!(limits), serde_json::json!(largest));
    let mut limits = limits.as_object().into_iter().flatten();
    let too_large = limits.find_map(|(name, limit)| {
        let most = largest.get(name).and_then(Value::as_u64)?;
        (limit.as_u64()? > most)
            .then(|| format!("limits.{name}: must be at most {most} in a bundle; found {limit}"))
    });
    too_large.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn limits_of_a_bundle_are_bounded() {
        assert_eq!(check_limits(&Limits::default(), &LARGEST), Ok(()));
        let limits = Limits {
            memory_bytes: u64::MAX,
            ..Limits::default()
        };
        let error = check_limits(&limits, &LARGEST).unwrap_err();
        assert!(
            error.starts_with("limits.memoryBytes: must be at most 1073741824 in a bundle"),
            "{error}"
        );
    }
}
