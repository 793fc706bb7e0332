//! Parsing any vendor's schema and checking any tenant's configuration is bounded, with an error that names the bound. Within the bounds,
//! the verdict is that of JSON Schema.

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use trainyard_model::schema::{
    ANNOTATIONS, Exhausted, KEYWORDS, MAX_LEVELS, MAX_PATTERN, MAX_PATTERNS, MAX_SCHEMA_LEVELS,
    MAX_SCHEMAS, Schema, SchemaProblem,
};

fn refused(schema: Value) -> SchemaProblem {
    Schema::new(schema).map(drop).unwrap_err().problem
}

fn errors(schema: Value, mut config: Value) -> String {
    let schema = Schema::new(schema).unwrap();
    let errors = schema.complete(&mut config).unwrap_err();
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// Definitions `a0` to `aN`, each made of the next one.
fn chain(length: usize, last: Value, link: impl Fn(&Value) -> Value) -> Value {
    let mut definitions = Map::new();
    for at in 0..length {
        let next = json!({"$ref": format!("#/$defs/a{}", at + 1)});
        definitions.insert(format!("a{at}"), link(&next));
    }
    definitions.insert(format!("a{length}"), last);
    json!({"$ref": "#/$defs/a0", "$defs": definitions})
}

/// A schema of a kilobyte whose defaults are lists of objects with defaults that are such lists.
fn nested_defaults() -> Value {
    let ten = json!([{}, {}, {}, {}, {}, {}, {}, {}, {}, {}]);
    let mut schema = json!({"default": "x"});
    for _ in 0..9 {
        schema = json!({"default": ten, "items": {"properties": {"a": schema}}});
    }
    json!({"properties": {"a": schema}})
}

#[test]
fn nested_defaults_are_refused_with_the_plugin_name() {
    let bomb = nested_defaults();
    assert!(bomb.to_string().len() < 1_175);
    let problem = refused(bomb.clone());
    assert_eq!(problem, SchemaProblem::Defaults(Exhausted::Filled));
    // The same below a key that only a configuration has.
    let below = json!({"properties": {"b": {"type": "object", "properties": bomb["properties"]}}});
    let printed = errors(below, json!({"b": {}}));
    assert!(printed.contains("bytes of defaults"), "{printed}");
    let doubling = chain(30, json!({}), |next| {
        let half = json!({"allOf": [next], "$ref": next["$ref"], "default": {}});
        json!({"properties": {"a": half, "b": half}})
    });
    assert!(matches!(
        refused(doubling),
        SchemaProblem::Levels | SchemaProblem::Defaults(_)
    ));
}

#[test]
fn exponential_references_hit_the_step_limit() {
    for (keyword, last) in [("allOf", true), ("anyOf", false), ("oneOf", false)] {
        let schema = chain(30, json!(last), |next| json!({keyword: [next, next]}));
        assert!(schema.to_string().len() < 4 << 10);
        let printed = errors(schema, json!(1));
        assert!(printed.contains("steps"), "{printed}");
    }
}

#[test]
fn recursive_and_deep_schemas_are_refused() {
    for schema in [
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}),
        json!({"$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/a", "default": {}}}}}}),
        chain(MAX_SCHEMA_LEVELS, json!({}), |next| json!({"items": next})),
        chain(300, json!({}), |next| json!({"properties": {"a": next}})),
    ] {
        assert_eq!(refused(schema), SchemaProblem::Levels);
    }
    Schema::new(chain(MAX_SCHEMA_LEVELS - 2, json!({}), |next| next.clone())).unwrap();
    for target in [
        "#",
        "#/properties/a",
        "https://example.com/schema",
        "#/$defs/none",
    ] {
        let problem = refused(json!({"$ref": target, "properties": {"a": {}}}));
        assert!(matches!(problem, SchemaProblem::Reference(_)), "{problem}");
    }
}

