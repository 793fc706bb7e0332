//! Limits of the old forms of a TrainJob. They are checked before the conversion, which copies an override for each replicated job that
//! it names.

use serde_json::{Map, Value};

use super::{Conversion, spec};
use crate::{
    fields::FieldProblem,
    path::FieldPath,
    size::{STORED_LIMIT, bytes},
};

/// The maximum number of entries of `spec.runtimePatches`. The CRD has the same limit.
pub const MAX_PATCHES: usize = 16;
/// The maximum number of replicated jobs in an entry of `spec.runtimePatches`. The CRD has the same limit.
const MAX_JOBS: usize = 100;

/// The maximum number of reported differences between old and new fields.
pub(super) const MAX_DIFFERENCES: usize = 64;

/// A limit of an old form.
struct Bound {
    what: &'static str,
    limit: usize,
    remedy: &'static str,
}

/// The CRD has the same limit.
const METADATA: Bound = Bound {
    what: "keys",
    limit: 1024,
    remedy: "remove keys",
};

/// The CRD has the same limit.
const OVERRIDES: Bound = Bound {
    what: "overrides",
    limit: 256,
    remedy: "merge overrides of the same replicated jobs",
};

/// The CRD has the same limit.
const TARGETS: Bound = Bound {
    what: "replicated jobs",
    limit: MAX_JOBS,
    remedy: "name only replicated jobs of the runtime",
};

/// The limit of `spec.runtimePatches`.
const ALL_TARGETS: Bound = Bound {
    what: "replicated jobs in all overrides together",
    limit: MAX_PATCHES * MAX_JOBS,
    remedy: "merge overrides of the same replicated jobs",
};

/// The limit of a cluster's storage.
const COPIED: Bound = Bound {
    what: "bytes of JSON, counting each override once for each replicated job that it names",
    limit: STORED_LIMIT,
    remedy: "move settings that all pods share into the runtime",
};

const ENTRIES: Bound = Bound {
    what: "entries after the conversion of the old fields",
    limit: MAX_PATCHES,
    remedy: "merge overrides of the same replicated jobs",
};

impl Bound {
    /// Returns whether a field is within the limit, and refuses it if not.
    fn holds(&self, found: usize, path: &FieldPath, conversion: &mut Conversion) -> bool {
        if found > self.limit {
            let problem = FieldProblem::TooMany {
                what: self.what,
                found,
                limit: self.limit,
                remedy: self.remedy,
            };
            conversion.refuse(path.clone(), problem);
        }
        found <= self.limit
    }
}

/// Returns whether the labels or annotations of an old field can be converted.
pub(super) fn metadata(name: &'static str, map: &Value, conversion: &mut Conversion) -> bool {
    let found = map.as_object().map_or(0, Map::len);
    METADATA.holds(found, &spec().field(name), conversion)
}

/// Returns whether a list of overrides can be converted.
pub(super) fn overrides(list: &[Value], path: &FieldPath, conversion: &mut Conversion) -> bool {
    if !OVERRIDES.holds(list.len(), path, conversion) {
        return false;
    }
    let (mut jobs, mut copied) = (0_usize, 0_usize);
    for (at, one) in list.iter().enumerate() {
        let targets = one.get("targetJobs").and_then(Value::as_array);
        let targets = targets.map_or(0, Vec::len);
        if !TARGETS.holds(targets, &path.index(at).field("targetJobs"), conversion) {
            return false;
        }
        jobs += targets;
        copied = copied.saturating_add(targets.saturating_mul(bytes(one)));
    }
    ALL_TARGETS.holds(jobs, path, conversion) && COPIED.holds(copied, path, conversion)
}

/// Returns whether this number of entries fits into `spec.runtimePatches`.
pub(super) fn entries(found: usize, conversion: &mut Conversion) -> bool {
    ENTRIES.holds(found, &spec().field("runtimePatches"), conversion)
}
