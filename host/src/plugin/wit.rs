//! `trainyard plugin wit`.

use std::{fs, path::PathBuf};

use clap::Args;
use trainyard_componentize::wrap;
use trainyard_model::text::clean;

use crate::{output, report::ErrorList};

/// Arguments of `plugin wit`.
#[derive(Debug, Args)]
pub(crate) struct WitArgs {
    /// The directory to write the files to, which is created.
    #[arg(value_name = "DIR", default_value = "wit", value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,
}

pub(super) fn run(args: &WitArgs) -> Result<(), ErrorList> {
    let failed = |path: &PathBuf, error: std::io::Error| {
        let path = clean(&path.display().to_string());
        ErrorList::from_iter([format!("{path}: cannot be written: {error}")])
    };
    fs::create_dir_all(&args.dir).map_err(|error| failed(&args.dir, error))?;
    let mut lines = Vec::new();
    for (name, text) in wrap::WIT {
        let path = args.dir.join(name);
        output::replace(&path, text.as_bytes()).map_err(|error| failed(&path, error))?;
        lines.push(clean(&path.display().to_string()));
    }
    output::lines(lines)
}
