//! How much the old forms of one TrainJob may hold. Everything is counted before anything is converted: a conversion copies an
//! override once for each replicated job that it names.

use serde_json::{Map, Value};

use super::{Modernized, spec};
use crate::fields::FieldProblem;
use crate::path::FieldPath;
use crate::size::{STORED_LIMIT, bytes};

/// The most entries that `spec.runtimePatches` may have. The CRD has the same limit.
const MAX_PATCHES: usize = 16;
/// The most replicated jobs that one entry of `spec.runtimePatches` may patch. The CRD has the same limit.
const MAX_JOBS: usize = 100;

/// The most differences between old and new fields that are reported.
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
    remedy: "join overrides of the same replicated jobs",
};

/// The CRD has the same limit.
const TARGETS: Bound = Bound {
    what: "replicated jobs",
    limit: MAX_JOBS,
    remedy: "name replicated jobs of the runtime",
};

/// What `spec.runtimePatches` can hold.
const ALL_TARGETS: Bound = Bound {
    what: "replicated jobs in all overrides together",
    limit: MAX_PATCHES * MAX_JOBS,
    remedy: "join overrides of the same replicated jobs",
};

/// What a cluster can store.
const COPIED: Bound = Bound {
    what: "bytes of JSON, with each override counted once for each replicated job that it names",
    limit: STORED_LIMIT,
    remedy: "move what all pods share into the runtime",
};

const ENTRIES: Bound = Bound {
    what: "entries once the old fields are converted",
    limit: MAX_PATCHES,
    remedy: "join overrides of the same replicated jobs",
};

impl Bound {
    /// Whether a field keeps to the limit; it is refused if not.
    fn holds(&self, found: usize, path: &FieldPath, modernized: &mut Modernized) -> bool {
        if found > self.limit {
            let problem = FieldProblem::TooMany {
                what: self.what,
                found,
                limit: self.limit,
                remedy: self.remedy,
            };
            modernized.refuse(path.clone(), problem);
        }
        found <= self.limit
    }
}

/// Whether the labels or annotations of an old field can be converted.
pub(super) fn metadata(name: &'static str, map: &Value, modernized: &mut Modernized) -> bool {
    let found = map.as_object().map_or(0, Map::len);
    METADATA.holds(found, &spec().field(name), modernized)
}

/// Whether a list of overrides can be converted.
pub(super) fn overrides(list: &[Value], path: &FieldPath, modernized: &mut Modernized) -> bool {
    if !OVERRIDES.holds(list.len(), path, modernized) {
        return false;
    }
    let (mut jobs, mut copied) = (0_usize, 0_usize);
    for (at, one) in list.iter().enumerate() {
        let targets = one.get("targetJobs").and_then(Value::as_array);
        let targets = targets.map_or(0, Vec::len);
        if !TARGETS.holds(targets, &path.index(at).field("targetJobs"), modernized) {
            return false;
        }
        jobs += targets;
        copied = copied.saturating_add(targets.saturating_mul(bytes(one)));
    }
    ALL_TARGETS.holds(jobs, path, modernized) && COPIED.holds(copied, path, modernized)
}

/// Whether so many entries fit into `spec.runtimePatches`.
pub(super) fn entries(found: usize, modernized: &mut Modernized) -> bool {
    ENTRIES.holds(found, &spec().field("runtimePatches"), modernized)
}
