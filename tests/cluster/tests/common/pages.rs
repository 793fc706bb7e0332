//! Commands of the documentation.

use anyhow::{Context as _, Result};

/// The page about the move from the reference, and back.
pub(crate) const MOVE: &str = include_str!("../../../../docs/move.md");

/// Returns the shell commands between two headings or steps of a page, in their blocks.
pub(crate) fn commands(page: &str, from: &str, to: &str) -> Result<Vec<String>> {
    let (_, section) = page.split_once(from).with_context(|| from.to_owned())?;
    let (section, _) = section.split_once(to).with_context(|| to.to_owned())?;
    let blocks = section.split("```sh\n").skip(1);
    let blocks = blocks.filter_map(|block| block.split("```").next());
    Ok(blocks.map(|block| block.trim().to_owned()).collect())
}
