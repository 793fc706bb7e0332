//! `trainyard plugin check`: finds mistakes in a plugin's directory without compiling the plugin.

use std::path::PathBuf;

use clap::Args;
use trainyard_model::{manifest::Manifest, plugin_info::Exemptions};
use trainyard_render::{Declared, Renderer, SkippedPlugin};

use super::{
    build::{self, unreachable_problem},
    cases,
};
use crate::{
    args::CacheArgs,
    load,
    output::{self, counted},
    report::ErrorList,
};

/// Arguments of `plugin check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The plugin's directory: a crate, or one with a `build.sh`.
    #[arg(value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,
    /// The directory of the cases [default: `cases` in the plugin's directory, if it exists].
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    cases: Option<PathBuf>,
    /// The file with PolicyPlugins [default: `policy.yaml` in the plugin's directory, if it exists].
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    policy: Option<PathBuf>,
    #[command(flatten)]
    cache: CacheArgs,
}

pub(super) fn run(args: &CheckArgs) -> Result<(), ErrorList> {
    let in_dir = |name: &str| Some(args.dir.join(name)).filter(|path| path.exists());
    let policy = args.policy.clone().or_else(|| in_dir("policy.yaml"));
    let folder = args.cases.clone().or_else(|| in_dir("cases"));
    let manifest = build::manifest(&args.dir)?;
    let file = args.dir.join("manifest.json");
    let (loaded, exemptions, mut failure) =
        load::check_manifest(&file, manifest.clone(), policy.as_deref(), &args.cache)?;
    if let Some(problem) = unreachable_problem(&manifest.active_when) {
        failure.add(format!("{}: {problem}", output::path(&file)));
    }
    let renderer = without(loaded.renderer, &manifest, exemptions);
    let checked = folder.map(|folder| cases::check(&folder, &renderer, &manifest));
    let checked = match checked.unwrap_or_else(|| Ok((0, ErrorList::default()))) {
        Ok((checked, of_cases)) => {
            failure.absorb(of_cases);
            checked
        }
        Err(unreadable) => {
            failure.absorb(unreadable);
            0
        }
    };
    failure.or_ok(())?;
    output::lines([format!(
        "{}: plugin {} {}: found no mistakes in its manifest with {} and in {}",
        output::path(&args.dir),
        manifest.name,
        manifest.version,
        counted(manifest.claims.iter().count(), "claim"),
        counted(checked, "case")
    )])
}

/// Returns a renderer that knows the plugin, but cannot call it.
fn without(built_ins: Renderer, manifest: &Manifest, exemptions: Exemptions) -> Renderer {
    built_ins.with_skipped(vec![SkippedPlugin {
        declared: Some(Declared {
            name: manifest.name.clone(),
            active_when: manifest.active_when.clone(),
            exemptions,
        }),
        why: "it is not built".to_owned(),
        is_disabled: false,
    }])
}
