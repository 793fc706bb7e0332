//! Builds the built-in plugins as components and writes the table of them that `src/built_ins.rs` includes, so that the
//! program needs no file beside it.

use std::{
    error::Error,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use trainyard_componentize::build::{self, Messages, Options};

/// The folders of the built-in plugins, below `plugins/`.
const BUILT_INS: &[&str] = &["torch"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?)
        .join("..")
        .canonicalize()?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let options = Options {
        target_dir: Some(root.join("target/guest")),
        locked: true,
        messages: Messages::Keep,
    };
    let mut table =
        String::from("/// The built-in plugins.\npub(crate) static BUILT_INS: &[BuiltIn] = &[\n");
    for name in BUILT_INS {
        let built = build::build(&root.join("plugins").join(name), &options)?;
        let file = out.join(format!("{name}.wasm"));
        std::fs::write(&file, &built.component.bytes)?;
        writeln!(
            table,
            "    BuiltIn {{ name: {name:?}, component: include_bytes!({file:?}) }},"
        )?;
        for source in &built.sources {
            println!("cargo::rerun-if-changed={}", source.display());
        }
    }
    table.push_str("];\n");
    std::fs::write(out.join("built_ins.rs"), table)?;
    Ok(())
}
