//! What raising the contract from 1.0.0 to 1.1.0 does, or from any version to the next, tried before it is needed: a host of
//! the next version runs components of today as today's host does, links its own, and refuses those of the version after it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use std::{fs, path::Path, sync::Arc};

use serde_json::{Value, json};
use trainyard_model::{
    contract::handle,
    job::Job,
    lookup::{LookupAnswer, LookupKey},
    plugin::Plugin,
    plugin_info::Settings,
    record::{Field, Fields, PodSet, Record},
    session::Session,
};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve, SourceMap};

use super::*;
use crate::{
    BuiltIn, CompilerCommand, LoadError, LoadLimits, Loader, LoaderOptions, SandboxedPlugin,
    ScreenError, surface::Surface,
};

/// The version that many minor ones later: of 1.0.0 the first one is 1.1.0.
fn later(by: u32) -> &'static str {
    let mut parts = VERSION.split('.').map(|part| part.parse::<u32>().unwrap());
    let (major, minor) = (parts.next().unwrap(), parts.next().unwrap());
    format!("{major}.{}.0", minor + by).leak()
}

/// The contract of this host as the next version, with one method more.
fn tomorrows() -> Contract {
    let mut interfaces = rows::INTERFACES.to_vec();
    let context = interfaces
        .iter_mut()
        .find(|it| it.name == "context")
        .unwrap();
    context.members = [context.members, &["[method]context.fresh"]]
        .concat()
        .leak();
    context.rows = |instance| {
        let ours = rows::INTERFACES.iter().find(|it| it.name == "context");
        (ours.unwrap().rows)(instance)?;
        instance.func_wrap(
            "[method]context.fresh",
            |_, (_,): (Resource<handle::Context>,)| Ok((7u32,)),
        )
    };
    Contract {
        version: later(1),
        interfaces: interfaces.leak(),
    }
}

fn loader(contract: Contract) -> Loader {
    let options = LoaderOptions {
        compiler: CompilerCommand {
            program: "no compiler is needed".into(),
            args: Vec::new(),
        },
        cache: None,
        compiled: None,
        limits: LoadLimits::default(),
        threads: 1,
    };
    Loader::for_contract(contract, options).unwrap()
}

