//! A stub of WASI preview 1, which run-times of languages import without needing it for a plugin.
//!
//! There are no arguments, variables or files, the clock stands still, and random bytes are zeros, so that a plugin gives the same result
//! each time, and nothing waits. What is written to the standard output or the standard error is the message of a panic. What would end the
//! process traps.

use wasm_encoder::{
    BlockType, CodeSection, EntityType, ExportKind, ExportSection, Function, FunctionSection,
    ImportSection, InstructionSink, MemArg, MemoryType, Module, TypeSection, ValType,
};
use wasmparser::{CompositeInnerType, FuncType, Parser, Payload, TypeRef};

use super::{WrapError, embed, interface};

/// The name of the module that is stubbed.
pub(super) const MODULE: &str = "wasi_snapshot_preview1";

/// The world of the stub.
const WORLD: (&str, &str) = (
    "stub.wit",
    "package trainyard:policy@1.0.0;\n\nworld wasi-stub {\n    import panics;\n}\n",
);

/// WASI's number for a file that is not open.
const NOT_OPEN: i32 = 8;
/// WASI's number for a function that is not implemented.
const NOT_IMPLEMENTED: i32 = 52;

/// A function that a module imports.
struct Import {
    name: String,
    ty: FuncType,
}

/// Returns the stub of the functions that a core module imports; `None` if it imports none.
pub(super) fn stub(module: &[u8]) -> Result<Option<Vec<u8>>, WrapError> {
    let imports = imports(module)?;
    if imports.is_empty() {
        return Ok(None);
    }
    let mut stub = encoded(&imports);
    embed(&mut stub, WORLD, "wasi-stub")?;
    Ok(Some(stub))
}

fn imports(module: &[u8]) -> Result<Vec<Import>, WrapError> {
    let (mut types, mut imports) = (Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::TypeSection(section) => {
                for group in section {
                    types.extend(group?.into_types());
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    let TypeRef::Func(at) = import.ty else {
                        continue;
                    };
                    let ty = types.get(at as usize).map(|ty| &ty.composite_type.inner);
                    if let Some(CompositeInnerType::Func(ty)) = ty
                        && import.module == MODULE
                    {
                        imports.push(Import {
                            name: import.name.to_owned(),
                            ty: ty.clone(),
                        });
                    }
                }
            }
            _ => {}
        }
    }
    imports.sort_by(|a, b| a.name.cmp(&b.name));
    imports.dedup_by(|a, b| a.name == b.name);
    Ok(imports)
}

/// Encodes the stub: an adapter module that shares the memory of the module that it serves.
fn encoded(imports: &[Import]) -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32, ValType::I32], []);
    let mut imported = ImportSection::new();
    let memory = MemoryType {
        minimum: 0,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    };
    imported.import("env", "memory", EntityType::Memory(memory));
    imported.import(&interface("panics"), "message", EntityType::Function(0));
    let (mut functions, mut exports, mut code) = (
        FunctionSection::new(),
        ExportSection::new(),
        CodeSection::new(),
    );
    for (import, number) in imports.iter().zip(1u32..) {
        let value = |ty: &wasmparser::ValType| match ty {
            wasmparser::ValType::I64 => ValType::I64,
            _ => ValType::I32,
        };
        let (params, results) = (import.ty.params(), import.ty.results());
        types
            .ty()
            .function(params.iter().map(value), results.iter().map(value));
        functions.function(number);
        exports.export(&import.name, ExportKind::Func, number);
        code.function(&body(&import.name, !results.is_empty()));
    }
    let mut module = Module::new();
    module
        .section(&types)
        .section(&imported)
        .section(&functions)
        .section(&exports)
        .section(&code);
    module.finish()
}

/// The number of the import `panics.message` in the stub.
const MESSAGE: u32 = 0;

