//! The SDK's part: handles and values with the contract's docs, and the bindings that they stand on in a component.

use std::{collections::BTreeSet, fmt::Write as _};

use anyhow::bail;

use crate::{
    Printed,
    contract::{Contract, Interface, Method, Record, Resource, Type},
    docs::comment,
    model::owned,
    names::{camel, snake, variable},
    printed,
};

const FOLDER: &str = "plugins/sdk/src/contract";

/// What `wit-bindgen` makes of the imports.
fn guest(contract: &Contract) -> String {
    let package = snake(&contract.package).replace(':', "::");
    format!("crate::guest::transformer::{package}")
}

pub(crate) fn files(contract: &Contract) -> anyhow::Result<Vec<Printed>> {
    let mut files = vec![
        printed(format!("{FOLDER}/mod.rs"), &module(contract)?),
        printed(format!("{FOLDER}/raw.rs"), &raw(contract)?),
        printed("plugins/sdk/src/guest/worlds.rs", &worlds(contract)?),
    ];
    for interface in contract.interfaces() {
        let name = snake(&interface.name);
        files.push(printed(
            format!("{FOLDER}/{name}.rs"),
            &handles_and_values(contract, interface)?,
        ));
    }
    Ok(files)
}

fn module(contract: &Contract) -> anyhow::Result<String> {
    let mut out =
        "//! Handles and values of the contract, a file for each of its interfaces.\n\n".to_owned();
    let files = contract
        .interfaces()
        .map(|interface| snake(&interface.name));
    let files: BTreeSet<_> = files.chain(["raw".to_owned()]).collect();
    for file in files {
        writeln!(out, "mod {file};")?;
    }
    out += "\n";
    for item in items(contract) {
        writeln!(out, "pub use self::{item};")?;
    }
    write!(
        out,
        "\n/// The version of the contract that a plugin is built for.\n\
         #[doc(hidden)]\n\
         pub const CONTRACT: &str = \"{}\";\n",
        contract.version
    )?;
    Ok(out)
}

/// `context::Context`, for all handles and values.
fn items(contract: &Contract) -> BTreeSet<String> {
    let resources = contract.resources().map(|(of, it)| (of, &it.name));
    let records = contract.records().map(|(of, it)| (of, &it.name));
    let items = resources.chain(records);
    items
        .map(|(of, name)| format!("{}::{}", snake(&of.name), camel(name)))
        .collect()
}

fn raw(contract: &Contract) -> anyhow::Result<String> {
    let mut out = "//! What handles and values stand on: in a component the imports, natively the host's own.\n\n\
                   #[cfg(target_family = \"wasm\")]\n\
                   mod target {\n"
        .to_owned();
    for item in items(contract) {
        writeln!(out, "    pub(crate) use {}::{item};", guest(contract))?;
    }
    out += "}\n\n\
            #[cfg(not(target_family = \"wasm\"))]\n\
            mod target {\n";
    for (module, mut names) in [
        (
            "contract::handle",
            names(contract.resources().map(|(_, it)| &it.name)),
        ),
        ("value", names(contract.records().map(|(_, it)| &it.name))),
    ] {
        names.sort();
        for name in names {
            writeln!(out, "    pub(crate) use trainyard_model::{module}::{name};")?;
        }
    }
    out += "}\n\npub(crate) use self::target::*;\n";
    Ok(out)
}

fn names<'n>(names: impl Iterator<Item = &'n String>) -> Vec<String> {
    names.map(String::as_str).map(camel).collect()
}

fn worlds(contract: &Contract) -> anyhow::Result<String> {
    let mut out =
        "//! Bindings of the contract: a world for each phase, all of them over the imports of `transformer`.\n"
            .to_owned();
    for world in &contract.worlds {
        let name = &world.name;
        out += "\n";
        out += &comment(&world.docs, &contract.words, 0);
        write!(
            out,
            "pub mod {name} {{\n    wit_bindgen::generate!({{\n        path: \"../../wit\",\n        \
             world: \"{name}\",\n        pub_export_macro: true,\n        \
             export_macro_name: \"export_{name}\",\n",
        )?;
        if name == "transformer" {
            out += "        generate_all,\n";
        } else {
            out += "        with: {\n";
            for Interface { name, .. } in &contract.imports {
                let (package, version) = (&contract.package, &contract.version);
                let module = format!("{}::{}", guest(contract), snake(name));
                writeln!(out, "            \"{package}/{name}@{version}\": {module},")?;
            }
            out += "        },\n";
        }
        out += "    });\n}\n";
    }
    Ok(out)
}

