//! `trainyard plugin inspect`.

use std::{
    collections::BTreeSet,
    fmt::Display,
    path::{Path, PathBuf},
};

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use trainyard_api::names;
use trainyard_model::{
    claims::{ClaimPath, Verb, permission},
    manifest::{ActiveWhen, Manifest},
    record::{Field, ObeyedDomains, Permission},
    text::clean,
};
use trainyard_sandbox::{
    LoadLimits,
    screen::{self, Screened},
};

use crate::{
    args::{CacheArgs, ReportFormat},
    compile_worker, load, output,
    report::ErrorList,
};

/// Arguments of `plugin inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The plugin file.
    #[arg(value_name = "FILE.wasm", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Print a policy file with the grants that the plugin needs.
    #[arg(long, conflicts_with = "output")]
    policy: bool,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
    #[command(flatten)]
    cache: CacheArgs,
}

pub(super) fn run(args: &InspectArgs) -> Result<(), ErrorList> {
    let refusals = load::refusals(&args.file, &args.cache)?;
    let screened = screened(&args.file)?;
    if args.policy {
        return output::lines(policy_file(&screened));
    }
    let inspected = Inspection {
        file: clean(&args.file.display().to_string()),
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

/// The output of `inspect`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inspection {
    file: String,
    bytes: usize,
    digest: String,
    manifest: Manifest,
    /// The paths that need a grant.
    needed_grants: BTreeSet<ClaimPath>,
    imports: Vec<String>,
    /// Why it would not be loaded beside the built-in plugins without a policy file.
    refusals: Vec<String>,
}

/// Checks a plugin file without running it.
fn screened(file: &Path) -> Result<Screened, ErrorList> {
    let name = clean(&file.display().to_string());
    let (limits, compiler) = (LoadLimits::default(), compile_worker::compiler()?);
    screen::read(file, &limits)
        .and_then(|bytes| screen::screen(bytes, &limits, &compiler))
        .map_err(|error| ErrorList::from_iter([format!("{name}: {error}")]))
}

/// Returns the lines of a policy file with the grants that the plugin needs.
fn policy_file(plugin: &Screened) -> Vec<String> {
    let manifest = &plugin.manifest;
    let text = |text: &dyn Display| Value::from(text.to_string());
    let mut lines = vec![
        format!(
            "# For plugin {} {}. Remove what it should not be granted.",
            manifest.name, manifest.version
        ),
        "apiVersion: trainyard.dev/v1alpha1".to_owned(),
        "kind: PolicyFile".to_owned(),
        "plugins:".to_owned(),
        format!("- name: {}", text(&manifest.name)),
        format!(
            "  # digest: {} # accepts no other file under this name",
            plugin.digest
        ),
    ];
    if manifest.operator_config_schema.is_some() {
        lines.push("  # config: {} # see operatorConfigSchema of its manifest".to_owned());
    }
    let grants = manifest.needed_grants(&ObeyedDomains::default());
    if grants.is_empty() {
        lines.push("  # it needs no grants".to_owned());
    } else {
        lines.push("  grants:".to_owned());
        lines.extend(grants.iter().map(|grant| format!("  - {}", text(grant))));
    }
    if manifest.active_when == ActiveWhen::Always {
        lines.push(
            "  # disabledFor: {namespaces: [], runtimes: []} # it is active for every other TrainJob"
                .to_owned(),
        );
        lines.push(format!(
            "  # trainJobsMayDisable: true # with the annotation {}",
            names::DISABLED_PLUGINS_ANNOTATION
        ));
    }
    lines
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
            [] => "Without a policy file, it would be loaded.".to_owned(),
            _ => "Without a policy file, it would not be loaded:".to_owned(),
        });
        lines.extend(self.refusals.iter().map(|refusal| format!("  {refusal}")));
        lines
    }
}

/// Returns a note for the operator on a claim.
fn note(verb: Verb, path: &ClaimPath) -> &'static str {
    match permission(verb, path, &ObeyedDomains::default()) {
        Permission::Grant => " (needs a grant)",
        Permission::OwnOnly => match path.field {
            Field::Env => " (raw sources need a grant)",
            Field::Ports => " (host ports need a grant)",
            _ => " (without a grant: only its own objects and volumes)",
        },
        Permission::Default | Permission::Host => "",
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
