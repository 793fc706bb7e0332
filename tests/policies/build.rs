//! Writes the table of the plugins in `plugins/`, which is every directory there with a `manifest.json`.

use std::{
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    let plugins = Path::new("../../plugins");
    println!("cargo::rerun-if-changed={}", plugins.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(plugins)? {
        let folder = entry?.path();
        if folder.join("manifest.json").is_file() {
            let name = folder.file_name().and_then(|name| name.to_str());
            names.extend(name.map(str::to_owned));
        }
    }
    names.sort();
    let (mut table, mut all) = (String::new(), String::new());
    for name in names {
        let (snake, constant) = (
            name.replace('-', "_"),
            name.replace('-', "_").to_uppercase(),
        );
        writeln!(
            table,
            "/// The plugin in `plugins/{name}`.\npub const {constant}: NativePlugin = (\"plugins/{name}\", &trainyard_plugin_{snake}::PLUGIN);"
        )?;
        write!(all, "{constant}, ")?;
    }
    writeln!(
        table,
        "/// The built-in plugins, by name.\npub const BUILT_INS: &[NativePlugin] = &[{all}];"
    )?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    Ok(fs::write(out.join("built_ins.rs"), table)?)
}
