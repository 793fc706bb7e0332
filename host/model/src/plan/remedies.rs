//! The entries of a policy file that resolve a conflict of two plugins. They can be pasted as they are.

/// Returns the entries that order two plugins, or exclude one of them.
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

/// Returns the entries that exclude the combination of two plugins.
pub(super) fn apart(first: &str, second: &str) -> String {
    let by = apart_by(first, second);
    format!("add one of these lines to `plugins` in the policy file: {by}")
}

/// Returns the entries that disable one of two plugins.
pub(super) fn one_of(first: &str, second: &str) -> String {
    let disabled = |name| entry(name, "disabled: true");
    format!("{} or {}", disabled(first), disabled(second))
}

fn apart_by(first: &str, second: &str) -> String {
    format!(
        "{} to refuse TrainJobs that use both, {} to disable one",
        entry(first, &format!("excludes: [{}]", plain(second))),
        one_of(first, second)
    )
}

fn entry(name: &str, setting: &str) -> String {
    format!("`- {{name: {}, {setting}}}`", plain(name))
}

/// A plugin's name as a YAML string: quoted if YAML would parse it as a number, a boolean or null.
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
