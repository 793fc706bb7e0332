//! `trainyard plugin verify`.

use clap::Args;
use serde::Serialize;
use trainyard_model::plugin_info::PluginId;
use trainyard_oci::Location;

use super::{
    location,
    signed::{self, SignedArgs},
};
use crate::{
    args::{RegistryArgs, ReportFormat},
    output,
    report::ErrorList,
};

/// Arguments of `plugin verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The plugin: REGISTRY/REPOSITORY with `:TAG`, `@DIGEST` or both, or oci:DIR[:NAME] for a directory.
    #[arg(value_name = "REFERENCE", value_parser = location)]
    source: Location,
    #[command(flatten)]
    signed: SignedArgs,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Table)]
    output: ReportFormat,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// The output of `verify`.
#[derive(Serialize)]
struct VerifyReport {
    /// What names exactly this plugin.
    reference: String,
    /// The name in the file.
    name: String,
    version: String,
    /// The digest of the file.
    file: String,
    /// Who signed it.
    signers: Vec<String>,
}

pub(crate) fn run(args: &VerifyArgs) -> Result<(), ErrorList> {
    let plugin = args.signed.pull(&args.source, &args.registry)?;
    let manifest = plugin.screened.manifest;
    let Some(signed) = plugin.signed else {
        return Err(ErrorList::from_iter([
            "pass the public key of who signed the plugin with --key, or the configuration of the controller with --signers",
        ]));
    };
    match args.output {
        ReportFormat::Json => output::json(&VerifyReport {
            reference: plugin.reference,
            name: manifest.name,
            version: manifest.version,
            file: plugin.screened.digest,
            signers: signed.signers,
        }),
        ReportFormat::Table => {
            let id = PluginId {
                name: manifest.name.as_str().into(),
                version: manifest.version.as_str().into(),
                digest: plugin.screened.digest.as_str().into(),
            };
            let line = signed::line(&signed);
            output::lines([plugin.reference, format!("plugin {id}, {line}")])
        }
    }
}
