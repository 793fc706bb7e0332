//! What an operator can write to have two plugins that can't run side by side: lines that work when they are pasted.

/// Returns the entries of a policy file that order two plugins, or keep them apart.
#[must_use]
pub fn ordered_or_apart(first: &str, second: &str) -> String {
    let after = |name, other| entry(name, &format!("after: [{}]", plain(other)));
    format!(
        "add one of these lines to `plugins` in the policy file: {} or {} to order them, {}",
        after(first, second),
        after(second, first),
        apart_by(first, second)
    )
}

/// The entries that keep two plugins apart.
pub(super) fn apart(first: &str, second: &str) -> String {
    let by = apart_by(first, second);
    format!("add one of these lines to `plugins` in the policy file: {by}")
}

/// The entries that leave one of two plugins out.
pub(super) fn one_of(first: &str, second: &str) -> String {
    let disabled = |name| entry(name, "disabled: true");
    format!("{} or {}", disabled(first), disabled(second))
}

fn apart_by(first: &str, second: &str) -> String {
    format!(
        "{} to refuse TrainJobs that use both, {} to leave one out",
        entry(first, &format!("excludes: [{}]", plain(second))),
        one_of(first, second)
    )
}

fn entry(name: &str, setting: &str) -> String {
    format!("`- {{name: {}, {setting}}}`", plain(name))
}

/// A plugin's name in YAML: in quotes if it would be a number or a word with a meaning of its own.
fn plain(name: &str) -> String {
    let is_word = matches!(
        name,
        "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null"
    );
    if is_word || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        format!("\"{name}\"")
    } else {
        name.to_owned()
    }
}
