//! The compiler process: it limits its own resources, reads a task and a component from standard input, and writes the answer to standard
//! output.

use std::{
    io::{Read, Write},
    process::ExitCode,
};

use rlimit::Resource;
use wasmtime::Engine;

use super::{Answer, REFUSED, answer, header::Header};
use crate::engine;

/// The main function of the compiler process.
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
    die_with_parent().map_err(text)?;
    let mut input = std::io::stdin().lock();
    let header = Header::read(&mut input).map_err(text)?;
    // If the parent ended before the signal was requested, this process already has another parent.
    if rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get()) != Some(header.parent)
    {
        return Err("the parent process has ended".to_owned());
    }
    let (memory, seconds) = (header.memory, header.seconds);
    Resource::DATA.set(memory, memory).map_err(text)?;
    Resource::CPU.set(seconds, seconds).map_err(text)?;
    Resource::CORE.set(0, 0).map_err(text)?;
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(|error| {
        if error.kind() == std::io::ErrorKind::OutOfMemory {
            // Like any other failed allocation, by which the parent recognizes the memory limit.
            std::process::abort();
        }
        text(error)
    })?;
    let engine = || engine::config().and_then(|config| Engine::new(&config));
    let Answer { surface, code } = answer(&bytes, header.task, engine)?;
    let surface = serde_json::to_vec(&surface).map_err(|error| error.to_string())?;
    let mut output = std::io::stdout().lock();
    let length = surface.len() as u64;
    let parts = [&length.to_le_bytes()[..], &surface, code.bytes()];
    let mut parts = parts.into_iter();
    parts
        .try_for_each(|part| output.write_all(part))
        .map_err(text)
}

/// Asks the kernel to kill this process when the thread that started it ends.
#[cfg(target_os = "linux")]
fn die_with_parent() -> std::io::Result<()> {
    use rustix::process::{Signal, set_parent_process_death_signal};
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// On other systems, the limit of CPU time ends the process.
#[cfg(not(target_os = "linux"))]
const fn die_with_parent() -> std::io::Result<()> {
    Ok(())
}
