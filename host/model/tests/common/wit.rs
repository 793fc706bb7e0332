//! The contract of `wit/` as a list of methods with their docs and claims.

use std::path::Path;

use wit_parser::{
    Docs, Function, Handle, Interface, InterfaceId, Resolve, Type, TypeDef, TypeDefKind, TypeId,
};

/// The parsed contract.
pub struct Contract {
    pub resolve: Resolve,
    package: wit_parser::PackageId,
}

/// A method of a resource, or a function of an interface.
pub struct Method {
    /// `container.put-env`, or `message` where no resource has it.
    pub name: String,
    /// As the contract declares it: `put-env: func(name: string, value: string)`.
    pub signature: String,
    /// What it does, without its claims.
    pub doc: String,
    /// `("writes", "pod-sets[P]...")`.
    pub claims: Vec<(&'static str, String)>,
}

impl Contract {
    pub fn read() -> Self {
        let mut resolve = Resolve::default();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let (package, _) = resolve.push_dir(folder).unwrap();
        Self { resolve, package }
    }

    pub fn interfaces(&self) -> impl Iterator<Item = (InterfaceId, &Interface)> {
        let ids = self.resolve.packages[self.package].interfaces.values();
        ids.map(|id| (*id, &self.resolve.interfaces[*id]))
    }

    pub fn worlds(&self) -> impl Iterator<Item = &wit_parser::World> {
        let ids = self.resolve.packages[self.package].worlds.values();
        ids.map(|id| &self.resolve.worlds[*id])
    }

    /// The types that an interface itself declares.
    pub fn types<'a>(
        &'a self,
        interface: &'a Interface,
    ) -> impl Iterator<Item = (TypeId, &'a TypeDef)> {
        let types = interface
            .types
            .values()
            .map(|id| (*id, &self.resolve.types[*id]));
        types.filter(|(_, ty)| !matches!(ty.kind, TypeDefKind::Type(_)))
    }

    /// The methods of a resource, or, without one, the functions of an interface.
    pub fn methods(&self, interface: &Interface, resource: Option<TypeId>) -> Vec<Method> {
        let functions = interface.functions.values();
        let of_it = functions.filter(|function| function.kind.resource() == resource);
        of_it
            .map(|function| self.method(function, resource))
            .collect()
    }

    /// Every method of every resource.
    pub fn all_methods(&self) -> Vec<Method> {
        let interfaces = self.interfaces();
        interfaces
            .flat_map(|(_, interface)| {
                let resources = self.types(interface);
                let resources =
                    resources.filter(|(_, ty)| matches!(ty.kind, TypeDefKind::Resource));
                resources.flat_map(|(id, _)| self.methods(interface, Some(id)))
            })
            .collect()
    }

    fn method(&self, function: &Function, resource: Option<TypeId>) -> Method {
        let own = function.item_name();
        let name = match resource {
            Some(id) => format!("{}.{own}", self.resolve.types[id].name.as_ref().unwrap()),
            None => own.to_owned(),
        };
        let params: Vec<String> = function
            .params
            .iter()
            .skip(usize::from(resource.is_some()))
            .map(|param| format!("{}: {}", param.name, self.type_text(&param.ty)))
            .collect();
        let result = function.result.as_ref();
        let result = result.map_or_else(String::new, |ty| format!(" -> {}", self.type_text(ty)));
        let (mut doc, mut claims) = (Vec::new(), Vec::new());
        for line in text(&function.docs).lines() {
            match claim(line) {
                Some(claim) => claims.push(claim),
                None => doc.push(line),
            }
        }
        Method {
            signature: format!("{own}: func({}){result}", params.join(", ")),
            name,
            doc: doc.join(" ").trim().to_owned(),
            claims,
        }
    }

    pub fn type_text(&self, ty: &Type) -> String {
        let id = match ty {
            Type::Id(id) => *id,
            Type::Bool => return "bool".to_owned(),
            Type::U8 => return "u8".to_owned(),
            Type::U16 => return "u16".to_owned(),
            Type::U32 => return "u32".to_owned(),
            Type::S64 => return "s64".to_owned(),
            Type::String => return "string".to_owned(),
            other => panic!("the contract has no {other:?} yet: name it here"),
        };
        let def = &self.resolve.types[id];
        let some = |ty: &Option<Type>| {
            ty.as_ref()
                .map_or_else(|| "_".to_owned(), |ty| self.type_text(ty))
        };
        match (&def.name, &def.kind) {
            (Some(name), _) => name.clone(),
            (None, TypeDefKind::Option(ty)) => format!("option<{}>", self.type_text(ty)),
            (None, TypeDefKind::List(ty)) => format!("list<{}>", self.type_text(ty)),
            (None, TypeDefKind::Result(result)) => {
                format!("result<{}, {}>", some(&result.ok), some(&result.err))
            }
            (None, TypeDefKind::Handle(Handle::Own(id))) => {
                self.resolve.types[*id].name.clone().unwrap()
            }
            (None, TypeDefKind::Handle(Handle::Borrow(id))) => {
                format!("borrow<{}>", self.resolve.types[*id].name.as_ref().unwrap())
            }
            (None, kind) => panic!("the contract has no {kind:?} yet: name it here"),
        }
    }
}

pub fn text(docs: &Docs) -> &str {
    docs.contents.as_deref().unwrap_or_default().trim()
}

/// `@writes PATH`, with `C` for a container of either list.
fn claim(line: &str) -> Option<(&'static str, String)> {
    let (tag, path) = line.trim().strip_prefix('@')?.split_once(' ')?;
    let list = ["reads", "creates", "writes"]
        .into_iter()
        .find(|list| *list == tag)?;
    let path = match path.strip_prefix("C.") {
        Some(field) => format!("pod-sets[P].containers[NAME].{field}"),
        None => path.to_owned(),
    };
    Some((list, path))
}
