//! Generates the sandbox's files: the records as they cross the boundary, and the linker's row for each method.

use std::fmt::Write as _;

use anyhow::bail;

use crate::{
    GeneratedFile,
    contract::{Contract, Interface, Method, Resource, Type},
    generated,
    model::owned,
    names::{camel, snake, variable},
};

const FOLDER: &str = "host/sandbox/src/contract";

pub(crate) fn files(contract: &Contract) -> anyhow::Result<Vec<GeneratedFile>> {
    Ok(vec![
        generated(format!("{FOLDER}/records.rs"), &records(contract)?),
        generated(format!("{FOLDER}/rows.rs"), &rows(contract)?),
    ])
}

fn records(contract: &Contract) -> anyhow::Result<String> {
    let mut out = "//! Records as they cross the boundary.\n\nrecords! {\n".to_owned();
    for (interface, record) in contract.records() {
        writeln!(out, "    /// `{}.{}`", interface.name, record.name)?;
        writeln!(out, "    {} {{", camel(&record.name))?;
        for field in &record.fields {
            let (name, ty) = (variable(&field.name), owned(&field.ty));
            if name != field.name {
                writeln!(out, "        #[component(name = \"{}\")]", field.name)?;
            }
            writeln!(out, "        {name}: {ty},")?;
        }
        out += "    }\n";
    }
    out += "}\n";
    Ok(out)
}

fn rows(contract: &Contract) -> anyhow::Result<String> {
    let mut out = "//! What a component can import: a row for each method, of the types that cross the boundary.\n\n\
                   use trainyard_model::contract::handle;\n\
                   use wasmtime::component::{LinkerInstance, Resource};\n\n\
                   use super::{Interface, records::*};\n\
                   use crate::state::State;\n\n"
        .to_owned();
    out += "/// The interfaces that a component can import.\n\
            #[rustfmt::skip]\n\
            pub(super) const INTERFACES: &[Interface] = &[\n";
    for interface in &contract.imports {
        writeln!(out, "    Interface {{")?;
        writeln!(out, "        name: \"{}\",", interface.name)?;
        writeln!(out, "        members: &[")?;
        for member in &interface.members {
            writeln!(out, "            \"{member}\",")?;
        }
        writeln!(out, "        ],")?;
        writeln!(out, "        rows: {},", function(interface))?;
        writeln!(out, "    }},")?;
    }
    out += "];\n";
    for interface in contract.interfaces() {
        let name = snake(&interface.name);
        write!(
            out,
            "\nfn {name}(instance: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {{\n"
        )?;
        for resource in &interface.resources {
            out += &resource_rows(resource)?;
        }
        out += "    Ok(())\n}\n";
    }
    Ok(out)
}

/// The function that registers an interface's rows.
fn function(interface: &Interface) -> String {
    let name = snake(&interface.name);
    if interface.is_free() {
        format!("super::{name}")
    } else {
        name
    }
}

fn resource_rows(resource: &Resource) -> anyhow::Result<String> {
    let name = &resource.name;
    let mut out = format!(
        "    methods!(instance, \"{name}\", handle::{} {{",
        camel(name)
    );
    if resource.methods.is_empty() {
        // As rustfmt formats it.
        return Ok(out + "});\n");
    }
    out.push('\n');
    for method in &resource.methods {
        let (params, args) = params(method)?;
        let result = match &method.result {
            Some(ty) => format!(" -> {}", lowered(ty)),
            None => String::new(),
        };
        writeln!(
            out,
            "        \"{name}.{}\" ({params}){result} = {}_{}({args});",
            method.name,
            snake(name),
            snake(&method.name)
        )?;
    }
    out += "    });\n";
    Ok(out)
}

/// The parameters as they are lifted, and as they are passed to `Call`.
fn params(method: &Method) -> anyhow::Result<(String, String)> {
    let (mut params, mut args) = (Vec::new(), Vec::new());
    for (name, ty) in &method.params {
        let name = variable(name);
        params.push(format!("{name}: {}", lowered(ty)));
        args.push(argument(&name, ty)?);
    }
    Ok((params.join(", "), args.join(", ")))
}

/// Converts a lifted value to the argument of `Call`.
fn argument(name: &str, ty: &Type) -> anyhow::Result<String> {
    Ok(match ty {
        Type::Plain(_) => name.to_owned(),
        Type::String => format!("&{name}"),
        Type::Record(_) => format!("&{name}.into()"),
        Type::Borrow(_) => format!("super::lent({name})"),
        Type::Option(inner) => match **inner {
            Type::Plain(_) => name.to_owned(),
            Type::String => format!("{name}.as_deref()"),
            _ => bail!("{name}: this option type is not supported yet"),
        },
        Type::List(inner) => match **inner {
            Type::Plain(_) | Type::String => format!("&{name}"),
            Type::Record(_) => {
                format!("&{name}.into_iter().map(Into::into).collect::<Vec<_>>()")
            }
            _ => bail!("{name}: this list type is not supported yet"),
        },
        Type::Own(_) => bail!("{name}: methods can only borrow handles"),
    })
}

/// A type as it crosses the boundary.
fn lowered(ty: &Type) -> String {
    match ty {
        Type::Option(ty) => format!("Option<{}>", lowered(ty)),
        Type::List(ty) => format!("Vec<{}>", lowered(ty)),
        Type::Own(name) | Type::Borrow(name) => format!("Resource<handle::{}>", camel(name)),
        Type::Plain(_) | Type::String | Type::Record(_) => owned(ty),
    }
}
