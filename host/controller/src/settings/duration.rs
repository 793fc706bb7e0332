//! Durations in configuration files.

/// The pattern of a duration in Go's format: `15s`, `1m30s`, `500ms`.
pub(super) const DURATION: &str = r"^([0-9]{1,6}(\.[0-9]{1,9})?(ns|us|µs|μs|ms|s|m|h))+$";
