//! Which fields are maps, so that their keys are in brackets in paths.

/// The fields that are maps, whose keys their author chooses.
const MAPS: [&str; 13] = [
    "annotations",
    "binaryData",
    "capacity",
    "data",
    "labels",
    "limits",
    "matchLabels",
    "minResources",
    "nodeSelector",
    "overhead",
    "requests",
    "stringData",
    "volumeAttributes",
];

/// Returns whether a field of this name is a map, whose keys are in brackets in paths.
#[must_use]
pub fn has_any_keys(field: &str) -> bool {
    MAPS.contains(&field)
}
