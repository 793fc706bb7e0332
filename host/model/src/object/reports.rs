//! What an emitted object waits for, as its status says it.
//!
//! The rules are an annotation of the object, so the controller can apply them without the plugin, and users can see them.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;

use crate::text::clean_to;

/// The annotation with the rules: a JSON object with a message for each state.
pub const REPORTS_ANNOTATION: &str = "trainyard.dev/reports";

/// The most rules of an object.
pub const MAX_REPORTS: usize = 8;

/// The most characters of a rule's message, and of the message of a condition.
pub const MAX_MESSAGE: usize = 256;

/// A state of an object: `phase/PHASE` or `condition/TYPE/STATUS`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportedState {
    /// `status.phase`.
    Phase(String),
    /// A condition of that type with that status.
    Condition {
        /// Its type, such as `Unschedulable`.
        of_type: String,
        /// Its status: `True`, `False` or `Unknown`.
        status: String,
    },
}

impl ReportedState {
    /// Parses a state.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_word = |word: &str| {
            (1..=63).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_alphanumeric())
        };
        let mut parts = text.split('/');
        let state = match (parts.next()?, parts.next()?, parts.next()) {
            ("phase", phase, None) if is_word(phase) => Self::Phase(phase.to_owned()),
            ("condition", of_type, Some(status))
                if is_word(of_type) && matches!(status, "True" | "False" | "Unknown") =>
            {
                Self::Condition {
                    of_type: of_type.to_owned(),
                    status: status.to_owned(),
                }
            }
            _ => return None,
        };
        parts.next().is_none().then_some(state)
    }

    /// Whether an object with this status is in this state. Returns the message of the condition, which is empty for a phase.
    fn message_in<'o>(&self, status: &'o Value) -> Option<&'o str> {
        match self {
            Self::Phase(phase) => (status.get("phase")?.as_str()? == phase).then_some(""),
            Self::Condition {
                of_type,
                status: wanted,
            } => {
                let text = |of: &'o Value, name: &str| of.get(name).and_then(Value::as_str);
                let mut conditions = status.get("conditions")?.as_array()?.iter();
                let found = conditions.find(|it| text(it, "type") == Some(of_type))?;
                (text(found, "status") == Some(wanted))
                    .then(|| text(found, "message").unwrap_or_default())
            }
        }
    }
}

impl fmt::Display for ReportedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Phase(phase) => write!(f, "phase/{phase}"),
            Self::Condition { of_type, status } => write!(f, "condition/{of_type}/{status}"),
        }
    }
}

/// Returns what an object in the cluster waits for, by the rules in its annotation: the plugin's message, and that of the condition. `None`
/// if its status is none of these states, or if it has no valid rules. If several apply, the first in the order of their texts counts. The
/// object's author may have written anything, so texts are cleaned and cut.
#[must_use]
pub fn waits_for(annotations: &BTreeMap<String, String>, status: &Value) -> Option<String> {
    let rules = annotations.get(REPORTS_ANNOTATION)?;
    let rules: BTreeMap<String, String> = serde_json::from_str(rules).ok()?;
    let mut rules = rules.iter().take(MAX_REPORTS);
    let (message, cause) = rules.find_map(|(state, message)| {
        let cause = ReportedState::parse(state)?.message_in(status)?;
        Some((message, cause))
    })?;
    let (message, cause) = (clean_to(message, MAX_MESSAGE), clean_to(cause, MAX_MESSAGE));
    Some(match cause.is_empty() {
        true => message,
        false => format!("{message}: {cause}"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn states_have_two_forms() {
        for text in ["phase/Pending", "condition/Unschedulable/True"] {
            assert_eq!(ReportedState::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "phase",
            "phase/",
            "phase/a b",
            "phase/a/True",
            "condition/Ready",
            "condition/Ready/true",
            "condition/Ready/True/x",
            "condition//True",
            "spec/phase",
        ] {
            assert_eq!(ReportedState::parse(text), None, "{text}");
        }
    }

    fn waits_by(rules: &str, status: &Value) -> Option<String> {
        let annotations = [(REPORTS_ANNOTATION.to_owned(), rules.to_owned())];
        waits_for(&annotations.into(), status)
    }

    #[test]
    fn an_object_says_what_it_waits_for() {
        let rules = json!({
            "condition/Unschedulable/True": "the gang does not fit",
            "phase/Pending": "the gang waits",
        });
        let condition = |status: &str| {
            let condition = json!({"type": "Unschedulable", "status": status, "message": "0/3 nodes\n\u{1b}fit"});
            json!({"phase": "Pending", "conditions": [{"type": "Other", "status": "True"}, condition]})
        };
        for (status, waits) in [
            (json!(null), None),
            (json!({"phase": "Running"}), None),
            (json!({"phase": "Pending"}), Some("the gang waits")),
            (condition("False"), Some("the gang waits")),
            (
                condition("True"),
                Some("the gang does not fit: 0/3 nodes \\u{1b}fit"),
            ),
            (json!({"phase": 7, "conditions": {}}), None),
        ] {
            let found = waits_by(&rules.to_string(), &status);
            assert_eq!(found.as_deref(), waits, "{status}");
        }
        assert_eq!(waits_by("[]", &json!({"phase": "Pending"})), None);
    }

    #[test]
    fn texts_of_other_authors_are_short() {
        let rules = json!({"condition/Ready/False": "m".repeat(5_000)}).to_string();
        let condition = json!({"type": "Ready", "status": "False", "message": "c".repeat(5_000)});
        let waits = waits_by(&rules, &json!({ "conditions": [condition] })).unwrap();
        assert!(waits.len() <= 2 * MAX_MESSAGE + 10, "{}", waits.len());
    }
}
