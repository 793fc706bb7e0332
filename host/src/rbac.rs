//! `trainyard rbac`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use trainyard_controller::rbac::{self, NAMESPACE};

use crate::{
    args::{self, LoadArgs, ObjectFormat},
    load::LoadedPlugins,
    output,
    report::{self, ErrorList},
};

/// Arguments of `rbac`.
#[derive(Debug, Args)]
pub(crate) struct RbacArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// The namespace that the controller runs in.
    #[arg(short, long, default_value = NAMESPACE, value_parser = args::namespace)]
    namespace: String,
    /// Print only the ClusterRole for `trainyard controller --shadow`, which has no verb that writes.
    #[arg(long)]
    shadow: bool,
    /// The output format. Notes are comments in YAML, and are printed to standard error with JSON.
    #[arg(short, long, value_enum, default_value_t = ObjectFormat::Yaml)]
    output: ObjectFormat,
    /// Write the roles to this file instead of standard output. If the command fails, the file stays as it is; a shell's `>` empties it first.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
}

pub(crate) fn run(args: &RbacArgs) -> Result<(), ErrorList> {
    let loaded = LoadedPlugins::load(&args.load)?;
    let plugins = || loaded.renderer.generation().plugins();
    let claims = plugins().map(|plugin| (&*plugin.id.name, &plugin.manifest.claims));
    let roles = rbac::roles(claims, &args.namespace, &args.load.feature_gates);
    let notes = roles.notes.clone();
    let objects = match args.shadow {
        true => vec![object(&rbac::shadow_role(roles))?],
        false => vec![object(&roles.cluster_role)?, object(&roles.role)?],
    };
    let text = match args.output {
        ObjectFormat::Json => {
            notes.iter().for_each(report::warn);
            output::pretty(&trainyard_api::list::list(objects))? + "\n"
        }
        ObjectFormat::Yaml => {
            let mut names: Vec<&str> = plugins().map(|plugin| &*plugin.id.name).collect();
            names.sort_unstable();
            let names = names.join(", ");
            let mut comments = vec![format!(
                "Written by `trainyard rbac`: the permissions that the controller needs with these plugins: {names}."
            )];
            comments.extend(notes.iter().map(|note| format!("{note}.")));
            output::commented(&comments, &objects)
        }
    };
    let Some(file) = &args.file else {
        return output::print(&text);
    };
    let failed = |error| ErrorList::from_iter([format!("{}: {error}", file.display())]);
    output::replace(file, text.as_bytes()).map_err(failed)
}

fn object(role: &impl Serialize) -> Result<Value, ErrorList> {
    Ok(serde_json::to_value(role).map_err(anyhow::Error::from)?)
}
