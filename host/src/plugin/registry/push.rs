//! `trainyard plugin push`.

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use serde::Serialize;
use trainyard_model::manifest::Manifest;
use trainyard_oci::{Artifact, Location, Release};

use super::location;
use crate::{
    args::{RegistryArgs, ReportFormat},
    output::{self, Transfer},
    plugin::screened::screened,
    report::ErrorList,
};

/// Arguments of `plugin push`.
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// The plugin file.
    #[arg(value_name = "FILE.wasm", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Where to push it: REGISTRY/REPOSITORY:TAG, or oci:DIR[:NAME] for a directory.
    #[arg(value_name = "REFERENCE", value_parser = location)]
    target: Location,
    /// An annotation of the plugin, in addition to its name, version and description, such as
    /// `org.opencontainers.image.source=https://git.example.com/plugins`. Can be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = annotation)]
    annotation: Vec<(String, String)>,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// The output of `push`.
#[derive(Serialize)]
struct PushReport {
    /// What names exactly this plugin.
    reference: String,
    digest: String,
}

/// Parses an annotation.
fn annotation(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = parts.ok_or("must be KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Returns what registries and their pages show of a plugin.
fn annotations(manifest: &Manifest) -> BTreeMap<String, String> {
    [
        ("org.opencontainers.image.title", &manifest.name),
        ("org.opencontainers.image.version", &manifest.version),
        (
            "org.opencontainers.image.description",
            &manifest.description,
        ),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(key, value)| (key.to_owned(), value.clone()))
    .collect()
}

pub(crate) fn run(args: &PushArgs) -> Result<(), ErrorList> {
    let plugin = screened(&args.file)?;
    let mut annotations = annotations(&plugin.manifest);
    annotations.extend(args.annotation.iter().cloned());
    let release = Release {
        title: Some(format!("{}.wasm", plugin.manifest.name)),
        annotations,
    };
    let file = output::path(&args.file);
    let artifact = Artifact::new(plugin.bytes, &release);
    let artifact = artifact.map_err(|error| ErrorList::from_iter([format!("{file}: {error}")]))?;
    let transfer = Transfer::new("pushing");
    let pushed = args.registry.run(async |client| {
        let pushed = client
            .push(&artifact, &args.target, &transfer.progress())
            .await;
        pushed.map_err(|error| ErrorList::from_iter([error.to_string()]))
    })?;
    drop(transfer);
    let report = PushReport {
        reference: args.target.pinned(&pushed.digest),
        digest: pushed.digest.to_string(),
    };
    match args.output {
        ReportFormat::Json => output::json(&report),
        ReportFormat::Table => output::lines([report.reference]),
    }
}
