//! The digest of source files, without what does not affect the program: comments, docs, formatting and tests.

use std::{
    collections::BTreeMap,
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::{Path, PathBuf},
};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::{Attribute, File, ImplItem, Item};

/// Returns the digest of these files and of all files in these folders. A new compiler may change it, which does no harm.
pub(crate) fn digest(sources: &[PathBuf]) -> io::Result<u64> {
    let mut found = Found::default();
    for source in sources {
        found.read(source)?;
    }
    let Found { texts, tests } = found;
    let built = texts
        .into_iter()
        .filter(|(path, _)| !tests.iter().any(|test| path.starts_with(test)));
    // The keys of this hasher are fixed.
    let mut hash = DefaultHasher::new();
    for (path, text) in built {
        path.hash(&mut hash);
        text.hash(&mut hash);
    }
    Ok(hash.finish())
}

/// The files that were read.
#[derive(Default)]
struct Found {
    texts: BTreeMap<PathBuf, Vec<u8>>,
    /// The files and folders of modules that are only built for tests.
    tests: Vec<PathBuf>,
}

impl Found {
    fn read(&mut self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            for entry in fs::read_dir(path)? {
                self.read(&entry?.path())?;
            }
            return Ok(());
        }
        let bytes = fs::read(path)?;
        let code = path.extension().is_some_and(|ending| ending == "rs");
        let code = if code { parse(&bytes) } else { None };
        let text = code.map(|file| {
            self.tests.extend(test_modules(path, &file));
            canonical(file).into_bytes()
        });
        self.texts.insert(path.to_owned(), text.unwrap_or(bytes));
        Ok(())
    }
}

/// Parses a file without its docs. Returns `None` if it is not valid Rust, which the compiler reports; then its text counts.
pub(crate) fn parse(bytes: &[u8]) -> Option<File> {
    let tokens: TokenStream = str::from_utf8(bytes).ok()?.parse().ok()?;
    syn::parse2(without_docs(tokens)).ok()
}

/// Removes doc comments, which are attributes here. Other comments are no tokens.
fn without_docs(tokens: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let TokenTree::Group(group) = token else {
            kept.push(token);
            continue;
        };
        if group.delimiter() == Delimiter::Bracket && is_doc(&group.stream()) {
            // The `#` or `#!` before it.
            let marks = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if "#!".contains(mark.as_char()));
            while kept.last().is_some_and(marks) {
                kept.pop();
            }
            continue;
        }
        let inner = without_docs(group.stream());
        kept.push(Group::new(group.delimiter(), inner).into());
    }
    kept.into_iter().collect()
}

fn is_doc(attribute: &TokenStream) -> bool {
    let mut tokens = attribute.clone().into_iter();
    matches!(tokens.next(), Some(TokenTree::Ident(name)) if name == "doc")
        && matches!(tokens.next(), Some(TokenTree::Punct(mark)) if mark.as_char() == '=')
}

/// Returns the paths of the modules of a file that are only built for tests and that have a file of their own.
fn test_modules(path: &Path, file: &File) -> Vec<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let folder = match path.file_stem().and_then(|stem| stem.to_str()) {
        None | Some("lib" | "main" | "mod") => folder.to_owned(),
        Some(stem) => folder.join(stem),
    };
    let modules = file.items.iter().filter_map(|item| match item {
        Item::Mod(module) if is_test(&module.attrs) => Some(module.ident.to_string()),
        _ => None,
    });
    let paths = modules.map(|name| [folder.join(&name), folder.join(format!("{name}.rs"))]);
    paths.flatten().collect()
}

/// Prints a file in one format, without the items that are only built for tests.
fn canonical(mut file: File) -> String {
    remove_tests(&mut file.items);
    prettyplease::unparse(&file)
}

fn remove_tests(items: &mut Vec<Item>) {
    items.retain(|item| !is_test(attributes(item)));
    for item in items {
        match item {
            Item::Mod(module) => {
                if let Some((_, items)) = &mut module.content {
                    remove_tests(items);
                }
            }
            Item::Impl(block) => block.items.retain(|item| match item {
                ImplItem::Const(item) => !is_test(&item.attrs),
                ImplItem::Fn(item) => !is_test(&item.attrs),
                ImplItem::Type(item) => !is_test(&item.attrs),
                _ => true,
            }),
            _ => {}
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether an item is only built for tests. An attribute other than `#[cfg(test)]` does not count, so its item affects the digest.
fn is_test(attributes: &[Attribute]) -> bool {
    let mut configured = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"));
    configured.any(|attribute| {
        let list = attribute.meta.require_list();
        list.is_ok_and(|list| list.tokens.to_string() == "test")
    })
}
