//! Old fields beside new ones: where both set one field to different values, nobody can say which is meant.

use serde_json::Value;

use super::bounds::MAX_DIFFERENCES;
use super::{Modernized, spec};
use crate::fields::FieldProblem;
use crate::merge::conflicts;
use crate::names;

/// Compares the converted entries with those of other managers, apart from Kueue's, which come later on purpose.
pub(super) fn check(ours: &[Value], others: &[Value], modernized: &mut Modernized) {
    let member = "trainingRuntimeSpec";
    let patches = spec().field("runtimePatches");
    for (at, one) in ours.iter().enumerate() {
        for (behind, other) in others.iter().enumerate() {
            let is_kueues =
                other.get("manager").and_then(Value::as_str) == Some(names::KUEUE_MANAGER);
            let (Some(one), Some(other), false) = (one.get(member), other.get(member), is_kueues)
            else {
                continue;
            };
            let (now, there) = (patches.index(at), patches.index(ours.len() + behind));
            let room = MAX_DIFFERENCES.saturating_sub(modernized.errors.len());
            for conflict in conflicts(one, other, room) {
                let [now, there] = [(&now, &conflict.one), (&there, &conflict.other)]
                    .map(|(entry, path)| modernized.written(&entry.field(member).join(path)));
                modernized.refuse(now, FieldProblem::Differs(there));
            }
        }
    }
}
