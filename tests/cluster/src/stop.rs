//! Signals that stop a program with a running cluster. If they were not caught, the folder of the cluster would be left behind.

use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT (Ctrl-C), SIGTERM (`kill`) and SIGHUP (a closed terminal).
#[derive(Debug)]
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl StopSignals {
    /// Catches the signals from now on. It must be called in a tokio runtime.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub fn catch() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one of them.
    pub async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::process::{self, Command};

    use super::*;

    /// A signal that is not caught ends this program.
    #[tokio::test]
    async fn each_signal_is_caught() {
        let mut signals = StopSignals::catch().unwrap();
        for name in ["INT", "TERM", "HUP"] {
            let send = format!("kill -{name} {}", process::id());
            let sent = Command::new("/bin/sh").args(["-c", &send]).status();
            assert!(sent.unwrap().success());
            signals.recv().await;
        }
    }
}
