//! Text that comes from guests, on its way to terminals, Events and paths.

/// The longest text from a guest that reaches a person, in characters.
pub const MAX_TEXT: usize = 1024;

/// Removes control and bidirectional-override characters, turns line breaks into spaces, and cuts at [`MAX_TEXT`]
/// characters: a guest's text can't move a terminal's cursor or disguise what stands beside it.
#[must_use]
pub fn clean(text: &str) -> String {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~');
    if text.len() <= MAX_TEXT && text.as_bytes().iter().all(is_plain) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len().min(MAX_TEXT * 4));
    let shown = text.chars().filter_map(|c| match c {
        '\n' | '\r' | '\t' => Some(' '),
        c if c.is_control() || is_bidi(c) => None,
        c => Some(c),
    });
    for (n, c) in shown.enumerate() {
        if n == MAX_TEXT {
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}

/// Texts with another between each two.
pub(crate) fn join<T: std::fmt::Display>(items: &[T], separator: &str) -> String {
    let texts: Vec<_> = items.iter().map(ToString::to_string).collect();
    texts.join(separator)
}

fn is_bidi(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_can_not_steer_a_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\u{202e}c\nd"), "a[31mbc d");
        assert_eq!(clean(&"x".repeat(5000)).chars().count(), MAX_TEXT + 1);
    }
}