#[test]
fn counts_and_sizes_are_bounded() {
    let many = |n: usize, schema: Value| {
        let properties: Map<_, _> = (0..n).map(|at| (at.to_string(), schema.clone())).collect();
        json!({ "properties": properties })
    };
    let too_many = |schema: Value, what: &str| {
        let problem = refused(schema);
        assert!(
            matches!(problem, SchemaProblem::TooMany { what: of, .. } if of.contains(what)),
            "{problem}"
        );
    };
    Schema::new(many(MAX_SCHEMAS - 1, json!({}))).unwrap();
    too_many(many(MAX_SCHEMAS, json!({})), "schemas");
    Schema::new(many(MAX_PATTERNS, json!({"pattern": "a"}))).unwrap();
    too_many(many(MAX_PATTERNS + 1, json!({"pattern": "a"})), "patterns");
    too_many(json!({"pattern": "a".repeat(MAX_PATTERN + 1)}), "pattern");
    too_many(
        json!({"properties": {"a": {"default": "x".repeat(2 << 20)}}}),
        "default",
    );
    for pattern in [
        "(a{1,1000}){1,1000}",
        "((((a{9}){9}){9}){9}){9}",
        "(?:a{0,999}b){99}",
        "(",
        "(?=a)",
        r"(a)\1",
    ] {
        let problem = refused(json!({ "pattern": pattern }));
        assert!(
            matches!(problem, SchemaProblem::Pattern(_)),
            "{pattern}: {problem}"
        );
    }
    let mut deep = json!(1);
    for _ in 0..=MAX_LEVELS {
        deep = json!([deep]);
    }
    assert_eq!(
        refused(json!({ "default": deep })),
        SchemaProblem::DeepDefault
    );
    let printed = errors(json!({}), deep);
    assert!(printed.contains("levels"), "{printed}");
}

#[test]
fn unknown_keywords_are_refused() {
    for keyword in [
        "$dynamicRef",
        "$anchor",
        "$id",
        "contains",
        "patternProperties",
        "dependentSchemas",
        "if",
        "prefixItems",
        "propertyNames",
        "unevaluatedProperties",
        "x-anything",
    ] {
        let problem = refused(json!({ "properties": {"a": {keyword: {}}} }));
        assert!(
            matches!(&problem, SchemaProblem::Keyword { keyword: named } if named == keyword),
            "{keyword}: {problem}"
        );
        assert!(problem.to_string().contains("uniqueItems"), "{problem}");
    }
    for keyword in ANNOTATIONS {
        Schema::new(json!({keyword: "anything"})).unwrap();
    }
    let manual = include_str!("../../../docs/write-a-plugin.md");
    for keyword in KEYWORDS.iter().chain(&ANNOTATIONS) {
        assert!(
            manual.contains(&format!("`{keyword}`")),
            "{keyword} is not documented"
        );
    }
}

#[test]
fn misspelled_key_of_a_configuration_has_a_suggestion() {
    let schema =
        json!({"additionalProperties": false, "properties": {"sampling": {}, "level": {}}});
    let printed = errors(schema, json!({"samplng": 1, "other": 2}));
    assert!(
        printed.contains("`samplng` (did you mean `sampling`?)") && printed.contains("`other`"),
        "{printed}"
    );
}

/// Each of these takes a general engine minutes or gigabytes.
#[test]
fn checking_a_configuration_is_bounded() {
    // Backtracking.
    let schema = json!({"pattern": "^(a+)+$"});
    let printed = errors(schema, json!(format!("{}b", "a".repeat(10_000))));
    assert!(printed.contains("matches `^(a+)+$`"), "{printed}");
    // A long text against the largest pattern.
    let schema = json!({"pattern": "(a?){90}b"});
    let printed = errors(schema, json!("a".repeat(1 << 20)));
    assert!(printed.contains("steps"), "{printed}");
    // Every item with every other one.
    let items: Vec<_> = (0..200_000).map(|n| json!([n, {"a": n}])).collect();
    Schema::new(json!({"uniqueItems": true, "maxItems": 200_000}))
        .unwrap()
        .complete(&mut json!(items))
        .unwrap();
    let mut twice = items;
    twice.push(json!([7.0, {"a": 7}]));
    let printed = errors(json!({"uniqueItems": true}), json!(twice));
    assert!(printed.contains("duplicate"), "{printed}");
    // Every item with every schema.
    let branches: Vec<_> = (0..900).map(|n| json!({ "const": n })).collect();
    let items: Vec<_> = (0..100_000).map(|_| json!(899)).collect();
    let printed = errors(json!({"items": {"anyOf": branches}}), json!(items));
    assert!(printed.contains("steps"), "{printed}");
    // As many errors as there are values, with long keys.
    let config: Map<_, _> = (0..1_000)
        .map(|n| (format!("{n}{}", "k".repeat(1_000)), json!(1)))
        .collect();
    let printed = errors(
        json!({"additionalProperties": {"type": "string"}}),
        json!(config),
    );
    assert!(printed.len() < 100_000, "{}", printed.len());
}

