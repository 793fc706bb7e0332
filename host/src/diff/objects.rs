//! What was found of each TrainJob and runtime.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use trainyard_api::{Located, names};
use trainyard_divergences::{
    difference::{Difference, Refusal},
    live::Listed,
    rows::Row,
};
use trainyard_model::text::{MAX_LINE, clean_to};

use super::live::{LiveJob, Maker};

/// The outcome of a comparison, from the least to the most severe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Outcome {
    /// Nothing differs.
    #[default]
    Same,
    /// Something differs or may differ, as rows list.
    Listed,
    /// Something could not be compared.
    NotCompared,
    /// Something differs without a row.
    Unlisted,
    /// Something would fail.
    Fails,
}

impl Outcome {
    /// Returns the exit code.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Same => 0,
            Self::Listed => 1,
            Self::NotCompared | Self::Unlisted | Self::Fails => 2,
        }
    }
}

/// An object with its result.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NamedReport {
    pub(super) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) report: ObjectReport,
}

impl NamedReport {
    pub(super) fn is_train_job(&self) -> bool {
        self.kind == names::TRAIN_JOB
    }
}

/// The result for a TrainJob or a runtime.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectReport {
    pub(super) outcome: Outcome,
    /// What a TrainJob that is not running is: `suspended`, `complete` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<&'static str>,
    /// What was compared with the rendering.
    pub(super) compared_with: ComparedWith,
    pub(super) findings: Vec<Finding>,
}

/// What the rendering of a TrainJob was compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ComparedWith {
    /// The objects that the reference made.
    JobSet,
    /// Nothing: the reference has made no JobSet, or it was not read. Rows follow from what the TrainJob and its runtime use.
    Nothing,
    /// Nothing: Trainyard made the JobSet.
    Trainyard,
    /// Nothing: it is not known which controller made the JobSet.
    Unknown,
    /// Nothing: this controller manages the TrainJob.
    OtherManager(String),
}

impl ComparedWith {
    pub(super) fn of(live: Option<&LiveJob<'_>>) -> Self {
        match live.map(|live| &live.maker) {
            Some(Maker::Reference) => Self::JobSet,
            Some(Maker::Trainyard) => Self::Trainyard,
            Some(Maker::Unknown(_)) => Self::Unknown,
            None => Self::Nothing,
        }
    }
}

impl ObjectReport {
    pub(super) fn new(
        state: Option<&'static str>,
        compared_with: ComparedWith,
        findings: Vec<Finding>,
    ) -> Self {
        let report = Self {
            outcome: Outcome::Same,
            state,
            compared_with,
            findings: Vec::new(),
        };
        report.with(findings)
    }

    /// Returns the report of a TrainJob that another controller manages.
    pub(super) fn of_another(manager: String) -> Self {
        Self::new(None, ComparedWith::OtherManager(manager), Vec::new())
    }

    /// Returns the report of an object whose rendering failed in a way that says nothing about it.
    pub(super) fn failed(message: String) -> Self {
        Self::new(None, ComparedWith::Nothing, vec![Finding::failed(message)])
    }

    /// Returns the report of an object that was refused before it was rendered.
    pub(super) fn not_rendered() -> Self {
        Self::new(None, ComparedWith::Nothing, Vec::new())
    }

    /// Adds findings. A warning about a row that was found says nothing more.
    pub(super) fn with(mut self, findings: impl IntoIterator<Item = Finding>) -> Self {
        self.findings.extend(findings);
        let is_of_warning = |finding: &Finding| finding.effect == Effect::Warns;
        let rows = self.findings.iter().filter(|it| !is_of_warning(it));
        let rows: BTreeSet<_> = rows.flat_map(|it| it.rows.clone()).collect();
        let says_more =
            |it: &Finding| it.rows.is_empty() || !it.rows.iter().all(|row| rows.contains(row));
        self.findings
            .retain(|it| !is_of_warning(it) || says_more(it));
        self.findings
            .sort_by_key(|finding| std::cmp::Reverse(finding.effect));
        self.findings.dedup();
        let outcomes = self.findings.iter().map(Finding::outcome);
        self.outcome = outcomes.max().unwrap_or_default();
        self
    }
}

/// What a finding means, from the least to the most severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Effect {
    /// Trainyard warns of it.
    Warns,
    /// It may differ, because the TrainJob uses what the row is about.
    MayDiffer,
    /// It differs.
    Differs,
    /// It cannot be rendered here, so nothing is known.
    NotCompared,
    /// Trainyard refuses it.
    Fails,
}

