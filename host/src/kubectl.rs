//! This program as a plugin of kubectl: `kubectl trainyard` runs the program `kubectl-trainyard`, and `kubectl_complete-trainyard` prints
//! completions. Both are links to this program.

use std::{ffi::OsString, path::Path};

use clap::Command;

use crate::{output, report::ErrorList};

/// The name of the program that kubectl runs for `kubectl trainyard`.
const PLUGIN: &str = "kubectl-trainyard";

/// The name of the program that kubectl runs to complete the command line of the plugin.
const COMPLETER: &str = "kubectl_complete-trainyard";

/// What the shell does beside offering the completions: nothing, or it completes names of files, too. These are numbers of cobra's.
const NO_FILES: &str = ":4";
const FILES: &str = ":0";

/// How this program was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// As `trainyard`, or under any other name.
    Program,
    /// As `kubectl trainyard`.
    Plugin,
    /// To complete a command line of `kubectl trainyard`.
    Completer,
}

impl Role {
    /// Returns the role of a program that was started under that name.
    pub(crate) fn of(program: Option<&OsString>) -> Self {
        let name = program.and_then(|program| Path::new(program).file_stem());
        match name.and_then(|name| name.to_str()) {
            Some(PLUGIN) => Self::Plugin,
            Some(COMPLETER) => Self::Completer,
            _ => Self::Program,
        }
    }

    /// Returns the command line with usage texts for this role.
    pub(crate) fn command(self, command: Command) -> Command {
        if self == Self::Program {
            return command;
        }
        let examples = command.get_after_help().map(ToString::to_string);
        let examples = examples.unwrap_or_default();
        let examples = examples.replace("\n  trainyard ", "\n  kubectl trainyard ");
        command.bin_name("kubectl trainyard").after_help(examples)
    }
}

/// Prints the completions of the last argument, as kubectl reads them: a line for each, and one that says what else the shell offers.
pub(crate) fn complete(command: Command, arguments: &[String]) -> Result<(), ErrorList> {
    let found = completions(command, arguments);
    let directive = if found.is_empty() { FILES } else { NO_FILES };
    // These are texts of this program, and a tab begins a description.
    let lines = found.iter().map(String::as_str).chain([directive]);
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    output::print(&text)
}

/// Returns the subcommands, flags or values that begin with the last argument, each with a description if there is one.
fn completions(mut command: Command, arguments: &[String]) -> Vec<String> {
    command.build();
    let Some((last, before)) = arguments.split_last() else {
        return Vec::new();
    };
    let mut current = &command;
    for word in before {
        current = current.find_subcommand(word).unwrap_or(current);
    }
    let flag = before.last().and_then(|flag| flag.strip_prefix("--"));
    let of_flag = flag.and_then(|flag| {
        let mut all = current.get_arguments();
        all.find(|argument| argument.get_long() == Some(flag))
    });
    let takes_value = |argument: &&clap::Arg| argument.get_action().takes_values();
    let found: Vec<_> = if let Some(argument) = of_flag.filter(takes_value) {
        values(argument)
    } else if last.starts_with('-') {
        let all = current.get_arguments();
        let shown = all.filter(|argument| !argument.is_hide_set());
        let flags = shown.filter_map(|argument| {
            let help = argument.get_help().map(ToString::to_string);
            Some((format!("--{}", argument.get_long()?), help))
        });
        flags.collect()
    } else {
        let all = current.get_subcommands();
        let shown = all.filter(|command| !command.is_hide_set());
        let named = shown.map(|command| {
            let about = command.get_about().map(ToString::to_string);
            (command.get_name().to_owned(), about)
        });
        named
            .chain(current.get_positionals().flat_map(values))
            .collect()
    };
    let fits = found.into_iter().filter(|(name, _)| name.starts_with(last));
    fits.map(described).collect()
}

type Completion = (String, Option<String>);

/// Returns the possible values of an argument.
fn values(argument: &clap::Arg) -> Vec<Completion> {
    let values = argument.get_possible_values();
    let shown = values.iter().filter(|value| !value.is_hide_set());
    let named = shown.map(|value| {
        let help = value.get_help().map(ToString::to_string);
        (value.get_name().to_owned(), help)
    });
    named.collect()
}

/// Returns the line of a completion: its text, and the first sentence of its description after a tab.
fn described((name, about): Completion) -> String {
    let about = about.unwrap_or_default();
    let sentence = about.split(". ").next().unwrap_or_default();
    match sentence.trim_end_matches('.') {
        "" => name,
        sentence => format!("{name}\t{sentence}"),
    }
}
