//! The header `WWW-Authenticate`, with which a registry says how to authorize.

/// How to authorize.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// With the credential itself.
    Basic,
    /// With a token of this server.
    Bearer {
        realm: String,
        service: Option<String>,
    },
}

impl Challenge {
    /// Reads a header with one challenge.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service) = (None, None);
        let mut rest = rest;
        while let Some((name, value, after)) = parameter(rest) {
            if name.eq_ignore_ascii_case("realm") {
                realm = Some(value);
            } else if name.eq_ignore_ascii_case("service") {
                service = Some(value);
            }
            rest = after;
        }
        Some(Self::Bearer {
            realm: realm?,
            service,
        })
    }
}

/// Reads `NAME=VALUE` or `NAME="VALUE"`, and returns what follows.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let text = text.trim_start_matches([' ', ',']);
    let (name, rest) = text.split_once('=')?;
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find(',').unwrap_or(rest.len());
        let (value, after) = rest.split_at(end);
        return Some((name.trim(), value.trim().to_owned(), after));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((name.trim(), value, quoted.get(at + 1..)?)),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer {
                realm: realm.to_owned(),
                service: service.map(str::to_owned),
            })
        };
        for (header, expected) in [
            (
                r#"Bearer realm="https://auth.example.com/token",service="r.example.com",scope="repository:a:pull""#,
                bearer("https://auth.example.com/token", Some("r.example.com")),
            ),
            (
                r#"bearer  scope="a,b" , realm="https://a\"b""#,
                bearer("https://a\"b", None),
            ),
            (
                "Bearer realm=https://a,service=b",
                bearer("https://a", Some("b")),
            ),
            (r#"Basic realm="x""#, Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            (r#"Bearer service="x""#, None),
            (r#"Bearer realm="never closed"#, None),
            ("Negotiate", None),
            ("", None),
        ] {
            assert_eq!(Challenge::parse(header), expected, "{header}");
        }
    }
}
