//! `trainyard plugin diff`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::screened::screened;
use crate::{
    args::ReportFormat,
    output,
    report::ErrorList,
    upgrade::{Change, changes, version_problem},
};

/// Arguments of `plugin diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The plugin file of the earlier version.
    #[arg(value_name = "OLD.wasm", value_hint = clap::ValueHint::FilePath)]
    old: PathBuf,
    /// The plugin file of the later version.
    #[arg(value_name = "NEW.wasm", value_hint = clap::ValueHint::FilePath)]
    new: PathBuf,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
}

/// The differences between two versions of a plugin.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DiffReport {
    plugin: String,
    old: Version,
    new: Version,
    changes: Vec<Change>,
}

/// A version of a plugin.
#[derive(Serialize)]
struct Version {
    version: String,
    digest: String,
}

pub(super) fn run(args: &DiffArgs) -> Result<(), ErrorList> {
    let (old, new) = (screened(&args.old)?, screened(&args.new)?);
    let file = output::path(&args.new);
    let failure = |problem: String| ErrorList::from_iter([format!("{file}: {problem}")]);
    let name = &new.manifest.name;
    if old.manifest.name != *name {
        return Err(failure(format!(
            "is the plugin {name}, but {} is the plugin {}; pass two versions of one plugin",
            output::path(&args.old),
            old.manifest.name
        )));
    }
    let report = DiffReport {
        plugin: name.clone(),
        changes: changes(&old.manifest, &new.manifest),
        old: Version {
            version: old.manifest.version,
            digest: old.digest,
        },
        new: Version {
            version: new.manifest.version.clone(),
            digest: new.digest,
        },
    };
    match args.output {
        ReportFormat::Json => output::json(&report)?,
        ReportFormat::Table => output::lines(report.lines())?,
    }
    report.check_version().map_err(failure)
}

impl DiffReport {
    fn lines(&self) -> Vec<String> {
        let (old, new) = (&self.old, &self.new);
        let mut lines = vec![format!(
            "plugin {}: {} to {}",
            self.plugin, old.version, new.version
        )];
        lines.extend(self.changes.iter().map(ToString::to_string));
        if self.changes.is_empty() {
            lines.push(match old.digest == new.digest {
                true => "the two files are the same component".to_owned(),
                false => "the components differ, but declare the same; compare what they render with `trainyard plan --against`".to_owned(),
            });
        }
        lines
    }

    /// Checks that the version is high enough for the changes.
    fn check_version(&self) -> Result<(), String> {
        if self.old.digest == self.new.digest {
            return Ok(());
        }
        let is_breaking = self.changes.iter().any(|change| change.breaks.is_some());
        let problem = version_problem(&self.old.version, &self.new.version, is_breaking);
        problem.map_or(Ok(()), |problem| Err(problem.to_string()))
    }
}
