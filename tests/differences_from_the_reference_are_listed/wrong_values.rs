//! Differences with a wrong value or a wrong refusal, which no row lists: each is made of a difference that rows list, at the same place.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use trainyard_divergences::{
    difference::{Answer, Difference, Refusal},
    listing::all,
    rows::Row,
    seen::Documents,
};
use trainyard_model::quantity::Quantity;

use super::gang_counts_are_those_of_the_job_set::wrong_counts;

/// What was found of the seeded differences.
#[derive(Default)]
pub(super) struct Seeded {
    /// How many were made for each row.
    pub(super) rows: BTreeMap<&'static str, usize>,
    /// Those that rows list.
    pub(super) listed: Vec<String>,
}

impl Seeded {
    /// Seeds what is wrong at the place of a difference, which is listed by these rows. Further rows are given.
    pub(super) fn add(
        &mut self,
        (name, input): (&str, &str),
        (difference, by): (&Difference, &[&'static Row]),
        trainyard: &Answer,
        further: &'static [Row],
    ) {
        let documents = Documents::read(input);
        for wrong in wrong(difference) {
            for row in by {
                *self.rows.entry(row.id).or_default() += 1;
            }
            let seen = documents.see(&wrong, &trainyard.objects);
            let rows = all().chain(further).filter(|row| row.lists(&seen));
            let rows: Vec<_> = rows.map(|row| row.id).collect();
            if !rows.is_empty() && !is_found_in_group(input, &wrong, &trainyard.objects) {
                self.listed
                    .push(format!("{name}: {rows:?} list that {wrong}"));
            }
        }
    }
}

/// Returns whether a wrong count is found because it is not that of the JobSet, or not an amount.
fn is_found_in_group(input: &str, wrong: &Difference, objects: &[Value]) -> bool {
    let Difference::Field {
        object,
        path,
        trainyard,
        ..
    } = wrong
    else {
        return false;
    };
    let mut objects = objects.to_vec();
    let name = object.rsplit('/').next().unwrap();
    let is_it =
        |object: &&mut Value| object["kind"] == "PodGroup" && object["metadata"]["name"] == name;
    let Some(group) = objects
        .iter_mut()
        .find(is_it)
        .filter(|_| object.starts_with("PodGroup "))
    else {
        return false;
    };
    let is_amount = |value: &Value| Quantity::read(value).is_some();
    let value = trainyard.clone().unwrap_or(Value::Null);
    match path.strip_prefix("spec.minResources") {
        Some("")
            if !value
                .as_object()
                .is_none_or(|amounts| amounts.values().all(is_amount)) =>
        {
            return true;
        }
        Some("") => group["spec"]["minResources"] = value,
        Some(_) if !value.is_null() && !is_amount(&value) => return true,
        Some(resource) => {
            let amounts = group["spec"]["minResources"].as_object_mut().unwrap();
            let resource = resource.trim_matches(['[', ']']);
            match value {
                Value::Null => amounts.remove(resource),
                value => amounts.insert(resource.to_owned(), value),
            };
        }
        None => group["spec"][path.trim_start_matches("spec.")] = value,
    }
    !wrong_counts(input, &objects).is_empty()
}

fn wrong(difference: &Difference) -> Vec<Difference> {
    match difference {
        Difference::Field {
            object,
            path,
            reference,
            trainyard,
        } => {
            let of = |wrong: Option<Value>| Difference::Field {
                object: object.clone(),
                path: path.clone(),
                reference: reference.clone(),
                trainyard: wrong,
            };
            let mut wrong = wrong_values(trainyard.as_ref());
            wrong.retain(|wrong| wrong != reference && wrong != trainyard);
            wrong.into_iter().map(of).collect()
        }
        Difference::RefusedByTrainyard(refusal) => {
            let at = Refusal {
                field: "spec.elsewhere".to_owned(),
                ..refusal.clone()
            };
            let of = Refusal {
                error: "is wrong".to_owned(),
                ..refusal.clone()
            };
            [at, of].map(Difference::RefusedByTrainyard).into()
        }
        _ => Vec::new(),
    }
}

/// Returns values that are wrong where this one is right. Lists whose order means nothing keep it.
fn wrong_values(right: Option<&Value>) -> Vec<Option<Value>> {
    let Some(right) = right else {
        return [json!("wrong"), json!(7), json!({"name": "wrong"})]
            .map(Some)
            .into();
    };
    changed(right).into_iter().map(Some).chain([None]).collect()
}

fn changed(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Bool(is_so) => vec![json!(!is_so)],
        Value::Number(number) => vec![json!(number.as_u64().unwrap() + 1)],
        Value::String(text) => {
            let number = text
                .parse::<u64>()
                .ok()
                .map(|number| (number + 1).to_string());
            // A line of a hostfile that is missing.
            let (_, rest) = text.split_once('\n').unwrap_or_default();
            let rest = Some(rest.to_owned()).filter(|rest| !rest.is_empty());
            let more = [number, rest].into_iter().flatten();
            [format!("7{text}")]
                .into_iter()
                .chain(more)
                .map(Value::from)
                .collect()
        }
        Value::Array(items) => {
            let without = |at: usize| {
                let mut items = items.clone();
                items.remove(at);
                items
            };
            let with = |at: usize, item: Value| {
                let mut items = items.clone();
                items[at] = item;
                items
            };
            let places = || items.iter().enumerate();
            let more = [items.clone(), vec![json!("wrong")]].concat();
            let fewer = places().map(|(at, _)| without(at));
            let others = places()
                .flat_map(|(at, item)| changed(item).into_iter().map(move |item| (at, item)))
                .map(|(at, item)| with(at, item));
            fewer.chain(others).chain([more]).map(Value::from).collect()
        }
        Value::Object(members) => {
            let with = |key: &str, value: Option<Value>| {
                let mut members = members.clone();
                match value {
                    Some(value) => members.insert(key.to_owned(), value),
                    None => members.remove(key),
                };
                Value::from(members)
            };
            let fewer = members.keys().map(|key| with(key, None));
            let others = members.iter().flat_map(|(key, value)| {
                let changed = changed(value).into_iter();
                changed
                    .map(|value| with(key, Some(value)))
                    .collect::<Vec<_>>()
            });
            let more = with("wrong", Some(json!("wrong")));
            fewer.chain(others).chain([more]).collect()
        }
    }
}
