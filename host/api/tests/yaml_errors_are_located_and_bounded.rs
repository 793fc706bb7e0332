//! An invalid document is one error with its number, line and column, and does not hide other documents. The cost of every text is bounded.

use proptest::{collection::vec, prelude::*};
use trainyard_api::yaml::{self, ErrorKind, MAX_ALIAS_BYTES, MAX_DEPTH, MAX_VALUE_BYTES};

fn places(text: &str) -> Vec<(usize, usize, usize)> {
    yaml::read(text)
        .into_iter()
        .filter_map(Result::err)
        .map(|error| (error.document, error.line, error.column))
        .collect()
}

fn only_error(text: &str) -> ErrorKind {
    let mut errors: Vec<_> = yaml::read(text)
        .into_iter()
        .filter_map(Result::err)
        .collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0).kind
}

#[test]
fn invalid_document_does_not_hide_others() {
    let text = "a: 1\n---\na: [1\n---\nb: 1\nb: 2\n---\nc: *x\n---\nd: 4\n";
    let good: Vec<_> = yaml::read(text)
        .into_iter()
        .filter_map(Result::ok)
        .map(|document| document.number)
        .collect();
    assert_eq!(good, [1, 5]);
    let bad = places(text);
    assert_eq!(
        bad.iter()
            .map(|(document, ..)| *document)
            .collect::<Vec<_>>(),
        [2, 3, 4]
    );
    assert_eq!(bad[1..], [(3, 6, 1), (4, 8, 4)]);
}

#[test]
fn lines_and_columns_match_the_file() {
    assert_eq!(
        places("# one\n# two\n---\na:\n  b: 1\n  b: 2\n"),
        [(1, 6, 3)]
    );
    assert_eq!(places("a: 1\n---\nk: .inf\n"), [(2, 3, 4)]);
    assert_eq!(places("a: 1\n---\n? [a]\n: b\n"), [(2, 3, 3)]);
    assert_eq!(places("a: é: b\n"), [(1, 1, 5)]);
    assert_eq!(places("{\"a\": 1}\n{\"a\": 1,\n \"b\": }\n"), [(2, 3, 7)]);
    assert_eq!(places("{\"a\": 1,\n \"a\": 2}\n"), [(1, 2, 4)]);
    assert_eq!(places("{} {\"a\": 1, \"a\": 2}"), [(2, 1, 15)]);
}

#[test]
fn messages_suggest_a_fix() {
    let error = yaml::read("a: 1\na: 2\n").remove(0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "document 1, line 2, column 1: the key \"a\" is a duplicate; remove one of the two"
    );
    let error = yaml::read("~: 2\n").remove(0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "document 1, line 1, column 1: a key must be a string, but this one is null; quote it"
    );
}

#[test]
fn nesting_is_bounded() {
    let lists = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(yaml::read(&lists(MAX_DEPTH))[0].is_ok());
    assert_eq!(
        only_error(&lists(MAX_DEPTH + 1)),
        ErrorKind::TooDeep { limit: MAX_DEPTH }
    );
    let block = |depth: usize| {
        (0..depth)
            .map(|at| format!("{}a:\n", " ".repeat(at)))
            .collect::<String>()
    };
    assert!(yaml::read(&block(MAX_DEPTH))[0].is_ok());
    assert_eq!(
        only_error(&block(MAX_DEPTH + 1)),
        ErrorKind::TooDeep { limit: MAX_DEPTH }
    );
    let json = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    assert!(yaml::read(&json(MAX_DEPTH))[0].is_ok());
    assert!(yaml::read(&json(MAX_DEPTH + 1))[0].is_err());
    assert!(yaml::read(&"[".repeat(100_000))[0].is_err());
    // Each alias adds the depth of its anchor.
    let chained = format!(
        "a: &a {0}\nb: &b {1}*a{2}\nc: {1}*b{2}\n",
        lists(50),
        "[".repeat(50),
        "]".repeat(50)
    );
    assert_eq!(
        only_error(&chained),
        ErrorKind::TooDeep { limit: MAX_DEPTH }
    );
}

