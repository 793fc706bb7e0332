//! `trainyard plugin copy`.

use clap::Args;
use serde::Serialize;
use trainyard_oci::{Copied, Location, PluginName, Requirement};

use super::{location, signed::SignedArgs};
use crate::{
    args::{RegistryArgs, ReportFormat},
    built_ins::plugin_name,
    output::{self, Transfer, counted},
    report::ErrorList,
};

/// Arguments of `plugin copy`.
#[derive(Debug, Args)]
pub(crate) struct CopyArgs {
    /// The plugin: REGISTRY/REPOSITORY with `:TAG`, `@DIGEST` or both, or oci:DIR[:NAME] for a directory.
    #[arg(value_name = "SOURCE", value_parser = location)]
    source: Location,
    /// Where to copy it: REGISTRY/REPOSITORY:TAG, or oci:DIR[:NAME]; the default NAME is the whole SOURCE.
    #[arg(value_name = "TARGET", value_parser = location)]
    target: Location,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
    #[command(flatten)]
    signed: SignedArgs,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// The output of `copy`.
#[derive(Serialize)]
struct CopyReport {
    /// What names exactly this plugin.
    reference: String,
    #[serde(flatten)]
    copied: Copied,
}

pub(crate) fn run(args: &CopyArgs) -> Result<(), ErrorList> {
    let signers = args.signed.by.signers()?;
    let (source, name) = args.signed.pinned(&args.source, &args.registry)?;
    let requirement = signers.as_ref().map(|signers| Requirement {
        signers,
        plugin: name.as_deref().map_or(PluginName::Unknown, plugin_name),
    });
    let transfer = Transfer::new("copying");
    let copied = args.registry.run(async |client| {
        let copied = client
            .copy(
                &source,
                &args.target,
                requirement.as_ref(),
                &transfer.progress(),
            )
            .await;
        copied.map_err(|error| ErrorList::from_iter([error.to_string()]))
    })?;
    drop(transfer);
    let report = CopyReport {
        reference: args.target.pinned(&copied.digest),
        copied,
    };
    match args.output {
        ReportFormat::Json => output::json(&report),
        ReportFormat::Table => {
            let with = counted(report.copied.referrers, "referrer");
            output::lines([
                report.reference,
                format!(
                    "{} bytes, {with} (signatures, SBOM, provenance)",
                    report.copied.bytes
                ),
            ])
        }
    }
}
