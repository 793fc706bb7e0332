//! Components written by hand, as hostile as each test needs, and a TrainJob to call them for.

use std::{path::Path, sync::Arc};

use sha2::{Digest as _, Sha256};
use trainyard_model::{
    claims::Grants,
    contract::VERSION,
    job::Job,
    limits::Limits,
    plugin::{CallFailure, Phase, Plugin},
    plugin_info::Settings,
    record::{EntryScope, Field, Fields, PodSet, Record},
    session::{CallError, Session},
};
use trainyard_sandbox::{
    CachePaths, CompilerCommand, LoadLimits, LoadProblem, Loader, LoaderOptions, SandboxedPlugin,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The contract of this repository.
pub fn contract() -> Resolve {
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    let mut resolve = Resolve::default();
    resolve.push_dir(wit).unwrap();
    resolve
}

/// The contract with texts replaced in it, beside packages that it may use.
pub fn changed_contract(packages: &[&str], changes: &[(&str, &str)]) -> Resolve {
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    let mut resolve = Resolve::default();
    for package in packages {
        resolve.push_str("other.wit", package).unwrap();
    }
    let mut sources = wit_parser::SourceMap::default();
    let mut done = vec![false; changes.len()];
    for file in std::fs::read_dir(wit).unwrap() {
        let path = file.unwrap().path();
        let mut text = std::fs::read_to_string(&path).unwrap();
        for ((from, to), done) in changes.iter().zip(&mut done) {
            *done |= text.contains(from);
            text = text.replace(from, to);
        }
        sources.push(&path, text);
    }
    assert!(
        done.into_iter().all(|done| done),
        "every change must find its text"
    );
    resolve.push_group(sources.parse().unwrap()).unwrap();
    resolve
}

/// A component of a core module in the text format, for a world of the contract. The cores of these tests say 1.0.0, and mean the
/// contract of this repository.
pub fn component_in(resolve: &Resolve, world: &str, core: &str) -> Vec<u8> {
    let core = &core.replace("@1.0.0", &format!("@{VERSION}"));
    let mut module = wat::parse_str(core).unwrap_or_else(|error| panic!("{error}\n{core}"));
    let (world, _) = resolve
        .worlds
        .iter()
        .find(|(_, w)| w.name == world)
        .unwrap();
    embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8).unwrap();
    let encoder = ComponentEncoder::default().module(&module).unwrap();
    encoder
        .validate(true)
        .encode()
        .unwrap_or_else(|error| panic!("{error:#}\n{core}"))
}

/// Adds a section at the end of a component.
pub fn with_section(mut component: Vec<u8>, id: u8, contents: &[u8]) -> Vec<u8> {
    component.push(id);
    leb(&mut component, contents.len());
    component.extend_from_slice(contents);
    component
}

/// Adds a custom section at the end of a component.
pub fn with_custom(component: Vec<u8>, name: &str, data: &[u8]) -> Vec<u8> {
    let mut contents = Vec::new();
    leb(&mut contents, name.len());
    contents.extend_from_slice(name.as_bytes());
    contents.extend_from_slice(data);
    with_section(component, 0, &contents)
}