impl Effect {
    /// Returns what the text output calls it.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Warns => "warns",
            Self::MayDiffer => "may differ",
            Self::Differs => "differs",
            Self::NotCompared => "not compared",
            Self::Fails => "fails",
        }
    }
}

/// Something that was found in one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Finding {
    pub(super) effect: Effect,
    /// The IDs of the rows that list it. Empty for a difference without a row.
    pub(super) rows: Vec<String>,
    /// The object with the field, such as the JobSet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) object: String,
    /// The field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) field: String,
    /// The reference's value of a field that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reference: Option<Value>,
    /// Trainyard's value of a field that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trainyard: Option<Value>,
    /// What is wrong with the field, and what to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
}

impl Finding {
    fn new(effect: Effect, rows: Vec<String>) -> Self {
        Self {
            effect,
            rows,
            object: String::new(),
            field: String::new(),
            reference: None,
            trainyard: None,
            message: String::new(),
        }
    }

    pub(super) fn of_difference(listed: Listed) -> Self {
        let mut rows: Vec<_> = listed.rows.iter().map(|row| row.id.to_owned()).collect();
        rows.dedup();
        match listed.difference {
            Difference::Field {
                object,
                path,
                reference,
                trainyard,
            } => Self {
                object,
                field: path,
                reference,
                trainyard,
                ..Self::new(Effect::Differs, rows)
            },
            Difference::RefusedByTrainyard(refusal) | Difference::RefusedByReference(refusal) => {
                Self::of_refusal(refusal, rows)
            }
            Difference::Dropped(message) | Difference::Unwarned(message) => Self {
                message: cleaned(&message),
                ..Self::new(Effect::Differs, rows)
            },
        }
    }

    fn of_refusal(refusal: Refusal, rows: Vec<String>) -> Self {
        Self {
            object: cleaned(&refusal.object),
            field: cleaned(&refusal.field),
            message: cleaned(&refusal.error),
            ..Self::new(Effect::Fails, rows)
        }
    }

    /// Returns the finding of a row that a TrainJob may show.
    pub(super) fn of_use(row: &'static Row) -> Self {
        Self::new(Effect::MayDiffer, vec![row.id.to_owned()])
    }

    /// Returns the finding of a warning, whose text may name a row.
    pub(super) fn warning(warning: &Located) -> Self {
        let message = warning.message.as_str();
        let row = message.rsplit_once("(see `").and_then(|(_, rest)| {
            let (row, page) = rest.split_once('`')?;
            page.starts_with(" in docs/").then(|| row.to_owned())
        });
        let location = &warning.location;
        let object = location.object.as_ref();
        Self {
            object: object
                .map(|object| cleaned(&object.to_string()))
                .unwrap_or_default(),
            field: match location.field.is_root() {
                true => String::new(),
                false => cleaned(&location.field.to_string()),
            },
            message: cleaned(message),
            ..Self::new(Effect::Warns, row.into_iter().collect())
        }
    }

    /// Returns the finding of an object that cannot be rendered here.
    pub(super) fn not_compared(located: &Located) -> Self {
        Self {
            effect: Effect::NotCompared,
            rows: Vec::new(),
            ..Self::warning(located)
        }
    }

    pub(super) fn failed(message: String) -> Self {
        Self {
            message: cleaned(&message),
            ..Self::new(Effect::NotCompared, Vec::new())
        }
    }

    /// Whether it is a warning of the runtime, which is a finding of the runtime as well.
    pub(super) fn is_warning_of_runtime(&self) -> bool {
        self.effect == Effect::Warns && self.rows.is_empty() && self.object.contains("Runtime ")
    }

    fn outcome(&self) -> Outcome {
        match self.effect {
            Effect::Warns if self.rows.is_empty() => Outcome::Same,
            Effect::Warns | Effect::MayDiffer => Outcome::Listed,
            Effect::Differs if self.rows.is_empty() => Outcome::Unlisted,
            Effect::Differs => Outcome::Listed,
            Effect::NotCompared => Outcome::NotCompared,
            Effect::Fails => Outcome::Fails,
        }
    }
}

pub(super) fn cleaned(text: &str) -> String {
    clean_to(text, MAX_LINE)
}
