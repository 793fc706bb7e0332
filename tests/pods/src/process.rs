//! Processes that start others in namespaces.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    process::{self, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

/// How long a process in a namespace may take to appear.
const PATIENCE: Duration = Duration::from_secs(20);

/// A shell in its own namespaces, which ends when this value is dropped. The kernel kills whatever runs in its PID namespace then, also if
/// this program is killed: the shell waits for the end of its standard input, a pipe from this program.
#[derive(Debug)]
pub(crate) struct Shell {
    outer: process::Child,
    /// The process ID of the shell, in the PID namespace of this program.
    pub(crate) pid: u32,
}

impl Shell {
    /// Starts a command, of which the last process in a chain of `depth` children is the shell, and waits until it prints `ready`.
    pub(crate) fn start(command: &mut Command, depth: usize) -> Result<Self> {
        let mut outer = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let mut line = String::new();
        if let Some(output) = outer.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        if line != "ready\n" {
            let mut error = String::new();
            if let Some(mut output) = outer.stderr.take() {
                output.read_to_string(&mut error)?;
            }
            outer.wait()?;
            bail!("{}", error.trim());
        }
        let pid = descendant(outer.id(), depth)?;
        Ok(Self { outer, pid })
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Waiting closes the pipe first, at which the shell exits.
        drop(self.outer.wait());
    }
}

/// A process that a command started.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    /// Its process ID in the PID namespace of this program.
    pub pid: u32,
}

impl Child {
    /// Waits for the last process in a chain of `depth` children of a command, and returns it. For a command of
    /// [`Pod::enter`](crate::Pod::enter) that is `unshare --fork`, the depth is 2.
    ///
    /// # Errors
    /// The command ended before.
    pub fn of(command: &process::Child, depth: usize) -> Result<Self> {
        let pid = descendant(command.id(), depth)?;
        Ok(Self { pid })
    }
}

/// Sends a signal, such as `TERM`, to a process, which may have exited already.
pub fn kill_with(signal: &str, pid: u32) {
    let mut kill = Command::new("/bin/sh");
    kill.args(["-c", "kill -\"$0\" \"$1\"", signal, &pid.to_string()]);
    drop(kill.stdin(Stdio::null()).stderr(Stdio::null()).status());
}

/// Returns the first child of the first child, and so on.
fn descendant(of: u32, depth: usize) -> Result<u32> {
    let mut pid = of;
    for _ in 0..depth {
        pid = first_child(pid)?;
    }
    Ok(pid)
}

fn first_child(of: u32) -> Result<u32> {
    let end = Instant::now() + PATIENCE;
    loop {
        let children = fs::read_to_string(format!("/proc/{of}/task/{of}/children"))
            .with_context(|| format!("process {of} has exited"))?;
        if let Some(child) = children.split_whitespace().next() {
            return Ok(child.parse()?);
        }
        let state = fs::read_to_string(format!("/proc/{of}/stat"))?;
        if state.contains(") Z ") || Instant::now() > end {
            bail!("process {of} starts no other");
        }
        thread::sleep(Duration::from_millis(2));
    }
}
