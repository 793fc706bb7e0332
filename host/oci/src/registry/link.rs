//! The header `Link` (RFC 8288), with which a registry says where a list continues.

/// Returns the first URL with a relation.
pub(super) fn find<'h>(header: &'h str, relation: &str) -> Option<&'h str> {
    parts(header, ',').find_map(|link| {
        let mut parts = parts(link, ';').map(str::trim);
        let url = parts.next()?.strip_prefix('<')?.strip_suffix('>')?;
        let mut values = parts.filter_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let is_relation = name.trim().eq_ignore_ascii_case("rel");
            is_relation.then(|| value.trim().trim_matches('"'))
        });
        // Only the first one counts, by the RFC.
        let mut relations = values.next()?.split_ascii_whitespace();
        let has = relations.any(|one| one.eq_ignore_ascii_case(relation));
        has.then_some(url)
    })
}

/// Splits a text where a separator is neither in a URL nor in a quoted text.
fn parts(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut end, mut is_escaped) = (None, false);
    text.split(move |c| {
        match (end, c) {
            _ if is_escaped => is_escaped = false,
            (Some('"'), '\\') => is_escaped = true,
            (None, '<') => end = Some('>'),
            (None, '"') => end = Some('"'),
            (Some(closing), c) if c == closing => end = None,
            (None, c) => return c == separator,
            _ => {}
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_page_is_found_in_every_form_of_the_rfc() {
        for (header, expected) in [
            (r#"</v2/x?a=1>; rel="next""#, Some("/v2/x?a=1")),
            ("</x>;rel=next", Some("/x")),
            (r#"</x?last=a,b;c>; rel="next""#, Some("/x?last=a,b;c")),
            (r#"</x>; REL = "prev Next""#, Some("/x")),
            (
                r#"</a>; rel=prev , </b>; title="\"a, b;"; rel=next"#,
                Some("/b"),
            ),
            (
                r#"</a>; title="<x>; rel=next", </b>; rel="next""#,
                Some("/b"),
            ),
            (r#"</a>; rel=prev; rel=next"#, None),
            (r#"</a>; rel="nextish""#, None),
            (r#"</a>; title="rel=next""#, None),
            ("/a; rel=next", None),
            ("</a; rel=next", None),
            ("</a>", None),
            ("", None),
        ] {
            assert_eq!(find(header, "next"), expected, "{header}");
        }
    }
}
