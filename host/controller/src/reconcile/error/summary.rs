//! The summary of an error for an annotation, a column and a label: its kind, its reason, and a sentence or its subject.

use std::sync::Arc;

use trainyard_model::text::{clean, clean_to};

use super::ReconcileError;

/// The most bytes of a subject, of a sentence in it, and of a quoted value in that. The summary has to fit into a column.
const SUBJECT_BYTES: usize = 240;
const SENTENCE_BYTES: usize = 220;
const VALUE_BYTES: usize = 40;

/// The most characters of a sentence that are read for that.
const READ: usize = 65_536;

/// The reason of a TrainJob whose Jobs or pods could not be created.
pub(crate) const NOT_CREATED: &str = "NotCreated";

/// The reason of a TrainJob whose pods wait for an object that a plugin emitted.
pub(crate) const WAITS: &str = "ObjectWaits";

/// An error in a few words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ErrorSummary {
    /// One word of a fixed list, as the reason of a condition.
    pub(crate) reason: &'static str,
    /// The reason and the subject. Retries of the same error have the same text.
    pub(crate) text: Arc<str>,
    /// When the TrainJob is annotated with it.
    pub(crate) annotated: AnnotationTiming,
}

/// When a TrainJob is annotated with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AnnotationTiming {
    /// At once.
    AtOnce,
    /// Once it persists: the condition is expected to be temporary.
    OncePersistent,
    /// Never: the API server is unreachable or overloaded for all TrainJobs, and each write would add to its load.
    Never,
}

impl ErrorSummary {
    /// The summary of an error.
    pub(crate) fn of(error: &ReconcileError) -> Self {
        let (_, reason) = error.labels();
        Self {
            reason,
            text: format!("{reason}: {}", cut(clean(&error.subject()), SUBJECT_BYTES)).into(),
            annotated: if error.is_cluster_wide() {
                AnnotationTiming::Never
            } else if error.is_temporary() {
                AnnotationTiming::OncePersistent
            } else {
                AnnotationTiming::AtOnce
            },
        }
    }
}

impl ReconcileError {
    /// The error's kind, for the metric of failures.
    pub fn kind(&self) -> &'static str {
        self.labels().0
    }

    /// The error's reason, for the annotation and the metric of TrainJobs.
    pub(crate) fn reason(&self) -> &'static str {
        self.labels().1
    }

    fn labels(&self) -> (&'static str, &'static str) {
        match self {
            Self::TrainJob(_) => ("train_job", "InvalidTrainJob"),
            Self::Unreadable { .. } => ("unreadable", "UnreadableObject"),
            Self::NoRuntime { .. } => ("no_runtime", "RuntimeNotFound"),
            Self::Runtime { .. } => ("runtime", "InvalidRuntime"),
            Self::Render(_) => ("render", "Refused"),
            Self::Busy(_) if self.paused().is_some() => ("paused", "PluginPaused"),
            Self::Busy(_) => ("busy", "RenderingTimeout"),
            Self::NoObject(_) => ("no_object", "ObjectNotFound"),
            Self::Secret(_) => ("secret", "SecretRequested"),
            Self::Keys { .. } => ("keys", "KeysNotCreated"),
            Self::NotServed { .. } => ("not_served", "KindNotServed"),
            Self::Snapshot(_) => ("snapshot", "InvalidSnapshot"),
            Self::Foreign { .. } => ("foreign", "ForeignObject"),
            Self::Stale { .. } => ("stale", "StaleObject"),
            Self::Deleting { .. } => ("deleting", "ObjectDeleting"),
            Self::PlanIsPinned { .. } => ("plan_is_pinned", "PlanPinned"),
            Self::Lost { .. } | Self::KeysLost { .. } => ("lost", "ObjectLost"),
            Self::EndIsUnknown { .. } => ("end_is_unknown", "EndUnknown"),
            Self::NotCreated { .. } => ("not_created", NOT_CREATED),
            Self::Waits { .. } => ("waits", WAITS),
            Self::JobsHaveOldPlacement { .. } => ("old_placement", "OldPlacement"),
            Self::Conflict { .. } => ("conflict", "Conflict"),
            Self::Api { .. } => ("api", "APIError"),
            Self::TooSlow { .. } => ("too_slow", "APITimeout"),
            Self::Panicked(_) => ("panic", "InternalError"),
            Self::Internal(_) => ("internal", "InternalError"),
            Self::Abandoned => ("abandoned", "Abandoned"),
        }
    }

    /// Whether it lasts until the TrainJob, its runtime or a plugin is corrected.
    pub(crate) fn needs_correction(&self) -> bool {
        matches!(
            self,
            Self::TrainJob(_)
                | Self::Unreadable { .. }
                | Self::Runtime { .. }
                | Self::Render(_)
                | Self::Secret(_)
        )
    }

    /// What is wrong and what to do, or what the error is about, in a few words that do not change from retry to retry.
    fn subject(&self) -> String {
        match self {
            // Its condition is temporary, and the finalizers are what to look at.
            Self::Deleting {
                kind,
                name,
                finalizers,
                ..
            } => format!("{kind} {name} is kept by its finalizers {finalizers}"),
            Self::Keys { name, .. } => format!("Secret {name}"),
            Self::Api { what, .. } => what.clone(),
            Self::Busy(_) if let Some(plugin) = self.paused() => format!(
                "plugin {} is paused for all namespaces, because its calls fail in several and succeed in none; see the condition `Paused` of its PolicyPlugin",
                plugin.name
            ),
            // Which call or step did not finish differs from retry to retry.
            Self::Busy(_) => "a plugin call or the rendering took too long".to_owned(),
            Self::Panicked(_) | Self::Internal(_) => "see the log of the controller".to_owned(),
            other => match &other.sentences()[..] {
                [first, more @ ..] if !more.is_empty() => {
                    format!("{}; and {} more", shortened(first), more.len())
                }
                sentences => shortened(&sentences.concat()),
            },
        }
    }
}