/// Returns the body of a function. Parameters are those of WASI preview 1.
fn body(name: &str, has_result: bool) -> Function {
    // `fd_write` has four locals of its own.
    let locals = if name == "fd_write" { 4 } else { 0 };
    let mut function = Function::new([(locals, ValType::I32)]);
    let mut to = function.instructions();
    match name {
        "args_sizes_get" | "environ_sizes_get" => {
            store_i32(&mut to, 0, 0);
            store_i32(&mut to, 1, 0);
            to.i32_const(0);
        }
        "args_get" | "environ_get" | "sched_yield" => {
            to.i32_const(0);
        }
        // Go's run-time takes a clock that is 0 for broken.
        "clock_time_get" => {
            to.local_get(2).i64_const(1).i64_store(AT).i32_const(0);
        }
        "clock_res_get" => {
            to.local_get(1).i64_const(1).i64_store(AT).i32_const(0);
        }
        "random_get" => {
            to.local_get(0).i32_const(0).local_get(1).memory_fill(0);
            to.i32_const(0);
        }
        "fd_write" => write(&mut to),
        // Go's run-time sleeps before it prints a panic. One that waits forever uses up its fuel.
        "poll_oneoff" => {
            store_i32(&mut to, 3, 0);
            to.i32_const(0);
        }
        "proc_exit" | "proc_raise" => {
            to.unreachable();
        }
        name if has_result => {
            let is_of_file = name.starts_with("fd_") || name.starts_with("path_");
            to.i32_const(if is_of_file {
                NOT_OPEN
            } else {
                NOT_IMPLEMENTED
            });
        }
        _ => {
            to.unreachable();
        }
    }
    to.end();
    function
}

const AT: MemArg = MemArg {
    offset: 0,
    align: 0,
    memory_index: 0,
};

fn store_i32(to: &mut InstructionSink<'_>, pointer: u32, value: i32) {
    to.local_get(pointer).i32_const(value).i32_store(AT);
}

/// `fd_write(file, iovecs, count, written)`: passes what is written to the standard output and the standard error to `panics.message`, and
/// stores the number of bytes. A text of a component is UTF-8, and a write may end within a character, so bytes beyond ASCII are left out.
fn write(to: &mut InstructionSink<'_>) {
    const FILE: u32 = 0;
    const IOVECS: u32 = 1;
    const COUNT: u32 = 2;
    const WRITTEN: u32 = 3;
    /// The next byte, and the first one that was not passed.
    const NEXT: u32 = 4;
    const START: u32 = 5;
    const END: u32 = 6;
    const BYTES: u32 = 7;
    let length = MemArg { offset: 4, ..AT };
    let pass = |to: &mut InstructionSink<'_>| {
        to.local_get(NEXT).local_get(START).i32_gt_u();
        to.if_(BlockType::Empty);
        to.local_get(START);
        to.local_get(NEXT).local_get(START).i32_sub();
        to.call(MESSAGE).end();
    };
    let advance = |to: &mut InstructionSink<'_>, local: u32, by: i32| {
        to.local_get(local).i32_const(by).i32_add().local_set(local);
    };
    // The numbers of the files that are open are 1 and 2.
    to.local_get(FILE)
        .i32_const(1)
        .i32_sub()
        .i32_const(2)
        .i32_ge_u();
    to.if_(BlockType::Empty).i32_const(NOT_OPEN).return_().end();
    to.block(BlockType::Empty).loop_(BlockType::Empty);
    to.local_get(COUNT).i32_eqz().br_if(1);
    to.local_get(IOVECS)
        .i32_load(AT)
        .local_tee(NEXT)
        .local_set(START);
    to.local_get(IOVECS)
        .i32_load(length)
        .local_get(NEXT)
        .i32_add()
        .local_set(END);
    to.local_get(IOVECS)
        .i32_load(length)
        .local_get(BYTES)
        .i32_add()
        .local_set(BYTES);
    to.block(BlockType::Empty).loop_(BlockType::Empty);
    to.local_get(NEXT).local_get(END).i32_ge_u().br_if(1);
    to.local_get(NEXT)
        .i32_load8_u(AT)
        .i32_const(0x80)
        .i32_ge_u();
    to.if_(BlockType::Empty);
    pass(to);
    to.local_get(NEXT).i32_const(1).i32_add().local_set(START);
    to.end();
    advance(to, NEXT, 1);
    to.br(0).end().end();
    pass(to);
    advance(to, IOVECS, 8);
    advance(to, COUNT, -1);
    to.br(0).end().end();
    to.local_get(WRITTEN).local_get(BYTES).i32_store(AT);
    to.i32_const(0);
}
