//! One process of the control plane: started with a log of its own, and never left behind.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// Starts the rest of its arguments, and ends that when standard input closes. A pipe closes however its other end dies,
/// so nothing outlives a test program that was killed.
const KEEPER: &str = r#"
exec 3<&0
"$@" </dev/null 3<&- &
kept=$!
(read -r _ <&3; kill -9 "$kept") 2>/dev/null &
watch=$!
wait "$kept"
code=$?
kill "$watch" 2>/dev/null
exit "$code"
"#;

/// How much of a log is shown when something is wrong.
const TAIL_LINES: usize = 40;

/// A process that runs until this value is dropped, or the test program ends in whatever way.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    keeper: Child,
    log: PathBuf,
}

impl Process {
    /// Starts the binary; what it prints goes to a file of its name in the folder.
    pub(crate) fn start(name: &str, binary: &Path, args: &[String], logs: &Path) -> Result<Self> {
        let log = logs.join(format!("{name}.log"));
        let output = File::create(&log)?;
        let keeper = Command::new("/bin/sh")
            .args(["-c", KEEPER, name])
            .arg(binary)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self {
            name: name.to_owned(),
            keeper,
            log,
        })
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.keeper.try_wait()?)
    }

    /// Its name, and the last lines that it printed.
    pub(crate) fn last_words(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines.get(lines.len().saturating_sub(TAIL_LINES)..);
        format!(
            "--- the end of the log of {}:\n{}",
            self.name,
            tail.unwrap_or_default().join("\n")
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Waiting closes the pipe first, which ends what is kept.
        let _ = self.keeper.wait();
    }
}
