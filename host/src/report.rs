//! How a command ends: what it says on standard error, and its exit code.

use std::{
    borrow::Cow,
    fmt,
    io::{IsTerminal, Write},
    process::ExitCode,
    sync::atomic::{AtomicUsize, Ordering},
};

use anstyle::{AnsiColor, Style};
use indexmap::IndexSet;
use serde_json::Value;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    EnvFilter, Layer,
    field::MakeExt,
    fmt::{FormatFields, SubscriberBuilder, format},
    layer::Context,
};
use trainyard_controller::settings::{LogFormat, Logging};
use trainyard_model::text::{MAX_LINE, clean_to, json_escaped};

/// The most lines that one run prints about what is wrong with it.
pub(crate) const MAX_LINES: usize = 500;

/// Everything that is wrong with a run, a line each.
#[derive(Debug, Default)]
pub(crate) struct Failure {
    lines: IndexSet<String>,
    /// How many more lines there were than are kept.
    left_out: usize,
}

impl Failure {
    /// Adds a line. What two TrainJobs have in common, a runtime's mistake, is said once.
    pub(crate) fn add(&mut self, line: impl ToString) {
        let line = clean_to(&line.to_string(), MAX_LINE);
        if self.lines.contains(&line) {
            return;
        }
        if self.lines.len() < MAX_LINES {
            self.lines.insert(line);
        } else {
            self.left_out += 1;
        }
    }

    /// Counts errors of which nobody keeps the lines.
    pub(crate) const fn leave_out(&mut self, errors: usize) {
        self.left_out += errors;
    }

    /// Whether nothing is wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Takes over the lines of another one.
    pub(crate) fn absorb(&mut self, other: Self) {
        other.lines.iter().for_each(|line| self.add(line));
        self.left_out += other.left_out;
    }

    /// Says the lines as warnings, of a run that goes on.
    pub(crate) fn warn(&self) {
        self.lines.iter().for_each(warn);
        if self.left_out > 0 {
            warn(format!("{} more warnings are not printed", self.left_out));
        }
    }

    /// Ends with the failure, if there is anything in it.
    pub(crate) fn or_ok<T>(self, value: T) -> Result<T, Self> {
        if self.lines.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl<E: ToString> FromIterator<E> for Failure {
    fn from_iter<I: IntoIterator<Item = E>>(errors: I) -> Self {
        let mut failure = Self::default();
        errors.into_iter().for_each(|error| failure.add(error));
        failure
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        [format!("{error:#}")].into_iter().collect()
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        [error].into_iter().collect()
    }
}

/// The variable that says which lines are logged, as `tracing-subscriber` reads it.
const LOG_VARIABLE: &str = "TRAINYARD_LOG";

/// The target below which the client library logs the whole answer of an API server that it can't decode: objects of any tenant.
const LOGS_ANSWERS: &str = "kube_client";

/// What is logged: what the variable names, or else `level`. Answers are logged only if the variable names their target.
fn filter(level: &str) -> EnvFilter {
    filter_of(&std::env::var(LOG_VARIABLE).unwrap_or_default(), level)
}

fn filter_of(named: &str, level: &str) -> EnvFilter {
    let wanted = Some(named).filter(|named| !named.is_empty());
    let wanted = wanted.and_then(|named| EnvFilter::try_new(named).ok());
    let wanted = wanted.unwrap_or_else(|| EnvFilter::new(level));
    match format!("{LOGS_ANSWERS}=off").parse() {
        Ok(off) if !named.contains(LOGS_ANSWERS) => wanted.add_directive(off),
        _ => wanted,
    }
}

/// Says what the libraries log as the command says its own: warnings and errors, or what `TRAINYARD_LOG` names.
pub(crate) fn log_to_stderr() {
    use tracing_subscriber::prelude::*;
    tracing_subscriber::registry()
        .with(filter("warn"))
        .with(Said)
        .init();
}

/// Prints each line of the log as a sentence: what happened, then the fields in brackets.
struct Said;

impl<S: Subscriber> Layer<S> for Said {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut sentence = Sentence::default();
        event.record(&mut sentence);
        let (level, color) = match *event.metadata().level() {
            Level::ERROR => ("error", AnsiColor::Red),
            Level::WARN => ("warning", AnsiColor::Yellow),
            Level::INFO => ("info", AnsiColor::Cyan),
            Level::DEBUG => ("debug", AnsiColor::Cyan),
            Level::TRACE => ("trace", AnsiColor::Cyan),
        };
        say(level, color, sentence.text());
    }
}

/// The message of a line of the log and its fields.
#[derive(Default)]
struct Sentence {
    message: String,
    fields: Vec<String>,
}

impl Sentence {
    fn text(self) -> String {
        match self.fields.as_slice() {
            [] => self.message,
            fields => format!("{} ({})", self.message, fields.join(", ")),
        }
    }
}

impl Visit for Sentence {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.fields.push(format!("{name}: {value:?}")),
        }
    }
}

