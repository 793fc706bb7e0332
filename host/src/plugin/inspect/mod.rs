//! `trainyard plugin inspect`.

mod policy;
mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use clap::Args;
use serde::Serialize;
use trainyard_model::{
    claims::{ClaimPath, Verb, permission},
    manifest::Manifest,
    record::{Field, ObeyedDomains, Permission},
};

use self::source::{ArtifactReport, Source};
use crate::{
    args::{CacheArgs, RegistryArgs, ReportFormat, SignerArgs},
    load, output,
    report::ErrorList,
};

/// Arguments of `plugin inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The plugins: files, or references to plugins in a registry or in a directory (`oci:DIR`).
    #[arg(value_name = "FILE.wasm|REFERENCE", required = true, value_hint = clap::ValueHint::FilePath)]
    plugins: Vec<PathBuf>,
    /// Print a PolicyPlugin for each plugin, with the grants that it needs.
    #[arg(long, conflicts_with = "output")]
    policy: bool,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    by: SignerArgs,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(super) fn run(args: &InspectArgs) -> Result<(), ErrorList> {
    if args.policy {
        return output::lines(policy::lines(&policy_plugins(args)?));
    }
    let [plugin] = args.plugins.as_slice() else {
        return Err(ErrorList::from_iter([
            "pass one plugin; only --policy takes several",
        ]));
    };
    let Source {
        name,
        plugin: screened,
        artifact,
    } = Source::find(plugin, &args.by, &args.registry)?;
    let refusals = load::refusals(&name, &screened.bytes, &args.cache)?;
    let inspected = Inspection {
        file: name,
        artifact,
        needed_grants: screened.manifest.needed_grants(&ObeyedDomains::default()),
        bytes: screened.bytes.len(),
        digest: screened.digest,
        manifest: screened.manifest,
        imports: screened.imports,
        refusals,
    };
    match args.output {
        ReportFormat::Json => output::json(&inspected),
        ReportFormat::Table => output::lines(inspected.lines()),
    }
}

/// Returns the plugins of PolicyPlugins, which have different names and can be loaded with them.
fn policy_plugins(args: &InspectArgs) -> Result<Vec<Source>, ErrorList> {
    let mut failure = ErrorList::default();
    let (mut plugins, mut files) = (Vec::new(), BTreeMap::new());
    for plugin in &args.plugins {
        let source = Source::find(plugin, &args.by, &args.registry);
        let loaded = source.and_then(|source| {
            load::refusals(&source.name, &source.plugin.bytes, &args.cache)?;
            Ok(source)
        });
        let source = match loaded {
            Ok(plugin) => plugin,
            Err(refused) => {
                failure.absorb(refused);
                continue;
            }
        };
        let (shown, name) = (source.name.clone(), &source.plugin.manifest.name);
        match files.get(name) {
            Some(other) => failure.add(format!(
                "{shown}: is the plugin {name}, like {other}; each name has one PolicyPlugin, so pass one of them"
            )),
            None => {
                files.insert(name.clone(), shown);
                plugins.push(source);
            }
        }
    }
    failure.or_ok(plugins)
}

/// The output of `inspect`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inspection {
    file: String,
    /// What its registry or directory says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<ArtifactReport>,
    bytes: usize,
    digest: String,
    manifest: Manifest,
    /// The paths that need a grant.
    needed_grants: BTreeSet<ClaimPath>,
    imports: Vec<String>,
    /// Why it would not be loaded beside the built-in plugins without a PolicyPlugin.
    refusals: Vec<String>,
}

impl Inspection {
    fn lines(&self) -> Vec<String> {
        let manifest = &self.manifest;
        let phases: Vec<&str> = manifest.phases.iter().map(|phase| phase.name()).collect();
        let mut lines = vec![
            format!("name:        {}", manifest.name),
            format!("version:     {}", manifest.version),
            format!("description: {}", manifest.description),
            format!("contract:    {}", manifest.contract),
            format!("active when: {}", manifest.active_when),
            format!("phases:      {}", phases.join(", ")),
            format!("size:        {} bytes", self.bytes),
            format!("digest:      {}", self.digest),
        ];
        if let Some(artifact) = &self.artifact {
            lines.extend(artifact.lines());
        }
        if !manifest.excludes.is_empty() {
            lines.push(format!("excludes:    {}", manifest.excludes.join(", ")));
        }
        let mut label = "reserves:";
        for reserved in &manifest.reserved_env {
            lines.push(format!("{label:<12} {reserved}"));
            label = "";
        }
        if !manifest.node_sets.is_empty() {
            lines.push("numNodes sets:".to_owned());
            let sets = manifest.node_sets.iter();
            lines.extend(sets.map(|set| format!("  {set} (needs a grant)")));
        }
        lines.push("claims:".to_owned());
        lines.extend(
            manifest
                .claims
                .iter()
                .map(|(verb, path)| format!("  {verb}s {path}{}", note(verb, path))),
        );
        lines.push("imports:".to_owned());
        lines.extend(self.imports.iter().map(|import| format!("  {import}")));
        lines.push(match self.refusals.as_slice() {
            [] => "Without a PolicyPlugin, it would be loaded.".to_owned(),
            _ => "Without a PolicyPlugin, it would not be loaded:".to_owned(),
        });
        lines.extend(self.refusals.iter().map(|refusal| format!("  {refusal}")));
        lines
    }
}

/// Returns a note for the operator on a claim.
fn note(verb: Verb, path: &ClaimPath) -> String {
    match permission(verb, path, &ObeyedDomains::default()) {
        Permission::Grant => " (needs a grant)".to_owned(),
        Permission::OwnOnly => format!(" ({} need a grant)", beyond_own(path)),
        Permission::Default | Permission::Host => String::new(),
    }
}

/// Returns what a claim that needs no grant for the plugin's own values needs one for.
const fn beyond_own(path: &ClaimPath) -> &'static str {
    match path.field {
        Field::Env => "raw sources",
        Field::Ports => "host ports",
        _ => "objects and volumes of others",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn inspect_shows_the_pod_sets_that_num_nodes_sets() {
        let manifest = br#"{"name": "mpi", "version": "1.0.0", "contract": "1.0.0", "activeWhen": "mlPolicy.mpi",
            "phases": ["transform"], "nodeSets": [{"podSet": "launcher", "when": "/runs"}]}"#;
        let inspected = Inspection {
            file: "mpi.wasm".to_owned(),
            artifact: None,
            bytes: 1,
            digest: "sha256:0".to_owned(),
            needed_grants: BTreeSet::new(),
            manifest: Manifest::parse(manifest).unwrap(),
            imports: Vec::new(),
            refusals: Vec::new(),
        };
        let shown = inspected.lines();
        let wanted = [
            "numNodes sets:",
            "  pod-sets[launcher].count if `/runs` of its configuration is true (needs a grant)",
        ];
        assert!(shown.windows(2).any(|lines| lines == wanted), "{shown:#?}");
    }
}
