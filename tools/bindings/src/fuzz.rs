//! Generates the calls of the fuzzers: one of each method of the contract, with arguments from the input.

use std::fmt::Write as _;

use anyhow::bail;

use crate::{
    GeneratedFile,
    contract::{Contract, Method, Resource, Type},
    generated,
    names::{camel, snake, variable},
};

const FILE: &str = "tests/fuzz/src/calls/methods.rs";

pub(crate) fn files(contract: &Contract) -> anyhow::Result<Vec<GeneratedFile>> {
    let mut out = "//! A call of each method of the contract, with arguments from the input.\n\n\
                   use trainyard_model::{\n    call::{Call, Fault},\n    contract::handle,\n    value,\n};\n\n\
                   use super::arguments::{Arguments, Returned, Taken};\n\n\
                   /// A method of the contract.\n\
                   pub(super) struct Method {\n    \
                   /// Its name in `wit/`.\n    pub(super) name: &'static str,\n    \
                   /// Calls it with arguments from the input, and keeps the handles that it returns.\n    \
                   pub(super) call: fn(&mut Call, &mut Arguments<'_>) -> Result<(), Fault>,\n}\n\n\
                   /// All methods.\n#[rustfmt::skip]\npub(super) const METHODS: &[Method] = &[\n"
        .to_owned();
    for (_, resource) in contract.resources() {
        for method in &resource.methods {
            out += &row(resource, method)?;
        }
    }
    out += "];\n";
    for (_, record) in contract.records() {
        let name = camel(&record.name);
        let fields = record.fields.iter().map(|field| variable(&field.name));
        let fields: Vec<_> = fields.map(|name| format!("{name}: args.take()")).collect();
        write!(
            out,
            "\n#[rustfmt::skip]\nimpl Taken for value::{name} {{\n    fn taken(args: &mut Arguments<'_>) -> Self {{\n        Self {{ {} }}\n    }}\n}}\n\
             \nimpl Returned for value::{name} {{}}\n",
            fields.join(", ")
        )?;
    }
    for (_, resource) in contract.resources() {
        let name = camel(&resource.name);
        write!(
            out,
            "\nimpl Taken for handle::{name} {{\n    fn taken(args: &mut Arguments<'_>) -> Self {{\n        Self(args.handle(\"{0}\"))\n    }}\n}}\n\
             \nimpl Returned for handle::{name} {{\n    fn keep(&self, args: &mut Arguments<'_>) {{\n        args.keep_handle(\"{0}\", self.0);\n    }}\n}}\n",
            resource.name
        )?;
    }
    Ok(vec![generated(FILE, &out)])
}

fn row(resource: &Resource, method: &Method) -> anyhow::Result<String> {
    let (of, name) = (&resource.name, &method.name);
    let mut args = vec![format!("args.take::<handle::{}>()", camel(of))];
    for (_, ty) in &method.params {
        args.push(argument(ty)?);
    }
    let call = format!("call.{}_{}({})?", snake(of), snake(name), args.join(", "));
    let keep = match &method.result {
        Some(_) => format!("{{ let got = {call}; got.keep(args); Ok(()) }}"),
        None => format!("{{ {call}; Ok(()) }}"),
    };
    Ok(format!(
        "    Method {{ name: \"{of}.{name}\", call: |call, args| {keep} }},\n"
    ))
}

/// Takes an argument from the input.
fn argument(ty: &Type) -> anyhow::Result<String> {
    Ok(match ty {
        Type::Plain(name) => format!("args.take::<{name}>()"),
        Type::String => "&args.take::<String>()".to_owned(),
        Type::Record(name) => format!("&args.take::<value::{}>()", camel(name)),
        Type::Borrow(name) => format!("args.take::<handle::{}>()", camel(name)),
        Type::Option(inner) => match &**inner {
            Type::Plain(name) => format!("args.take::<Option<{name}>>()"),
            Type::String => "args.take::<Option<String>>().as_deref()".to_owned(),
            _ => bail!("this option type is not supported yet"),
        },
        Type::List(inner) => match &**inner {
            Type::Plain(name) => format!("&args.take::<Vec<{name}>>()"),
            Type::String => "&args.take::<Vec<String>>()".to_owned(),
            Type::Record(name) => format!("&args.take::<Vec<value::{}>>()", camel(name)),
            _ => bail!("this list type is not supported yet"),
        },
        Type::Own(_) => bail!("methods can only borrow handles"),
    })
}
