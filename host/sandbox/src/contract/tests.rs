//! What raising the contract to 1.1.0 does, tried before it is needed: a host of 1.1 runs components of 1.0 as a host of 1.0
//! does, links those of 1.1, and refuses those of 1.2.

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
    plugin::Settings,
    policy::Policy,
    record::{Field, Fields, PodSet, Record},
    session::Session,
};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve, SourceMap};

use super::*;
use crate::{
    CompilerCommand, LoadError, LoadLimits, Loader, LoaderOptions, SandboxedPolicy, ScreenError,
    screen::Surface,
};

/// The contract of this host as 1.1.0, with one method more.
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
        version: "1.1.0",
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
        limits: LoadLimits::default(),
        threads: 1,
    };
    Loader::speaking(contract, options).unwrap()
}

fn load(contract: Contract, bytes: &[u8]) -> Result<SandboxedPolicy, LoadError> {
    loader(contract).load_built_in("test", bytes, |_| Settings::built_in())
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A component that was built for contract 1.0.0, and calls every method of it.
fn survey() -> Vec<u8> {
    fs::read(repository().join("tests/contract/1.0.0/survey/plugin.wasm")).unwrap()
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

/// All that a policy does to a TrainJob in all of its phases.
fn outcome(policy: &SandboxedPolicy) -> String {
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
        let config = policy.plugin().config(Value::Null).unwrap();
        while let Err(error) = session.call(policy, phase, 0, config.clone()) {
            let key = error.missing().unwrap_or_else(|| panic!("{error}")).clone();
            let sites = Arc::new(json!({"metadata": {"name": "sites"}, "data": {"a": "b"}}));
            let answer = match &key {
                LookupKey::Object { .. } => LookupAnswer::Object(sites),
                LookupKey::All { .. } => LookupAnswer::all(vec![sites], session.job().into()),
                LookupKey::Served { .. } => LookupAnswer::Served(true),
            };
            session.learn(key, answer);
        }
    }
    let changes: Vec<_> = session.committed().iter().map(|it| &it.changes).collect();
    let objects: Vec<_> = session.emitted().iter().map(|it| &it.object).collect();
    let said = (session.warnings(), session.errors(), session.log());
    format!("{changes:#?}\n{objects:#?}\n{said:#?}")
}

#[test]
fn a_component_of_1_0_does_the_same_on_a_host_of_1_1() {
    let today = outcome(&load(OURS, &survey()).unwrap());
    let tomorrow = outcome(&load(tomorrows(), &survey()).unwrap());
    assert!(
        today.contains("survey-sheet") && today.len() > 10_000,
        "{today}"
    );
    assert!(today == tomorrow, "{today}\n{tomorrow}");
    let surface = Surface::of(&survey(), &tomorrows());
    assert!(surface.imports_of(&Phase::ALL).unwrap().len() > 100);
}

#[test]
fn a_component_of_1_1_is_linked_by_a_host_of_1_1_alone() {
    let component = component("1.1.0", "1.1.0");
    load(tomorrows(), &component).map(drop).unwrap();
    let imports = Surface::of(&component, &tomorrows()).imports_of(&Phase::ALL);
    assert!(
        imports
            .unwrap()
            .contains(&"trainyard:policy/context@1.1.0#[method]context.fresh".to_owned())
    );
    let error = load(OURS, &component).map(drop).unwrap_err().to_string();
    assert!(
        error.contains("was built for contract 1.1.0, which is newer than 1.0.0"),
        "{error}"
    );
}

#[test]
fn a_component_of_1_2_is_refused_by_a_host_of_1_1() {
    let error = load(tomorrows(), &component("1.2.0", "1.2.0"))
        .map(drop)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "built-in test: it was built for contract 1.2.0, which is newer than 1.1.0, that of this host: upgrade the host, or build the plugin with the SDK of this host's release"
    );
    // wasmtime would link it, whatever its manifest says.
    let disguised = component("1.2.0", "1.1.0");
    load(tomorrows(), &disguised).map(drop).unwrap();
    match Surface::of(&disguised, &tomorrows()).imports_of(&Phase::ALL) {
        Err(ScreenError::Imports(names)) => {
            assert!(
                names.iter().all(|name| name.ends_with("@1.2.0")),
                "{names:?}"
            );
        }
        other => panic!("{other:?}"),
    }
}
