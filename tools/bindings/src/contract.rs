//! The contract, as the generators need it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context as _, anyhow, bail, ensure};
use wit_parser::{
    Docs, Function, Handle, Interface as WitInterface, InterfaceId, Resolve, SourceMap,
    TypeDefKind, TypeId, WorldItem,
};

use crate::docs::Words;

/// The only interface with a free function. Its row is written by hand.
const FREE: &str = "panics";

/// The parts of `wit/` that Rust code is generated from.
#[derive(Debug)]
pub struct Contract {
    /// The name of the package, `trainyard:policy`.
    pub(crate) package: String,
    /// The version, such as `1.0.0`.
    pub(crate) version: String,
    /// The interfaces that a component may import, in the order of the world `plugin`.
    pub(crate) imports: Vec<Interface>,
    /// The worlds that guests are built for: all except `plugin`.
    pub(crate) worlds: Vec<World>,
    /// The phases that a component may export.
    pub(crate) phases: Vec<Phase>,
    /// Names that docs may mention.
    pub(crate) words: Words,
    /// Its files, by name.
    pub(crate) files: BTreeMap<String, String>,
}

/// An interface that a component may import.
#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) docs: String,
    /// The names of its functions and types in a component, in the order of `wit/`.
    pub(crate) members: Vec<String>,
    pub(crate) resources: Vec<Resource>,
    /// Its records that a method or a phase uses.
    pub(crate) records: Vec<Record>,
}

#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) name: String,
    pub(crate) docs: String,
    pub(crate) methods: Vec<Method>,
}

#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) name: String,
    pub(crate) docs: String,
    pub(crate) params: Vec<(String, Type)>,
    pub(crate) result: Option<Type>,
}

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) docs: String,
    pub(crate) fields: Vec<Field>,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) docs: String,
    pub(crate) ty: Type,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) name: String,
    pub(crate) docs: String,
}

/// A phase: an interface with one function, whose parameter is the context.
#[derive(Debug)]
pub(crate) struct Phase {
    pub(crate) name: String,
    /// The name of its function.
    pub(crate) function: String,
    pub(crate) docs: String,
    /// Whether it can refuse a TrainJob by its result.
    pub(crate) can_fail: bool,
}

/// A type in the signature of a method or in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// A type that is spelled the same in Rust, such as `u32`.
    Plain(&'static str),
    String,
    Option(Box<Self>),
    List(Box<Self>),
    Record(String),
    Own(String),
    Borrow(String),
}

impl Contract {
    /// Reads the contract from a directory.
    ///
    /// # Errors
    /// Returns an error if it does not parse, or contains a construct that cannot be generated.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            files.insert(name, fs::read_to_string(entry.path())?);
        }
        Self::parse(files)
    }

    /// Reads the contract from files with these names and contents.
    ///
    /// # Errors
    /// Returns an error if it does not parse, or contains a construct that cannot be generated.
    pub fn parse(files: BTreeMap<String, String>) -> anyhow::Result<Self> {
        let mut sources = SourceMap::default();
        for (name, text) in &files {
            sources.push_str(name, text);
        }
        let parsed = sources
            .parse()
            .map_err(|(sources, error)| anyhow!("{}", error.render(&sources)))?;
        let mut resolve = Resolve::default();
        let package = resolve.push_group(parsed)?;
        Self::of(&resolve, package, files)
    }

    fn of(
        resolve: &Resolve,
        package: wit_parser::PackageId,
        files: BTreeMap<String, String>,
    ) -> anyhow::Result<Self> {
        let package = resolve
            .packages
            .get(package)
            .context("there is no package")?;
        let version = package.name.version.as_ref();
        let world = |id| resolve.worlds.get(id).context("a world is missing");
        let plugin = package.worlds.get("plugin").context("no world `plugin`")?;
        let reader = Reader {
            resolve,
            used: used(resolve)?,
        };
        let mut contract = Self {
            package: format!("{}:{}", package.name.namespace, package.name.name),
            version: version.context("the package has no version")?.to_string(),
            imports: Vec::new(),
            worlds: Vec::new(),
            phases: Vec::new(),
            words: reader.words(),
            files,
        };
        for item in world(*plugin)?.imports.values() {
            if let WorldItem::Interface { id, .. } = item {
                contract.imports.push(reader.interface(*id)?);
            }
        }
        for item in world(*plugin)?.exports.values() {
            if let WorldItem::Interface { id, .. } = item {
                contract.phases.push(reader.phase(*id)?);
            }
        }
        for (name, id) in package.worlds.iter().filter(|(name, _)| *name != "plugin") {
            contract.worlds.push(World {
                name: name.clone(),
                docs: docs(name, &world(*id)?.docs)?,
            });
        }
        Ok(contract)
    }

    /// The interfaces whose functions are methods of handles.
    pub(crate) fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.imports.iter().filter(|interface| !interface.is_free())
    }

    /// All resources, each with its interface.
    pub(crate) fn resources(&self) -> impl Iterator<Item = (&Interface, &Resource)> {
        let of = |interface| move |resource| (interface, resource);
        self.interfaces()
            .flat_map(move |interface: &Interface| interface.resources.iter().map(of(interface)))
    }

    /// All records, each with its interface.
    pub(crate) fn records(&self) -> impl Iterator<Item = (&Interface, &Record)> {
        let of = |interface| move |record| (interface, record);
        self.interfaces()
            .flat_map(move |interface: &Interface| interface.records.iter().map(of(interface)))
    }
}

