//! Each decision in `docs/decisions` has a date, and is listed in `RATIONALE.md`.

use std::fs;

use crate::common::root;

/// Whether a line is a date in italics, such as `_2026-11-21_`.
fn is_date(line: &str) -> bool {
    let date = line.strip_prefix('_').and_then(|it| it.strip_suffix('_'));
    let parts = date.map(|date| {
        date.split('-')
            .map(|part| (part.len(), part.parse::<u16>()))
    });
    parts.is_some_and(|parts| {
        parts
            .map(|(length, number)| number.map(|_| length))
            .eq([Ok(4), Ok(2), Ok(2)])
    })
}

#[test]
fn every_decision_is_dated_and_listed() {
    let index = fs::read_to_string(root().join("RATIONALE.md")).unwrap();
    let mut count = 0;
    for page in fs::read_dir(root().join("docs/decisions")).unwrap() {
        let page = page.unwrap().path();
        let name = page.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&page).unwrap();
        let lines: Vec<_> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let question = line.trim_start_matches('#').trim();
            if !line.starts_with("##") || !question.ends_with('?') {
                continue;
            }
            count += 1;
            let date = lines.get(at + 2).copied().unwrap_or_default();
            assert!(is_date(date), "{name}: {question}: `{date}` is not a date");
            let listed = format!("[{question}](docs/decisions/{name}#");
            assert!(index.contains(&listed), "{name}: {question}: is not listed");
        }
    }
    assert!(count > 100, "only {count} decisions were found");
}
