//! Old fields beside new ones. If both set a field to different values, the object is refused, because either could be intended.

use serde_json::Value;

use super::{Conversion, bounds::MAX_DIFFERENCES, spec};
use crate::{fields::FieldProblem, merge::conflicts, names};

/// Compares the converted entries with those of other managers, except Kueue's, which override them on purpose.
pub(super) fn check(ours: &[Value], others: &[Value], conversion: &mut Conversion) {
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
            let room = MAX_DIFFERENCES.saturating_sub(conversion.errors.len());
            for conflict in conflicts(one, other, room) {
                let [now, there] = [(&now, &conflict.one), (&there, &conflict.other)]
                    .map(|(entry, path)| conversion.written(&entry.field(member).join(path)));
                conversion.refuse(now, FieldProblem::Differs(there));
            }
        }
    }
}