/// Returns a sentence without hidden characters and truncated. It begins with what is wrong, and ends with the limit and the advice, so a
/// long value loses its middle first, and then the sentence.
fn shortened(sentence: &str) -> String {
    let sentence = clean_to(sentence, READ);
    if sentence.len() <= SENTENCE_BYTES {
        return sentence;
    }
    let parts = sentence.split('`').map(str::to_owned).enumerate();
    let parts = parts.map(|(at, part)| match at % 2 {
        0 => part,
        _ => cut(part, VALUE_BYTES),
    });
    cut(parts.collect::<Vec<_>>().join("`"), SENTENCE_BYTES)
}

/// Cuts the middle out of a text of more than `most` bytes. If one backtick of a pair is cut off, a new one replaces it.
fn cut(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let half = most.saturating_sub(MIDDLE.len() + 1) / 2;
    let start = text.get(..text.floor_char_boundary(half));
    let end = text.get(text.ceil_char_boundary(text.len() - half)..);
    let (start, end) = (start.unwrap_or_default(), end.unwrap_or_default());
    let opens = |part: &str| part.matches('`').count() % 2 == 1;
    match (opens(start), opens(end)) {
        (true, false) => [start, MIDDLE, "`", end].concat(),
        (false, true) => [start, "`", MIDDLE, end].concat(),
        _ => [start, MIDDLE, end].concat(),
    }
}

