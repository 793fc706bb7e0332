//! Scalars, keys, merge keys and documents are parsed as kubectl and the API server parse them.
//!
//! The tables were generated with `sigs.k8s.io/yaml` v1.6.0 (`YAMLToJSONStrict`; merge keys with `YAMLToJSON`), which Kubernetes uses.

use serde_json::{Value, json};
use trainyard_api::yaml::{self, ErrorKind};

/// The scalar as written, and the JSON that it becomes.
const SCALARS: &[(&str, &str)] = &[
    ("y", r#"true"#),
    ("Y", r#"true"#),
    ("yes", r#"true"#),
    ("Yes", r#"true"#),
    ("YES", r#"true"#),
    ("yEs", r#""yEs""#),
    ("n", r#"false"#),
    ("N", r#"false"#),
    ("no", r#"false"#),
    ("No", r#"false"#),
    ("NO", r#"false"#),
    ("true", r#"true"#),
    ("True", r#"true"#),
    ("TRUE", r#"true"#),
    ("tRUE", r#""tRUE""#),
    ("on", r#"true"#),
    ("On", r#"true"#),
    ("ON", r#"true"#),
    ("oN", r#""oN""#),
    ("off", r#"false"#),
    ("Off", r#"false"#),
    ("OFF", r#"false"#),
    ("false", r#"false"#),
    ("False", r#"false"#),
    ("FALSE", r#"false"#),
    ("~", r#"null"#),
    ("null", r#"null"#),
    ("Null", r#"null"#),
    ("NULL", r#"null"#),
    ("nULL", r#""nULL""#),
    ("\"y\"", r#""y""#),
    ("'0755'", r#""0755""#),
    ("0755", r#"493"#),
    ("0o755", r#"493"#),
    ("0O17", r#"15"#),
    ("0x1F", r#"31"#),
    ("0X1f", r#"31"#),
    ("-0x1F", r#"-31"#),
    ("0b101", r#"5"#),
    ("0B11", r#"3"#),
    ("-0b11", r#"-3"#),
    ("0b+1", r#"1"#),
    ("0b-1", r#"-1"#),
    ("0b2", r#""0b2""#),
    ("08", r#"8"#),
    ("0o8", r#""0o8""#),
    ("0", r#"0"#),
    ("00", r#"0"#),
    ("-0", r#"0"#),
    ("+0", r#"0"#),
    ("0x", r#""0x""#),
    ("0b", r#""0b""#),
    ("0o", r#""0o""#),
    ("0xg", r#""0xg""#),
    ("+1", r#"1"#),
    ("-1", r#"-1"#),
    ("+0755", r#"493"#),
    ("-0755", r#"-493"#),
    ("1_000", r#"1000"#),
    ("1__0", r#"10"#),
    ("_1", r#""_1""#),
    ("1_", r#"1"#),
    ("0_7", r#"7"#),
    ("0x_1f", r#"31"#),
    ("1.5", r#"1.5"#),
    ("1.", r#"1"#),
    (".5", r#"0.5"#),
    ("-.5", r#"-0.5"#),
    ("+.5", r#"0.5"#),
    (".", r#"".""#),
    (".5_0", r#"0.5"#),
    ("1_0.5", r#"10.5"#),
    ("1e3", r#"1000"#),
    ("1E3", r#"1000"#),
    ("1e+3", r#"1000"#),
    ("1e-3", r#"0.001"#),
    ("1.5e3", r#"1500"#),
    ("1.e3", r#"1000"#),
    (".5e1", r#"5"#),
    ("1e400", r#""1e400""#),
    ("-1e400", r#""-1e400""#),
    ("1e", r#""1e""#),
    ("e3", r#""e3""#),
    ("1.0", r#"1"#),
    ("100000000000000000000", r#"1e20"#),
    ("1e20", r#"1e20"#),
    ("1e21", r#"1e+21"#),
    ("1e18", r#"1000000000000000000"#),
    ("1152921504606846976.0", r#"1152921504606847000"#),
    ("123456789.123", r#"123456789.123"#),
    ("9223372036854775807", r#"9223372036854775807"#),
    ("9223372036854776000", r#"9223372036854776000"#),
    ("0x80000000000000c0", r#"9223372036854776000"#),
    ("18446744073709551616", r#"18446744073709552000.0"#),
    ("-9223372036854775808", r#"-9223372036854775808"#),
    ("-9223372036854775809", r#"-9223372036854776000.0"#),
    ("+18446744073709551615", r#"18446744073709552000.0"#),
    ("0x10000000000000000", r#""0x10000000000000000""#),
    ("1:30", r#""1:30""#),
    ("190:20:30", r#""190:20:30""#),
    ("2001-01-01", r#""2001-01-01""#),
    ("2001-01-01T00:00:00Z", r#""2001-01-01T00:00:00Z""#),
    (
        "2001-12-14 21:59:43.10 -5",
        r#""2001-12-14 21:59:43.10 -5""#,
    ),
    ("12:00", r#""12:00""#),
    ("1.2.3", r#""1.2.3""#),
    ("10Gi", r#""10Gi""#),
    ("500m", r#""500m""#),
    ("=", r#""=""#),
    ("<<", r#""<<""#),
    ("Infinity", r#""Infinity""#),
    ("NaN", r#""NaN""#),
    ("nan", r#""nan""#),
    ("inf", r#""inf""#),
    ("+.nan", r#""+.nan""#),
    ("0x1p4", r#""0x1p4""#),
    ("0.0", r#"0"#),
    ("1e-7", r#"1e-7"#),
    ("0.000001", r#"0.000001"#),
    ("!!str 5", r#""5""#),
    ("!!str yes", r#""yes""#),
    ("!!str ~", r#""~""#),
    ("!!str", r#""""#),
    ("!!int \"5\"", r#"5"#),
    ("!!int 0755", r#"493"#),
    ("!!float 5", r#"5"#),
    ("!!float 1.5", r#"1.5"#),
    ("!!bool yes", r#"true"#),
    ("!!null ~", r#"null"#),
    ("!!binary aGVsbG8=", r#""hello""#),
    ("!local 5", r#""5""#),
    ("! 5", r#""5""#),
    ("!!timestamp 2001-01-01", r#""2001-01-01""#),
    ("\"a\\x41\\u00e9\\t\"", r#""aAé\t""#),
    ("'it''s'", r#""it's""#),
    ("a b", r#""a b""#),
    ("a:b", r#""a:b""#),
    ("a#b", r#""a#b""#),
    ("[1, y, \"y\", 0x10]", r#"[1,true,"y",16]"#),
    (".5__0", r#"".5__0""#),
    ("._5", r#""._5""#),
    ("-0.0", r#"0"#),
];

/// Scalars without a JSON equivalent, or with a tag that does not fit.
const NO_VALUES: &[&str] = &[
    ".inf",
    "-.inf",
    "+.INF",
    ".nan",
    ".NaN",
    "!!int 5.5",
    "!!float x",
    "!!bool 1",
    "!!null x",
    "!!binary \"***\"",
    "!!timestamp 5",
];

/// Mappings with keys that are not strings, and the JSON that they become.
const KEYS: &[(&str, &str)] = &[
    ("{a: y, b: ~}", r#"{"a":true,"b":null}"#),
    (
        "{y: 1, 1: 2, 1.5: 3, 0x10: 4, 2001-01-01: 5}",
        r#"{"1":2,"1.5":3,"16":4,"2001-01-01":5,"true":1}"#,
    ),
    ("{1e10: 1}", r#"{"1e+10":1}"#),
    ("{1234567.5: 1}", r#"{"1.2345675e+06":1}"#),
    ("{123456.5: 1}", r#"{"123456.5":1}"#),
    ("{0.00001: 1}", r#"{"1e-05":1}"#),
    ("{0.0001: 1}", r#"{"0.0001":1}"#),
    ("{1.10: 1}", r#"{"1.1":1}"#),
    ("{.inf: 1}", r#"{".inf":1}"#),
    ("{\"<<\": 1}", r#"{"<<":1}"#),
];

/// Mappings with a key that JSON does not have, or with a duplicate key.
const NO_KEYS: &[&str] = &[
    "{~: 1}",
    "{9223372036854775808: 1}",
    "{[a]: 1}",
    "{a: 1, a: 2}",
    "{y: 1, true: 2}",
    "{1: 1, \"1\": 2}",
];

fn one(text: &str) -> Result<Value, ErrorKind> {
    let mut documents = yaml::read(text);
    assert_eq!(documents.len(), 1, "{text:?} is one document");
    documents
        .remove(0)
        .map(|document| document.value)
        .map_err(|error| error.kind)
}

#[test]
fn scalars_and_keys_are_typed_as_in_kubernetes() {
    for (written, json) in SCALARS.iter().chain(KEYS) {
        let wanted: Value = serde_json::from_str(json).unwrap();
        assert_eq!(
            one(&format!("k: {written}")).unwrap()["k"],
            wanted,
            "{written}"
        );
    }
}

#[test]
fn yaml_without_a_json_equivalent_is_an_error() {
    for written in NO_VALUES {
        let kind = one(&format!("k: {written}")).expect_err(written);
        assert!(
            matches!(kind, ErrorKind::NotFinite(_) | ErrorKind::Tag { .. }),
            "{written}: {kind}"
        );
    }
    for written in NO_KEYS {
        let kind = one(&format!("k: {written}")).expect_err(written);
        assert!(
            matches!(kind, ErrorKind::Key(_) | ErrorKind::DuplicateKey(_)),
            "{written}: {kind}"
        );
    }
}

/// An API server holds integers beyond 64 bits with a sign as floats.
#[test]
fn integers_that_an_api_server_rounds_are_refused() {
    for written in [
        "9223372036854775808",
        "18446744073709551615",
        "0xffffffffffffffff",
        "01777777777777777777777",
    ] {
        let rounded = ErrorKind::Rounded(written.to_owned());
        assert_eq!(one(&format!("k: {written}")).unwrap_err(), rounded);
        assert_eq!(one(&format!("k: &a {written}")).unwrap_err(), rounded);
    }
    let json = |digits: &str| one(&format!("{{\"k\": {digits}}}\n"));
    let rounded = |digits: &str| Err(ErrorKind::Rounded(digits.to_owned()));
    assert_eq!(json("9223372036854775808"), rounded("9223372036854775808"));
    for digits in ["9223372036854776000", "9223372036854775807", "1e30"] {
        let wanted = serde_json::from_str::<Value>(digits).unwrap();
        assert_eq!(json(digits), Ok(json!({"k": wanted})));
    }
    assert_eq!(
        yaml::read_json("18446744073709551615").unwrap_err().kind,
        rounded("18446744073709551615").unwrap_err()
    );
}

/// An API server refuses them, and YAML takes them for strings.
#[test]
fn numbers_of_json_that_no_float_can_hold_are_refused() {
    for digits in ["1E400", "-1e400", "1e309"] {
        let text = format!("{{\n  \"k\": [1, {digits}]}}\n");
        let errors: Vec<_> = yaml::read(&text)
            .into_iter()
            .map(Result::unwrap_err)
            .collect();
        let [error] = errors.as_slice() else {
            panic!("{errors:?}")
        };
        assert_eq!((&error.kind, error.line), (&ErrorKind::TooLarge, 2));
        assert_eq!(
            yaml::read_json(&text).unwrap_err().kind,
            ErrorKind::TooLarge
        );
        // It is not JSON, and a string for kubectl, too.
        assert_eq!(one(&format!("{{k: {digits}}}")), Ok(json!({"k": digits})));
    }
    let largest = "1.7976931348623157e308";
    let wanted: Value = serde_json::from_str(largest).unwrap();
    assert_eq!(
        one(&format!("{{\"k\": {largest}}}")),
        Ok(json!({"k": wanted}))
    );
}

#[test]
fn merge_keys_are_supported() {
    let cases = [
        (
            "a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3",
            json!({"b": 1, "c": 3}),
        ),
        // go-yaml v2 lets a merge override the keys before it.
        (
            "a: &x {b: 1, c: 2}\nd:\n  c: 3\n  <<: *x",
            json!({"b": 1, "c": 2}),
        ),
        (
            "a: &x {b: 1}\ne: &z {b: 2, c: 3}\nd:\n  <<: [*x, *z]",
            json!({"b": 1, "c": 3}),
        ),
        ("d:\n  <<: {a: 1}\n  b: 2", json!({"a": 1, "b": 2})),
        ("d:\n  !!merge <<: {a: 1}", json!({"a": 1})),
        ("d: {<<: {a: 1}, <<: {b: 2}}", json!({"a": 1, "b": 2})),
        ("d: {\"<<\": 1}", json!({"<<": 1})),
    ];
    for (text, wanted) in cases {
        assert_eq!(one(text).unwrap()["d"], wanted, "{text}");
    }
    for text in [
        "d: {<<: 5}",
        "d: {<<: [5]}",
        "a: &x [{b: 1}]\nd: {<<: *x}",
        "d: {<<: }",
    ] {
        assert_eq!(one(text).unwrap_err(), ErrorKind::Merge, "{text}");
    }
    // kubectl takes one of 1 and "1" at random.
    for (twice, key) in [
        ("d: {<<: {b: 1}, b: 2, b: 3}", "b"),
        ("d: {<<: {1: 2}, \"1\": 1}", "1"),
        ("d: {\"1\": 1, <<: {1: 2}}", "1"),
        ("d: {<<: [{y: 1}, {\"true\": 2}]}", "true"),
        ("d: {<<: {1.50: 1}, <<: {\"1.5\": 2}}", "1.5"),
    ] {
        let duplicate = ErrorKind::DuplicateKey(key.to_owned());
        assert_eq!(one(twice).unwrap_err(), duplicate, "{twice}");
    }
}

#[test]
fn anchors_are_resolved() {
    assert_eq!(one("a: &x {b: 1}\nc: *x").unwrap()["c"], json!({"b": 1}));
    assert_eq!(one("a: &x 1\nb: &x 2\nc: *x").unwrap()["c"], json!(2));
    assert_eq!(
        one("k: &a y\n*a : 1").unwrap(),
        json!({"k": true, "true": 1})
    );
    assert_eq!(one("a: &x [*x]").unwrap_err(), ErrorKind::AliasInsideItself);
    let documents = yaml::read("a: &x 1\n...\n%YAML 1.1\n---\nb: *x\n");
    assert_eq!(
        documents[1].as_ref().unwrap_err().kind,
        ErrorKind::UnknownAlias
    );
}

#[test]
fn key_order_is_kept() {
    let value = one("z: 1\na: 2\nm: {y1: 1, b: 2}").unwrap();
    assert_eq!(value.to_string(), r#"{"z":1,"a":2,"m":{"y1":1,"b":2}}"#);
}

#[test]
fn block_scalars_are_parsed() {
    let text = "k: |\n  a\n  b\nl: |-\n  a\nm: |+\n  a\n\no: >\n  a\n  b\n";
    assert_eq!(
        one(text).unwrap(),
        json!({"k": "a\nb\n", "l": "a", "m": "a\n\n", "o": "a b\n"})
    );
    assert_eq!(
        one("k: |\r\n  a\r\n  b\r\nl: 1\r\n").unwrap(),
        json!({"k": "a\nb\n", "l": 1})
    );
}

#[test]
fn empty_documents_are_counted_and_skipped() {
    let text = "# a licence\n---\na: 1\n---\n# only a comment\n---\n---\nnull\n---\n{a: 2}\n...\n# between\n---\na: 3\n---\n";
    let numbers: Vec<_> = yaml::read(text)
        .into_iter()
        .map(|d| d.unwrap())
        .map(|d| (d.number, d.value["a"].clone()))
        .collect();
    assert_eq!(numbers, [(1, json!(1)), (5, json!(2)), (6, json!(3))]);
    for nothing in [
        "",
        "\n\n",
        "# comment\n",
        "---\n",
        "---\n---\n",
        "\u{feff}",
        "...\n",
    ] {
        assert!(yaml::read(nothing).is_empty(), "{nothing:?}");
    }
}

/// kubectl splits a file at lines with `---` alone, and reads the first document of each part. Its parser ends lines at three further characters.
/// A carriage return alone ends a line for its parser, but not for what splits the file.
#[test]
fn what_kubectl_reads_differently_is_refused() {
    let errors = |text: &str| -> Vec<_> {
        let read = yaml::read(text).into_iter();
        let errors = read.filter_map(Result::err);
        errors
            .map(|error| (error.kind, error.line, error.column))
            .collect()
    };
    for (text, line, column) in [
        ("a: 1\n...\nb: 2\n", 3, 1),
        ("a: 1\n...\n# more\nb: 2\n---\nc: 3\n", 4, 1),
        ("a: 1\n--- {b: 2}\n", 2, 5),
        ("a: 1\n--- |\n  b\n", 2, 5),
    ] {
        assert_eq!(
            errors(text),
            [(ErrorKind::NotSeparated, line, column)],
            "{text:?}"
        );
    }
    for text in [
        "--- {a: 1}\n",
        "a: 1\n--- # more\nb: 2\n...\n",
        "a: 1\n---\t\r\nb: 2\n",
    ] {
        assert_eq!(errors(text), [], "{text:?}");
    }
    for found in ['\r', '\u{85}', '\u{2028}', '\u{2029}'] {
        for text in [
            format!("ok: 1\n---\na: 1 # c{found}  b: 2\n"),
            format!("ok: 1\n---\na: '1{found}2'\n"),
            format!("ok: 1\n---\na: 123{found}---{found}b: 2"),
        ] {
            let all = errors(&text);
            assert!(
                matches!(&*all, [(ErrorKind::LineBreak(it), 3, 6 | 7 | 9)] if *it == found),
                "{text:?} {all:?}"
            );
            assert_eq!(yaml::read(&text).len(), 2);
        }
        let escaped = format!("a: \"\\u{:04x}\"", u32::from(found));
        assert_eq!(one(&escaped).unwrap(), json!({"a": found.to_string()}));
        let error = errors(&format!("{found}"))[0].0.to_string();
        assert!(
            error.contains(&format!("{:04x}", u32::from(found))),
            "{error}"
        );
    }
    // Its parser ends the name of an anchor at other characters, and reads what follows them.
    for (text, column) in [
        ("a: &b:--no-upload c", 4),
        ("a: &b?c d", 4),
        ("a: !!str &b:c d", 4),
        ("a: !b&c &b:c d", 4),
        ("a: !!str # &b\n  &b:c d", 4),
        ("&b.c d: 1", 1),
        ("a: [é, &b:c d]", 8),
        ("a: &b:c {d: e}", 4),
        ("a: &b:c\n- d", 4),
        ("a: &\u{e9}", 4),
    ] {
        let text = format!("ok: &fine 1\r\nb: *fine\r\n{text}\n");
        let wanted = [(ErrorKind::AnchorName, 3, column)];
        assert_eq!(errors(&text), wanted, "{text:?}");
    }
    let fine =
        "a: [&b-_9, &c d, {e: &f}] # &g:h\ni: '&j:k'\n*c : &l !!str\n\nm: !n\n  &o\n  p: 1\n";
    assert_eq!(errors(fine), []);
}

/// kubectl looks for `{` in the first bytes, and otherwise reads YAML, of which it takes the first document.
#[test]
fn json_values_after_much_white_space_are_not_hidden() {
    let second = |spaces: usize| {
        let text = format!("{}{{\"a\": 1}}\n{{\"a\": 2}}\n", " ".repeat(spaces));
        let second = yaml::read(&text).swap_remove(1);
        second.map(|it| it.value).map_err(|error| error.line)
    };
    assert_eq!(second(4095), Ok(json!({"a": 2})));
    assert_eq!(second(4096), Err(2));
}

#[test]
fn document_markers_inside_values_do_not_split() {
    let text = "a: |\n  ---\n  b\nc: ----\nd: --- x\n";
    assert_eq!(
        one(text).unwrap(),
        json!({"a": "---\nb\n", "c": "----", "d": "--- x"})
    );
    assert_eq!(
        one("%YAML 1.1\n# why\n---\na: y\n").unwrap(),
        json!({"a": true})
    );
    let documents = yaml::read("a: 1\n...\n%YAML 1.1\n---\na: 2\n");
    assert_eq!(
        documents
            .into_iter()
            .map(|d| d.unwrap().number)
            .collect::<Vec<_>>(),
        [1, 2]
    );
}

#[test]
fn json_is_parsed_as_json() {
    // Escaped surrogate pairs, tabs and sequences of values are valid JSON, but not YAML; y is a string.
    let text =
        "{\n\t\"a\": \"\\ud83d\\ude00\", \"b\": \"y\", \"c\": 2.0, \"d\": \"\\/\"}\n{\"a\": 2}";
    let documents: Vec<_> = yaml::read(text)
        .into_iter()
        .map(|d| d.unwrap().value)
        .collect();
    assert_eq!(
        documents,
        [
            json!({"a": "\u{1f600}", "b": "y", "c": 2, "d": "/"}),
            json!({"a": 2})
        ]
    );
    assert_eq!(
        one("{a: y, b: 0755}").unwrap(),
        json!({"a": true, "b": 493})
    );
    assert_eq!(
        one("{\"a\": 1, \"a\": 2}").unwrap_err(),
        ErrorKind::DuplicateKey("a".to_owned())
    );
    assert_eq!(yaml::read("{a: 1}\n---\nb: 2\n").len(), 2);
}
