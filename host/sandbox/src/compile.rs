//! Compiling what nobody vouches for: in a child process, since a small file can cost much memory and time.

use std::{
    ffi::OsString,
    io::{Read, Write},
    path::PathBuf,
    process::{Command, ExitCode, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rlimit::Resource;
use trainyard_model::text::clean;
use wasmtime::Engine;

use crate::{engine, screen::LoadLimits, vouched::Vouched};

/// The child's exit code for a component that the compiler refuses.
const REFUSED: u8 = 3;

/// Bytes of the child's message that are kept.
const MAX_MESSAGE: u64 = 16 << 10;

/// The program that compiles: one whose main calls [`child_main`].
#[derive(Clone, Debug)]
pub struct CompilerCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

impl CompilerCommand {
    /// The running program, by an argument that makes it call [`child_main`].
    ///
    /// # Errors
    /// The program's own path is not known.
    pub fn this_program(argument: &str) -> std::io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe()?,
            args: vec![argument.into()],
        })
    }
}

/// Why a component is not compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The child could not be run.
    #[error("the compiling process could not be run: {0}")]
    Child(#[from] std::io::Error),
    /// It took too long.
    #[error("takes more than {0} s to compile")]
    Time(u64),
    /// It took too much memory.
    #[error("takes more than {0} bytes of memory to compile")]
    Memory(u64),
    /// The compiler refuses it.
    #[error("does not compile: {0}")]
    Refused(String),
    /// The child ended in another way.
    #[error("the compiling process ended with {0}")]
    Ended(ExitStatus),
}

/// Compiles in a child process under the limits.
pub(crate) fn in_child(
    command: &CompilerCommand,
    bytes: &[u8],
    limits: &LoadLimits,
) -> Result<Vouched, CompileError> {
    let mut child = Command::new(&command.program)
        .args(&command.args)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let header = [
        limits.compile_memory_bytes.to_le_bytes(),
        limits.compile_seconds.to_le_bytes(),
    ]
    .concat();
    let deadline = Instant::now() + Duration::from_secs(limits.compile_seconds);
    std::thread::scope(|scope| {
        // A child that dies early closes its end; how it ended says why.
        scope.spawn(move || {
            stdin.map(|mut pipe| pipe.write_all(&header).and_then(|()| pipe.write_all(bytes)))
        });
        // Code can't be larger than the memory that it was made in.
        let code = scope.spawn(move || read_all(stdout, limits.compile_memory_bytes));
        let message = scope.spawn(move || read_all(stderr, MAX_MESSAGE));
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if Instant::now() > deadline {
                child.kill()?;
                child.wait()?;
                return Err(CompileError::Time(limits.compile_seconds));
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let (code, message) = (
            code.join().unwrap_or_default(),
            message.join().unwrap_or_default(),
        );
        outcome(status, code, &message, limits)
    })
}

/// Reads a pipe to its end, and keeps so many bytes of it.
fn read_all(pipe: Option<impl Read>, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        let _ = pipe.by_ref().take(most).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
    }
    bytes
}

fn outcome(
    status: ExitStatus,
    code: Vec<u8>,
    message: &[u8],
    limits: &LoadLimits,
) -> Result<Vouched, CompileError> {
    use std::os::unix::process::ExitStatusExt;
    const SIGABRT: i32 = 6;
    const SIGKILL: i32 = 9;
    const SIGSEGV: i32 = 11;
    const SIGXCPU: i32 = 24;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(Vouched::by_origin(code)),
        (Some(code), _) if code == i32::from(REFUSED) => Err(CompileError::Refused(clean(
            &String::from_utf8_lossy(message),
        ))),
        (_, Some(SIGXCPU | SIGKILL)) => Err(CompileError::Time(limits.compile_seconds)),
        // An allocation that fails aborts; a thread whose stack can't be mapped, too.
        (_, Some(SIGABRT | SIGSEGV)) => Err(CompileError::Memory(limits.compile_memory_bytes)),
        _ => Err(CompileError::Ended(status)),
    }
}

/// Compiles in this process what is vouched for: built-in plugins.
pub(crate) fn here(engine: &Engine, bytes: &[u8]) -> Result<Vouched, CompileError> {
    engine
        .precompile_component(bytes)
        .map(Vouched::by_origin)
        .map_err(|error| CompileError::Refused(clean(&format!("{error:#}"))))
}

/// The whole of the child: limits itself, reads a component from standard input, writes code to standard output.
#[must_use]
pub fn child_main() -> ExitCode {
    match child() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprint!("{message}");
            ExitCode::from(REFUSED)
        }
    }
}

fn child() -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let mut input = std::io::stdin().lock();
    let mut number = || -> Result<u64, String> {
        let mut bytes = [0; 8];
        input.read_exact(&mut bytes).map_err(text)?;
        Ok(u64::from_le_bytes(bytes))
    };
    let (memory, seconds) = (number()?, number()?);
    Resource::DATA.set(memory, memory).map_err(text)?;
    Resource::CPU.set(seconds, seconds).map_err(text)?;
    Resource::CORE.set(0, 0).map_err(text)?;
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(text)?;
    let engine = Engine::new(&engine::config()).map_err(|error| format!("{error:#}"))?;
    let code = engine
        .precompile_component(&bytes)
        .map_err(|error| format!("{error:#}"))?;
    std::io::stdout().lock().write_all(&code).map_err(text)
}
