//! `trainyard plugin new`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use trainyard_api::inputs;
use trainyard_model::{names::is_dns_label, text::clean};

use super::template::{Kind, Language, Template};
use crate::{built_ins::BUILT_INS, output, report::ErrorList};

/// Arguments of `plugin new`.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The plugin's name, a DNS label that begins with a letter.
    #[arg(value_name = "NAME")]
    name: String,
    /// What the plugin is for.
    #[arg(short, long, value_enum)]
    kind: Kind,
    /// The language to write it in.
    #[arg(short, long, value_enum, default_value_t = Language::Rust)]
    language: Language,
    /// For Rust: the folder of the SDK, `plugins/sdk` in a checkout of Trainyard.
    #[arg(long, value_name = "DIR", env = "TRAINYARD_SDK", value_hint = clap::ValueHint::DirPath)]
    sdk: Option<PathBuf>,
    /// The folder to create [default: NAME].
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

/// Why no plugin was created.
#[derive(Debug, thiserror::Error)]
enum NewError {
    #[error(
        "`{0}` cannot be the name of a plugin; choose at most 63 of a-z, 0-9 and `-`, beginning with a letter"
    )]
    Name(String),
    #[error("`{0}` is the name of {1}; choose another name")]
    Taken(String, &'static str),
    #[error(
        "--sdk: {0} has characters that Cargo.toml cannot have; move the SDK to another folder"
    )]
    SdkPath(String),
    #[error("{0} does not exist; create it, and run the command again")]
    NoParent(String),
    #[error("{0} exists; choose another name, or another folder with --dir")]
    Exists(String),
    #[error(
        "--sdk: {0} is not the SDK's folder: its Cargo.toml is not that of trainyard-sdk; pass plugins/sdk in a checkout of Trainyard"
    )]
    Sdk(String),
    #[error(
        "--sdk: a plugin in Rust needs the SDK's folder; pass plugins/sdk in a checkout of Trainyard, or another --language"
    )]
    NoSdk,
    #[error("the template is damaged: {0}; install Trainyard again")]
    Template(#[from] serde_json::Error),
    #[error("{path} cannot be created: {error}")]
    Io { path: String, error: io::Error },
}

pub(super) fn run(args: &NewArgs) -> Result<(), ErrorList> {
    let dir = args.dir.clone().unwrap_or_else(|| (&args.name).into());
    create(args, &dir).map_err(|error| ErrorList::from_iter([error.to_string()]))?;
    let shared = args.language.shared();
    let steps = shared.install.into_iter().map(str::to_owned);
    let steps = steps.chain([
        "trainyard plugin test --update".to_owned(),
        shared.test.to_owned(),
        format!("trainyard plugin build . --output {}.wasm", args.name),
    ]);
    let created = format!("created {}; in this folder, run", output::path(&dir));
    let steps = steps.map(|step| format!("  {step}"));
    output::lines([created].into_iter().chain(steps))
}

/// Names that no crate beside these dependencies can have, and keywords of Rust.
const CRATES: [&str; 6] = [
    "alloc",
    "core",
    "serde-json",
    "std",
    "test",
    "trainyard-sdk",
];
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Checks that a plugin can have the name, and a crate if it is written in Rust.
fn check_name(name: &str, language: Language) -> Result<(), NewError> {
    if !is_dns_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Err(NewError::Name(clean(name)));
    }
    let taken = |by| Err(NewError::Taken(name.to_owned(), by));
    let is_crate = language == Language::Rust;
    match name {
        name if is_crate && KEYWORDS.contains(&name) => taken("a keyword of Rust"),
        name if is_crate && CRATES.contains(&name) => taken("a crate that the plugin needs"),
        name if BUILT_INS.iter().any(|plugin| plugin.name() == name) => taken("a built-in plugin"),
        _ => Ok(()),
    }
}

/// Returns the absolute path of the SDK as text.
fn sdk_path(sdk: &Path) -> Result<String, NewError> {
    let manifest = inputs::read_file(&sdk.join("Cargo.toml"), inputs::MAX_FILE_BYTES);
    if !manifest.is_ok_and(|text| text.contains("\"trainyard-sdk\"")) {
        return Err(NewError::Sdk(output::path(sdk)));
    }
    let path = sdk.canonicalize().ok();
    let path = path.and_then(|path| path.to_str().map(str::to_owned));
    path.filter(|path| !path.contains(char::is_control))
        .ok_or_else(|| NewError::SdkPath(output::path(sdk)))
}

/// Creates the folder whole, or not at all.
fn create(args: &NewArgs, dir: &Path) -> Result<(), NewError> {
    check_name(&args.name, args.language)?;
    let sdk = match (args.language, &args.sdk) {
        (Language::Rust, Some(sdk)) => sdk_path(sdk)?,
        (Language::Rust, None) => return Err(NewError::NoSdk),
        _ => String::new(),
    };
    let template = Template {
        kind: args.kind,
        language: args.language,
        name: &args.name,
        sdk: &sdk,
    };
    let files = template.files()?;
    fs::create_dir(dir).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => NewError::Exists(output::path(dir)),
        io::ErrorKind::NotFound => NewError::NoParent(output::path(dir.parent().unwrap_or(dir))),
        _ => failed(dir, error),
    })?;
    let mut files = files.iter();
    let written = files.try_for_each(|(file, text)| write(&dir.join(file), text));
    written.map_err(|error| {
        // The first error is the one to report.
        let _ = fs::remove_dir_all(dir);
        failed(dir, error)
    })
}

fn failed(dir: &Path, error: io::Error) -> NewError {
    NewError::Io {
        path: output::path(dir),
        error,
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    if path.extension().is_some_and(|extension| extension == "sh") {
        make_executable(path)?;
    }
    Ok(())
}

#[cfg(unix)]
fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut permissions = fs::metadata(path)?.permissions();
    // For those who can read it.
    permissions.set_mode(permissions.mode() | ((permissions.mode() & 0o444) >> 2));
    fs::set_permissions(path, permissions)
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> io::Result<()> {
    Ok(())
}
