//! `trainyard rbac`.

use std::{collections::BTreeSet, path::PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use trainyard_controller::{
    rbac::{self, NAMESPACE, Note},
    settings::PluginsSource,
};

use crate::{
    args::{self, LoadArgs, ObjectFormat},
    built_ins::BUILT_INS,
    load::LoadedPlugins,
    output, policy,
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
    /// A file, a directory, or `-` for standard input, with PolicyPlugins. Only the ClusterRoles of these plugins are printed, which are
    /// aggregated to the controller's. Built-in plugins need none. Can be repeated.
    #[arg(short, long = "filename", value_name = "FILE|DIR|-", num_args = 1.., conflicts_with = "shadow", value_hint = clap::ValueHint::AnyPath)]
    filename: Vec<PathBuf>,
    /// Where the controller's configuration says that plugins are declared (plugins.source). With Cluster, the role also has the permissions
    /// for PolicyPlugins and PluginRevisions.
    #[arg(
        long,
        value_enum,
        ignore_case = true,
        value_name = "File|Cluster",
        default_value_t
    )]
    plugins_source: PluginsSource,
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
    if !args.filename.is_empty() {
        return of_policy_plugins(args);
    }
    let loaded = LoadedPlugins::load(&args.load)?;
    let plugins = || loaded.renderer.generation().plugins();
    let claims = plugins().map(|plugin| (&*plugin.id.name, &plugin.manifest.claims));
    let roles = rbac::roles(
        claims,
        &args.namespace,
        &args.load.plugins.feature_gates,
        args.plugins_source,
    );
    let notes = roles.notes.clone();
    let objects = match args.shadow {
        true => vec![object(&rbac::shadow_role(roles))?],
        false => vec![object(&roles.cluster_role)?, object(&roles.role)?],
    };
    let mut names: Vec<&str> = plugins().map(|plugin| &*plugin.id.name).collect();
    names.sort_unstable();
    let title = format!(
        "the permissions that the controller needs with these plugins: {}",
        names.join(", ")
    );
    write(args, &title, &notes, objects)
}

/// Prints a role for each plugin with a PolicyPlugin in the files that looks up or emits objects.
fn of_policy_plugins(args: &RbacArgs) -> Result<(), ErrorList> {
    let objects = policy::policy_plugins(&args.filename)?;
    let loaded = LoadedPlugins::load_with(&args.load, &objects)?;
    let mut plugins: Vec<_> = loaded.renderer.generation().plugins().collect();
    plugins.retain(|plugin| {
        let name = &*plugin.id.name;
        // A plugin that replaces a built-in one may look up and emit more.
        let is_built_in = BUILT_INS.iter().any(|it| *it.digest() == *plugin.id.digest);
        !is_built_in && objects.iter().any(|object| object.metadata.name == *name)
    });
    plugins.sort_by(|a, b| a.id.name.cmp(&b.id.name));
    let (mut roles, mut notes) = (Vec::new(), BTreeSet::new());
    for plugin in plugins {
        if let Some(role) = rbac::plugin_role(&plugin.id.name, &plugin.manifest.claims) {
            roles.push(object(&role.cluster_role)?);
            notes.extend(role.notes);
        }
    }
    if roles.is_empty() {
        report::warn("the plugins need no permissions, because they look up and emit nothing");
        return Ok(());
    }
    let title = "the permissions of plugins, which are aggregated to those of the controller";
    write(args, title, &notes, roles)
}

/// Prints roles, or writes them to the file.
fn write(
    args: &RbacArgs,
    title: &str,
    notes: &BTreeSet<Note>,
    objects: Vec<Value>,
) -> Result<(), ErrorList> {
    let text = match args.output {
        ObjectFormat::Json => {
            notes.iter().for_each(report::warn);
            output::pretty(&trainyard_api::list::list(objects))? + "\n"
        }
        ObjectFormat::Yaml => {
            let mut comments = vec![format!("Written by `trainyard rbac`: {title}.")];
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