#[test]
fn aliases_are_bounded() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let alias = format!("*a{}", level - 1);
        laughs += &format!(
            "a{level}: &a{level} [{}]\n",
            [alias.as_str(); 10].join(", ")
        );
    }
    assert_eq!(
        only_error(&laughs),
        ErrorKind::TooManyAliases {
            limit: MAX_ALIAS_BYTES
        }
    );
    // Many aliases of a large text take as much memory as many values.
    let large = format!(
        "a: &a \"{}\"\nb: [{}]\n",
        "x".repeat(1 << 20),
        ["*a"; 64].join(", ")
    );
    assert_eq!(
        only_error(&large),
        ErrorKind::TooManyAliases {
            limit: MAX_ALIAS_BYTES
        }
    );
    let merges = format!(
        "a: &a {{k: \"{}\"}}\nb:\n{}",
        "x".repeat(1 << 20),
        "- {<<: *a}\n".repeat(64)
    );
    assert_eq!(
        only_error(&merges),
        ErrorKind::TooManyAliases {
            limit: MAX_ALIAS_BYTES
        }
    );
    let usual = format!("a: &a {{x: 1}}\nb: [{}]\n", ["*a"; 1000].join(", "));
    assert!(yaml::read(&usual)[0].is_ok());
}

/// A value of two characters takes 100 bytes and more.
#[test]
fn values_are_bounded() {
    let list = |item: &str, count: usize| format!("[{}{item}]", format!("{item},").repeat(count));
    let object = |list: String| format!("{{\"a\": {list}}}");
    let deep = format!("{}{}", "[".repeat(50), "]".repeat(50));
    for text in [
        list("{a: 1}", 800_000),
        list(&deep, 20_000),
        object(list("{\"a\":1}", 800_000)),
        object(list(&deep, 20_000)),
        "a\n---\n".repeat(1_500_000),
        "{}".repeat(2_000_000),
    ] {
        let result = yaml::read(&text).pop().unwrap();
        let limit = MAX_VALUE_BYTES;
        let kind = result.unwrap_err().kind;
        assert_eq!(kind, ErrorKind::TooManyValues { limit });
    }
    // An API server reads 3 MiB at most, and etcd stores half of it.
    let mut large = "data:\n".to_owned();
    while large.len() < 3 << 20 {
        large += &format!("  key-{}: \"a short text\"\n", large.len());
    }
    assert!(yaml::read(&large)[0].is_ok());
}

/// Many invalid documents are not all reported; only the first errors are useful.
#[test]
fn errors_are_bounded() {
    let broken = "---\n*a\n".repeat(100_000);
    let results = yaml::read(&broken);
    assert!(results.iter().all(Result::is_err));
    assert_eq!(results.len(), 1001);
}

#[test]
fn json_files_get_json_errors() {
    // The parser that got further reports the error.
    assert!(matches!(
        only_error("{\"a\": \"\\ud83d\\ude00\",\n\"b\": tru e x}}\n"),
        ErrorKind::Json(_)
    ));
    assert!(matches!(only_error("{a: [1, 2}\n"), ErrorKind::Syntax(_)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, ..ProptestConfig::default() })]

    /// For any text, each document is one result, in order, with a position inside the text.
    #[test]
    fn arbitrary_text_gives_values_or_errors(parts in vec(prop::sample::select(vec![
        "a", ": ", "- ", "? ", "\n", "\n", "\n  ", "\t", "[", "]", "{", "}", ", ", "&a ", "*a", "!!int ", "!<x> ", "! ", "|", ">", "|2-",
        "'", "\"", "#", " #", "---", "...", "%YAML 1.1", "%TAG ! x", "<<", "1", "~", "\\", "\u{feff}", "\r", "\0", "é", "@", "`",
    ]), 0..40)) {
        let text = parts.concat();
        let lines = text.matches(['\n', '\r']).count() + 1;
        let mut last = 0;
        for result in yaml::read(&text) {
            let number = match &result {
                Ok(document) => document.number,
                Err(error) => {
                    prop_assert!((1..=lines).contains(&error.line) && error.column > 0, "{:?} {:?}", error, text);
                    error.document
                }
            };
            prop_assert!(number > last, "{:?}", text);
            last = number;
        }
    }
}
