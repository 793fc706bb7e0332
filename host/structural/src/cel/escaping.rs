//! Escaping of field names that are not identifiers of CEL.

/// The reserved words of CEL.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Returns whether a name is a reserved word. Rules can also select such a field without escaping: `self.namespace`.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Returns the name of a field in rules; `None` if it cannot be escaped.
pub(crate) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '_' if chars.next_if_eq(&'_').is_some() => out.push_str("__underscores__"),
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => out.push(c),
            _ => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_are_spelled_as_kubernetes_spells_them() {
        let spelled = |name: &str| escape(name).unwrap_or_default();
        assert_eq!(spelled("namespace"), "__namespace__");
        assert_eq!(spelled("foo-bar"), "foo__dash__bar");
        assert_eq!(spelled("a.b/c"), "a__dot__b__slash__c");
        assert_eq!(spelled("a_b"), "a_b");
        assert_eq!(spelled("a__b"), "a__underscores__b");
        assert_eq!(escape("1a"), None);
        assert_eq!(escape("ä"), None);
    }
}
