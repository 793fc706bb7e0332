//! `trainyard plugin`, and the process that compiles plugins.

use std::{
    collections::BTreeSet,
    fmt::Display,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;
use serde::Serialize;
use serde_json::Value;
use trainyard_componentize::build;
use trainyard_model::{
    claims::{ClaimPath, Verb, permission},
    manifest::Manifest,
    plugin::PluginId,
    record::Permission,
    text::clean,
};
use trainyard_sandbox::{
    CompilerCommand, LoadLimits,
    screen::{self, Screened},
};

use crate::{cli::ReportFormat, output, report::ErrorList};

/// The argument that starts this program as a compiling process.
pub(crate) const COMPILE_WORKER: &str = "compile-worker";

/// `trainyard plugin`.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Show what a plugin file declares and imports, without running it.
    Inspect {
        /// The plugin file.
        #[arg(value_name = "FILE.wasm", value_hint = clap::ValueHint::FilePath)]
        file: PathBuf,
        /// Print a policy file with the grants that the plugin needs.
        #[arg(long, conflicts_with = "output")]
        policy: bool,
        /// The output format.
        #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
        output: ReportFormat,
    },
    /// Build a plugin's crate as a component.
    Build {
        /// The directory of the crate.
        #[arg(value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
        dir: PathBuf,
        /// The file to write [default: NAME.wasm in the current directory].
        #[arg(short, long, value_name = "FILE.wasm", value_hint = clap::ValueHint::FilePath)]
        output: Option<PathBuf>,
        /// Fail if Cargo.lock is missing or would change.
        #[arg(long)]
        locked: bool,
    },
}

pub(crate) fn run(command: &PluginCommand) -> Result<(), ErrorList> {
    match command {
        PluginCommand::Inspect {
            file,
            policy: true,
            output: _,
        } => output::lines(policy_file(&screened(file)?)),
        PluginCommand::Inspect { file, output, .. } => inspect(file, *output),
        PluginCommand::Build {
            dir,
            output,
            locked,
        } => build(dir, output.as_ref(), *locked),
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
}

/// Checks a plugin file without running it.
fn screened(file: &Path) -> Result<Screened, ErrorList> {
    let name = clean(&file.display().to_string());
    let (limits, compiler) = (LoadLimits::default(), compiler()?);
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
    let grants = manifest.needed_grants();
    if grants.is_empty() {
        lines.push("  # it needs no grants".to_owned());
    } else {
        lines.push("  grants:".to_owned());
        lines.extend(grants.iter().map(|grant| format!("  - {}", text(grant))));
    }
    lines
}

fn inspect(file: &Path, format: ReportFormat) -> Result<(), ErrorList> {
    let screened = screened(file)?;
    let inspected = Inspection {
        file: clean(&file.display().to_string()),
        needed_grants: screened.manifest.needed_grants(),
        bytes: screened.bytes.len(),
        digest: screened.digest,
        manifest: screened.manifest,
        imports: screened.imports,
    };
    match format {
        ReportFormat::Json => output::json(&inspected),
        ReportFormat::Table => output::lines(inspected.lines()),
    }
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
                .map(|(touch, path)| format!("  {touch}s {path}{}", mark(touch, path))),
        );
        lines.push("imports:".to_owned());
        lines.extend(self.imports.iter().map(|import| format!("  {import}")));
        lines
    }
}

/// What the operator has to know of a claim.
fn mark(touch: Verb, path: &ClaimPath) -> &'static str {
    match permission(touch, path) {
        Permission::Grant => " (needs a grant)",
        Permission::OwnOnly => " (without a grant: only its own objects and volumes)",
        Permission::Default | Permission::Host => "",
    }
}

fn build(dir: &Path, output: Option<&PathBuf>, locked: bool) -> Result<(), ErrorList> {
    let options = build::Options {
        target_dir: build::target_dir_of_environment(),
        locked,
        ..build::Options::default()
    };
    let built = build::build(dir, &options).map_err(|error| ErrorList::from_iter([error]))?;
    let manifest = &built.component.manifest;
    let path = output
        .cloned()
        .unwrap_or_else(|| PathBuf::from(format!("{}.wasm", manifest.name)));
    let shown = clean(&path.display().to_string());
    let failure = |problem: String| ErrorList::from_iter([format!("{shown}: {problem}")]);
    let screened = screen::screen(built.component.bytes, &LoadLimits::default(), &compiler()?)
        .map_err(|error| failure(error.to_string()))?;
    write_whole(&path, &screened.bytes)
        .map_err(|error| failure(format!("can't be written: {error}")))?;
    let id = PluginId {
        name: manifest.name.as_str().into(),
        version: manifest.version.as_str().into(),
        digest: screened.digest.as_str().into(),
    };
    let bytes = screened.bytes.len();
    output::lines([format!("{shown}: plugin {id}, {bytes} bytes")])
}

/// Writes a file that is there whole or as it was before.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any other new file: what the user's umask leaves of it.
        file.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = file.tempfile_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// The program that checks and compiles what nobody vouches for: this one.
pub(crate) fn compiler() -> std::io::Result<CompilerCommand> {
    CompilerCommand::this_program(COMPILE_WORKER)
}

/// The body of the compiling process.
pub(crate) fn compile_worker() -> ExitCode {
    trainyard_sandbox::compile::child_main()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

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
        };
        let shown = inspected.lines();
        let wanted = [
            "numNodes sets:",
            "  pod-sets[launcher].count if `/runs` of its configuration is true (needs a grant)",
        ];
        assert!(shown.windows(2).any(|lines| lines == wanted), "{shown:#?}");
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, other) = (folder.path().join("a.wasm"), folder.path().join("b"));
        fs::write(&ours, "an earlier and longer one").unwrap();
        fs::write(&other, "").unwrap();
        write_whole(&ours, b"new").unwrap();
        assert_eq!(fs::read(&ours).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        let mode = |path| fs::metadata(path).unwrap().permissions();
        assert_eq!(mode(&ours), mode(&other));
    }

    #[test]
    fn where_a_file_can_t_be_written_the_earlier_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wasm");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), "").unwrap();
        assert!(write_whole(&path, b"new").is_err());
        assert!(path.join("inside").is_file());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