fn load(contract: Contract, bytes: &[u8]) -> Result<SandboxedPlugin, LoadError> {
    let loader = loader(contract);
    let built_in = BuiltIn::read_for(&contract, "test", bytes.to_vec());
    let built_in = built_in.map_err(|problem| LoadError {
        file: "built-in test".to_owned(),
        problem: Box::new(problem.into()),
    })?;
    loader.load_built_in(&built_in, |_| Settings::built_in())
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Components that call every method of the contract that they were built for, from 1.0.0 on.
fn surveys() -> Vec<Vec<u8>> {
    let folder = fs::read_dir(repository().join("tests/contract")).unwrap();
    let versions = folder.map(|entry| entry.unwrap().path());
    let surveys: Vec<_> = versions
        .filter(|version| version.is_dir())
        .map(|version| fs::read(version.join("survey/plugin.wasm")).unwrap())
        .collect();
    assert!(!surveys.is_empty());
    surveys
}

/// A component that imports everything of a contract of that version with `context.fresh`; its manifest says another one.
fn component(version: &str, declared: &str) -> Vec<u8> {
    let mut sources = SourceMap::default();
    for entry in fs::read_dir(repository().join("wit")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let text = text
            .replace(&format!("@{VERSION};"), &format!("@{version};"))
            .replace(
                "because: func",
                "/// New.\nfresh: func() -> u32;\nbecause: func",
            );
        sources.push(&path, text);
    }
    let mut resolve = Resolve::default();
    resolve.push_group(sources.parse().unwrap()).unwrap();
    let mut worlds = resolve.worlds.iter();
    let (world, _) = worlds.find(|(_, world)| world.name == "plugin").unwrap();
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let mut encoder = ComponentEncoder::default().module(&module).unwrap();
    let mut component = encoder.encode().unwrap();
    let manifest = json!({
        "name": "fresh", "version": "0.1.0", "contract": declared, "activeWhen": "always",
        "phases": ["transform", "build", "check"],
    });
    let section = wasm_encoder::CustomSection {
        name: trainyard_model::manifest::SECTION.into(),
        data: manifest.to_string().into_bytes().into(),
    };
    wasm_encoder::ComponentSection::append_to_component(&section, &mut component);
    component
}

/// All that a plugin does to a TrainJob in all of its phases.
fn outcome(plugin: &SandboxedPlugin) -> String {
    let mut record = Record::new("llama", "llama", "cluster.local");
    let mut set = PodSet::new("node");
    set.ancestor = Some("trainer".into());
    set.count = 2;
    set.counts_nodes = true;
    let old = json!({"name": "old", "emptyDir": {}});
    set.fields.load(Field::Volumes, "old", old.into());
    record.pod_sets.push(set);
    for (list, name) in [
        (Field::InitContainers, "setup"),
        (Field::Containers, "node"),
    ] {
        let mut fields = Fields::default();
        fields.load(Field::Image, "", "registry.example.com/base:1".into());
        fields.load(Field::Env, "USER", "ada".into());
        fields.load(Field::Limits, "nvidia.com/gpu", "8".into());
        record.load_container(0, list, name, fields);
    }
    let job = Job {
        name: "llama".into(),
        namespace: "ml".into(),
        nodes: 2,
        spec: Arc::new(json!({"trainer": {"numNodes": 2}})),
        ..Job::default()
    };
    let mut session = Session::new(Arc::new(job), record);
    for phase in Phase::ALL {
        let config = plugin.info().config(Value::Null).unwrap();
        while let Err(error) = session.call(plugin, phase, 0, config.clone()) {
            let key = error.missing().unwrap_or_else(|| panic!("{error}")).clone();
            let sites = Arc::new(json!({"metadata": {"name": "sites"}, "data": {"a": "b"}}));
            let answer = match &key {
                LookupKey::Object(_) => LookupAnswer::Object(sites),
                LookupKey::All { .. } => LookupAnswer::all(vec![sites], session.job().into()),
                LookupKey::Optional(_) | LookupKey::Catalog(_) => LookupAnswer::Absent,
                LookupKey::Served { .. } => LookupAnswer::Served(true),
            };
            let mut lookups = session.lookups().clone();
            lookups.insert(key, answer);
            session = session.with_lookups(Arc::new(lookups));
        }
    }
    let writes: Vec<_> = session.committed().iter().map(|it| &it.writes).collect();
    let objects: Vec<_> = session.emitted().iter().map(|it| &it.object).collect();
    let said = (session.warnings(), session.errors(), session.log());
    format!("{writes:#?}\n{objects:#?}\n{said:#?}")
}

#[test]
fn components_do_the_same_on_a_later_host() {
    surveys().iter().for_each(|survey| does_the_same(survey));
}

fn does_the_same(survey: &[u8]) {
    let today = outcome(&load(OURS, survey).unwrap());
    let tomorrow = outcome(&load(tomorrows(), survey).unwrap());
    assert!(
        today.contains("survey-sheet") && today.len() > 10_000,
        "{today}"
    );
    assert!(today == tomorrow, "{today}\n{tomorrow}");
    let surface = Surface::of(survey, &tomorrows());
    assert!(surface.imports_of(&Phase::ALL).unwrap().len() > 100);
}

#[test]
fn components_of_the_next_minor_version_need_its_host() {
    let component = component(later(1), later(1));
    load(tomorrows(), &component).map(drop).unwrap();
    let imports = Surface::of(&component, &tomorrows()).imports_of(&Phase::ALL);
    let fresh = format!(
        "{}#[method]context.fresh",
        contract::interface_of("context", later(1))
    );
    assert!(imports.unwrap().contains(&fresh), "{fresh}");
    let error = load(OURS, &component).map(drop).unwrap_err().to_string();
    let told = format!(
        "built for contract {}, but this host supports contracts up to {VERSION}",
        later(1)
    );
    assert!(error.contains(&told), "{error}");
}

#[test]
fn components_are_refused_by_an_older_host() {
    let error = load(tomorrows(), &component(later(2), later(2)))
        .map(drop)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        format!(
            "built-in test: built for contract {}, but this host supports contracts up to {}; upgrade the host, or build the plugin with the SDK of this host's release",
            later(2),
            later(1)
        )
    );
    // wasmtime would link it, whatever its manifest says.
    let disguised = component(later(2), later(1));
    load(tomorrows(), &disguised).map(drop).unwrap();
    match Surface::of(&disguised, &tomorrows()).imports_of(&Phase::ALL) {
        Err(ScreenError::Imports(names)) => {
            assert!(
                names
                    .iter()
                    .all(|name| name.ends_with(&format!("@{}", later(2)))),
                "{names:?}"
            );
        }
        other => panic!("{other:?}"),
    }
}