fn handles_and_values(contract: &Contract, interface: &Interface) -> anyhow::Result<String> {
    let docs = comment(&interface.docs, &contract.words, 0).replace("/// ", "//! ");
    let mut out = docs.replace("///\n", "//!\n");
    let used = used(contract, interface);
    out += if used.is_empty() { "" } else { "\n" };
    for item in used {
        writeln!(out, "use super::{item};")?;
    }
    if !interface.records.is_empty() {
        out += "\nrecords! {\n";
        for record in &interface.records {
            out += &fields(contract, record)?;
        }
        out += "}\n";
    }
    for resource in &interface.resources {
        out += &table(contract, resource)?;
    }
    Ok(out)
}

/// The names of other interfaces that stand in an interface's signatures.
fn used(contract: &Contract, interface: &Interface) -> BTreeSet<String> {
    let methods = interface
        .resources
        .iter()
        .flat_map(|resource| &resource.methods);
    let types = methods.flat_map(|method| {
        let params = method.params.iter().map(|(_, ty)| ty);
        params.chain(&method.result)
    });
    let mut names: BTreeSet<_> = types.filter_map(named).map(camel).collect();
    let own = contract.resources().map(|(of, it)| (of, &it.name));
    let own = own.chain(contract.records().map(|(of, it)| (of, &it.name)));
    for (_, name) in own.filter(|(of, _)| of.name == interface.name) {
        names.remove(&camel(name));
    }
    names
}

fn named(ty: &Type) -> Option<&str> {
    match ty {
        Type::Plain(_) | Type::String => None,
        Type::Option(ty) | Type::List(ty) => named(ty),
        Type::Record(name) | Type::Own(name) | Type::Borrow(name) => Some(name),
    }
}

fn fields(contract: &Contract, record: &Record) -> anyhow::Result<String> {
    let mut out = comment(&record.docs, &contract.words, 4);
    writeln!(out, "    {} {{", camel(&record.name))?;
    for field in &record.fields {
        out += &comment(&field.docs, &contract.words, 8);
        writeln!(
            out,
            "        {}: {},",
            variable(&field.name),
            owned(&field.ty)
        )?;
    }
    out += "    }\n";
    Ok(out)
}

fn table(contract: &Contract, resource: &Resource) -> anyhow::Result<String> {
    let name = &resource.name;
    let mut out = "\nhandles! {\n".to_owned();
    out += &comment(&resource.docs, &contract.words, 4);
    writeln!(out, "    {} {{", camel(name))?;
    for method in &resource.methods {
        out += &comment(&method.docs, &contract.words, 8);
        let (params, args) = params(method)?;
        let result = match &method.result {
            Some(ty) => format!(" -> {}", owned(ty)),
            None => String::new(),
        };
        let (own, call) = (snake(&method.name), snake(name));
        writeln!(
            out,
            "        fn {own}({params}){result} = \"{name}.{}\" {call}_{own}({args});",
            method.name
        )?;
    }
    out += "    }\n}\n";
    Ok(out)
}

/// The parameters as authors give them, and as they are passed on.
fn params(method: &Method) -> anyhow::Result<(String, String)> {
    let (mut params, mut args) = (Vec::new(), Vec::new());
    for (name, ty) in &method.params {
        let name = variable(name);
        params.push(format!("{name}: {}", borrowed(ty)?));
        args.push(match ty {
            Type::Record(_) => format!("&{name}.clone().into()"),
            Type::Borrow(_) => format!("{name}.lend()"),
            Type::List(inner) if matches!(**inner, Type::Record(_)) => {
                format!("&{name}.iter().cloned().map(Into::into).collect::<Vec<_>>()")
            }
            _ => name,
        });
    }
    Ok((params.join(", "), args.join(", ")))
}

/// A type as an author gives it.
fn borrowed(ty: &Type) -> anyhow::Result<String> {
    Ok(match ty {
        Type::Plain(name) => (*name).to_owned(),
        Type::String => "&str".to_owned(),
        Type::Option(ty) => format!("Option<{}>", borrowed(ty)?),
        Type::List(ty) => format!("&[{}]", owned(ty)),
        Type::Record(name) | Type::Borrow(name) => format!("&{}", camel(name)),
        Type::Own(name) => bail!("{name}: a method borrows handles"),
    })
}