/// A part of a schema: mostly keywords that apply to the values below.
fn schemas() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        (-3..4i64).prop_map(|n| json!(n)),
        Just(json!(0.5)),
        Just(json!(2.0))
    ];
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        proptest::sample::select(vec![
            "null", "boolean", "integer", "number", "string", "array", "object"
        ])
        .prop_map(|name| json!({ "type": name })),
        number.clone().prop_map(|n| json!({ "minimum": n })),
        number.clone().prop_map(|n| json!({ "maximum": n })),
        number
            .clone()
            .prop_map(|n| json!({ "exclusiveMinimum": n })),
        number
            .clone()
            .prop_map(|n| json!({ "exclusiveMaximum": n })),
        (1..4u8).prop_map(|n| json!({ "multipleOf": n })),
        (0..3u8, 0..3u8).prop_map(|(min, max)| json!({"minLength": min, "maxLength": max})),
        (0..3u8, 0..3u8).prop_map(
            |(min, max)| json!({"minItems": min, "maxItems": max, "uniqueItems": min > max})
        ),
        (0..3u8, 0..3u8).prop_map(|(min, max)| json!({"minProperties": min, "maxProperties": max})),
        Just(json!({"pattern": "^a+b?$"})),
        proptest::collection::vec(config(), 1..3).prop_map(|values| json!({ "enum": values })),
        config().prop_map(|value| json!({ "const": value })),
        Just(json!({"$ref": "#/$defs/text"})),
    ];
    leaf.prop_recursive(3, 24, 3, |schema| {
        let several = proptest::collection::vec(schema.clone(), 1..3);
        let keys = proptest::sample::subsequence(vec!["a", "b", "c"], 0..3);
        prop_oneof![
            schema.clone().prop_map(|schema| json!({ "items": schema })),
            schema.clone().prop_map(|schema| json!({ "not": schema })),
            several.clone().prop_map(|schemas| json!({ "allOf": schemas })),
            several.clone().prop_map(|schemas| json!({ "anyOf": schemas })),
            several.prop_map(|schemas| json!({ "oneOf": schemas })),
            (schema.clone(), schema.clone(), keys).prop_map(|(a, others, required)| {
                json!({"properties": {"a": a}, "additionalProperties": others, "required": required})
            }),
            (schema.clone(), schema).prop_map(|(one, other)| match (one, other) {
                (Value::Object(mut one), Value::Object(other)) => {
                    one.extend(other);
                    Value::Object(one)
                }
                (one, _) => one,
            }),
        ]
    })
}

fn config() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3..4i64).prop_map(|n| json!(n)),
        proptest::sample::select(vec![json!(1.0), json!(0.5), json!(-2.0), json!(1e30)]),
        proptest::sample::select(vec!["", "a", "ab", "äö"]).prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(3, 12, 3, |value| {
        let members = proptest::collection::btree_map("[abc]", value.clone(), 0..3);
        prop_oneof![
            proptest::collection::vec(value, 0..3).prop_map(Value::from),
            members.prop_map(|members| json!(members)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn verdicts_agree_with_a_general_json_schema_engine(schema in schemas(), config in config()) {
        let schema = match schema {
            Value::Object(mut schema) => {
                schema.insert("$defs".to_owned(), json!({"text": {"type": "string"}}));
                Value::Object(schema)
            }
            other => other,
        };
        let expected = jsonschema::validator_for(&schema).unwrap().is_valid(&config);
        let ours = Schema::new(schema.clone()).unwrap().complete(&mut config.clone());
        let mut text = String::new();
        write!(text, "{schema} {config} {ours:?}").unwrap();
        prop_assert_eq!(ours.is_ok(), expected, "{}", text);
    }
}
