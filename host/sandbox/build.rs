//! Makes a table of the contract: a contract that does not parse does not build.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

use wit_parser::{Resolve, WorldItem};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new("../../wit");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut resolve = Resolve::default();
    resolve.push_dir(folder)?;
    let worlds = &resolve.worlds;
    let plugin = worlds.iter().find(|(_, world)| world.name == "plugin");
    let (_, plugin) = plugin.ok_or("the contract has no world `plugin`")?;

    let mut table = String::from(
        "/// The interfaces that a component may import, each with its functions and types.\n\
         const CONTRACT: &[(&str, &[&str])] = &[\n",
    );
    for (key, item) in &plugin.imports {
        if let WorldItem::Interface { id, .. } = item {
            let interface = resolve
                .interfaces
                .get(*id)
                .ok_or("an interface is missing")?;
            let functions = interface.functions.keys();
            let members: Vec<_> = functions.chain(interface.types.keys()).collect();
            writeln!(
                table,
                "    ({:?}, &{members:?}),",
                resolve.name_world_key(key)
            )?;
        }
    }
    table += "];\n";
    let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    fs::write(Path::new(&out).join("contract.rs"), table)?;
    Ok(())
}