/// Stands for what was cut.
const MIDDLE: &str = "...";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kube::core::Status;
    use trainyard_model::deadline::Overdue;
    use trainyard_render::Problem;

    use super::*;

    fn text(error: &ReconcileError) -> String {
        ErrorSummary::of(error).text.to_string()
    }

    #[test]
    fn a_summary_is_short_and_has_its_reason_first() {
        let kind = "ClusterTrainingRuntime".to_owned();
        let name = "torch".to_owned();
        let missing = ReconcileError::NoRuntime { kind, name };
        assert_eq!(
            text(&missing),
            "RuntimeNotFound: spec.runtimeRef.name: there is no ClusterTrainingRuntime `torch`; create it, or recreate the TrainJob with another `spec.runtimeRef`"
        );
        let sentences = ["spec.a: is 0; set it to 1", "spec.b: is 0; set it to 2"];
        let refused = ReconcileError::TrainJob(sentences.map(str::to_owned).into());
        assert_eq!(
            text(&refused),
            "InvalidTrainJob: spec.a: is 0; set it to 1; and 1 more"
        );
        let long = ReconcileError::TrainJob(vec![format!("a\n\u{1b}{}", "\u{e4}".repeat(5_000))]);
        let long = text(&long);
        assert!(long.len() < SUBJECT_BYTES + 30, "{long}");
        assert!(!long.contains(|c: char| c.is_control()), "{long:?}");
    }

    #[test]
    fn a_summary_that_is_cut_keeps_the_limit_and_the_advice() {
        let (value, path) = ("x".repeat(4_000), "spec.trainer.command[0]");
        let advice = "is longer than 1024 bytes; move it into a script of the image";
        let refused = |sentence: String| text(&ReconcileError::TrainJob(vec![sentence]));
        let quoted = refused(format!("{path}: `{value}` {advice}"));
        let cut = "x".repeat(18);
        assert_eq!(
            quoted,
            format!("InvalidTrainJob: {path}: `{cut}...{cut}` {advice}")
        );
        let plain = refused(format!("{path}: {value} {advice}"));
        assert!(plain.starts_with(&format!("InvalidTrainJob: {path}: xx")));
        assert!(plain.ends_with(&format!("xx {advice}")), "{plain}");
        assert!(plain.len() < SUBJECT_BYTES + 30, "{plain}");
    }

    #[test]
    fn a_cut_leaves_no_backtick_alone() {
        let (words, quoted) = ("word ".repeat(40), "name".repeat(8));
        for at in 0..100 {
            let before: String = words.chars().take(at).collect();
            let sentence = format!("{before}`{quoted}` {words}");
            let cut = cut(sentence, 110);
            assert!(cut.len() <= 110 && cut.contains(MIDDLE), "{cut}");
            assert_eq!(cut.matches('`').count() % 2, 0, "{cut}");
        }
    }

    /// The Event with the sentence is deleted after an hour, and the annotation stays.
    #[test]
    fn summaries_of_correctable_errors_have_the_advice() {
        let (kind, name) = (|| "TrainingRuntime".to_owned(), || "big".to_owned());
        let long = "x".repeat(300);
        for (error, parts) in [
            (
                ReconcileError::Runtime {
                    kind: kind(),
                    name: name(),
                    problem: format!(
                        "spec.template: has {long} bytes, but at most 9 fit; make it smaller"
                    ),
                },
                [
                    "TrainingRuntime big: spec.template: has x",
                    "at most 9 fit; make it smaller",
                ],
            ),
            (
                ReconcileError::Unreadable {
                    kind: "JobSet",
                    name: name(),
                    why: "status: the value cannot be decoded; correct it".to_owned(),
                },
                [
                    "status: the value cannot be decoded; corr",
                    "until the JobSet is fixed",
                ],
            ),
            (
                ReconcileError::NoRuntime {
                    kind: kind(),
                    name: name(),
                },
                [
                    "there is no TrainingRuntime `big`",
                    "; create it, or recreate the TrainJob with another `spec.runtimeRef`",
                ],
            ),
            (
                ReconcileError::Foreign {
                    kind: "JobSet".to_owned(),
                    name: name(),
                    owner: "controlled by a very long owner of another kind".to_owned(),
                },
                [
                    "JobSet `big` does not belong",
                    "its controller in metadata.ownerReferences; deleting the JobSet ends its run",
                ],
            ),
            (
                ReconcileError::Lost {
                    kind: "ConfigMap".to_owned(),
                    name: name(),
                    why: "the snapshot is missing too",
                },
                [
                    "ConfigMap `big` is missing",
                    "; restore it, or recreate the TrainJob",
                ],
            ),
            (
                ReconcileError::KeysLost { name: name() },
                [
                    "Secret `big` is missing while its JobSet runs",
                    "suspend and resume the TrainJob to create it with new keys",
                ],
            ),
            (
                ReconcileError::PlanIsPinned {
                    pinned: format!("torch {long}"),
                    change: "torch 2 is loaded".to_owned(),
                },
                [
                    "this TrainJob was started with the plugins torch",
                    "undo this change to have missing ones recreated",
                ],
            ),
            (
                ReconcileError::EndIsUnknown { name: name() },
                [
                    "JobSet `big` has run and was deleted",
                    "recreate the TrainJob to run it again",
                ],
            ),
            (
                ReconcileError::NotServed {
                    api_version: "v1".to_owned(),
                    kind: "PodGroup".to_owned(),
                    name: name(),
                },
                [
                    "PodGroup `big` is needed",
                    "install its CRD, and the TrainJob continues",
                ],
            ),
        ] {
            let text = text(&error);
            for part in parts {
                assert!(text.contains(part), "{text}");
            }
            assert!(text.len() < SUBJECT_BYTES + 30, "{text}");
        }
    }

    #[test]
    fn errors_that_differ_only_in_step_or_status_have_one_text() {
        let api = |code: u16| {
            let status = Status {
                code,
                ..Status::default()
            };
            ReconcileError::api("writing JobSet `a`", kube::Error::Api(Box::new(status)))
        };
        assert_eq!(text(&api(403)), "APIError: writing JobSet `a`");
        assert_eq!(text(&api(403)), text(&api(500)));
        let annotated = |error| ErrorSummary::of(&error).annotated;
        assert_eq!(annotated(api(403)), AnnotationTiming::AtOnce);
        assert_eq!(annotated(api(500)), AnnotationTiming::AtOnce);
        assert_eq!(annotated(api(409)), AnnotationTiming::OncePersistent);
        assert_eq!(annotated(api(429)), AnnotationTiming::Never);
        assert_eq!(annotated(api(503)), AnnotationTiming::Never);
        let busy = |step: &str| {
            let overdue = Overdue {
                limit: Duration::ZERO,
            };
            let step = step.to_owned();
            ReconcileError::Busy(vec![Problem::Overdue { overdue, step }])
        };
        assert_eq!(text(&busy("a")), text(&busy("b")));
    }
}
