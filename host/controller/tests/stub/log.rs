//! The log of the current thread, captured.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tracing::{Level, subscriber::DefaultGuard};

/// The lines that this thread logs while the value exists.
pub(crate) struct CapturedLog {
    text: Text,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl CapturedLog {
    /// Captures lines at this level and above. The controller's default is `info`.
    pub(crate) fn start(level: Level) -> Self {
        let text = Text::default();
        let writer = text.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        Self { text, _guard }
    }

    /// Returns all lines.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.text.0.lock().unwrap().clone()).unwrap()
    }

    /// Returns the lines that contain a text.
    pub(crate) fn lines_with(&self, wanted: &str) -> Vec<String> {
        let text = self.text();
        let lines = text.lines().filter(|line| line.contains(wanted));
        lines.map(str::to_owned).collect()
    }
}