/// Writes the controller's log to standard error: what its settings say, or what `TRAINYARD_LOG` names.
pub(crate) fn log_as_controller(settings: Logging) {
    let is_colored = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log = logging(settings.level.name()).with_ansi(is_colored);
    match settings.format {
        LogFormat::Json => log
            .json()
            .with_writer(|| EscapedJson(std::io::stderr()))
            .init(),
        LogFormat::Text => text_log(log).with_writer(std::io::stderr).init(),
    }
}

type Log<Fields> = SubscriberBuilder<Fields, format::Format, EnvFilter>;

fn logging(level: &str) -> Log<format::DefaultFields> {
    tracing_subscriber::fmt().with_env_filter(filter(level))
}

/// A log as text, with nothing hidden in it.
fn text_log(log: Log<format::DefaultFields>) -> Log<impl for<'w> FormatFields<'w> + 'static> {
    log.fmt_fields(format::debug_fn(write_field).delimited(" "))
}

/// Writes a field of a line or span of a text log, cleaned.
fn write_field(out: &mut format::Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let value = clean_to(&format!("{value:?}"), MAX_FIELD);
    match field.name() {
        "message" => out.write_str(&value),
        name => write!(out, "{name}={value}"),
    }
}

/// The most characters of a text in a line of the log: what comes from objects and answers may have any length.
const MAX_FIELD: usize = 4 * 1024;

/// The line with no text longer than [`MAX_FIELD`].
fn cut(line: &str) -> Cow<'_, str> {
    if line.len() <= MAX_FIELD {
        return Cow::Borrowed(line);
    }
    let Ok(mut value) = serde_json::from_str(line) else {
        return Cow::Borrowed(line);
    };
    cut_texts(&mut value);
    Cow::Owned(format!("{value}\n"))
}

fn cut_texts(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(MAX_FIELD) {
                text.truncate(end);
                text.push('…');
            }
        }
        Value::Array(items) => items.iter_mut().for_each(cut_texts),
        Value::Object(members) => members.values_mut().for_each(cut_texts),
        _ => {}
    }
}

/// Writes lines of JSON with texts cut, and with what a reader can't see in them escaped.
struct EscapedJson<W>(W);

impl<W: Write> Write for EscapedJson<W> {
    /// Takes a line, which comes in one piece.
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        match std::str::from_utf8(line) {
            Ok(text) => self.0.write_all(json_escaped(&cut(text)).as_bytes())?,
            Err(_) => self.0.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Says what is wrong and gives the exit code.
pub(crate) fn exit(result: Result<(), Failure>) -> ExitCode {
    warn_of_more();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            for line in &failure.lines {
                say("error", AnsiColor::Red, line);
            }
            if failure.left_out > 0 {
                let more = format!(
                    "{} more errors are not printed; correct those above first",
                    failure.left_out
                );
                say("error", AnsiColor::Red, more);
            }
            ExitCode::from(1)
        }
    }
}

/// Says what is wrong with the command line, which may hold names of files, and gives the exit code.
pub(crate) fn wrong_usage(error: &clap::Error) -> ExitCode {
    for line in error.render().to_string().lines() {
        anstream::eprintln!("{}", clean_to(line, MAX_LINE));
    }
    ExitCode::from(2)
}

/// How many warnings this run has had.
static WARNINGS: AtomicUsize = AtomicUsize::new(0);

/// Prints a line about something that goes on, unless there were too many before it.
pub(crate) fn warn(line: impl std::fmt::Display) {
    if WARNINGS.fetch_add(1, Ordering::Relaxed) < MAX_LINES {
        say("warning", AnsiColor::Yellow, line);
    }
}

/// Says how many warnings were not printed, if there were too many.
fn warn_of_more() {
    let left_out = WARNINGS.load(Ordering::Relaxed).saturating_sub(MAX_LINES);
    if left_out > 0 {
        let more = format!("{left_out} more warnings are not printed");
        say("warning", AnsiColor::Yellow, more);
    }
}

/// Prints a line that is not about anything wrong.
pub(crate) fn note(line: impl std::fmt::Display) {
    anstream::eprintln!("{}", clean_to(&line.to_string(), MAX_LINE));
}

