//! The header before the component on the compiler process's standard input.

use std::io::{self, Read};

use super::Task;
use crate::load_limits::LoadLimits;

/// The task and its limits.
pub(super) struct Header {
    pub(super) task: Task,
    pub(super) memory: u64,
    pub(super) seconds: u64,
    /// The process that waits for the answer.
    pub(super) parent: i32,
}

impl Header {
    /// Returns a header from this process.
    pub(super) fn new(task: Task, limits: &LoadLimits) -> Self {
        Self {
            task,
            memory: limits.compile_memory_bytes,
            seconds: limits.compile_seconds,
            parent: rustix::process::getpid().as_raw_nonzero().get(),
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let task = match self.task {
            Task::Screen => 0,
            Task::Compile => 1,
        };
        let mut bytes = vec![task];
        bytes.extend(self.memory.to_le_bytes());
        bytes.extend(self.seconds.to_le_bytes());
        bytes.extend(self.parent.to_le_bytes());
        bytes
    }

    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut task = [0];
        from.read_exact(&mut task)?;
        let task = match task {
            [0] => Task::Screen,
            [1] => Task::Compile,
            _ => return Err(io::Error::other("an unknown task")),
        };
        let mut number = || {
            let mut bytes = [0; 8];
            from.read_exact(&mut bytes)?;
            io::Result::Ok(u64::from_le_bytes(bytes))
        };
        let (memory, seconds) = (number()?, number()?);
        let mut parent = [0; 4];
        from.read_exact(&mut parent)?;
        Ok(Self {
            task,
            memory,
            seconds,
            parent: i32::from_le_bytes(parent),
        })
    }
}
