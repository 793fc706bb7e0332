//! Durations as API servers parse them.

use chrono::TimeDelta;

/// Parses a duration as Go's `time.ParseDuration` does (`1h30m`), or else adds up each number with a unit in the text (`12 weeks`).
pub(crate) fn parse(text: &str) -> Option<TimeDelta> {
    parse_go(text)
        .or_else(|| parse_words(text))
        .map(TimeDelta::nanoseconds)
}

fn parse_go(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) if text.starts_with('-') => (-1, rest),
        Some(rest) => (1, rest),
        None => (1, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at_checked(end)?;
        let end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(end)?;
        total = total.checked_add(scaled(number, go_unit(unit)?)?)?;
        rest = after;
    }
    total.checked_mul(sign)
}

/// Multiplies a number with an optional fraction by a unit, in whole nanoseconds.
fn scaled(number: &str, unit: i64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: i64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut total = whole.checked_mul(unit)?;
    let mut unit = unit;
    for digit in fraction.chars() {
        unit /= 10;
        total = total.checked_add(i64::from(digit.to_digit(10)?).checked_mul(unit)?)?;
    }
    Some(total)
}

fn go_unit(unit: &str) -> Option<i64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

fn parse_words(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut total: Option<i64> = None;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = rest.get(start..)?;
        let end = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        let (number, after) = digits.split_at_checked(end)?;
        let after = after.trim_start_matches(['\t', '\n', '\x0c', '\r', ' ']);
        let end = after
            .find(|c: char| !c.is_ascii_alphabetic() && c != 'µ')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(end)?;
        rest = after;
        if unit.is_empty() {
            continue;
        }
        let number: i64 = number.parse().ok()?;
        if let Some(unit) = word_unit(&unit.to_lowercase()) {
            // It wraps around in a server, too.
            let more = number.wrapping_mul(unit);
            total = Some(total.unwrap_or(0).wrapping_add(more));
        }
    }
    total
}

fn word_unit(unit: &str) -> Option<i64> {
    const DAY: i64 = 24 * 3_600_000_000_000;
    let known: [(&[&str], &str, i64); 8] = [
        (&["ns"], "nano", 1),
        (&["us", "µs"], "micro", 1_000),
        (&["ms"], "milli", 1_000_000),
        (&["s"], "sec", 1_000_000_000),
        (&["m"], "min", 60_000_000_000),
        (&["h", "hr"], "hour", 3_600_000_000_000),
        (&["d"], "day", DAY),
        (&["w", "wk"], "week", 7 * DAY),
    ];
    known
        .into_iter()
        .find(|(short, long, _)| short.contains(&unit) || unit.starts_with(long))
        .map(|(_, _, size)| size)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn durations_are_those_of_go_and_words() {
        let seconds = |text: &str| parse(text).map(|duration| duration.num_seconds());
        assert_eq!(seconds("1h30m"), Some(5400));
        assert_eq!(seconds("-1.5m"), Some(-90));
        assert_eq!(seconds("0"), Some(0));
        assert_eq!(seconds("2 weeks"), Some(2 * 7 * 86400));
        assert_eq!(seconds("3 d and 1 hour"), Some(3 * 86400 + 3600));
        assert_eq!(seconds("5"), None);
        assert_eq!(seconds("soon"), None);
        // Found by a fuzzer that compares with a server.
        assert_eq!(seconds("2222222222222222 M"), Some(8_914_143_648));
        assert_eq!(seconds("99999999999999999999"), None);
        assert_eq!(seconds("99999999999999999999 1s"), Some(1));
        assert_eq!(seconds("99999999999999999999 x 1s"), None);
        assert_eq!(seconds(""), None);
    }
}
