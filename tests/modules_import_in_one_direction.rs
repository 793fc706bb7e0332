//! Modules that share a parent never import each other in a circle, so each can be read after what it is built on. What a module is built
//! on are the items that it names, in `use` declarations and in paths, in itself and in the modules below it. A parent and its children
//! may use each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::common::root;

/// Circles that stay: the source folder, the modules, and why.
const ACCEPTED: &[(&str, &[&str], &str)] = &[];

/// The last segment of the path of a glob.
const GLOB: &str = "*";
/// The segment before the name of an alias.
const AS: &str = "as";

/// A module, as the path of its names below the crate.
type Module = Vec<String>;

/// For each module, those of its siblings that it is built on, with a line of proof.
type Imports = BTreeMap<Module, BTreeMap<Module, String>>;

/// The modules of a source folder with their code. Modules with tests are left out.
fn modules(folder: &Path, of: &Module, found: &mut BTreeMap<Module, TokenStream>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_root = matches!(name, "lib" | "main") && of.is_empty();
        let module = match name {
            "tests" => continue,
            _ if is_root || name == "mod" => of.clone(),
            _ => [of.as_slice(), &[name.to_owned()]].concat(),
        };
        if path.is_dir() {
            modules(&path, &module, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let code = fs::read_to_string(&path).unwrap().parse().unwrap();
            found.entry(module).or_default().extend::<TokenStream>(code);
        }
    }
}

/// The code without the items of tests.
fn without_tests(code: TokenStream) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut tokens = code.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_attribute = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '#');
        let is_test = is_attribute
            && tokens
                .peek()
                .is_some_and(|next| next.to_string().replace(' ', "") == "[cfg(test)]");
        if !is_test {
            kept.push(token);
            continue;
        }
        // The item ends with its block or its semicolon.
        for token in tokens.by_ref() {
            match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                TokenTree::Punct(punct) if punct.as_char() == ';' => break,
                _ => {}
            }
        }
    }
    kept
}

/// Adds the paths that code names, each as its segments, with braces resolved: `a::{b, c::d}` is `a::b` and `a::c::d`. An alias ends in
/// `as` and its name, and a glob in `*`.
fn paths(code: &[TokenTree], prefix: &[String], found: &mut BTreeSet<Vec<String>>) {
    let mut path = prefix.to_vec();
    let mut is_joined = !prefix.is_empty();
    let mut colons = 0;
    for token in code {
        let was_joined = std::mem::take(&mut is_joined) || colons == 2;
        let is_alias = colons == 0 && !path.is_empty() && token.to_string() == AS;
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ':' => {
                colons += 1;
                continue;
            }
            TokenTree::Ident(name) if was_joined || is_alias => {
                path.push(name.to_string());
                is_joined = is_alias;
            }
            TokenTree::Ident(name) => {
                found.insert(std::mem::replace(&mut path, vec![name.to_string()]));
            }
            TokenTree::Punct(punct) if punct.as_char() == '*' && was_joined => {
                path.push(GLOB.to_owned());
            }
            TokenTree::Group(group) => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                let is_tree = colons == 2 && group.delimiter() == Delimiter::Brace;
                paths(&inner, if is_tree { &path } else { &[] }, found);
                if is_tree {
                    path.clear();
                }
            }
            _ => {
                found.insert(std::mem::replace(&mut path, prefix.to_vec()));
                is_joined = !prefix.is_empty();
            }
        }
        colons = 0;
    }
    found.insert(path);
}

/// What the code of a module names and defines.
struct Names {
    /// The paths of its `use` declarations.
    used: BTreeSet<Vec<String>>,
    /// All paths, these among them.
    all: BTreeSet<Vec<String>>,
    /// The names of its own items.
    defined: BTreeSet<String>,
}

