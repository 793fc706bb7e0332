//! Texts of a status.

use std::collections::BTreeMap;

/// Returns which plugins are skipped, and why.
pub(super) fn skipped_in_words(skipped: &BTreeMap<String, String>) -> String {
    let each = skipped.iter();
    let each: Vec<_> = each
        .map(|(plugin, why)| format!("plugin {plugin} is skipped: {why}"))
        .collect();
    each.join("; ")
}

/// Cuts a text to what fits into a status.
pub(super) fn cut(text: &str) -> String {
    trainyard_model::text::clean_to(text, 1_024)
}
