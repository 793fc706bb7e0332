//! What is found for a condition, and the reasons that several conditions have.

use trainyard_config::policy_plugin::ConditionStatus;

/// The reason if a built-in plugin is used, because it is as new as the one of the PolicyPlugin.
pub(super) const BUILT_IN_IS_NEWER: &str = "BuiltInIsNewer";

/// The reasons if a loaded revision does not have the plugin.
pub(super) const SKIPPED: &str = "Skipped";
pub(super) const GATE_OFF: &str = "GateOff";
pub(super) const DISABLED: &str = "Disabled";
pub(super) const IS_DISABLED: &str = "spec.disabled is true";

pub(super) type Found = (ConditionStatus, String, String);

pub(super) fn of(status: ConditionStatus, reason: &str, message: impl Into<String>) -> Found {
    (status, reason.to_owned(), message.into())
}