impl Names {
    fn of(code: &[TokenTree]) -> Self {
        const ITEMS: [&str; 8] = [
            "const", "enum", "fn", "macro", "static", "struct", "trait", "type",
        ];
        let is = |token: &TokenTree, text: &str| token.to_string() == text;
        let (mut used, mut all) = (BTreeSet::new(), BTreeSet::new());
        paths(code, &[], &mut all);
        for declaration in code.split(|token| is(token, ";")) {
            if let Some(start) = declaration.iter().position(|token| is(token, "use")) {
                paths(&declaration[start + 1..], &[], &mut used);
            }
        }
        let defined = code
            .windows(2)
            .filter(|pair| ITEMS.iter().any(|item| is(&pair[0], item)))
            .map(|pair| pair[1].to_string())
            .collect();
        Self { used, all, defined }
    }

    /// The path by which a `use` declaration imports a name, and the path of each glob.
    fn import<'n>(&'n self, name: &str) -> (Option<&'n [String]>, Vec<&'n [String]>) {
        let mut imported = None;
        let mut globs = Vec::new();
        for path in &self.used {
            match path.as_slice() {
                [path @ .., last] if last == GLOB => globs.push(path),
                [path @ .., word, alias] if word == AS && alias == name => imported = Some(path),
                [.., word, _] if word == AS => {}
                [_, .., last] if last == name => imported = Some(path),
                _ => {}
            }
        }
        (imported, globs)
    }
}

/// The modules of a source folder.
type Named = BTreeMap<Module, Names>;

/// How many re-exports a path may pass through.
const DEPTH: u8 = 6;

/// A path from the root of the crate, if it is a path of this crate.
fn absolute(path: &[String], from: &Module, modules: &Named) -> Option<Vec<String>> {
    let first = path.first()?;
    let up = path.iter().take_while(|name| *name == "super").count();
    match first.as_str() {
        "crate" => Some(path.get(1..)?.to_vec()),
        "self" => Some([from, path.get(1..)?].concat()),
        "super" => Some([from.get(..from.len().checked_sub(up)?)?, path.get(up..)?].concat()),
        _ => {
            let child = [from.as_slice(), std::slice::from_ref(first)].concat();
            modules.contains_key(&child).then(|| [from, path].concat())
        }
    }
}

/// The module that a path from the root names something of. What a module only passes on, by a `use` of its own, is of another one.
fn home(path: &[String], modules: &Named, depth: u8) -> Option<Module> {
    let module = (0..=path.len())
        .rev()
        .filter_map(|length| path.get(..length))
        .find(|prefix| modules.contains_key(*prefix))?
        .to_vec();
    let item = path.get(module.len());
    let passed_on = item.and_then(|item| passed_on(item, &module, modules, depth));
    Some(passed_on.unwrap_or(module))
}

/// The module of an item that a module imports.
fn passed_on(item: &str, module: &Module, modules: &Named, depth: u8) -> Option<Module> {
    let names = modules.get(module)?;
    let depth = depth.checked_sub(1)?;
    if names.defined.contains(item) {
        return None;
    }
    let (imported, globs) = names.import(item);
    if let Some(path) = imported.and_then(|path| absolute(path, module, modules)) {
        return home(&path, modules, depth);
    }
    globs.into_iter().find_map(|glob| {
        let all_of = absolute(glob, module, modules)?;
        let is_defined = modules.get(&all_of)?.defined.contains(item);
        let passed_on = || passed_on(item, &all_of, modules, depth);
        if is_defined {
            Some(all_of.clone())
        } else {
            passed_on()
        }
    })
}

