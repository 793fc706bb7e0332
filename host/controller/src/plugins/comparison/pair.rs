//! A TrainJob or runtime that is rendered by two generations.

use std::collections::BTreeSet;

use serde_json::Value;
use tokio::task::spawn_blocking;
use trainyard_divergences::difference::{Answer, Difference, differences};
use trainyard_model::text::clean_to;

use crate::reconcile::ReconcileError;

/// The most characters of a field.
const FIELD: usize = 256;

/// What the older and the newer generation render.
pub(super) type Rendered = [Result<Vec<Value>, ReconcileError>; 2];

/// How a TrainJob is rendered by two generations.
pub(super) enum Pair {
    /// Neither differs, or both refuse it.
    Same,
    /// The fields of its objects that differ, each once.
    Differs(Vec<String>),
    /// Only the newer generation refuses it.
    Refused,
    /// It could not be compared, such as because the API server is unreachable.
    NotCompared {
        /// Whether the older generation renders it.
        renders_with_old: bool,
    },
}

/// Judges what two generations render.
pub(super) async fn judge([old, new]: Rendered) -> Pair {
    let renders_with_old = old.is_ok();
    match (old, new) {
        (Ok(old), Ok(new)) if old == new => Pair::Same,
        (Ok(old), Ok(new)) => Pair::Differs(fields(old, new).await),
        // What it would render if it had all plugins is not known.
        (Err(old), Err(new)) if old.lacks_plugin() && !new.lacks_plugin() => {
            Pair::NotCompared { renders_with_old }
        }
        (Err(old), Err(new)) if !may_pass(&old) && !may_pass(&new) => Pair::Same,
        // Its calls time out in all namespaces, as this one has just done, and those of the older one do not.
        (Ok(_), Err(new)) if new.paused().is_some() => Pair::Refused,
        // Neither has got to the plugins.
        (Err(old), Err(new)) if is_of_runtime(&old) && is_of_runtime(&new) => Pair::Same,
        (Err(error), _) | (_, Err(error)) if may_pass(&error) => {
            Pair::NotCompared { renders_with_old }
        }
        (Ok(_), Err(_)) => Pair::Refused,
        (Err(_), Ok(_)) => Pair::Differs(vec!["accepted, and refused before".to_owned()]),
        (Err(_), Err(_)) => Pair::NotCompared { renders_with_old },
    }
}

/// Whether the error is that of a runtime, which is read before a plugin is called.
fn is_of_runtime(error: &ReconcileError) -> bool {
    matches!(
        error,
        ReconcileError::NoRuntime { .. } | ReconcileError::Runtime { .. }
    )
}

/// Whether the error is that of the host, of the API server or of another writer, so that it says nothing about the plugins.
fn may_pass(error: &ReconcileError) -> bool {
    matches!(
        error,
        ReconcileError::Api { .. }
            | ReconcileError::TooSlow { .. }
            | ReconcileError::Busy(_)
            | ReconcileError::Abandoned
            | ReconcileError::Internal(_)
    ) || error.is_temporary()
        || is_of_runtime(error)
}

/// Returns the fields that differ, without their values and the names of the objects.
async fn fields(old: Vec<Value>, new: Vec<Value>) -> Vec<String> {
    let compare = move || {
        let answer = |objects| Answer {
            objects,
            ..Answer::default()
        };
        let found = differences(&answer(new), &[answer(old)]);
        let fields = found.into_iter().filter_map(|difference| match difference {
            Difference::Field { object, path, .. } => {
                let kind = object.split(' ').next().unwrap_or_default();
                Some(clean_to(
                    &format!("{kind}: {}", without_names(&path)),
                    FIELD,
                ))
            }
            _ => None,
        });
        // Two keys of a map are one field.
        fields.collect::<BTreeSet<_>>()
    };
    match spawn_blocking(compare).await {
        Ok(fields) if !fields.is_empty() => fields.into_iter().collect(),
        // Such as the order of a list that has none.
        _ => vec!["in its form only".to_owned()],
    }
}

/// Returns a path without the text in brackets, which may be the tenants', such as the names of environment variables.
fn without_names(path: &str) -> String {
    let mut is_inside = false;
    let is_shown = |character: &char| {
        let was_inside = is_inside;
        is_inside = match character {
            '[' => true,
            ']' => false,
            _ => was_inside,
        };
        !(was_inside && is_inside)
    };
    path.chars().filter(is_shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_runtime() -> ReconcileError {
        ReconcileError::NoRuntime {
            kind: "TrainingRuntime".to_owned(),
            name: "a".to_owned(),
        }
    }

    #[test]
    fn paths_are_shown_without_the_names_of_tenants() {
        for (path, shown) in [
            ("spec.a[node].env[SECRET].value", "spec.a[].env[].value"),
            ("spec.a[0][[x]", "spec.a[][]"),
            ("spec.a", "spec.a"),
            ("spec.a[open", "spec.a["),
        ] {
            assert_eq!(without_names(path), shown);
        }
    }

    #[tokio::test]
    async fn a_runtime_that_changes_between_two_renderings_is_no_refusal() {
        let refused = || ReconcileError::TrainJob(vec!["no".to_owned()]);
        let (ok, none) = (|| Ok(Vec::new()), || Err(no_runtime()));
        for (both, with_old) in [([ok(), none()], true), ([none(), ok()], false)] {
            let pair = judge(both).await;
            assert!(
                matches!(pair, Pair::NotCompared { renders_with_old } if renders_with_old == with_old)
            );
        }
        assert!(matches!(judge([none(), none()]).await, Pair::Same));
        assert!(matches!(judge([ok(), Err(refused())]).await, Pair::Refused));
        let both = judge([Err(refused()), Err(refused())]).await;
        assert!(matches!(both, Pair::Same));
    }
}
