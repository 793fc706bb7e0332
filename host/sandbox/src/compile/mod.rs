//! Checking and compiling what nobody vouches for: in a child process, since a small file can cost much memory and time.

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
use crate::{error::CompileError, load_limits::LoadLimits, surface::Surface, vouched::Vouched};

/// The child's exit code for a component that the compiler refuses.
const REFUSED: u8 = 3;

/// Bytes of the child's message that are kept.
const MAX_MESSAGE: u64 = 16 << 10;

/// Bytes of what the child may say of a component.
const MAX_SURFACE: u64 = 1 << 20;

/// What the child is to do with a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Say how it meets its host.
    Screen,
    /// That, and compile it if it is whole.
    Compile,
}

/// What the child says of a component.
pub(crate) struct Answer {
    /// How it meets its host.
    pub(crate) surface: Surface,
    /// Its code; empty if it was not asked for, or the component is not whole.
    pub(crate) code: Vouched,
}

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

/// Does a task in a child process under the limits.
pub(crate) fn in_child(
    command: &CompilerCommand,
    task: Task,
    bytes: &[u8],
    limits: &LoadLimits,
) -> Result<Answer, CompileError> {
    let mut child = Command::new(&command.program)
        .args(&command.args)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let header = Header::new(task, limits).bytes();
    let deadline = Instant::now() + Duration::from_secs(limits.compile_seconds);
    std::thread::scope(|scope| {
        // The threads of the scope wait for the child, so it is ended before the scope is left.
        let child = Running(&mut child);
        // A child that dies early closes its end; how it ended says why.
        scope.spawn(move || {
            stdin.map(|mut pipe| pipe.write_all(&header).and_then(|()| pipe.write_all(bytes)))
        });
        // One byte more than there may be, so that what was cut is known.
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

/// A child that is killed if it still runs when nobody waits for it any more.
struct Running<'c>(&'c mut Child);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Of a child that has ended, both say so and do nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
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
        // An allocation that fails aborts; a thread whose stack can't be mapped, too.
        (_, Some(SIGABRT | SIGSEGV)) => Err(CompileError::Memory(limits.compile_memory_bytes)),
        _ => Err(CompileError::Ended(status)),
    }
}

/// The answer: the length of the surface, the surface, the code.
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
        code: Vouched::by_origin(code.to_vec()),
    })
}

/// Compiles in this process what is vouched for: built-in plugins.
pub(crate) fn here(engine: &Engine, bytes: &[u8]) -> Result<Vouched, CompileError> {
    engine
        .precompile_component(bytes)
        .map(Vouched::by_origin)
        .map_err(|error| CompileError::Refused(clean(&format!("{error:#}"))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_child_ends_when_nobody_waits_for_it() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        drop(Running(&mut child));
        let status = child.try_wait().unwrap().unwrap();
        assert_eq!(status.signal(), Some(9));
    }
}
