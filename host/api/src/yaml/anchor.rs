//! The names of anchors, which the parser does not return.

use std::str::Chars;

use saphyr_parser::Event;

use super::ErrorKind;

/// Finds the names of the anchors of a text, in their order.
pub(super) struct AnchorNames<'t> {
    /// What follows the last anchor that was found.
    rest: Chars<'t>,
    /// The number of characters before it.
    before: usize,
}

impl<'t> AnchorNames<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let rest = text.chars();
        Self { rest, before: 0 }
    }

    /// Checks that the parser of kubectl ends the name of an event's anchor at the same place. `start` is the character with which the anchor
    /// begins, or the tag before it.
    pub(super) fn check(&mut self, event: &Event<'_>, start: usize) -> Result<(), ErrorKind> {
        let (Event::Scalar(_, _, anchor, _)
        | Event::SequenceStart(anchor, _)
        | Event::MappingStart(anchor, _)) = event
        else {
            return Ok(());
        };
        if *anchor == 0 {
            return Ok(());
        }
        let skipped = start.saturating_sub(self.before);
        self.rest.by_ref().take(skipped).for_each(drop);
        self.before = start;
        let node = self.rest.as_str();
        let is_of_tag = |it: char| node.starts_with('!') && !it.is_whitespace();
        let anchor = node.trim_start_matches(is_of_tag).trim_start();
        // Only a comment stands between a tag and its anchor.
        let name = anchor.strip_prefix('&').unwrap_or("#");
        let is_of_name = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        let end = name.trim_start_matches(is_of_name).chars().next();
        match end.is_none_or(|it| it.is_ascii_whitespace() || ",[]{}".contains(it)) {
            true => Ok(()),
            false => Err(ErrorKind::AnchorName),
        }
    }
}
