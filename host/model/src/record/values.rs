//! The values of a field in a JobSet.

use std::borrow::Cow;

use serde_json::Value;
use trainyard_text::json;

use super::{Datum, Field};

impl Field {
    /// Returns the value of a list's item.
    #[must_use]
    pub fn datum_of(self, item: &Value) -> Datum {
        match (self, json::get(item, "valueFrom")) {
            (Self::Env, Some(source)) => source.clone().into(),
            (Self::Env, None) => {
                let text = json::get(item, "value").and_then(Value::as_str);
                text.unwrap_or_default().into()
            }
            _ => match item {
                Value::String(text) => text.as_str().into(),
                item => item.clone().into(),
            },
        }
    }

    /// Returns the list's item of a value.
    #[must_use]
    pub fn item_of(self, key: &str, datum: &Datum) -> Value {
        let value = datum.to_json().unwrap_or_default();
        if self != Self::Env {
            return value;
        }
        let member = match datum {
            Datum::Json(_) => "valueFrom",
            _ => "value",
        };
        [("name", key.into()), (member, value)]
            .into_iter()
            .collect()
    }

    /// Returns a map's value as text. Quantities may be numbers in YAML.
    #[must_use]
    pub fn map_text(self, value: &Value) -> Option<Cow<'_, str>> {
        match value {
            Value::String(text) => Some(text.into()),
            Value::Number(number) if matches!(self, Self::Requests | Self::Limits) => {
                Some(number.to_string().into())
            }
            _ => None,
        }
    }
}
