//! `trainyard plugin apply`.

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use kube::{Client, core::GroupVersionKind};
use trainyard_api::{Inputs, Object, names::TRAINYARD_GROUP};
use trainyard_config::policy_plugin::POLICY_PLUGIN;

use crate::{
    apply,
    cluster::{Access, ClusterArgs},
    output,
    policy::{self, Declared},
    report::ErrorList,
};

/// Arguments of `plugin apply`.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// A file, a directory, or `-` for standard input, with PolicyPlugins. Can be repeated.
    #[arg(short, long = "filename", value_name = "FILE|DIR|-", num_args = 1.., required = true, value_hint = clap::ValueHint::AnyPath)]
    filename: Vec<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(super) fn run(args: &ApplyArgs) -> Result<(), ErrorList> {
    let inputs = Inputs::read(&args.filename, std::io::stdin());
    ErrorList::from_iter(inputs.errors).or_ok(())?;
    let mut plugins = BTreeMap::new();
    let mut errors = ErrorList::default();
    for object in inputs.objects {
        let location = object.location();
        if !policy::is_policy_plugin(&object) {
            errors.add(format!("{location}: is not a PolicyPlugin; remove it"));
        } else if plugins
            .insert(object.metadata.name.clone(), object)
            .is_some()
        {
            errors.add(format!("{location}: is there twice; remove one of the two"));
        }
    }
    let plugins: Vec<_> = plugins.into_values().collect();
    if let Err(invalid) = Declared::read(&[], &plugins) {
        errors.absorb(invalid);
    }
    errors.or_ok(())?;
    args.cluster
        .run(Access::Any, async |client, _| all(&plugins, client).await)
}

/// Applies the objects, and prints a line for each of them.
async fn all(plugins: &[Object], client: Client) -> Result<(), ErrorList> {
    let kind = GroupVersionKind::gvk(TRAINYARD_GROUP, "v1alpha1", POLICY_PLUGIN);
    let mut errors = ErrorList::default();
    for plugin in plugins {
        let name = &plugin.metadata.name;
        match apply::apply(client.clone(), &kind, name, &plugin.value).await {
            Ok(()) => output::lines([format!("{name} applied")])?,
            Err(error) => errors.absorb(error.into()),
        }
    }
    errors.or_ok(())
}
