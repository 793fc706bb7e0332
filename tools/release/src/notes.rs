//! The release notes, which are a section of the changelog.

/// The changelog has no notes for a version.
#[derive(Debug, thiserror::Error)]
#[error(
    "CHANGELOG.md: there is no section [{version}] and no section [Unreleased] with text; write one"
)]
pub struct NotesError {
    version: String,
}

/// Returns the notes of a version: its section in the changelog or, as long as it has none, the section of what is not released yet.
///
/// # Errors
///
/// If neither section has text.
pub fn notes(changelog: &str, version: &str) -> Result<String, NotesError> {
    let released =
        section(changelog, version).map(|text| format!("# Trainyard {version}\n{text}\n"));
    let notes = released.or_else(|| {
        let text = section(changelog, "Unreleased")?;
        Some(format!(
            "# Trainyard {version}, which is not released yet\n{text}\n"
        ))
    });
    notes.ok_or_else(|| NotesError {
        version: version.to_owned(),
    })
}

/// Returns the text below the heading `## [NAME]` up to the next heading of that level, if there is any.
fn section<'c>(changelog: &'c str, name: &str) -> Option<&'c str> {
    let (_, rest) = changelog.split_once(&format!("\n## [{name}]"))?;
    let (_, rest) = rest.split_once('\n')?;
    let text = rest.split_once("\n## ").map_or(rest, |(text, _)| text);
    Some(text.trim_end()).filter(|text| !text.trim().is_empty())
}
