//! Generates the model's files: the version, a newtype for each handle, the records.

use std::fmt::Write as _;

use crate::{
    GeneratedFile,
    contract::{Contract, Type},
    docs::comment,
    generated,
    names::{camel, variable},
};

const FOLDER: &str = "host/model/src/contract";

pub(crate) fn files(contract: &Contract) -> anyhow::Result<Vec<GeneratedFile>> {
    Ok(vec![
        generated(format!("{FOLDER}/version.rs"), &version(contract)),
        generated(format!("{FOLDER}/handle.rs"), &handles(contract)?),
        generated(format!("{FOLDER}/records.rs"), &records(contract)?),
    ])
}

fn version(contract: &Contract) -> String {
    let Contract {
        package, version, ..
    } = contract;
    format!(
        "//! Which contract it is.\n\n\
         /// The package of the contract.\n\
         pub const PACKAGE: &str = \"{package}\";\n\n\
         /// The version of the contract that this host speaks.\n\
         pub const VERSION: &str = \"{version}\";\n"
    )
}

fn handles(contract: &Contract) -> anyhow::Result<String> {
    let mut out =
        "//! Handles to what a call can reach: a type for each resource of the contract.\n\n\
                   handles! {\n"
            .to_owned();
    for (interface, resource) in contract.resources() {
        let (interface, name) = (&interface.name, &resource.name);
        writeln!(out, "    /// A handle to a `{interface}.{name}`.")?;
        writeln!(out, "    {},", camel(name))?;
    }
    out += "}\n";
    Ok(out)
}

fn records(contract: &Contract) -> anyhow::Result<String> {
    let mut out = "//! Values of the contract.\n\n\
                   use serde::{Deserialize, Serialize};\n"
        .to_owned();
    for (_, record) in contract.records() {
        out += "\n";
        out += &comment(&record.docs, &contract.words, 0);
        out += "#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]\n";
        writeln!(out, "pub struct {} {{", camel(&record.name))?;
        for field in &record.fields {
            out += &comment(&field.docs, &contract.words, 4);
            writeln!(
                out,
                "    pub {}: {},",
                variable(&field.name),
                owned(&field.ty)
            )?;
        }
        out += "}\n";
    }
    Ok(out)
}

/// The owned Rust type of a record's field.
pub(crate) fn owned(ty: &Type) -> String {
    match ty {
        Type::Plain(name) => (*name).to_owned(),
        Type::String => "String".to_owned(),
        Type::Option(ty) => format!("Option<{}>", owned(ty)),
        Type::List(ty) => format!("Vec<{}>", owned(ty)),
        Type::Record(name) | Type::Own(name) | Type::Borrow(name) => camel(name),
    }
}
