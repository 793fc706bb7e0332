//! The items of a template's lists have keys, and are written back as they were read.

use serde_json::json;
use trainyard_model::record::{Datum, Field, Level, Shape};

fn key(field: Field, at: usize, item: &serde_json::Value) -> Option<String> {
    let Shape::List(by) = field.shape() else {
        panic!("{field} is not a list")
    };
    by.of(at, item).map(Into::into)
}

#[test]
fn items_are_written_as_they_were_read() {
    let source = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    let port = json!({"containerPort": 80, "protocol": "UDP"});
    let volume = json!({"name": "data", "emptyDir": {}});
    let secret = json!({"secretRef": {"name": "a"}});
    for (field, key_of, item, datum) in [
        (
            Field::Env,
            "A",
            json!({"name": "A", "value": "1"}),
            Datum::from("1"),
        ),
        (
            Field::Env,
            "A",
            json!({"name": "A", "valueFrom": source.clone()}),
            source.into(),
        ),
        (Field::Ports, "80/UDP", port.clone(), port.into()),
        (Field::Volumes, "data", volume.clone(), volume.into()),
        (
            Field::DnsSearches,
            "a.example",
            "a.example".into(),
            "a.example".into(),
        ),
        (Field::EnvFrom, "7", secret.clone(), secret.into()),
    ] {
        assert_eq!(key(field, 7, &item).as_deref(), Some(key_of));
        assert_eq!(field.datum_of(&item), datum);
        assert_eq!(field.item_of(key_of, &datum), item);
    }
    let port = json!({"containerPort": 80});
    assert_eq!(key(Field::Ports, 0, &port).as_deref(), Some("80/TCP"));
    let unset = Field::Env.datum_of(&json!({"name": "A"}));
    assert_eq!(unset, "".into());
    for (field, item) in [
        (Field::Env, json!({"value": "1"})),
        (Field::Ports, json!({"containerPort": "80"})),
        (Field::DnsSearches, json!(7)),
    ] {
        assert_eq!(key(field, 0, &item), None, "{field}");
    }
}

#[test]
fn only_quantities_may_be_numbers() {
    for (field, value, text) in [
        (Field::Labels, json!("a"), Some("a")),
        (Field::Labels, json!(2), None),
        (Field::Requests, json!("500m"), Some("500m")),
        (Field::Requests, json!(2), Some("2")),
        (Field::Limits, json!(1.5), Some("1.5")),
        (Field::Limits, json!(true), None),
    ] {
        assert_eq!(field.map_text(&value).as_deref(), text, "{field}: {value}");
    }
}

/// What has no place of its own in a template, or rules of its own, is not read from there.
#[test]
fn fields_of_templates_have_values_in_a_template() {
    for (level, fields) in [
        (Level::Job, "labels annotations"),
        (
            Level::PodSet,
            "volumes resource-claims pod-labels pod-annotations node-selector priority-class scheduler-name scheduling-gates \
             dns-searches fs-group",
        ),
        (
            Level::Container,
            "image image-pull-policy command args working-dir restart-policy env env-from ports mounts requests limits \
             resource-claims capabilities",
        ),
    ] {
        let found: Vec<_> = Field::in_templates(level).map(Field::name).collect();
        assert_eq!(found.join(" "), fields);
    }
}
