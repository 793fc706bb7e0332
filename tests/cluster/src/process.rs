//! A process of a cluster, with its own log, which never outlives the test program.

use std::{
    fs::{self, File},
    os::unix::{fs::FileExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;

/// A script that runs its arguments as a command, and kills it when standard input closes. A pipe closes when its other end dies in any
/// way, so no process outlives a killed test program. SIGTERM is forwarded, and the command can then exit by itself.
const KEEPER: &str = r#"
exec 3<&0
trap 'kill -TERM "$kept"' TERM
"$@" </dev/null 3<&- &
kept=$!
(read -r _ <&3; kill -9 "$kept") 2>/dev/null &
watch=$!
wait "$kept"
code=$?
while kill -0 "$kept" 2>/dev/null; do
  wait "$kept"
  code=$?
done
kill "$watch" 2>/dev/null
exit "$code"
"#;

/// The size of the pieces in which memory is searched, in bytes.
const PIECE: usize = 1 << 20;

/// The number of lines of a log in an error.
const TAIL_LINES: usize = 40;

/// A process that runs until this value is dropped or the test program ends in any way.
#[derive(Debug)]
pub struct Process {
    name: String,
    keeper: Mutex<Child>,
    log: PathBuf,
}

impl Process {
    /// Starts the command, with its arguments, environment and folder; standard input is empty. Its output is
    /// appended to the file of this name in the folder of logs.
    ///
    /// # Errors
    /// The log cannot be written, or the shell cannot be started. A program that does not exist [exits](Self::ended).
    pub fn start(name: &str, command: &Command, logs: &Path) -> Result<Self> {
        let log = logs.join(format!("{name}.log"));
        let output = File::options().append(true).create(true).open(&log)?;
        let mut keeper = Command::new("/bin/sh");
        keeper
            .args(["-c", KEEPER, name])
            .arg(command.get_program())
            .args(command.get_args());
        for (variable, value) in command.get_envs() {
            match value {
                Some(value) => keeper.env(variable, value),
                None => keeper.env_remove(variable),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            keeper.current_dir(folder);
        }
        let keeper = keeper
            // Ctrl-C in a terminal reaches only this program, which then stops its processes itself.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self {
            name: name.to_owned(),
            keeper: Mutex::new(keeper),
            log,
        })
    }

    /// Kills it with SIGKILL, and waits until it has exited.
    ///
    /// # Errors
    /// The process does not exist.
    pub fn kill(&self) -> Result<ExitStatus> {
        // Waiting closes the pipe first, at which the keeper kills the command.
        Ok(self.keeper().wait()?)
    }

    /// Sends SIGTERM, and does not wait until it exits.
    ///
    /// # Errors
    /// The process has exited.
    pub fn terminate(&self) -> Result<()> {
        let keeper = self.keeper().id().to_string();
        let sent = Command::new("/bin/sh")
            .args(["-c", "kill -TERM \"$0\"", &keeper])
            .status()?;
        ensure!(sent.success(), "{} has exited", self.name);
        Ok(())
    }

    /// Returns its whole output.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.log)?)
    }

    /// Returns its exit status, if it has exited.
    ///
    /// # Errors
    /// The process does not exist.
    pub fn ended(&self) -> Result<Option<ExitStatus>> {
        Ok(self.keeper().try_wait()?)
    }

    /// Returns the process ID of the command.
    ///
    /// # Errors
    /// It has exited.
    pub fn id(&self) -> Result<i32> {
        Ok(self.kept()?.parse()?)
    }

    fn kept(&self) -> Result<String> {
        let keeper = self.keeper().id();
        let children = format!("/proc/{keeper}/task/{keeper}/children");
        let children = fs::read_to_string(children)?;
        // The keeper starts the command before any other process.
        let kept = children.split_whitespace().next();
        let kept = kept.with_context(|| format!("{} has exited", self.name))?;
        Ok(kept.to_owned())
    }

    /// Returns which needles its memory, and therefore a core dump, contains.
    ///
    /// # Errors
    /// It has exited, or its memory cannot be read.
    pub fn holds<'n>(&self, needles: &[&'n [u8]]) -> Result<Vec<&'n [u8]>> {
        let kept = self.kept()?;
        let maps = fs::read_to_string(format!("/proc/{kept}/maps"))?;
        let memory = File::open(format!("/proc/{kept}/mem"))?;
        let longest = needles.iter().map(|needle| needle.len()).max().unwrap_or(0);
        let mut found = Vec::new();
        let mut piece = vec![0; PIECE];
        let written = maps.lines().filter_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let number = |hex| u64::from_str_radix(hex, 16).ok();
            rest.starts_with("rw")
                .then_some((number(start)?, number(end)?))
        });
        for (start, end) in written {
            let mut at = start;
            while at < end {
                let length = usize::try_from(end - at).unwrap_or(PIECE).min(PIECE);
                let Some(piece) = piece.get_mut(..length) else {
                    break;
                };
                if memory.read_exact_at(piece, at).is_err() {
                    break;
                }
                let missing = needles.iter().filter(|needle| !found.contains(*needle));
                let here: Vec<_> = missing
                    .filter(|needle| memmem::find(piece, needle).is_some())
                    .collect();
                found.extend(here);
                // A match across two chunks is found in the second.
                at += if length < PIECE {
                    length
                } else {
                    length - longest
                } as u64;
            }
        }
        Ok(found)
    }

    /// Returns its peak memory in bytes, without child processes.
    ///
    /// # Errors
    /// It has exited, or the system does not report it.
    pub fn peak_memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.kept()?))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|line| line.trim().strip_suffix(" kB"));
        let peak: u64 = peak.context("/proc reports no peak memory")?.parse()?;
        Ok(peak * 1024)
    }

    /// Returns the memory that it has to itself in bytes, without files and child processes.
    ///
    /// # Errors
    /// It has exited, or the system does not report it.
    pub fn own_memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.kept()?))?;
        let own = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let own = own.and_then(|line| line.trim().strip_suffix(" kB"));
        let own: u64 = own.context("/proc reports no memory")?.parse()?;
        Ok(own * 1024)
    }

    /// Checks that it is running.
    ///
    /// # Errors
    /// It has exited: with the end of its log.
    pub fn still_runs(&self) -> Result<()> {
        if let Some(status) = self.ended()? {
            bail!("{} has exited: {status}\n{}", self.name, self.last_words());
        }
        Ok(())
    }

    /// Returns its name and the last lines of its output.
    pub fn last_words(&self) -> String {
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

    fn keeper(&self) -> MutexGuard<'_, Child> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn shell(script: &str, logs: &Path) -> Process {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env("GREETING", "hello");
        Process::start("shell", &command, logs).unwrap()
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
    fn dropped_process_is_killed() {
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
    fn exited_process_reports_its_status_and_last_output() {
        let logs = tempfile::tempdir().unwrap();
        let process = shell("seq 100; exit 7", logs.path());
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

    #[test]
    fn terminated_process_exits_on_its_own() {
        let logs = tempfile::tempdir().unwrap();
        let script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done";
        let process = shell(script, logs.path());
        assert!(wait_for(|| process.log().unwrap() == "ready\n"));
        process.terminate().unwrap();
        assert!(wait_for(|| process.ended().unwrap().is_some()));
        assert_eq!(process.ended().unwrap().unwrap().code(), Some(3));
        assert_eq!(process.log().unwrap(), "ready\nbye\n");
    }

    #[test]
    fn killed_process_stops_at_once_and_its_log_is_kept() {
        let logs = tempfile::tempdir().unwrap();
        let log = logs.path().join("shell.log");
        for lives in 1..=2 {
            let process = shell("echo $GREETING; while :; do :; done", logs.path());
            assert!(wait_for(|| fs::read_to_string(&log)
                .unwrap()
                .matches("hello\n")
                .count()
                == lives));
            assert_eq!(process.ended().unwrap(), None);
            assert_eq!(process.kill().unwrap().code(), Some(137));
            assert!(
                process
                    .still_runs()
                    .unwrap_err()
                    .to_string()
                    .contains("hello")
            );
        }
    }
}
