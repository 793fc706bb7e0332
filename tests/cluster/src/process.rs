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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn shell(script: &str, logs: &Path) -> Process {
        let args = ["-c".to_owned(), script.to_owned()];
        Process::start("shell", Path::new("/bin/sh"), &args, logs).unwrap()
    }

    fn wait_for(what: impl Fn() -> bool) -> bool {
        (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            what()
        })
    }

    fn is_alive(pid: &str) -> bool {
        let probe = Command::new("/bin/sh")
            .args(["-c", "kill -0 \"$0\" 2>/dev/null", pid.trim()])
            .status();
        probe.unwrap().success()
    }

    #[test]
    fn what_is_kept_ends_when_it_is_dropped() {
        let logs = tempfile::tempdir().unwrap();
        let process = shell("echo $$; exec sleep 1000", logs.path());
        let log = logs.path().join("shell.log");
        assert!(wait_for(|| fs::read_to_string(&log)
            .unwrap()
            .ends_with('\n')));
        let pid = fs::read_to_string(&log).unwrap();
        assert!(is_alive(&pid));
        drop(process);
        assert!(wait_for(|| !is_alive(&pid)));
    }

    #[test]
    fn what_ends_by_itself_says_how_and_its_last_words() {
        let logs = tempfile::tempdir().unwrap();
        let mut process = shell("seq 100; exit 7", logs.path());
        assert!(wait_for(|| logs
            .path()
            .join("shell.log")
            .metadata()
            .unwrap()
            .len()
            > 280));
        let status = loop {
            if let Some(status) = process.ended().unwrap() {
                break status;
            }
        };
        assert_eq!(status.code(), Some(7));
        let words = process.last_words();
        assert!(
            words.contains("log of shell:\n61\n") && words.ends_with("\n100"),
            "{words}"
        );
    }
}
