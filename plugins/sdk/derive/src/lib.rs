//! The derive macro `Config` of the plugin SDK.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Data, DeriveInput, Expr, Field, Fields, GenericArgument, Lit, LitStr, PathArguments, Type,
    parse_macro_input, spanned::Spanned,
};

/// Derives the JSON Schema and the decoder of a struct or an enum of unit variants. See `trainyard_sdk::Config`.
#[proc_macro_derive(Config, attributes(config))]
pub fn derive_config(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let (body, read) = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => of_struct(fields.named.iter())?,
            other => {
                return Err(syn::Error::new(
                    other.span(),
                    "a configuration has named fields",
                ));
            }
        },
        Data::Enum(data) => of_enum(data)?,
        Data::Union(_) => {
            return Err(syn::Error::new(
                input.span(),
                "a configuration is a struct or an enum",
            ));
        }
    };
    Ok(quote! {
        impl ::trainyard_sdk::Setting for #name {
            const BODY: &'static str = ::trainyard_sdk::const_format::concatcp!(#body);

            fn read(document: &::trainyard_sdk::Document, at: &str) -> ::core::option::Option<Self> {
                #read
            }
        }

        impl ::trainyard_sdk::Config for #name {
            const SCHEMA: &'static str =
                ::trainyard_sdk::const_format::concatcp!("{", <#name as ::trainyard_sdk::Setting>::BODY, "}");
        }
    })
}

/// The content of a field's attribute.
#[derive(Default)]
struct Options {
    name: Option<String>,
    default: Option<String>,
    minimum: Option<Expr>,
    maximum: Option<Expr>,
    /// Further members of the schema of each value, as JSON after a comma.
    of_values: String,
    /// The same of the field itself.
    of_field: String,
}