impl Interface {
    /// Whether it is a free function.
    pub(crate) fn is_free(&self) -> bool {
        self.name == FREE
    }
}

struct Reader<'r> {
    resolve: &'r Resolve,
    /// The records that functions use.
    used: BTreeSet<TypeId>,
}

impl Reader<'_> {
    fn interface(&self, id: InterfaceId) -> anyhow::Result<Interface> {
        let interface = self
            .resolve
            .interfaces
            .get(id)
            .context("an interface is missing")?;
        let name = interface.name.clone().context("an interface has no name")?;
        let functions = interface.functions.values();
        let free = functions
            .clone()
            .find(|function| function.kind.resource().is_none());
        if let Some(free) = free.filter(|_| name != FREE) {
            bail!(
                "{name}.{}: functions must be methods, so that only holders of a handle can call them",
                free.name
            );
        }
        let functions = interface.functions.keys();
        let mut out = Interface {
            docs: docs(&name, &interface.docs)?,
            members: functions.chain(interface.types.keys()).cloned().collect(),
            resources: Vec::new(),
            records: Vec::new(),
            name,
        };
        for (name, id) in &interface.types {
            let def = self.resolve.types.get(*id).context("a type is missing")?;
            let docs = || docs(name, &def.docs);
            match &def.kind {
                TypeDefKind::Resource => out.resources.push(Resource {
                    name: name.clone(),
                    docs: docs()?,
                    methods: self.methods(interface, *id)?,
                }),
                TypeDefKind::Record(record) if self.used.contains(id) => {
                    let fields = record.fields.iter().map(|field| self.field(name, field));
                    out.records.push(Record {
                        name: name.clone(),
                        docs: docs()?,
                        fields: fields.collect::<anyhow::Result<_>>()?,
                    });
                }
                TypeDefKind::Record(_) | TypeDefKind::Type(_) => {}
                other => bail!(
                    "{name}: a {} cannot gain cases later without breaking every plugin; use a string, or a method for each case",
                    other.as_str()
                ),
            }
        }
        Ok(out)
    }

    fn phase(&self, id: InterfaceId) -> anyhow::Result<Phase> {
        let interface = self.resolve.interfaces.get(id);
        let interface = interface.context("a phase is missing")?;
        let name = interface.name.clone().context("a phase has no name")?;
        let function = interface.functions.values().next();
        let function = function.with_context(|| format!("{name}: has no function"))?;
        Ok(Phase {
            function: function.name.clone(),
            docs: docs(&name, &function.docs)?,
            can_fail: function.result.is_some(),
            name,
        })
    }

    fn methods(&self, interface: &WitInterface, resource: TypeId) -> anyhow::Result<Vec<Method>> {
        let functions = interface.functions.values();
        let of_it = functions.filter(|function| function.kind.resource() == Some(resource));
        of_it.map(|function| self.method(function)).collect()
    }

    fn method(&self, function: &Function) -> anyhow::Result<Method> {
        let name = &function.name;
        // The first parameter is the handle.
        let params = function.params.iter().skip(1).map(|param| {
            let ty = self
                .ty(&param.ty)
                .with_context(|| format!("{name}: {}", param.name))?;
            anyhow::Ok((param.name.clone(), ty))
        });
        let result = function.result.as_ref().map(|ty| self.ty(ty));
        Ok(Method {
            name: function.item_name().to_owned(),
            docs: docs(name, &function.docs)?,
            params: params.collect::<anyhow::Result<_>>()?,
            result: result
                .transpose()
                .with_context(|| format!("{name}: its result"))?,
        })
    }

    fn field(&self, record: &str, field: &wit_parser::Field) -> anyhow::Result<Field> {
        let place = format!("{record}.{}", field.name);
        let ty = self.ty(&field.ty).with_context(|| place.clone())?;
        let inner = match &ty {
            Type::Option(inner) | Type::List(inner) => inner,
            whole => whole,
        };
        ensure!(
            matches!(inner, Type::Plain(_) | Type::String),
            "{place}: fields of records must be strings, numbers or booleans, or an option or list of them"
        );
        Ok(Field {
            name: field.name.clone(),
            docs: docs(&place, &field.docs)?,
            ty,
        })
    }

    fn ty(&self, ty: &wit_parser::Type) -> anyhow::Result<Type> {
        use wit_parser::Type as Wit;
        let id = match ty {
            Wit::Bool => return Ok(Type::Plain("bool")),
            Wit::U8 => return Ok(Type::Plain("u8")),
            Wit::U16 => return Ok(Type::Plain("u16")),
            Wit::U32 => return Ok(Type::Plain("u32")),
            Wit::U64 => return Ok(Type::Plain("u64")),
            Wit::S32 => return Ok(Type::Plain("i32")),
            Wit::S64 => return Ok(Type::Plain("i64")),
            Wit::String => return Ok(Type::String),
            Wit::Id(id) => *id,
            other => bail!("{other:?} is not supported yet"),
        };
        let def = self.resolve.types.get(id).context("a type is missing")?;
        let name = |id: &TypeId| {
            let def = self.resolve.types.get(*id);
            def.and_then(|def| def.name.clone())
                .context("a type has no name")
        };
        Ok(match &def.kind {
            TypeDefKind::Type(ty) => self.ty(ty)?,
            TypeDefKind::Option(ty) => Type::Option(Box::new(self.ty(ty)?)),
            TypeDefKind::List(ty) => Type::List(Box::new(self.ty(ty)?)),
            TypeDefKind::Record(_) => Type::Record(name(&id)?),
            TypeDefKind::Handle(Handle::Own(id)) => Type::Own(name(id)?),
            TypeDefKind::Handle(Handle::Borrow(id)) => Type::Borrow(name(id)?),
            other => bail!("a {} is not supported yet", other.as_str()),
        })
    }

    /// The names of methods, arguments and fields.
    fn words(&self) -> Words {
        let interfaces = self.resolve.interfaces.iter();
        let functions = interfaces.flat_map(|(_, interface)| interface.functions.values());
        let names = functions.flat_map(|function| {
            let params = function.params.iter().map(|param| param.name.as_str());
            params.chain([function.item_name()])
        });
        let records = self
            .resolve
            .types
            .iter()
            .filter_map(|(_, def)| match &def.kind {
                TypeDefKind::Record(record) => Some(record),
                _ => None,
            });
        let fields = records.flat_map(|record| record.fields.iter().map(|field| &*field.name));
        names.chain(fields).map(str::to_owned).collect()
    }
}

