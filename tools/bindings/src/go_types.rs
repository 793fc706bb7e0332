//! The types of the contract in Go: as plugin authors use them, and as they are in memory and in the words of a call, which the canonical
//! ABI of components defines.

use crate::{
    contract::{Contract, Method, Type},
    names::{camel, lower_camel},
};

/// How many words of arguments a call passes directly. If there are more, all are passed in memory.
const MAX_WORDS: usize = 16;
/// Keywords of Go, which no parameter can have as its name.
const KEYWORDS: [&str; 25] = [
    "break",
    "case",
    "chan",
    "const",
    "continue",
    "default",
    "defer",
    "else",
    "fallthrough",
    "for",
    "func",
    "go",
    "goto",
    "if",
    "import",
    "interface",
    "map",
    "package",
    "range",
    "return",
    "select",
    "struct",
    "switch",
    "type",
    "var",
];

/// The name of a parameter.
pub(crate) fn variable(name: &str) -> String {
    let variable = lower_camel(name);
    match KEYWORDS.contains(&&*variable) {
        true => variable + "_",
        false => variable,
    }
}

/// The type that plugin authors use. A handle is an interface, which is nil for none.
pub(crate) fn go(ty: &Type) -> String {
    match ty {
        Type::Plain(name) => plain(name).to_owned(),
        Type::String => "string".to_owned(),
        Type::Option(ty) if is_handle(ty) => go(ty),
        Type::Option(ty) => format!("*{}", go(ty)),
        Type::List(ty) => format!("[]{}", go(ty)),
        Type::Record(name) | Type::Own(name) | Type::Borrow(name) => camel(name),
    }
}

fn is_handle(ty: &Type) -> bool {
    matches!(ty, Type::Own(_) | Type::Borrow(_))
}

/// The type of a resource's handles, which implements its interface by calls of the host.
pub(crate) fn handle(resource: &str) -> String {
    lower_camel(&format!("{resource}-handle"))
}

/// The type with the layout in memory. Structs of Go have the layout that the canonical ABI demands, because their fields are aligned to
/// their sizes.
pub(crate) fn raw(ty: &Type) -> String {
    match ty {
        Type::String => "rawString".to_owned(),
        Type::List(_) => "rawList".to_owned(),
        Type::Option(ty) => format!("rawOption[{}]", raw(ty)),
        Type::Record(name) => format!("raw{}", camel(name)),
        Type::Own(name) | Type::Borrow(name) => handle(name),
        Type::Plain(_) => go(ty),
    }
}

fn plain(name: &'static str) -> &'static str {
    match name {
        "u8" => "uint8",
        "u16" => "uint16",
        "u32" => "uint32",
        "u64" => "uint64",
        "i32" => "int32",
        "i64" => "int64",
        same => same,
    }
}

/// Whether a value is one word, and needs no memory.
pub(crate) fn is_identity(ty: &Type) -> bool {
    matches!(ty, Type::Plain(_)) || is_handle(ty)
}

/// Converts a value from memory (`lift`) or to it (`lower`).
pub(crate) fn converted(verb: &str, ty: &Type, value: &str) -> String {
    match ty {
        Type::String => format!("{verb}String({value})"),
        Type::Record(name) => format!("{verb}{}({value})", camel(name)),
        Type::Option(inner) if is_handle(inner) => {
            format!("{verb}HandleOption({value}, {})", function(verb, inner))
        }
        Type::Option(inner) => format!("{verb}Option({value}, {})", function(verb, inner)),
        Type::List(inner) => format!("{verb}List({value}, {})", function(verb, inner)),
        Type::Own(name) | Type::Borrow(name) if verb == "lower" => {
            format!("{value}.({})", handle(name))
        }
        Type::Plain(_) | Type::Own(_) | Type::Borrow(_) => value.to_owned(),
    }
}

/// The function that converts one item.
fn function(verb: &str, ty: &Type) -> String {
    match ty {
        Type::String => format!("{verb}String"),
        Type::Record(name) => format!("{verb}{}", camel(name)),
        Type::Option(_) | Type::List(_) | Type::Own(_) | Type::Borrow(_) => {
            let (from, to) = match verb {
                "lift" => (raw(ty), go(ty)),
                _ => (go(ty), raw(ty)),
            };
            let value = converted(verb, ty, "value");
            format!("func(value {from}) {to} {{ return {value} }}")
        }
        Type::Plain(_) => format!("same[{}]", go(ty)),
    }
}

/// The words that an argument is passed as, each with its type, for an expression of its type in memory.
pub(crate) fn flat(contract: &Contract, ty: &Type, value: &str) -> Vec<(&'static str, String)> {
    match ty {
        Type::Plain("bool") => vec![("uint32", format!("bit({value})"))],
        Type::Plain("u32") => vec![("uint32", value.to_owned())],
        Type::Plain("i64") => vec![("int64", value.to_owned())],
        Type::Plain("u64") => vec![("uint64", value.to_owned())],
        Type::Plain(_) => vec![("uint32", format!("uint32({value})"))],
        Type::String | Type::List(_) => vec![
            ("uint32", format!("{value}.at")),
            ("uint32", format!("{value}.length")),
        ],
        Type::Option(inner) => {
            let mut words = vec![("uint32", format!("bit({value}.some)"))];
            words.extend(flat(contract, inner, &format!("{value}.value")));
            words
        }
        Type::Record(name) => {
            let record = contract.records().find(|(_, record)| record.name == *name);
            let fields = record.into_iter().flat_map(|(_, record)| &record.fields);
            let words = fields.flat_map(|field| {
                let value = format!("{value}.{}", variable(&field.name));
                flat(contract, &field.ty, &value)
            });
            words.collect()
        }
        Type::Own(_) | Type::Borrow(_) => vec![("uint32", format!("uint32({value})"))],
    }
}

/// Whether a call passes its arguments in memory.
pub(crate) fn is_in_memory(contract: &Contract, method: &Method) -> bool {
    let params = method.params.iter();
    let words: usize = params.map(|(_, ty)| flat(contract, ty, "").len()).sum();
    // One more for the handle.
    words + 1 > MAX_WORDS
}

/// Whether the host writes a method's result into memory, because it is more than one word.
pub(crate) fn returns_in_memory(method: &Method) -> bool {
    method.result.as_ref().is_some_and(|ty| !is_identity(ty))
}

/// Converts a result of one word.
pub(crate) fn lifted_word(ty: &Type, value: &str) -> String {
    match ty {
        Type::Plain("bool") => format!("{value} != 0"),
        Type::Plain("u32" | "i64" | "u64") => value.to_owned(),
        Type::Plain(_) => format!("{}({value})", go(ty)),
        _ => format!("{}({value})", raw(ty)),
    }
}