fn of_struct<'f>(
    fields: impl Iterator<Item = &'f Field>,
) -> syn::Result<(TokenStream, TokenStream)> {
    let (mut properties, mut required) = (Vec::new(), Vec::new());
    let (mut reads, mut checks) = (Vec::new(), Vec::new());
    for field in fields {
        let Some(ident) = &field.ident else { continue };
        let options = options(field)?;
        let name = options
            .name
            .clone()
            .unwrap_or_else(|| camel_case(&ident.to_string()));
        let (optional, ty) = optional(&field.ty);
        let (shape, inner) = shape(ty);
        if matches!(shape, Shape::One) && !optional && options.default.is_none() {
            required.push(json_text(&name));
        }
        let separator = if properties.is_empty() { "" } else { "," };
        let open = format!("{separator}{}:{{", json_text(&name));
        let description =
            description(field).map(|text| format!("\"description\":{},", json_text(&text)));
        let (before, after) = match shape {
            Shape::One => ("", ""),
            Shape::List => (r#""type":"array","items":{"#, "}"),
            Shape::Map => (r#""type":"object","additionalProperties":{"#, "}"),
        };
        let mut bound = |own: &Option<Expr>, key: &str, of_type: TokenStream| {
            let Some(own) = own else {
                return Ok(quote!(<#inner as ::trainyard_sdk::Setting>::#of_type));
            };
            // Otherwise, the schema would accept values that cannot be read.
            checks.push(quote! {
                const _: () = assert!(
                    <#inner>::MIN as i128 <= #own && #own <= <#inner>::MAX as i128,
                    "a bound of a field is a value of its type"
                );
            });
            let member = format!(",\"{key}\":{}", literal(own)?);
            syn::Result::Ok(quote!(#member))
        };
        let minimum = bound(&options.minimum, "minimum", quote!(MINIMUM))?;
        let maximum = bound(&options.maximum, "maximum", quote!(MAXIMUM))?;
        let (of_values, mut tail) = (options.of_values, options.of_field);
        if let Some(default) = &options.default {
            tail.push_str(&format!(",\"default\":{default}"));
        }
        tail.push('}');
        let description = description.unwrap_or_default();
        let body =
            quote!(<#inner as ::trainyard_sdk::Setting>::BODY, #minimum, #maximum, #of_values);
        properties.push(quote!(#open, #description, #before, #body, #after, #tail,));
        let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let pointer = quote!(&::std::format!("{at}{}", #pointer));
        let read = match shape {
            Shape::One => quote!(<#inner as ::trainyard_sdk::Setting>::read(document, #pointer)),
            Shape::List => quote!(::trainyard_sdk::read_list(document, #pointer)),
            Shape::Map => quote!(::trainyard_sdk::read_map(document, #pointer)),
        };
        reads.push(match (shape, optional) {
            (Shape::One, true) | (Shape::List | Shape::Map, false) => quote!(#ident: #read),
            (Shape::One, false) => quote!(#ident: #read?),
            (Shape::List | Shape::Map, true) => {
                quote!(#ident: document.kind(#pointer).map(|_| #read))
            }
        });
    }
    let required = if required.is_empty() {
        String::new()
    } else {
        format!(",\"required\":[{}]", required.join(","))
    };
    let body = quote! {
        r#""type":"object","additionalProperties":false,"properties":{"#,
        #(#properties)*
        "}",
        #required
    };
    Ok((
        body,
        quote! {
            #(#checks)*
            // The root is always an object: the host has validated it.
            if !at.is_empty() && document.kind(at).as_deref() != ::core::option::Option::Some("object") {
                return ::core::option::Option::None;
            }
            ::core::option::Option::Some(Self { #(#reads),* })
        },
    ))
}

fn of_enum(data: &syn::DataEnum) -> syn::Result<(TokenStream, TokenStream)> {
    let (mut names, mut arms) = (Vec::new(), Vec::new());
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(syn::Error::new(
                variant.span(),
                "a configuration's enum has unit variants only",
            ));
        }
        let (ident, name) = (&variant.ident, camel_case(&variant.ident.to_string()));
        names.push(json_text(&name));
        arms.push(quote!(#name => ::core::option::Option::Some(Self::#ident)));
    }
    let body = format!("\"type\":\"string\",\"enum\":[{}]", names.join(","));
    let read = quote! {
        match document.text(at)?.as_str() {
            #(#arms,)*
            _ => ::core::option::Option::None,
        }
    };
    Ok((quote!(#body), read))
}

fn options(field: &Field) -> syn::Result<Options> {
    let mut options = Options::default();
    for attribute in field
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("config"))
    {
        attribute.parse_nested_meta(|meta| {
            let key = meta.path.require_ident()?.to_string();
            match key.as_str() {
                "rename" => options.name = Some(meta.value()?.parse::<LitStr>()?.value()),
                "default" => options.default = Some(literal(&meta.value()?.parse()?)?),
                "unique_items" => options.of_field.push_str(",\"uniqueItems\":true"),
                "minimum" | "maximum" | "min_length" | "max_length" | "min_items" | "max_items" | "pattern" => {
                    let expression = meta.value()?.parse()?;
                    let value = literal(&expression)?;
                    let member = format!(",{}:{value}", json_text(&camel_case(&key)));
                    match key.as_str() {
                        "minimum" => options.minimum = Some(expression),
                        "maximum" => options.maximum = Some(expression),
                        "min_items" | "max_items" => options.of_field.push_str(&member),
                        _ => options.of_values.push_str(&member),
                    }
                }
                _ => {
                    return Err(meta.error(
                        "known are rename, default, minimum, maximum, min_length, max_length, min_items, max_items, unique_items, pattern",
                    ));
                }
            }
            Ok(())
        })?;
    }
    Ok(options)
}

/// Returns a literal as JSON.
fn literal(expression: &Expr) -> syn::Result<String> {
    let wrong = || {
        syn::Error::new(
            expression.span(),
            "a string, an integer or a boolean is expected",
        )
    };
    match expression {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Str(text) => Ok(json_text(&text.value())),
            Lit::Int(number) => Ok(number.base10_digits().to_owned()),
            Lit::Bool(value) => Ok(value.value.to_string()),
            _ => Err(wrong()),
        },
        Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => {
            Ok(format!("-{}", literal(&unary.expr)?))
        }
        _ => Err(wrong()),
    }
}

/// The container type of a field's values.
#[derive(Clone, Copy)]
enum Shape {
    One,
    List,
    Map,
}

/// Returns whether a type is an `Option`, and its inner type.
fn optional(ty: &Type) -> (bool, &Type) {
    match generic(ty) {
        Some((name, inner)) if name == "Option" => (true, inner),
        _ => (false, ty),
    }
}

/// Returns the container type of a type, and the type of its values.
fn shape(ty: &Type) -> (Shape, &Type) {
    match generic(ty) {
        Some((name, inner)) if name == "Vec" => (Shape::List, inner),
        Some((name, inner)) if name == "BTreeMap" => (Shape::Map, inner),
        _ => (Shape::One, ty),
    }
}

/// Returns the name of a generic type and its last type argument.
fn generic(ty: &Type) -> Option<(&syn::Ident, &Type)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    let inner = arguments
        .args
        .iter()
        .rev()
        .find_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty),
            _ => None,
        });
    Some((&last.ident, inner?))
}

/// Returns the doc comment of a field as one line.
fn description(field: &Field) -> Option<String> {
    let lines: Vec<String> = field
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
        .filter_map(
            |attribute| match &attribute.meta.require_name_value().ok()?.value {
                Expr::Lit(lit) => match &lit.lit {
                    Lit::Str(text) => Some(text.value().trim().to_owned()),
                    _ => None,
                },
                _ => None,
            },
        )
        .collect();
    (!lines.is_empty()).then(|| lines.join(" "))
}

/// Returns `max_items` and `MaxItems` as `maxItems`.
fn camel_case(name: &str) -> String {
    let mut out = String::new();
    let mut upper = false;
    for c in name.chars() {
        match c {
            '_' => upper = true,
            c if out.is_empty() => out.extend(c.to_lowercase()),
            c if std::mem::take(&mut upper) => out.extend(c.to_uppercase()),
            c => out.push(c),
        }
    }
    out
}

/// Returns a string as JSON.
fn json_text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
