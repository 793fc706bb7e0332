//! `#[derive(Config)]`: the schema describes what the struct can read, and the struct reads everything that the schema accepts.

use std::{cell::RefCell, collections::BTreeMap};

use serde_json::{Value, json};
use trainyard_sdk::{
    Config, Context, Failure, Phases, PluginParts, Transform,
    mock::{MockError, MockJob},
};

/// How the nodes talk.
#[derive(Config, Clone, Debug, PartialEq)]
enum Mode {
    Ring,
    DoubleTree,
}

#[derive(Config, Clone, Debug, PartialEq)]
struct Retry {
    #[config(minimum = -1, maximum = 9)]
    attempts: i32,
    #[config(rename = "back-off/ms", default = 250)]
    back_off: u32,
}

#[derive(Config, Clone, Debug, PartialEq)]
struct Peers {
    names: Vec<String>,
}

#[derive(Config, Clone, Debug, PartialEq)]
struct Everything {
    /// Says "hello"
    /// to all.
    #[config(default = true)]
    verbose: bool,
    #[config(min_length = 1, max_length = 8, pattern = "^[a-z]+$")]
    host_name: String,
    #[config(default = "ring")]
    mode: Mode,
    retry: Option<Retry>,
    retries: Vec<Retry>,
    peers: Option<Peers>,
    #[config(max_items = 2, unique_items)]
    names: Option<Vec<String>>,
    weights: BTreeMap<String, u16>,
    #[config(minimum = 1, min_items = 2)]
    ports: Option<Vec<u16>>,
    #[config(min_length = 1, max_length = 3, pattern = "^r")]
    colors: BTreeMap<String, String>,
    big: Option<i64>,
}

thread_local! {
    static READ: RefCell<Option<Everything>> = const { RefCell::new(None) };
}

struct Reader;

impl Transform for Reader {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        READ.set(Some(ctx.job().config_as()?));
        let of_operator: Everything = ctx.job().operator_config_as()?;
        assert_eq!(of_operator.host_name, "alpha");
        Ok(())
    }
}

/// A configuration that has everything.
fn whole() -> Value {
    json!({
        "verbose": false,
        "hostName": "alpha",
        "mode": "doubleTree",
        "retry": {"attempts": -1, "back-off/ms": 10},
        "retries": [{"attempts": 1}, {"attempts": 9}],
        "peers": {"names": ["c"]},
        "names": ["b", "a"],
        "weights": {"nvidia.com/gpu": 3, "a~b": 65535},
        "ports": [1, 65535],
        "colors": {"left": "red"},
        "big": i64::MIN,
    })
}

fn read(config: Value) -> Result<Everything, MockError> {
    let parts = format!(
        r#"{{"version":"1.0.0","contract":"1.0.0","phases":["transform"],"configSchema":{0},"operatorConfigSchema":{0}}}"#,
        Everything::SCHEMA
    );
    let plugin = PluginParts {
        manifest: r#"{"name":"reader","activeWhen":"plugins"}"#,
        parts: parts.leak(),
        phases: Phases {
            transform: Some(Reader::transform),
            ..Phases::NONE
        },
    };
    let job = MockJob::new("job").operator_config(whole());
    job.config(config).transform(&plugin)?;
    Ok(READ.take().unwrap())
}

#[test]
fn complete_configuration_is_read() {
    let read = read(whole()).unwrap();
    let retry = |attempts, back_off| Retry { attempts, back_off };
    let weights = [("nvidia.com/gpu", 3), ("a~b", 65535)].map(|(key, n)| (key.to_owned(), n));
    let expected = Everything {
        verbose: false,
        host_name: "alpha".to_owned(),
        mode: Mode::DoubleTree,
        retry: Some(retry(-1, 10)),
        retries: vec![retry(1, 250), retry(9, 250)],
        peers: Some(Peers {
            names: vec!["c".to_owned()],
        }),
        names: Some(vec!["b".to_owned(), "a".to_owned()]),
        weights: weights.into(),
        ports: Some(vec![1, 65535]),
        colors: [("left".to_owned(), "red".to_owned())].into(),
        big: Some(i64::MIN),
    };
    assert_eq!(read, expected);
}

