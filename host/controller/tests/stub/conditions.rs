//! The conditions under which API servers call the webhooks of the chart.

use cel::{Context, Program, Value as CelValue};
use serde_json::Value;
use trainyard_api::yaml;

/// A condition of a webhook.
pub(crate) struct Condition(Program);

impl Condition {
    /// Reads a condition of the chart by the names of its webhook and of itself.
    pub(crate) fn deployed(webhook: &str, name: &str) -> Self {
        let text = include_str!("../../../../charts/trainyard/files/webhooks.yaml");
        let named = |list: &Value, name: &str| {
            let mut entries = list.as_array().unwrap().iter();
            entries.find(|entry| entry["name"] == name).cloned()
        };
        let documents = yaml::read(text).into_iter();
        let mut lists = documents.map(|document| document.unwrap().value["webhooks"].take());
        let webhook = lists
            .find_map(|webhooks| named(&webhooks, webhook))
            .unwrap();
        let condition = named(&webhook["matchConditions"], name).unwrap();
        Self(Program::compile(condition["expression"].as_str().unwrap()).unwrap())
    }

    /// Whether the object of a request meets it.
    pub(crate) fn is_met_by(&self, object: &Value) -> bool {
        let mut context = Context::default();
        context.add_variable("object", object).unwrap();
        match self.0.execute(&context).unwrap() {
            CelValue::Bool(is_met) => is_met,
            other => panic!("no boolean: {other:?}"),
        }
    }
}
