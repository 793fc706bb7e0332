//! Values for a schema, from the bytes of an input, so that most inputs reach what comes after the schema.

use arbitrary::Unstructured;
use serde_json::{Map, Value, json};

/// How deep values are nested where a schema allows anything.
const DEPTH: usize = 5;

/// Strings, some of which are right in most places.
const WORDS: [&str; 48] = [
    "",
    "a",
    "node",
    "launcher",
    "trainer",
    "b",
    "x",
    "data",
    "Always",
    "Never",
    "TCP",
    "80",
    "1",
    "100m",
    "4Gi",
    "1.5",
    "-1",
    "auto",
    "gpu",
    "cpu",
    "memory",
    "nvidia.com/gpu",
    "example.com/a",
    "kubernetes.io/b",
    "trainyard.dev/plugins",
    "trainer.kubeflow.org/trainjob-ancestor-step",
    "dataset-initializer",
    "model-initializer",
    "/data",
    "/",
    "a.b.c",
    "2026-01-01T00:00:00Z",
    "15s",
    "s3://bucket",
    "true",
    "null",
    "$(A)",
    "é",
    "\u{202e}",
    "\n",
    "UPPER",
    "default",
    "Exists",
    "In",
    "Complete",
    "Ready",
    "RuntimeDefault",
    "kubeflow.org/trainjob-controller",
];

/// What is left of an input.
pub(crate) struct Generator<'b>(Unstructured<'b>);

impl<'b> Generator<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    /// A byte; 0 at the end of the input.
    pub(crate) fn byte(&mut self) -> u8 {
        self.0.arbitrary().unwrap_or_default()
    }

    /// A number from 0 to below `most`; 0 if there is none.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        usize::from(self.byte()) % most.max(1)
    }

    /// A value of the schema, or now and then something else.
    pub(crate) fn value(&mut self, schema: &Value) -> Value {
        if self.byte() >= 0xf8 {
            return self.anything(DEPTH);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return values[self.below(values.len())].clone();
        }
        if schema.get("x-kubernetes-int-or-string").is_some() {
            return match self.byte() % 2 {
                0 => self.integer().into(),
                _ => self.word().into(),
            };
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("object") => self.object(schema),
            Some("array") => {
                let items = schema.get("items").unwrap_or(&Value::Null);
                (0..self.below(4)).map(|_| self.value(items)).collect()
            }
            Some("string") => self.word().into(),
            Some("integer") => self.integer().into(),
            Some("number") => number(self.integer() as f64 / 2.0),
            Some("boolean") => (self.byte() & 1 == 1).into(),
            _ => self.anything(DEPTH),
        }
    }

    /// A value of the schema that often has parts of another one.
    pub(crate) fn changed(&mut self, value: &Value, schema: &Value) -> Value {
        if self.byte() >= 0xe0 {
            return self.value(schema);
        }
        match value {
            Value::Object(old) => {
                let mut object = Map::new();
                for (name, value) in old {
                    let schema = schema.pointer(&format!("/properties/{name}"));
                    if self.byte() & 3 != 0 {
                        let value = self.changed(value, schema.unwrap_or(&Value::Null));
                        object.insert(name.clone(), value);
                    }
                }
                if self.byte() >= 0xc0
                    && let Value::Object(more) = self.object(schema)
                {
                    object.extend(more);
                }
                object.into()
            }
            Value::Array(old) => {
                let schema = schema.get("items").unwrap_or(&Value::Null);
                let mut items = Vec::new();
                for value in old {
                    if self.byte() & 3 != 0 {
                        let at = self.below(items.len() + 1);
                        items.insert(at, self.changed(value, schema));
                    }
                }
                if self.byte() >= 0x80 {
                    let at = self.below(items.len() + 1);
                    items.insert(at, self.value(schema));
                }
                items.into()
            }
            _ => value.clone(),
        }
    }

    /// Replaces or removes a part of a value.
    pub(crate) fn change(&mut self, value: &mut Value) {
        match value {
            Value::Object(map) if !map.is_empty() && self.byte() < 0xe0 => {
                let at = self.below(map.len());
                if self.byte() >= 0xe0 {
                    let name = map.keys().nth(at).cloned();
                    map.shift_remove(&name.unwrap_or_default());
                } else if let Some(value) = map.values_mut().nth(at) {
                    self.change(value);
                }
            }
            Value::Array(items) if !items.is_empty() && self.byte() < 0xe0 => {
                let at = self.below(items.len());
                self.change(&mut items[at]);
            }
            _ => *value = self.anything(2),
        }
    }

    fn object(&mut self, schema: &Value) -> Value {
        let mut object = Map::new();
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let required = schema.get("required").and_then(Value::as_array);
            for name in required.into_iter().flatten().filter_map(Value::as_str) {
                if let Some(property) = properties.get(name)
                    && self.byte() < 0xfc
                {
                    object.insert(name.to_owned(), self.value(property));
                }
            }
            for _ in 0..self.below(6) {
                let at = self.below(properties.len());
                if let Some((name, property)) = properties.iter().nth(at) {
                    object.insert(name.clone(), self.value(property));
                }
            }
            if self.byte() >= 0xfc {
                object.insert(self.word(), self.anything(DEPTH));
            }
        } else if let Some(values) = schema
            .get("additionalProperties")
            .filter(|values| values.is_object())
        {
            for _ in 0..self.below(4) {
                object.insert(self.word(), self.value(values));
            }
        } else {
            return self.anything(DEPTH);
        }
        Value::Object(object)
    }

    /// Any value.
    pub(crate) fn anything(&mut self, depth: usize) -> Value {
        match self.byte() % if depth == 0 { 6 } else { 9 } {
            0 => Value::Null,
            1 => (self.byte() & 1 == 1).into(),
            2 => self.integer().into(),
            3 => number(self.0.arbitrary().unwrap_or_default()),
            4 | 5 => self.word().into(),
            6 => (0..self.below(4))
                .map(|_| self.anything(depth - 1))
                .collect(),
            _ => {
                let members = 0..self.below(4);
                members
                    .map(|_| (self.word(), self.anything(depth - 1)))
                    .collect()
            }
        }
    }

    fn integer(&mut self) -> i64 {
        match self.byte() {
            0xf0..=0xff => self.0.arbitrary().unwrap_or_default(),
            0xe0..=0xef => -i64::from(self.byte()),
            byte => byte.into(),
        }
    }

    /// A string.
    pub(crate) fn word(&mut self) -> String {
        match self.byte() {
            0xff => {
                let length = usize::from(self.byte()).min(self.0.len());
                String::from_utf8_lossy(self.0.bytes(length).unwrap_or_default()).into_owned()
            }
            0xfe => WORDS[self.below(WORDS.len())].repeat(self.below(256)),
            byte => WORDS[usize::from(byte) % WORDS.len()].to_owned(),
        }
    }
}

/// A number as Kubernetes has it: without a fraction, it is an integer.
fn number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        json!(number as i64)
    } else {
        json!(number)
    }
}
