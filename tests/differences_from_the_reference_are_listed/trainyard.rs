//! Trainyard's answer for an input.

use std::{fs, path::Path};

use serde_json::Value;
use trainyard_api::{list, yaml};
use trainyard_divergences::difference::{Answer, Refusal};

use crate::common::trainyard_with_input;

/// Returns the answer in the files of a case, which `cases_render_as_expected` compares with the command.
pub(crate) fn of_case(case: &Path) -> Answer {
    let read = |file: &str| fs::read_to_string(case.join(file));
    match read("expected.yaml") {
        Ok(objects) => Answer {
            objects: yaml::read(&objects)
                .into_iter()
                .map(|document| document.unwrap().value)
                .collect(),
            ..said(&read("warnings.txt").unwrap_or_default())
        },
        Err(_) => said(&read("expected.txt").unwrap()),
    }
}

/// Returns the answer of the command for a text.
pub(crate) fn of_text(text: &str) -> Answer {
    let output = trainyard_with_input(text, &["render", "-f", "-", "-o", "json"]);
    let answer = said(&String::from_utf8(output.stderr).unwrap());
    match output.status.code() {
        Some(0) => {
            let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
            Answer {
                objects: list::unpack(printed).unwrap_or_else(|one| vec![one]),
                ..answer
            }
        }
        Some(1) => answer,
        code => panic!("exit code {code:?}: {answer:?}"),
    }
}

/// Parses the errors and warnings of a run.
fn said(text: &str) -> Answer {
    let mut answer = Answer::default();
    for line in text.lines() {
        if let Some(error) = line.strip_prefix("error: ") {
            answer.refused.push(refusal(error));
        } else if let Some(warning) = line.strip_prefix("warning: ") {
            answer.warnings.push(warning.to_owned());
        }
    }
    answer
}

/// Parses `FILE:LINE: KIND NAME: FIELD: MESSAGE`. The object and the field are optional.
fn refusal(error: &str) -> Refusal {
    let is_line = |line: &str| line.bytes().all(|byte| byte.is_ascii_digit());
    let place = error
        .split_once(':')
        .and_then(|(_, rest)| rest.split_once(": "))
        .filter(|(line, _)| is_line(line))
        .map(|(_, rest)| rest.to_owned());
    let Some((object, sentence)) = place.as_deref().and_then(|rest| rest.split_once(": ")) else {
        return Refusal {
            error: error.to_owned(),
            ..Refusal::default()
        };
    };
    let (field, error) = match sentence.split_once(": ") {
        Some((field, error)) if !field.contains(' ') => (field, error),
        _ => ("", sentence),
    };
    Refusal {
        object: object.to_owned(),
        by: String::new(),
        field: field.to_owned(),
        error: error.to_owned(),
    }
}
