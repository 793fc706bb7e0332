//! Regular expressions in Go's syntax, evaluated by the `regex` crate.

use std::sync::OnceLock;

use regex::Regex;

/// A regular expression in Go's syntax, compiled when it is first used.
///
/// In Go, `\d`, `\w`, `\s` and `\b` are ASCII, and `[`, `&&` and `~~` are literals in a class.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// The expression as written in the schema.
    pub(crate) written: String,
    regex: OnceLock<Result<Regex, regex::Error>>,
}

impl Pattern {
    pub(crate) fn new(written: &str) -> Self {
        Self {
            written: written.to_owned(),
            regex: OnceLock::new(),
        }
    }

    /// Returns the compiled expression, or the reason why it does not compile.
    pub(crate) fn regex(&self) -> Result<&Regex, &regex::Error> {
        let compile = || Regex::new(&translate(&self.written));
        self.regex.get_or_init(compile).as_ref()
    }

    /// Returns whether the text has a match; an expression that does not compile matches nothing.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.regex().is_ok_and(|regex| regex.is_match(text))
    }
}

fn translate(written: &str) -> String {
    let mut out = String::with_capacity(written.len() + 16);
    let mut chars = written.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped) => escape(&mut out, escaped, in_class),
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if chars.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            '[' if chars.peek() == Some(&':') => posix_class(&mut out, &mut chars),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '[' | '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn posix_class(out: &mut String, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    out.push('[');
    for c in chars.by_ref() {
        out.push(c);
        if c == ']' {
            break;
        }
    }
}

fn escape(out: &mut String, escaped: char, in_class: bool) {
    let ascii = match escaped {
        'd' | 'D' => "0-9",
        'w' | 'W' => "0-9A-Za-z_",
        's' | 'S' => "\\t\\n\\x0C\\r ",
        'b' if !in_class => {
            out.push_str("(?-u:\\b)");
            return;
        }
        other => {
            out.push('\\');
            out.push(other);
            return;
        }
    };
    if escaped.is_ascii_uppercase() {
        out.push_str("[^");
        out.push_str(ascii);
        out.push(']');
    } else if in_class {
        out.push_str(ascii);
    } else {
        out.push('[');
        out.push_str(ascii);
        out.push(']');
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::Pattern;

    #[test]
    fn classes_are_those_of_go() {
        let matches = |pattern: &str, text: &str| Pattern::new(pattern).matches(text);
        assert!(matches(r"^\d+$", "123"));
        assert!(!matches(r"^\d+$", "١٢٣"));
        assert!(!matches(r"^\w$", "é"));
        assert!(matches(r"^[\w.-]+$", "a_b.c-d"));
        assert!(matches(r"^[[a]+$", "[a["));
        assert!(matches(r"^[a&&b]+$", "a&b"));
        assert!(matches(r"^[[:alpha:]]+$", "abc"));
        assert!(matches(r"^[]a]+$", "]a"));
        assert!(matches(r"^[^\d]$", "x"));
        assert!(matches(r"^a$", "a"));
        assert!(!matches(r"^a$", "a\n"));
        assert!(Pattern::new("(").regex().is_err());
    }
}