/// A number as WebAssembly writes it.
pub fn leb(to: &mut Vec<u8>, mut number: usize) {
    while number > 127 {
        to.push((number & 127) as u8 | 128);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Adds core modules, each instantiated this many times.
pub fn with_instances(component: Vec<u8>, core: &str, times: usize) -> Vec<u8> {
    let module = wat::parse_str(core).unwrap();
    let before = wasmparser_modules(&component);
    let mut instances = Vec::new();
    leb(&mut instances, times);
    for _ in 0..times {
        instances.push(0);
        leb(&mut instances, before);
        instances.push(0);
    }
    with_section(with_section(component, 1, &module), 2, &instances)
}

/// How many core modules a component has at its top level.
fn wasmparser_modules(component: &[u8]) -> usize {
    let mut depth = 0;
    let mut modules = 0;
    for payload in wasmparser::Parser::new(0).parse_all(component) {
        match payload.unwrap() {
            wasmparser::Payload::ModuleSection { .. } => {
                modules += usize::from(depth == 0);
                depth += 1;
            }
            wasmparser::Payload::ComponentSection { .. } => depth += 1,
            wasmparser::Payload::End(_) => depth -= 1,
            _ => {}
        }
    }
    modules
}

/// A manifest with claims, as JSON.
pub fn manifest(phase: &str, claims: &str) -> String {
    format!(
        r#"{{"name":"mole","version":"0.3.1","contract":"1.0.0","activeWhen":"always","phases":["{phase}"],"claims":{claims}}}"#
    )
}

/// What a plugin that sets one env var claims.
pub const ENV_CLAIMS: &str = r#"{"reads":["pod-sets[node].containers[node].image"],"writes":["pod-sets[node].containers[node].env[PET_*]"]}"#;

/// Imports, memory and helpers of the guests below. `$node` gives the handle of the container `node`, `$ok` is the
/// address of a result that is `ok`.
pub const PRELUDE: &str = r#"
  (import "trainyard:policy/context@1.0.0" "[method]context.info" (func $info (param i32) (result i32)))
  (import "trainyard:policy/context@1.0.0" "[method]context.log" (func $log (param i32 i32 i32 i32 i32)))
  (import "trainyard:policy/context@1.0.0" "[method]context.because" (func $because (param i32 i32 i32)))
  (import "trainyard:policy/pod-set-info@1.0.0" "[method]info.pod-set" (func $pod_set (param i32 i32 i32 i32)))
  (import "trainyard:policy/pod-set-info@1.0.0" "[method]pod-set.container" (func $container (param i32 i32 i32 i32)))
  (import "trainyard:policy/pod-set-info@1.0.0" "[method]container.image" (func $image (param i32 i32)))
  (import "trainyard:policy/pod-set-info@1.0.0" "[method]container.args" (func $args (param i32 i32)))
  (import "trainyard:policy/pod-set-info@1.0.0" "[method]container.put-env" (func $put_env (param i32 i32 i32 i32 i32)))
  (import "trainyard:policy/pod-set-info@1.0.0" "[method]container.put-mount" (func $put_mount (param i32)))
  (import "trainyard:policy/pod-set-info@1.0.0" "[method]container.set-command" (func $set_command (param i32 i32 i32)))
  (import "trainyard:policy/panics@1.0.0" "message" (func $panic (param i32 i32)))
  (import "trainyard:policy/pod-set-info@1.0.0" "[resource-drop]container" (func $drop_container (param i32)))
  (memory (export "memory") 4)
  (global $heap (mut i32) (i32.const 65536))
  (global $ok i32 (i32.const 64))
  (data (i32.const 1024) "node")
  (data (i32.const 1040) "PET_NNODES")
  (data (i32.const 1056) "EVIL")
  (data (i32.const 1072) "four")
  (data (i32.const 1088) "info")
  (data (i32.const 1104) "index out of bounds: \1b[2Jthe len is 3")
  (data (i32.const 1200) "\ff\fe\fd")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
    (global.set $heap (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (func $node (param $ctx i32) (result i32)
    (call $pod_set (call $info (local.get $ctx)) (i32.const 1024) (i32.const 4) (i32.const 128))
    (call $container (i32.load (i32.const 132)) (i32.const 1024) (i32.const 4) (i32.const 144))
    (i32.load (i32.const 148)))
"#;

/// The core module of a plugin with a transform: `body` runs in it, with the context as `$ctx` and an `i32` local `$i`;
/// `items` are further items of the module.
pub fn transform_core(items: &str, body: &str) -> String {
    format!(
        r#"(module {PRELUDE} {items}
  (func (export "trainyard:policy/transform@1.0.0#transform") (param $ctx i32) (result i32) (local $i i32)
    {body}
    (global.get $ok)))"#
    )
}

/// A plugin with a transform.
pub fn transform(items: &str, body: &str) -> Vec<u8> {
    transform_claiming(ENV_CLAIMS, items, body)
}

/// A plugin with a transform and those claims.
pub fn transform_claiming(claims: &str, items: &str, body: &str) -> Vec<u8> {
    let component = component_in(&contract(), "transformer", &transform_core(items, body));
    with_custom(
        component,
        "trainyard:manifest",
        manifest("transform", claims).as_bytes(),
    )
}

/// A well-behaved plugin: sets PET_NNODES to `four`.
pub fn good() -> Vec<u8> {
    transform("", PUT_NNODES)
}

/// Sets PET_NNODES to `four`.
pub const PUT_NNODES: &str = r#"(call $put_env (call $node (local.get $ctx)) (i32.const 1040) (i32.const 10) (i32.const 1072) (i32.const 4))"#;

/// A loader that compiles in this crate's own program.
pub fn loader_with(limits: LoadLimits, cache: Option<CachePaths>) -> Loader {
    Loader::new(LoaderOptions {
        compiler: compiler(),
        cache,
        compiled: None,
        limits,
        threads: 2,
    })
    .unwrap()
}

/// The compiling process of this crate.
pub fn compiler() -> CompilerCommand {
    CompilerCommand {
        program: env!("CARGO_BIN_EXE_trainyard-compile").into(),
        args: Vec::new(),
    }
}

/// The same with default limits and no cache.
pub fn loader() -> Loader {
    loader_with(LoadLimits::default(), None)
}

/// Settings with these limits, and with all claims granted.
pub fn settings(limits: Limits) -> Settings {
    Settings {
        grants: Grants::AsClaimed,
        limits,
        ..Settings::default()
    }
}

/// Keeps a file in the folder that `TRAINYARD_HOSTILE_FILES` names, if it does: `make test-plugins` passes each of them through a registry.
pub fn keep(bytes: &[u8]) {
    if let Some(folder) = std::env::var_os("TRAINYARD_HOSTILE_FILES") {
        let name = hex::encode(Sha256::digest(bytes));
        std::fs::write(Path::new(&folder).join(name), bytes).unwrap();
    }
}

/// Loads a component with default settings.
pub fn load(loader: &Loader, bytes: Vec<u8>) -> Result<SandboxedPlugin, LoadProblem> {
    keep(&bytes);
    loader.load_untrusted(bytes, |_| settings(Limits::default()))
}

/// The record of a TrainJob with one pod set `node` of one container `node`.
pub fn record() -> Record {
    let mut record = Record::new("llama", "llama", "cluster.local");
    let mut node = PodSet::new("node");
    node.count = 1000;
    node.counts_nodes = true;
    record.pod_sets.push(node);
    let mut fields = Fields::default();
    fields.load(Field::Image, "", "trainer:1".into());
    record.load_container(0, Field::Containers, "node", fields);
    record
}

/// Calls transform for a new TrainJob.
pub fn call(plugin: &dyn Plugin) -> Result<Record, Box<CallError>> {
    let job = Job {
        name: "llama".into(),
        nodes: 4,
        ..Job::default()
    };
    let mut session = Session::new(Arc::new(job), record());
    let config = plugin
        .info()
        .config(serde_json::Value::Null)
        .expect("no configuration");
    let called = session.call(plugin, Phase::Transform, 0, config);
    if called.is_err() {
        assert_eq!(
            env_of(session.record(), "PET_NNODES"),
            None,
            "nothing of a failed call counts"
        );
        assert!(session.committed().is_empty());
    }
    called.map(|()| session.record().clone())
}

/// An env var of the container `node`.
pub fn env_of(record: &Record, name: &str) -> Option<String> {
    let id = record.container_named(0, "node").unwrap();
    let entry = record.entry(EntryScope::Container(id), Field::Env, name)?;
    entry.datum.as_text().map(str::to_owned)
}

/// Loads and calls a hostile plugin, gives how the call ended, and checks that the error names the plugin and that the
/// next TrainJob renders in the same process.
pub fn contained(loader: &Loader, bytes: Vec<u8>, limits: Limits) -> CallFailure {
    keep(&bytes);
    let plugin = loader
        .load_untrusted(bytes, |_| settings(limits))
        .unwrap_or_else(|problem| panic!("{problem}"));
    let error = call(&plugin).expect_err("the call must not count");
    let text = error.to_string();
    let id = &plugin.info().id;
    for known in ["mole", "0.3.1", "transform", &id.digest[..19]] {
        assert!(text.contains(known), "`{text}` does not name `{known}`");
    }
    assert!(
        text.chars().count() < 2000 && !text.contains('\u{1b}'),
        "{text}"
    );
    next_job_renders(loader);
    error.cause
}

/// A well-behaved plugin works in this process, now.
pub fn next_job_renders(loader: &Loader) {
    let plugin = load(loader, good()).unwrap_or_else(|problem| panic!("{problem}"));
    let record = call(&plugin).unwrap();
    assert_eq!(env_of(&record, "PET_NNODES").as_deref(), Some("four"));
}
