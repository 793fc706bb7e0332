//! References to env vars, such as `$(NAME)`.

/// Replaces each `$(NAME)` that has a value. Others stay, and `$$` becomes `$`.
pub(super) fn expand<'v>(text: &str, value: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            rest = after;
            continue;
        }
        let reference = after.strip_prefix('(').and_then(|it| it.split_once(')'));
        match reference {
            Some((name, after)) => {
                match value(name) {
                    Some(value) => expanded.push_str(value),
                    None => expanded.push_str(&format!("$({name})")),
                }
                rest = after;
            }
            None => {
                expanded.push('$');
                rest = after;
            }
        }
    }
    expanded + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_by_values() {
        let value = |name: &str| match name {
            "A" => Some("1"),
            "EMPTY" => Some(""),
            _ => None,
        };
        for (text, expanded) in [
            ("$(A)-$(A)", "1-1"),
            ("[$(EMPTY)]", "[]"),
            ("$(B)", "$(B)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$A $ $(A", "$A $ $(A"),
            ("5$", "5$"),
        ] {
            assert_eq!(expand(text, value), expanded, "{text}");
        }
    }
}
