//! How a command ends: what it says on standard error, and its exit code.

use std::{fmt, io::IsTerminal, process::ExitCode};

use anstyle::{AnsiColor, Style};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{EnvFilter, Layer, layer::Context};
use trainyard_controller::settings::{LogFormat, Logging};
use trainyard_model::text::clean;

/// Everything that is wrong with a run, a line each.
#[derive(Debug, Default)]
pub(crate) struct Failure {
    lines: Vec<String>,
}

impl Failure {
    /// Adds a line. What two TrainJobs have in common, a runtime's mistake, is said once.
    pub(crate) fn add(&mut self, line: impl ToString) {
        let line = line.to_string();
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }

    /// Whether nothing is wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Takes over the lines of another one.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.lines.extend(other.lines);
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
        Self {
            lines: errors.into_iter().map(|error| error.to_string()).collect(),
        }
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
fn filter(variable: &str, level: &str) -> EnvFilter {
    let named = std::env::var(variable).unwrap_or_default();
    let wanted = EnvFilter::try_from_env(variable).unwrap_or_else(|_| EnvFilter::new(level));
    match format!("{LOGS_ANSWERS}=off").parse() {
        Ok(off) if !named.contains(LOGS_ANSWERS) => wanted.add_directive(off),
        _ => wanted,
    }
}

/// Says what the libraries log as the command says its own: warnings and errors, or what `TRAINYARD_LOG` names.
pub(crate) fn log_to_stderr() {
    use tracing_subscriber::prelude::*;
    tracing_subscriber::registry()
        .with(filter(LOG_VARIABLE, "warn"))
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
        let text = match self.fields.as_slice() {
            [] => self.message,
            fields => format!("{} ({})", self.message, fields.join(", ")),
        };
        clean(&text)
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
pub(crate) fn log_as_controller(logging: Logging) {
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter(LOG_VARIABLE, logging.level.name()))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    match logging.format {
        LogFormat::Json => log.json().init(),
        LogFormat::Text => log.init(),
    }
}

/// Says what is wrong and gives the exit code.
pub(crate) fn exit(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            for line in &failure.lines {
                say("error", AnsiColor::Red, line);
            }
            ExitCode::from(1)
        }
    }
}

/// A line about something that goes on.
pub(crate) fn warn(line: impl std::fmt::Display) {
    say("warning", AnsiColor::Yellow, line);
}

fn say(level: &str, color: AnsiColor, line: impl std::fmt::Display) {
    let style = Style::new().bold().fg_color(Some(color.into()));
    anstream::eprintln!("{style}{level}{style:#}: {line}");
}