#[test]
fn absent_fields_are_defaulted_or_none() {
    let least = read(json!({"hostName": "a"})).unwrap();
    assert!(least.verbose);
    assert_eq!(least.mode, Mode::Ring);
    assert_eq!((least.retry, least.names, least.big), (None, None, None));
    assert!(least.retries.is_empty() && least.weights.is_empty());
    assert_eq!(
        least.peers, None,
        "an absent object is none, though nothing in it is required"
    );
    let named = read(json!({"hostName": "a", "peers": {}})).unwrap();
    assert_eq!(named.peers, Some(Peers { names: Vec::new() }));
    let empty = read(json!({"hostName": "a", "names": []})).unwrap();
    assert_eq!(
        empty.names,
        Some(Vec::new()),
        "an empty list is not an absent one"
    );
}

#[test]
fn every_bound_is_enforced_with_its_path() {
    for (config, path) in [
        (json!({}), "hostName"),
        (json!({"hostName": ""}), "hostName: "),
        (json!({"hostName": "abcdefghi"}), "hostName: "),
        (json!({"hostName": "A"}), "hostName: "),
        (json!({"hostName": "a", "verbose": "yes"}), "verbose: "),
        (json!({"hostName": "a", "mode": "star"}), "mode: "),
        (json!({"hostName": "a", "retry": {}}), "attempts"),
        (
            json!({"hostName": "a", "retry": {"attempts": -2}}),
            "retry.attempts: ",
        ),
        (
            json!({"hostName": "a", "retries": [{"attempts": 10}]}),
            "retries[0].attempts: ",
        ),
        (
            json!({"hostName": "a", "names": ["a", "b", "c"]}),
            "names: ",
        ),
        (json!({"hostName": "a", "names": ["a", "a"]}), "names: "),
        (
            json!({"hostName": "a", "weights": {"x": 65536}}),
            "weights.x: ",
        ),
        (json!({"hostName": "a", "ports": [1]}), "ports: "),
        (json!({"hostName": "a", "ports": [1, 0]}), "ports[1]: "),
        (json!({"hostName": "a", "ports": [1, 65536]}), "ports[1]: "),
        (
            json!({"hostName": "a", "colors": {"left": "rose"}}),
            "colors.left: ",
        ),
        (
            json!({"hostName": "a", "colors": {"left": ""}}),
            "colors.left: ",
        ),
        (
            json!({"hostName": "a", "colors": {"left": "tan"}}),
            "colors.left: ",
        ),
        (json!({"hostName": "a", "unknown": 1}), "unknown"),
    ] {
        let error = read(config.clone()).unwrap_err();
        assert!(matches!(error, MockError::Config(_)), "{config}: {error}");
        assert!(error.to_string().contains(path), "{config}: {error}");
    }
}

/// Parsers differ in how they read an object with a key twice.
#[test]
fn bounds_are_written_once() {
    let attempts = r#""attempts":{"type":"integer","minimum":-1,"maximum":9}"#;
    assert!(
        Everything::SCHEMA.contains(attempts),
        "{}",
        Everything::SCHEMA
    );
    let ports = r#""ports":{"type":"array","items":{"type":"integer","minimum":1,"maximum":65535},"minItems":2}"#;
    assert!(Everything::SCHEMA.contains(ports), "{}", Everything::SCHEMA);
}

#[test]
fn doc_comments_are_descriptions() {
    let schema: Value = serde_json::from_str(Everything::SCHEMA).unwrap();
    let description = schema.pointer("/properties/verbose/description");
    assert_eq!(description, Some(&json!("Says \"hello\" to all.")));
    assert_eq!(schema.pointer("/required"), Some(&json!(["hostName"])));
    assert_eq!(schema.pointer("/additionalProperties"), Some(&json!(false)));
}
