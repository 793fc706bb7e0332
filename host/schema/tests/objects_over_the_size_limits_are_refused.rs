//! An object that no cluster with default settings stores is refused, with its size.

#![allow(clippy::unwrap_used)]

use serde_json::json;
use trainyard_schema::structural::{
    Options, REQUEST_LIMIT, STORED_LIMIT, Structural, TooLarge, check_size,
};

#[test]
fn the_limits_are_exact() {
    let frame = json!({"a": ""}).to_string().len();
    let sized = |size: usize| json!({"a": "x".repeat(size - frame)});
    assert_eq!(check_size(&sized(STORED_LIMIT)), Ok(STORED_LIMIT));
    let size = STORED_LIMIT + 1;
    assert_eq!(check_size(&sized(size)), Err(TooLarge::Stored { size }));
    let size = REQUEST_LIMIT + 1;
    assert_eq!(check_size(&sized(size)), Err(TooLarge::Request { size }));
    assert!(
        check_size(&sized(size))
            .unwrap_err()
            .to_string()
            .contains(&size.to_string())
    );
}

#[test]
fn annotations_have_a_limit_of_their_own() {
    let schema = Structural::compile(&json!({"type": "object"})).unwrap();
    let admit = |size: usize| {
        let annotations = json!({"abc": "x".repeat(size - 3)});
        let mut value = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x", "annotations": annotations}});
        schema.admit(&mut value, None, &Options::default()).errors
    };
    assert!(admit(256 * 1024).is_empty());
    let errors = admit(256 * 1024 + 1);
    let expected = "metadata.annotations: Too long: may not be more than 262144 bytes";
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [expected]
    );
}
