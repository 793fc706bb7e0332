//! Errors of files that are not loaded say what is wrong and what to do. These are the texts that no other test has as a whole.

use std::{fmt::Display, io, os::unix::process::ExitStatusExt, process::ExitStatus};

use trainyard_model::{
    plugin::{Busy, CallFailure},
    plugin_info::PluginId,
};
use trainyard_sandbox::{CompileError, LinkError, LoadProblem, Panicked, ScreenError, SetupError};

fn each_is(table: &[(&dyn Display, &str)]) {
    for (error, text) in table {
        assert_eq!(error.to_string(), *text);
    }
}

fn id() -> PluginId {
    PluginId {
        name: "torch".into(),
        version: "1.2.3".into(),
        digest: "native".into(),
    }
}

#[test]
fn files_say_what_they_are_instead_of_a_plugin() {
    let too_much = ScreenError::TooMuch {
        what: "modules",
        allowed: 64,
    };
    let phases = ScreenError::Phases {
        exported: "build".to_owned(),
        declared: "transform".to_owned(),
    };
    each_is(&[
        (
            &ScreenError::NotAFile("a directory"),
            "is a directory, not a file; pass a `.wasm` file",
        ),
        (&ScreenError::Empty, "is empty; pass a `.wasm` file"),
        (
            &ScreenError::TooLarge(1024),
            "exceeds the limit of 1024 bytes for a plugin",
        ),
        (
            &ScreenError::CoreModule,
            "is a core module, not a component; build it with `trainyard plugin build`",
        ),
        (
            &ScreenError::NativeCode("ELF"),
            "is native code (ELF), which is never loaded; pass the component that it was compiled from",
        ),
        (
            &ScreenError::Malformed("unexpected end".to_owned()),
            "is not a valid WebAssembly component: unexpected end",
        ),
        (
            &too_much,
            "has more than 64 modules, the limit for a plugin",
        ),
        (
            &ScreenError::Imports(vec!["wasi:cli/exit".to_owned()]),
            "has imports that contract 1.0.0 does not have: wasi:cli/exit",
        ),
        (
            &ScreenError::Exports(vec!["run".to_owned()]),
            "has exports that are not phases of the contract: run",
        ),
        (
            &phases,
            "exports the phases [build], but its manifest declares [transform]",
        ),
        (
            &ScreenError::Manifests(0),
            "has 0 custom sections `trainyard:manifest` at the top level, but must have one; build it with `trainyard plugin build`",
        ),
    ]);
}

#[test]
fn compilations_that_end_say_which_setting_to_raise() {
    let of = |problem| LoadProblem::Compile { id: id(), problem };
    let ended = |message: &str| CompileError::Ended {
        status: ExitStatus::from_raw(9),
        message: message.to_owned(),
    };
    each_is(&[
        (
            &of(CompileError::Time(30)),
            "plugin torch 1.2.3 (native): took longer than 30 s to check and compile; raise `compile.seconds` in its PolicyPlugin",
        ),
        (
            &of(CompileError::Memory(1024)),
            "plugin torch 1.2.3 (native): took more than 1024 bytes of memory to check and compile; raise `compile.memoryBytes` in its PolicyPlugin",
        ),
        (
            &of(CompileError::Code(1024)),
            "plugin torch 1.2.3 (native): exceeds the limit of 1024 bytes of compiled code",
        ),
        (
            &CompileError::Child(io::Error::other("no memory")),
            "cannot start the compiler process: no memory",
        ),
        (
            &CompileError::Answer,
            "the compiler process returned an invalid answer",
        ),
        (
            &CompileError::Refused("unknown import".to_owned()),
            "does not compile: unknown import",
        ),
        (
            &ended(""),
            "the compiler process failed: signal: 9 (SIGKILL)",
        ),
        (
            &ended("no memory"),
            "the compiler process failed: signal: 9 (SIGKILL): no memory",
        ),
    ]);
}

#[test]
fn plugins_that_do_not_fit_the_host_are_named() {
    let link = LoadProblem::Link {
        id: id(),
        problem: LinkError::Types("`transform` has another type".to_owned()),
    };
    let code = LoadProblem::Code {
        id: id(),
        problem: "it was compiled for another processor".to_owned(),
    };
    let instantiate = LoadProblem::Instantiate {
        id: id(),
        cause: Box::new(CallFailure::Busy(Busy::Pool)),
    };
    each_is(&[
        (
            &instantiate,
            "plugin torch 1.2.3 (native): instantiation failed: all sandbox instances are in use",
        ),
        (
            &link,
            "plugin torch 1.2.3 (native): does not match the contract: `transform` has another type",
        ),
        (
            &code,
            "plugin torch 1.2.3 (native): cannot load the compiled code: it was compiled for another processor",
        ),
        (
            &SetupError::Engine("no threads".to_owned()),
            "cannot set up the sandbox: no threads",
        ),
        (
            &Panicked,
            "the host panicked; this is a bug in Trainyard, please report it with the message",
        ),
    ]);
}