/// The records that a function uses, including those inside other types.
fn used(resolve: &Resolve) -> anyhow::Result<BTreeSet<TypeId>> {
    let functions = || {
        resolve
            .interfaces
            .iter()
            .flat_map(|(_, it)| it.functions.values())
    };
    let params = functions().flat_map(|function| function.params.iter().map(|param| &param.ty));
    let results = functions().filter_map(|function| function.result.as_ref());
    let (mut used, mut open) = (BTreeSet::new(), Vec::new());
    open.extend(params.chain(results).copied());
    while let Some(ty) = open.pop() {
        let wit_parser::Type::Id(id) = ty else {
            continue;
        };
        if !used.insert(id) {
            continue;
        }
        match &resolve.types.get(id).context("a type is missing")?.kind {
            TypeDefKind::Option(ty) | TypeDefKind::List(ty) | TypeDefKind::Type(ty) => {
                open.push(*ty);
            }
            TypeDefKind::Result(result) => open.extend(result.ok.iter().chain(&result.err)),
            TypeDefKind::Record(record) => open.extend(record.fields.iter().map(|field| field.ty)),
            _ => {}
        }
    }
    Ok(used)
}

fn docs(name: &str, docs: &Docs) -> anyhow::Result<String> {
    let docs = docs.contents.as_deref().unwrap_or_default().trim();
    ensure!(!docs.is_empty(), "{name}: has no docs");
    Ok(docs.to_owned())
}
