#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use wasm_encoder::{
    Alias, CodeSection, ComponentAliasSection, ComponentExportKind, ComponentExportSection,
    ConstExpr, EntityType, ExportKind, ExportSection, Function, FunctionSection, GlobalSection,
    GlobalType, ImportSection, MemorySection, MemoryType, Module, TypeSection, ValType,
};

use super::*;

const MANIFEST: &[u8] = br#"{"name": "quiet", "version": "1.0.0", "activeWhen": "always"}"#;

/// A core module as a compiler for C makes it, with a phase, an allocator, and imports.
fn module(phase: &str, imports: &[(&str, &str, &[ValType])]) -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32], [ValType::I32]);
    types.ty().function([ValType::I32; 4], [ValType::I32]);
    types.ty().function([ValType::I32], []);
    let mut imported = ImportSection::new();
    for (at, (from, name, params)) in imports.iter().enumerate() {
        types.ty().function(params.iter().copied(), [ValType::I32]);
        let ty = u32::try_from(at).unwrap() + 3;
        imported.import(from, name, EntityType::Function(ty));
    }
    let first = u32::try_from(imports.len()).unwrap();
    let mut functions = FunctionSection::new();
    let mut exports = ExportSection::new();
    let mut code = CodeSection::new();
    let check = phase == "check";
    functions.function(if check { 2 } else { 0 });
    exports.export(&core_export_of(phase), ExportKind::Func, first);
    let mut body = Function::new([]);
    if !check {
        body.instructions().i32_const(64);
    }
    // Imports that are used are not removed.
    for (at, (.., params)) in imports.iter().enumerate() {
        for param in *params {
            match param {
                ValType::I64 => body.instructions().i64_const(0),
                _ => body.instructions().i32_const(0),
            };
        }
        body.instructions().call(u32::try_from(at).unwrap()).drop();
    }
    body.instructions().end();
    code.function(&body);
    functions.function(1);
    exports.export("cabi_realloc", ExportKind::Func, first + 1);
    let mut realloc = Function::new([]);
    realloc.instructions().i32_const(1024).end();
    code.function(&realloc);
    exports.export("memory", ExportKind::Memory, 0);
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: 1,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    let mut globals = GlobalSection::new();
    globals.global(
        GlobalType {
            val_type: ValType::I32,
            mutable: true,
            shared: false,
        },
        &ConstExpr::i32_const(65_536),
    );
    exports.export("__stack_pointer", ExportKind::Global, 0);
    let mut module = Module::new();
    module.section(&types);
    if !imports.is_empty() {
        module.section(&imported);
    }
    module
        .section(&functions)
        .section(&memories)
        .section(&globals)
        .section(&exports)
        .section(&code);
    module.finish()
}

fn core_export_of(phase: &str) -> String {
    format!("trainyard:policy/{phase}@1.0.0#{phase}")
}

#[test]
fn a_core_module_gets_its_world_and_its_manifest() {
    for phase in Phase::ALL {
        let wrapped = wrap(&module(phase.name(), &[]), MANIFEST).unwrap();
        assert!(wrapped.manifest.phases.iter().eq([&phase]));
        assert_eq!(wrapped.manifest.contract, VERSION);
        let (_, exported) = exports::only_phases(&wrapped.bytes).unwrap();
        assert_eq!(exported, [phase]);
        // Wrapping again changes nothing but the manifest.
        let again = wrap(&wrapped.bytes, MANIFEST).unwrap();
        assert_eq!(again.bytes, wrapped.bytes);
    }
}

#[test]
fn wasi_is_stubbed() {
    let i32 = ValType::I32;
    let wasi: &[(&str, &str, &[ValType])] = &[
        (wasi::MODULE, "fd_write", &[i32, i32, i32, i32]),
        (wasi::MODULE, "clock_time_get", &[i32, ValType::I64, i32]),
        (wasi::MODULE, "random_get", &[i32, i32]),
        (wasi::MODULE, "environ_sizes_get", &[i32, i32]),
        (wasi::MODULE, "path_open", &[i32, i32]),
        (wasi::MODULE, "poll_oneoff", &[i32, i32, i32, i32]),
    ];
    let wrapped = wrap(&module("transform", wasi), MANIFEST).unwrap();
    let text = String::from_utf8_lossy(&wrapped.bytes);
    assert!(!text.contains("wasi:"), "nothing of WASI is imported");
    assert!(text.contains("trainyard:policy/panics@1.0.0"));
}

