//! The log of libraries and of the controller, on standard error.

use std::{
    borrow::Cow,
    fmt,
    io::{IsTerminal, Write},
};

use anstyle::AnsiColor;
use clap::ValueEnum as _;
use serde_json::Value;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    EnvFilter, Layer, fmt::format, layer::Context, prelude::*, registry::LookupSpan,
};
use trainyard_controller::{
    settings::{LogFormat, LogLevel, Logging},
    spans::SpanExport,
};
use trainyard_model::text::{clean_to, json_escaped};

use crate::report;

/// The environment variable that filters the log, in the format of `tracing-subscriber`.
pub(crate) const LOG_VARIABLE: &str = "TRAINYARD_LOG";

/// The target of the client library, which logs whole API server responses that it cannot decode. They may contain any tenant's data.
const LOGS_RESPONSES: &str = "kube_client";

/// Returns the filter of the variable, or else of `level`. Responses are logged only if the variable names their target.
fn filter(level: &str) -> EnvFilter {
    filter_of(&std::env::var(LOG_VARIABLE).unwrap_or_default(), level)
}

fn filter_of(named: &str, level: &str) -> EnvFilter {
    let wanted = Some(named).filter(|named| !named.is_empty());
    let wanted = wanted.and_then(|named| EnvFilter::try_new(named).ok());
    let wanted = wanted.unwrap_or_else(|| EnvFilter::new(level));
    match format!("{LOGS_RESPONSES}=off").parse() {
        Ok(off) if !named.contains(LOGS_RESPONSES) => wanted.add_directive(off),
        _ => wanted,
    }
}

/// Returns what the variable names: a level, or a filter that is more than a level. `None` if the variable has no effect.
pub(crate) fn named() -> Option<Result<LogLevel, String>> {
    let named = std::env::var(LOG_VARIABLE).ok();
    let named = named.filter(|named| !named.is_empty() && EnvFilter::try_new(named).is_ok())?;
    Some(LogLevel::from_str(&named, true).map_err(|_| named))
}

/// What plugins log at the level `info`, beside warnings and errors.
pub(crate) const OF_PLUGINS: &str = "warn,trainyard::plugin=info";

/// Prints the log of libraries and plugins like the command's own messages: what `TRAINYARD_LOG` selects, or else `levels`.
pub(crate) fn to_stderr(levels: &str) {
    tracing_subscriber::registry()
        .with(filter(levels))
        .with(SentenceLayer)
        .init();
}

/// Prints each event of the log as a sentence, followed by its fields in parentheses.
struct SentenceLayer;

impl<S: Subscriber> Layer<S> for SentenceLayer {
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
        report::print(level, color, sentence.text());
    }
}

/// The message of a log event and its fields.
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

/// Writes the controller's log to standard error, as configured by its settings or `TRAINYARD_LOG`, and exports spans.
pub(crate) fn for_controller(settings: Logging, spans: Option<&SpanExport>) {
    let is_colored = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let filter = filter(settings.level.name());
    match spans {
        // A filter of the log alone would cost 0.1 µs for each span.
        None => tracing_subscriber::registry()
            .with(filter)
            .with(log(settings.format, is_colored))
            .init(),
        // Spans are exported at any level of the log.
        Some(spans) => tracing_subscriber::registry()
            .with(spans.layer())
            .with(log(settings.format, is_colored).with_filter(filter))
            .init(),
    }
}

/// Returns the log on standard error in this format.
fn log<S>(format: LogFormat, is_colored: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    match format {
        LogFormat::Json => json_log(std::io::stderr).boxed(),
        LogFormat::Text => text_log(is_colored, std::io::stderr).boxed(),
    }
}

/// Returns a log of JSON lines without hidden characters.
fn json_log<S, W>(writer: impl Fn() -> W + Send + Sync + 'static) -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: Write + 'static,
{
    let log = tracing_subscriber::fmt::layer().json();
    log.with_writer(move || EscapedJson(writer()))
}

/// Returns a text log without hidden characters.
fn text_log<S, W>(is_colored: bool, writer: impl Fn() -> W + Send + Sync + 'static) -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: Write + 'static,
{
    tracing_subscriber::fmt::layer()
        .with_ansi(is_colored)
        .fmt_fields(format::debug_fn(write_field).delimited(" "))
        .with_writer(writer)
}

/// Writes a field of an event or a span to a text log, cleaned.
fn write_field(out: &mut format::Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let value = clean_to(&format!("{value:?}"), MAX_FIELD);
    match field.name() {
        "message" => out.write_str(&value),
        name => write!(out, "{name}={value}"),
    }
}

/// The maximum length of a text in the log, in characters: texts of objects and responses may have any length.
const MAX_FIELD: usize = 4 * 1024;

/// Truncates the texts of a JSON line to [`MAX_FIELD`].
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

/// Writes lines of JSON with texts truncated and hidden characters escaped.
struct EscapedJson<W>(W);

impl<W: Write> Write for EscapedJson<W> {
    /// Writes a whole line.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::{Arc, Mutex};

    use super::*;

    /// The output of a log.
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

    fn write() {
        let span = tracing::info_span!("reconcile", name = %HIDDEN, other = HIDDEN);
        let _entered = span.entered();
        tracing::warn!(quoted = HIDDEN, plain = %HIDDEN, "it says {HIDDEN}");
    }

    #[test]
    fn text_log_has_no_hidden_characters() {
        let written = Written::default();
        let into = written.clone();
        let log_as_text = text_log(false, move || into.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(log_as_text), write);
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
    fn json_log_has_no_hidden_characters() {
        let written = Written::default();
        let into = written.clone();
        let log_as_json = json_log(move || into.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(log_as_json), write);
        let text = written.text();
        let is_hidden = |c| trainyard_model::text::is_hidden(c) && c != '\n';
        assert!(!text.contains(is_hidden), "{text:?}");
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        let message = line.pointer("/fields/message").unwrap();
        assert_eq!(message, &format!("it says {HIDDEN}"));
    }

    #[test]
    fn texts_of_a_log_are_truncated() {
        let write = || {
            let long = "é\u{202e}".repeat(500_000);
            let span = tracing::info_span!("reconcile", name = %long);
            let _entered = span.entered();
            tracing::warn!(error = %long, quoted = &*long, "it says {long}");
        };
        let (json, text) = (Written::default(), Written::default());
        let into = json.clone();
        let log_as_json = json_log(move || into.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(log_as_json), write);
        let into = text.clone();
        let log_as_text = text_log(false, move || into.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(log_as_text), write);
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
    fn responses_are_logged_only_if_their_target_is_named() {
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
}
