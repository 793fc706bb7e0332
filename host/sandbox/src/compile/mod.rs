//! Checking and compiling of untrusted components, in a child process with limits, because a small file can take much memory and time.

mod child;
mod header;

use std::{
    ffi::OsString,
    io::{Read, Write},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use trainyard_model::text::clean;
use wasmtime::Engine;

pub use self::child::child_main;
use self::header::Header;
use crate::{
    contract::OURS, error::CompileError, load_limits::LoadLimits, surface::Surface,
    trusted_code::TrustedCode,
};

/// The child's exit code for a component that the compiler rejects.
const REFUSED: u8 = 3;

/// The most bytes of the child's error message that are read.
const MAX_MESSAGE: u64 = 16 << 10;

/// What Rust writes before it aborts a process whose stack is used up.
const OVERFLOWED: &str = "has overflowed its stack";

/// The most bytes of the surface in the answer.
const MAX_SURFACE: u64 = 1 << 20;

/// A task of the compiler process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Read the surface of a component.
    Screen,
    /// Read the surface, and compile the component if the surface is valid.
    Compile,
}

/// The answer of the compiler process.
pub(crate) struct Answer {
    /// The component's surface.
    pub(crate) surface: Surface,
    /// The compiled code; empty if it was not requested, or the surface is not valid.
    pub(crate) code: TrustedCode,
}

/// The command of the compiler process, a program that calls [`child_main`].
#[derive(Clone, Debug)]
pub struct CompilerCommand {
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

impl CompilerCommand {
    /// Returns the running program, with an argument that makes it call [`child_main`].
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

/// The child process may take this many times its limit of CPU time, because it is not the plugin's fault if the machine is busy.
const WALL_CLOCK_FACTOR: u64 = 2;

/// Runs a task in a child process with limits.
pub(crate) fn in_child(
    command: &CompilerCommand,
    task: Task,
    bytes: &[u8],
    limits: &LoadLimits,
) -> Result<Answer, CompileError> {
    let mut child = Command::new(&command.program)
        .args(&command.args)
        .env_clear()
        // Otherwise mimalloc, the allocator of `trainyard`, takes 1 GiB before the process limits its own memory.
        .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let header = Header::new(task, limits).bytes();
    let wall_clock = limits.compile_seconds.saturating_mul(WALL_CLOCK_FACTOR);
    let deadline = Instant::now() + Duration::from_secs(wall_clock);
    std::thread::scope(|scope| {
        // The threads of the scope wait for the child, so it is killed before the scope ends.
        let child = KillOnDrop(&mut child);
        // If the child ends early, writing fails; its exit status has the reason.
        scope.spawn(move || {
            stdin.map(|mut pipe| pipe.write_all(&header).and_then(|()| pipe.write_all(bytes)))
        });
        // One byte more than the limit, to detect truncation.
        let most = MAX_SURFACE + limits.code_bytes + 1;
        let answer = scope.spawn(move || read_all(stdout, most));
        let message = scope.spawn(move || read_all(stderr, MAX_MESSAGE));
        let status = loop {
            if let Some(status) = child.0.try_wait()? {
                break status;
            }
            if Instant::now() > deadline {
                return Err(CompileError::Time(limits.compile_seconds));
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let (answer, message) = (
            answer.join().unwrap_or_default(),
            message.join().unwrap_or_default(),
        );
        outcome(status, &answer, &message, limits)
    })
}

/// A child process that is killed when this is dropped.
struct KillOnDrop<'c>(&'c mut Child);

impl Drop for KillOnDrop<'_> {
    fn drop(&mut self) {
        // If the child has ended, both fail without effect.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads a pipe to its end, and returns at most `most` bytes.
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
    answer: &[u8],
    message: &[u8],
    limits: &LoadLimits,
) -> Result<Answer, CompileError> {
    use std::os::unix::process::ExitStatusExt;
    const SIGABRT: i32 = 6;
    const SIGKILL: i32 = 9;
    const SIGSEGV: i32 = 11;
    const SIGXCPU: i32 = 24;
    match (status.code(), status.signal()) {
        (Some(0), _) => read_answer(answer, limits),
        (Some(code), _) if code == i32::from(REFUSED) => Err(CompileError::Refused(clean(
            &String::from_utf8_lossy(message),
        ))),
        (_, Some(SIGXCPU | SIGKILL)) => Err(CompileError::Time(limits.compile_seconds)),
        // Rust says so and aborts. More memory would not help.
        (_, Some(SIGABRT)) if String::from_utf8_lossy(message).contains(OVERFLOWED) => {
            Err(CompileError::Refused("it nests too deeply".to_owned()))
        }
        // A failed allocation aborts, and so does a thread whose stack cannot be mapped.
        (_, Some(SIGABRT | SIGSEGV)) => Err(CompileError::Memory(limits.compile_memory_bytes)),
        _ => Err(CompileError::Ended {
            status,
            message: clean(&String::from_utf8_lossy(message)),
        }),
    }
}

/// Parses the answer: the length of the surface, the surface, the code.
fn read_answer(answer: &[u8], limits: &LoadLimits) -> Result<Answer, CompileError> {
    let parts = || {
        let (length, rest) = answer.split_first_chunk()?;
        let length = u64::from_le_bytes(*length);
        let length = (length <= MAX_SURFACE).then(|| usize::try_from(length).ok())??;
        rest.split_at_checked(length)
    };
    let (surface, code) = parts().ok_or(CompileError::Answer)?;
    if code.len() as u64 > limits.code_bytes {
        return Err(CompileError::Code(limits.code_bytes));
    }
    Ok(Answer {
        surface: serde_json::from_slice(surface).map_err(|_| CompileError::Answer)?,
        code: TrustedCode::new(code.to_vec()),
    })
}

/// Does a task in this process.
///
/// # Errors
/// The compiler refuses the component.
pub(crate) fn answer(
    bytes: &[u8],
    task: Task,
    engine: impl FnOnce() -> wasmtime::Result<Engine>,
) -> Result<Answer, String> {
    let surface = Surface::of(bytes, &OURS);
    let code = match task {
        Task::Compile if surface.is_whole() => engine()
            .and_then(|engine| engine.precompile_component(bytes))
            .map_err(|error| format!("{error:#}"))?,
        Task::Compile | Task::Screen => Vec::new(),
    };
    Ok(Answer {
        surface,
        code: TrustedCode::new(code),
    })
}

/// Compiles a trusted component, a built-in plugin, in this process.
pub(crate) fn in_process(engine: &Engine, bytes: &[u8]) -> Result<TrustedCode, CompileError> {
    engine
        .precompile_component(bytes)
        .map(TrustedCode::new)
        .map_err(|error| CompileError::Refused(clean(&format!("{error:#}"))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn child_is_killed_when_dropped() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        drop(KillOnDrop(&mut child));
        let status = child.try_wait().unwrap().unwrap();
        assert_eq!(status.signal(), Some(9));
    }
}
