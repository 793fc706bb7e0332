//! Builds the built-in plugins as components, and writes the table that `src/built_ins.rs` includes in the program.

use std::{
    error::Error,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use trainyard_componentize::build::{self, Messages, Options};
use trainyard_model::names::sha256_digest;

/// The directories of the built-in plugins in `plugins/`.
const BUILT_INS: &[&str] = &["dra", "flux", "jax", "mpi", "torch", "xgboost"];

fn main() -> ExitCode {
    match embed() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot build the built-in plugins: {error}");
            ExitCode::FAILURE
        }
    }
}

fn embed() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?)
        .join("..")
        .canonicalize()?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let options = Options {
        target_dir: build::target_dir_of_environment(),
        locked: true,
        messages: Messages::Keep,
    };
    let mut table =
        String::from("/// The built-in plugins.\npub(crate) static BUILT_INS: &[BuiltIn] = &[\n");
    // The SDK's macro reads the contract from there, which cargo does not know.
    watch(&root.join("wit"));
    for name in BUILT_INS {
        let built = build::build(&root.join("plugins").join(name), &options)?;
        let file = out.join(format!("{name}.wasm"));
        std::fs::write(&file, &built.component.bytes)?;
        let digest = sha256_digest(&built.component.bytes);
        let manifest = serde_json::to_string(&built.component.manifest)?;
        writeln!(
            table,
            "    BuiltIn::embedded({name:?}, include_bytes!({file:?}), {digest:?}, {manifest:?}),"
        )?;
        built.sources.iter().for_each(|source| watch(source));
    }
    table.push_str("];\n");
    std::fs::write(out.join("built_ins.rs"), table)?;
    Ok(())
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}
