//! Characters that a reader cannot see.

use std::{borrow::Cow, fmt::Write};

/// The maximum length of a plugin's text in messages, in characters.
pub const MAX_TEXT: usize = 1024;

/// The maximum length of a line on a terminal, in characters.
pub const MAX_LINE: usize = 16 * 1024;

/// Returns whether a character is invisible, or changes how its neighbors are displayed: control characters, line and paragraph
/// separators, format characters, Unicode's default ignorable characters, and blanks that are not white space.
///
/// White space is not hidden. Neither are the signs of Arabic and related scripts that enclose a number, which are visible although
/// Unicode lists them as format characters.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control() || is_hidden_by_unicode(c) || is_blank(c)
}

/// The union of the lists of Unicode 16 (`DerivedCoreProperties.txt`, `DerivedGeneralCategory.txt`).
const fn is_hidden_by_unicode(c: char) -> bool {
    matches!(c,
        '\u{AD}' // soft hyphen
        | '\u{34F}' // combining grapheme joiner
        | '\u{61C}' // Arabic letter mark
        | '\u{115F}' | '\u{1160}' // Hangul fillers
        | '\u{17B4}' | '\u{17B5}' // Khmer inherent vowels
        | '\u{180B}'..='\u{180F}' // Mongolian selectors and vowel separator
        | '\u{200B}'..='\u{200F}' // zero-width space and joiners, marks of direction
        | '\u{2028}'..='\u{202E}' // separators; embeddings and overrides
        | '\u{2060}'..='\u{206F}' // word joiner, invisible operators, isolates, deprecated format characters
        | '\u{3164}' // Hangul filler
        | '\u{FE00}'..='\u{FE0F}' // variation selectors
        | '\u{FEFF}' // byte order mark
        | '\u{FFA0}' // half-width Hangul filler
        | '\u{FFF0}'..='\u{FFFB}' // interlinear annotation
        | '\u{13430}'..='\u{1343F}' // Egyptian hieroglyph joiners and enclosures
        | '\u{1BCA0}'..='\u{1BCA3}' // shorthand format controls
        | '\u{1D173}'..='\u{1D17A}' // musical format controls
        | '\u{E0000}'..='\u{E0FFF}' // tags and further variation selectors
    )
}

/// Characters that are blank in fonts, although Unicode lists them as letters, marks or symbols.
const fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\u{2800}' // Braille pattern without dots
        | '\u{13440}'
            ..='\u{1345F}' // the rest of the Egyptian hieroglyph format controls: blanks and modifiers
        | '\u{16FE4}' // Khitan small script filler
        | '\u{1D159}' // musical null notehead
    )
}

/// Returns the text as one line of at most [`MAX_TEXT`] characters, as [`clean_to`] does.
#[must_use]
pub fn clean(text: &str) -> String {
    clean_to(text, MAX_TEXT)
}

/// Returns the text as one line of at most `most` characters: line breaks and tabs become spaces, hidden characters become escapes
/// (`\u{202e}`), and a longer text is truncated with `…`.
#[must_use]
pub fn clean_to(text: &str, most: usize) -> String {
    // Without an early end, many bytes are compared at once.
    let is_plain = |plain, byte: &u8| plain & matches!(byte, b' '..=b'~');
    if text.len() <= most && text.as_bytes().iter().fold(true, is_plain) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len().min(most.saturating_mul(4)));
    let shown = text.chars().flat_map(|c| match c {
        '\n' | '\r' | '\t' => Shown::Character(Some(' ')),
        c if is_hidden(c) => Shown::Escape(c.escape_unicode()),
        c => Shown::Character(Some(c)),
    });
    for (n, c) in shown.enumerate() {
        if n == most {
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}

/// Returns JSON text with hidden characters escaped as in JSON. Line breaks and tabs, which separate values, are kept.
#[must_use]
pub fn json_escaped(json: &str) -> Cow<'_, str> {
    let is_escaped = |c| !matches!(c, '\n' | '\t') && is_hidden(c);
    if !json.contains(is_escaped) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if !is_escaped(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    Cow::Owned(out)
}

/// A character of a cleaned text.
enum Shown {
    Character(Option<char>),
    Escape(std::char::EscapeUnicode),
}

impl Iterator for Shown {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self {
            Self::Character(c) => c.take(),
            Self::Escape(escape) => escape.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn hidden_characters_are_escaped() {
        assert_eq!(
            clean("a\u{1b}[31mb\u{202e}c\nd\te"),
            r"a\u{1b}[31mb\u{202e}c d e"
        );
        assert_eq!(clean("naïve 日本 e\u{301}"), "naïve 日本 e\u{301}");
    }

    /// Our tables agree with the Unicode tables of the regex crate.
    #[test]
    fn everything_that_unicode_hides_is_hidden() {
        let hidden = r"[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Join_Control}\p{Variation_Selector}]--\p{Prepended_Concatenation_Mark}]";
        let hidden = regex::Regex::new(hidden).unwrap();
        let differs = |c: &char| {
            let by_unicode = hidden.is_match(c.encode_utf8(&mut [0; 4]));
            by_unicode != (c.is_control() || is_hidden_by_unicode(*c))
        };
        let differing: Vec<char> = ('\0'..=char::MAX).filter(differs).collect();
        assert!(differing.is_empty(), "{differing:?}");
    }

    #[test]
    fn blanks_are_hidden_and_white_space_is_not() {
        for c in
            "\u{2800}\u{13441}\u{1345f}\u{16fe4}\u{1d159}\u{3164}\u{115f}\u{1160}\u{ffa0}".chars()
        {
            assert!(is_hidden(c), "{c:?}");
        }
        for c in " \u{a0}\u{202f}\u{3000}\u{600}".chars() {
            assert!(!is_hidden(c), "{c:?}");
        }
    }

    #[test]
    fn text_is_cut() {
        assert_eq!(clean(&"x".repeat(5000)).chars().count(), MAX_TEXT + 1);
        let escapes = "\u{200b}".repeat(5000);
        assert_eq!(clean(&escapes).chars().count(), MAX_TEXT + 1);
        assert_eq!(clean_to("abc", 2), "ab…");
    }

    #[test]
    fn json_stays_the_same_value() {
        let json = "{\n\t\"a\u{202e}\u{e0041}\u{7f}\": \"é\"\n}";
        let wanted = "{\n\t\"a\\u202e\\udb40\\udc41\\u007f\": \"é\"\n}";
        assert_eq!(json_escaped(json), wanted);
    }
}
