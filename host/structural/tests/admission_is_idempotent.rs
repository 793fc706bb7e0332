//! Admitting an admitted object changes nothing: no field is dropped or set, and a refused object is refused for the same reasons.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use trainyard_structural::{Options, Schema};

use crate::common;

static SCHEMAS: LazyLock<Vec<(Schema, Vec<String>)>> = LazyLock::new(|| {
    ["values.json", "defaults.json", "rules.json"]
        .into_iter()
        .flat_map(common::read)
        .map(|part| {
            let fields = part.pointer("/schema/properties/spec/properties").unwrap();
            let names = fields.as_object().unwrap().keys().cloned().collect();
            (Schema::compile(part.get("schema").unwrap()).unwrap(), names)
        })
        .collect()
});

/// Arbitrary JSON, with keys and strings that occur in the schemas.
fn json_value() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec!["", "a", "x", "node", "hard", "1h", "1Gi", "5%", "é"]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..120).prop_map(Value::from),
        Just(json!(1.5)),
        text.prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "name", "value", "a", "b", "x", "port", "manager", "known", "zz",
    ]);
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4).prop_map(|fields| fields
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<Map<_, _>>()
                .into()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn admit_is_idempotent(
        which in any::<prop::sample::Index>(),
        fields in prop::collection::vec((any::<prop::sample::Index>(), json_value()), 0..6),
    ) {
        let (schema, names) = which.get(&SCHEMAS);
        let spec: Map<String, Value> = fields.into_iter().map(|(at, value)| (at.get(names).clone(), value)).collect();
        let mut stored = json!({"apiVersion": "test.trainyard.dev/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec});
        let first = schema.admit(&mut stored, None, &Options::default());
        let mut again = stored.clone();
        let second = schema.admit(&mut again, None, &Options::default());
        prop_assert_eq!(&second.unknown, &Vec::new());
        prop_assert_eq!(second.errors, first.errors);
        prop_assert_eq!(again.to_string(), stored.to_string());
    }
}
