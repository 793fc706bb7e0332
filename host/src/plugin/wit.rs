//! `trainyard plugin wit`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum, builder::PossibleValue};
use trainyard_componentize::contract::{self, GUEST_FILE, WIT};
use trainyard_model::phase::Phase;

use crate::{output, report::ErrorList};

/// Arguments of `plugin wit`.
#[derive(Debug, Args)]
pub(crate) struct WitArgs {
    /// The directory to write the files to, which is created.
    #[arg(value_name = "DIR", default_value = "wit", value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,
    /// The phases of the plugin, for the world `guest`, which exports them. Can be repeated, and separated by commas.
    #[arg(long, value_name = "PHASE", value_delimiter = ',')]
    phase: Vec<PhaseArg>,
    /// Write source files of a language instead of WIT: those of wit-bindgen for the world `guest`.
    #[arg(long, value_enum, requires = "phase")]
    bindings: Option<Bindings>,
}

/// A language whose source files can be written.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Bindings {
    /// A header, a source file and an object file for C, C++ and Zig.
    C,
}

/// A phase as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PhaseArg(Phase);

impl ValueEnum for PhaseArg {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [PhaseArg; Phase::ALL.len()] = [
            PhaseArg(Phase::Transform),
            PhaseArg(Phase::Build),
            PhaseArg(Phase::Check),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

pub(super) fn run(args: &WitArgs) -> Result<(), ErrorList> {
    let shown = |path: &Path| output::path(path);
    let failed = |path: &Path, error: std::io::Error| {
        ErrorList::from_iter([format!("{}: cannot be written: {error}", shown(path))])
    };
    // In the order of the phases, each once.
    let phases = Phase::ALL.into_iter();
    let phases: Vec<_> = phases
        .filter(|phase| args.phase.contains(&PhaseArg(*phase)))
        .collect();
    let files = files(&phases, args.bindings)?;
    fs::create_dir_all(&args.dir).map_err(|error| failed(&args.dir, error))?;
    let mut lines = Vec::new();
    for (name, bytes) in files {
        let path = args.dir.join(name);
        output::replace(&path, &bytes).map_err(|error| failed(&path, error))?;
        lines.push(shown(&path));
    }
    output::lines(lines)
}

fn files(
    phases: &[Phase],
    bindings: Option<Bindings>,
) -> Result<Vec<(String, Vec<u8>)>, ErrorList> {
    if let Some(Bindings::C) = bindings {
        return contract::c_bindings(phases)
            .map_err(|error| ErrorList::from_iter([error.to_string()]));
    }
    let guest = (!phases.is_empty()).then(|| (GUEST_FILE, contract::guest(phases)));
    let wit = WIT.map(|(name, text)| (name, text.to_owned())).into_iter();
    let files = wit.chain(guest);
    Ok(files
        .map(|(name, text)| (name.to_owned(), text.into_bytes()))
        .collect())
}