#[test]
fn other_imports_are_named() {
    let error = wrap(&module("transform", &[("env", "now", &[])]), MANIFEST).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("`now` of `env`") && error.contains("glue"),
        "{error}"
    );
}

#[test]
fn a_file_without_a_phase_is_refused() {
    let error = wrap(&module("transforms", &[]), MANIFEST).unwrap_err();
    assert!(matches!(error, WrapError::NoPhase), "{error}");
    let expected = "`trainyard:policy/transform@1.0.0#transform`";
    assert!(error.to_string().contains(expected), "{error}");
    assert!(matches!(
        wrap(b"#!/bin/sh", MANIFEST).unwrap_err(),
        WrapError::Invalid(_)
    ));
}

#[test]
fn manifests_are_checked_against_the_exports() {
    let module = module("transform", &[]);
    let of = |more: &str| {
        format!(r#"{{"name": "quiet", "version": "1.0.0", "activeWhen": "always", {more}}}"#)
    };
    let right = of(r#""phases": ["transform"], "contract": "1.0.0""#);
    assert!(wrap(&module, right.as_bytes()).is_ok());
    let error = wrap(&module, of(r#""phases": ["check"]"#).as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "it exports the phases transform, but the manifest lists check; leave `phases` out of the manifest"
    );
    let error = wrap(
        &module,
        of(r#""claims": {"writes": ["labls[x]"]}"#).as_bytes(),
    )
    .unwrap_err();
    assert!(
        error.to_string().contains("did you mean `labels`?"),
        "{error}"
    );
}

#[test]
fn other_exports_are_removed() {
    let component = wrap(&module("check", &[]), MANIFEST).unwrap().bytes;
    for (kind, index, is_last) in [
        (ComponentExportKind::Instance, 0, true),
        (ComponentExportKind::Instance, 0, false),
        (ComponentExportKind::Module, 0, true),
        (ComponentExportKind::Module, 0, false),
    ] {
        let mut with_more = component.clone();
        let mut exports = ComponentExportSection::new();
        exports.export("exports", kind, index, None);
        wasm_encoder::ComponentSection::append_to_component(&exports, &mut with_more);
        if !is_last {
            let mut instances = wasm_encoder::ComponentInstanceSection::new();
            instances.export_items([] as [(&str, ComponentExportKind, u32); 0]);
            wasm_encoder::ComponentSection::append_to_component(&instances, &mut with_more);
        }
        let wrapped = wrap(&with_more, MANIFEST);
        if kind == ComponentExportKind::Module && !is_last {
            let error = wrapped.unwrap_err().to_string();
            assert!(
                error.contains("`exports`, which is not a phase and cannot be removed"),
                "{error}"
            );
            continue;
        }
        let (bytes, phases) = exports::only_phases(&wrapped.unwrap().bytes).unwrap();
        assert_eq!(phases, [Phase::Check]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains("exports"), "{kind:?} {is_last}");
    }
}

#[test]
fn invalid_component_is_not_blamed_on_its_exports() {
    let mut component = wrap(&module("check", &[]), MANIFEST).unwrap().bytes;
    let mut aliases = ComponentAliasSection::new();
    aliases.alias(Alias::InstanceExport {
        instance: 99,
        kind: ComponentExportKind::Func,
        name: "absent",
    });
    wasm_encoder::ComponentSection::append_to_component(&aliases, &mut component);
    let invalid = |component: &[u8]| {
        let error = wrap(component, MANIFEST).unwrap_err();
        assert!(matches!(error, WrapError::Invalid(_)), "{error}");
    };
    invalid(&component);
    let mut exports = ComponentExportSection::new();
    exports.export("exports", ComponentExportKind::Instance, 0, None);
    wasm_encoder::ComponentSection::append_to_component(&exports, &mut component);
    invalid(&component);
}

#[test]
fn all_files_of_the_contract_are_embedded() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, contract::WIT.map(|(name, _)| name));
}