/// The imports among the siblings of a crate.
fn imports(modules: BTreeMap<Module, TokenStream>) -> Imports {
    let named: Named = modules
        .into_iter()
        .map(|(module, code)| (module, Names::of(&without_tests(code))))
        .collect();
    let mut imports = Imports::new();
    for (module, names) in &named {
        for path in &names.all {
            let direct = absolute(path, module, &named).and_then(|path| home(&path, &named, DEPTH));
            let of_glob = || passed_on(path.first()?, module, &named, DEPTH);
            let Some(target) = direct.or_else(of_glob) else {
                continue;
            };
            let common = module
                .iter()
                .zip(&target)
                .take_while(|(a, b)| a == b)
                .count();
            // One of them is above the other.
            let (Some(from), Some(to)) = (module.get(..=common), target.get(..=common)) else {
                continue;
            };
            let proof = format!("{} names {}", module.join("::"), path.join("::"));
            let of_sibling = imports.entry(from.to_vec()).or_default();
            of_sibling.entry(to.to_vec()).or_insert(proof);
        }
    }
    imports
}

/// Removes, again and again, what is built on nothing that is left, and what nothing that is left is built on: only circles remain, and
/// what joins them.
fn circles(mut imports: Imports) -> Imports {
    loop {
        let built_on: BTreeSet<_> = imports.values().flat_map(BTreeMap::keys).cloned().collect();
        let before: usize = imports.values().map(BTreeMap::len).sum();
        imports.retain(|module, _| built_on.contains(module));
        let building: BTreeSet<_> = imports.keys().cloned().collect();
        for on in imports.values_mut() {
            on.retain(|module, _| building.contains(module));
        }
        imports.retain(|_, on| !on.is_empty());
        if imports.values().map(BTreeMap::len).sum::<usize>() == before {
            return imports;
        }
    }
}

#[test]
fn no_modules_import_each_other() {
    let mut checked = 0;
    let rooms = [
        "host",
        "plugins",
        "plugins/sdk",
        "tests",
        "tests/plugins",
        "tools",
        ".",
    ];
    for rooms in rooms {
        let crates = fs::read_dir(root().join(rooms)).unwrap();
        for folder in crates.map(|entry| entry.unwrap().path().join("src")) {
            if !folder.is_dir() {
                continue;
            }
            let name = folder.strip_prefix(root()).unwrap().to_owned();
            let mut found = BTreeMap::new();
            modules(&folder, &Vec::new(), &mut found);
            checked += found.len();
            let mut imports = imports(found);
            for (_, circle, _) in ACCEPTED.iter().filter(|row| name.ends_with(row.0)) {
                let is_accepted = |module: &Module| circle.contains(&module.join("::").as_str());
                for (_, on) in imports.iter_mut().filter(|entry| is_accepted(entry.0)) {
                    on.retain(|module, _| !is_accepted(module));
                }
            }
            let left = circles(imports);
            assert!(
                left.is_empty(),
                "{}: these modules import each other in a circle: {left:#?}",
                name.display()
            );
        }
    }
    assert!(checked > 400, "{checked} modules");
}

#[test]
fn circles_are_found_through_braces_aliases_globs_and_re_exports() {
    let is_circle = |files: &[(&str, &str)]| {
        let read = |(name, code): &(&str, &str)| {
            let module = name.split("::").filter(|name| !name.is_empty());
            (module.map(str::to_owned).collect(), code.parse().unwrap())
        };
        !circles(imports(files.iter().map(read).collect())).is_empty()
    };
    let b = ("b", "use super::a::A; pub struct B;");
    assert!(is_circle(&[("", ""), ("a", "use crate::b::B;"), b]));
    assert!(is_circle(&[("", ""), ("a", "use crate::{b::{B}, c};"), b]));
    assert!(is_circle(&[
        ("", ""),
        ("a", "fn a() { crate::b::new() }"),
        b
    ]));
    assert!(is_circle(&[
        ("", "pub use b::B;"),
        ("a", "use crate::B;"),
        b
    ]));
    assert!(is_circle(&[
        ("", ""),
        ("a", ""),
        ("a::c", "use crate::b::B;"),
        b
    ]));
    assert!(!is_circle(&[("", "use b::B;"), ("a", ""), b]));
    let tests = "#[cfg(test)] mod tests { use crate::b::B; } struct A;";
    assert!(!is_circle(&[("", ""), ("a", tests), b]));
}