fn say(level: &str, color: AnsiColor, line: impl std::fmt::Display) {
    let line = clean_to(&line.to_string(), MAX_LINE);
    let style = Style::new().bold().fg_color(Some(color.into()));
    anstream::eprintln!("{style}{level}{style:#}: {line}");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::{Arc, Mutex};

    use tracing_subscriber::prelude::*;

    use super::*;

    /// What a log has written.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Written {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    const HIDDEN: &str = "a\u{1b}[31m\u{202e}\u{200b}\u{9b}\u{e0041}\nb";

    fn log() {
        let span = tracing::info_span!("reconcile", name = %HIDDEN, other = HIDDEN);
        let _entered = span.entered();
        tracing::warn!(quoted = HIDDEN, plain = %HIDDEN, "it says {HIDDEN}");
    }

    #[test]
    fn nothing_hidden_gets_into_a_text_log() {
        let written = Written::default();
        let into = written.clone();
        let log_as_text =
            text_log(logging("info").with_ansi(false)).with_writer(move || into.clone());
        tracing::subscriber::with_default(log_as_text.finish(), log);
        let text = written.text();
        assert_eq!(text.matches('\n').count(), 1, "{text:?}");
        assert_eq!(
            text.matches(r"a\u{1b}[31m\u{202e}\u{200b}\u{9b}\u{e0041} b")
                .count(),
            3,
            "{text}"
        );
        let is_hidden = |c| trainyard_model::text::is_hidden(c) && c != '\n';
        assert!(!text.contains(is_hidden), "{text:?}");
    }

    #[test]
    fn nothing_hidden_gets_into_a_json_log() {
        let written = Written::default();
        let into = written.clone();
        let log_as_json = logging("info")
            .json()
            .with_writer(move || EscapedJson(into.clone()));
        tracing::subscriber::with_default(log_as_json.finish(), log);
        let text = written.text();
        let is_hidden = |c| trainyard_model::text::is_hidden(c) && c != '\n';
        assert!(!text.contains(is_hidden), "{text:?}");
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        let message = line.pointer("/fields/message").unwrap();
        assert_eq!(message, &format!("it says {HIDDEN}"));
    }

    #[test]
    fn no_text_of_a_log_is_longer_than_it_may_be() {
        let log = || {
            let long = "é\u{202e}".repeat(500_000);
            let span = tracing::info_span!("reconcile", name = %long);
            let _entered = span.entered();
            tracing::warn!(error = %long, quoted = &*long, "it says {long}");
        };
        let (json, text) = (Written::default(), Written::default());
        let into = json.clone();
        let log_as_json = logging("info")
            .json()
            .with_writer(move || EscapedJson(into.clone()));
        tracing::subscriber::with_default(log_as_json.finish(), log);
        let into = text.clone();
        let log_as_text =
            text_log(logging("info").with_ansi(false)).with_writer(move || into.clone());
        tracing::subscriber::with_default(log_as_text.finish(), log);
        // Four texts, one of them of the span twice; a hidden character is six bytes as an escape.
        let most = 6 * 6 * MAX_FIELD;
        for written in [&json, &text] {
            let written = written.text();
            assert_eq!(written.matches('\n').count(), 1);
            assert!(written.len() < most, "{} bytes", written.len());
        }
        let line: Value = serde_json::from_str(&json.text()).unwrap();
        let error = line.pointer("/fields/error").and_then(Value::as_str);
        assert_eq!(error.unwrap().chars().count(), MAX_FIELD + 1);
    }

    #[test]
    fn answers_are_logged_only_if_their_target_is_named() {
        let logs = |named, level| {
            let filter = filter_of(named, level);
            let subscriber = tracing_subscriber::registry().with(filter);
            tracing::subscriber::with_default(subscriber, || {
                let answers = tracing::enabled!(target: "kube_client::client", Level::WARN);
                let others = tracing::enabled!(target: "trainyard_controller::watch", Level::WARN);
                (answers, others)
            })
        };
        for (named, level) in [
            ("", "info"),
            ("", "trace"),
            ("debug", "info"),
            ("trainyard=warn,debug", "info"),
        ] {
            assert_eq!(logs(named, level), (false, true), "{named} {level}");
        }
        assert_eq!(logs("warn,kube_client=debug", "info"), (true, true));
        assert_eq!(logs("off", "info"), (false, false));
    }

    #[test]
    fn errors_are_kept_once_and_up_to_a_count() {
        let twice = (0..2 * MAX_LINES).flat_map(|at| [at, at]);
        let failure = Failure::from_iter(twice);
        assert_eq!(
            (failure.lines.len(), failure.left_out),
            (MAX_LINES, 2 * MAX_LINES)
        );
    }
}
