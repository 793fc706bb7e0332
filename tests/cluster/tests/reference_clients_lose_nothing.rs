//! The reference's Go types store and read back every field they know, and all objects that the CRDs accept decode in them and in the
//! Python client's models, without losing fields that these know.

use std::{cmp::Ordering, sync::Arc};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;
use tokio::sync::OnceCell;
use trainyard_cluster::{
    Api, ControlPlane, Definitions, GoTypes, Input, PythonModels, Round, Test, Write,
};
use trainyard_model::quantity::Quantity;

use crate::common::without_server_metadata;

/// Every field of the types is stored and returned, and writing it back with the types changes nothing.
async fn fields_of_the_go_types_are_stored(
    plane: &ControlPlane,
    definitions: &Definitions,
) -> Result<()> {
    let types = GoTypes::build()?;
    let filled = types.fill()?;
    ensure!(filled.len() == 7, "{} objects", filled.len());
    for object in filled {
        let kind = object
            .get("kind")
            .and_then(Value::as_str)
            .context("no kind")?;
        let definition = definitions.on(plane, kind).await?;
        let namespace = plane.new_namespace().await?;
        let api = plane.api(&definition.resource, &namespace);
        let stored = store_filled(api, &object)
            .await
            .with_context(|| format!("{kind}: {object}"))?;
        ensure!(
            without_server_metadata(stored.clone()) == object,
            "stored: {}",
            differences(&object, &without_server_metadata(stored))
        );
        let round = types
            .round(std::slice::from_ref(&stored))?
            .pop()
            .context("no answer")?;
        let round = round.map_err(|error| anyhow!("{kind} does not decode: {error}"))?;
        ensure!(round.unknown.is_empty(), "{kind}: {:?}", round.unknown);
        let again = api
            .replace(&round.object, &Write::strict())
            .await?
            .accepted()?;
        let generation = |object: &Value| object.pointer("/metadata/generation").cloned();
        ensure!(generation(&again) == generation(&stored), "{kind} changed");
    }
    Ok(())
}

async fn store_filled(api: Api<'_>, object: &Value) -> Result<Value> {
    let created = api.create(object, &Write::strict()).await?.accepted()?;
    let Some(status) = object.get("status") else {
        return Ok(created);
    };
    let mut created = created;
    created
        .as_object_mut()
        .context("no object")?
        .insert("status".to_owned(), status.clone());
    Ok(api
        .replace_status(&created, &Write::strict())
        .await?
        .accepted()?)
}

/// Returns the stored object of each accepted input, by its name. The first test stores them for all.
#[derive(Default)]
struct Stored(OnceCell<Vec<(String, Value)>>);

impl Stored {
    async fn get(
        &self,
        plane: &ControlPlane,
        definitions: &Definitions,
    ) -> Result<(Vec<String>, Vec<Value>)> {
        let stored = self
            .0
            .get_or_try_init(async || store_inputs(plane, definitions).await);
        Ok(stored.await?.iter().cloned().unzip())
    }
}

/// Stores every accepted input, and returns the stored objects by name.
async fn store_inputs(
    plane: &ControlPlane,
    definitions: &Definitions,
) -> Result<Vec<(String, Value)>> {
    let mut stored = Vec::new();
    for mut input in Input::read_all()? {
        let definition = definitions.on(plane, input.kind()).await?;
        if !definition.resource.namespaced {
            rename(&mut input);
        }
        let namespace = plane.new_namespace().await?;
        let api = plane.api(&definition.resource, &namespace);
        let sent = input.send(api).await?;
        if input.refused.is_none() {
            stored.push((input.name, sent.accepted()?));
        }
    }
    ensure!(stored.len() > 50, "only {} objects", stored.len());
    Ok(stored)
}

/// Renames the objects, because other tests on the same API server send the same inputs.
fn rename(input: &mut Input) {
    for object in input.before.iter_mut().chain([&mut input.object]) {
        if let Some(Value::String(name)) = object.pointer_mut("/metadata/name") {
            name.insert_str(0, "decoded-");
        }
    }
}

async fn accepted_objects_decode_in_go(
    plane: &ControlPlane,
    definitions: &Definitions,
    stored: &Stored,
) -> Result<()> {
    let (names, objects): (Vec<_>, Vec<_>) = stored.get(plane, definitions).await?;
    let rounds = GoTypes::build()?.round(&objects)?;
    nothing_lost(names.iter().zip(&objects).zip(&rounds), &rounds)
}

async fn accepted_objects_decode_in_python(
    plane: &ControlPlane,
    definitions: &Definitions,
    stored: &Stored,
) -> Result<()> {
    let (names, mut objects): (Vec<_>, Vec<_>) = stored.get(plane, definitions).await?;
    let types = GoTypes::build()?;
    objects.extend(types.fill()?);
    let names = names
        .into_iter()
        .chain((0..7).map(|number| format!("filled {number}")));
    let names: Vec<String> = names.collect();
    // The models are generated from these types, and cannot report unknown fields themselves.
    let known = types.round(&objects)?;
    let rounds = PythonModels::install()?.round(&objects)?;
    nothing_lost(names.iter().zip(&objects).zip(&rounds), &known)
}

fn nothing_lost<'a>(
    rounds: impl Iterator<Item = ((&'a String, &'a Value), &'a Result<Round, String>)>,
    known: &[Result<Round, String>],
) -> Result<()> {
    let mut wrong = Vec::new();
    for (((name, object), round), known) in rounds.zip(known) {
        match (round, known) {
            (Ok(round), Ok(known)) => {
                let lost = lost(object, &round.object, &known.unknown);
                wrong.extend(lost.into_iter().map(|lost| format!("{name}: {lost}")));
            }
            (Err(error), _) | (_, Err(error)) => {
                wrong.push(format!("{name} does not decode: {error}"))
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Returns the values of an object that its copy does not have, except for empty ones, which a client may omit, and for fields that the
/// client does not know.
fn lost(object: &Value, copy: &Value, unknown: &[String]) -> Vec<String> {
    let mut lost = Vec::new();
    walk(
        object,
        Some(copy),
        &mut String::new(),
        &mut |path, value, copy| {
            let known = !unknown.iter().any(|unknown| is_below(path, unknown));
            if known && !is_empty(value) && !copy.is_some_and(|copy| same(path, value, copy)) {
                lost.push(format!("{path} was {value} and is {copy:?}"));
            }
        },
    );
    lost
}

fn differences(one: &Value, other: &Value) -> String {
    let mut all = lost(one, other, &[]);
    all.extend(lost(other, one, &[]));
    all.join("\n")
}

type Leaf<'a> = &'a mut dyn FnMut(&str, &Value, Option<&Value>);

/// Visits every leaf value, with its path and the value of the copy.
fn walk(value: &Value, copy: Option<&Value>, path: &mut String, leaf: Leaf<'_>) {
    let length = path.len();
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
                walk(value, copy.and_then(|copy| copy.get(key)), path, leaf);
                path.truncate(length);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, value) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                walk(value, copy.and_then(|copy| copy.get(index)), path, leaf);
                path.truncate(length);
            }
        }
        _ => leaf(path, value, copy),
    }
}

fn is_below(path: &str, unknown: &str) -> bool {
    path.strip_prefix(unknown)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Returns whether two values are equal. Go writes quantities in canonical form, and whole numbers without a decimal point.
fn same(path: &str, one: &Value, other: &Value) -> bool {
    let number = |value: &Value| value.as_f64();
    one == other
        || number(one).is_some() && number(one) == number(other)
        || is_quantity(path)
            && quantity(one)
                .zip(quantity(other))
                .is_some_and(|(one, other)| one.compare(other) == Ordering::Equal)
}

fn is_quantity(path: &str) -> bool {
    [".limits.", ".requests.", ".capacity."]
        .iter()
        .any(|part| path.contains(part))
        || [".sizeLimit", ".divisor"]
            .iter()
            .any(|end| path.ends_with(end))
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text),
        other => Quantity::parse(&other.to_string()),
    }
}

pub(crate) fn tests() -> Result<Vec<Test>> {
    let definitions = Arc::new(Definitions::read()?);
    let stored = Arc::new(Stored::default());
    let in_go = Arc::clone(&stored);
    let [first, second, third] = [&definitions, &definitions, &definitions].map(Arc::clone);
    Ok(vec![
        Test::new(
            "fields_of_the_go_types_are_stored",
            async move |plane: &ControlPlane| {
                fields_of_the_go_types_are_stored(plane, &first).await
            },
        ),
        Test::new(
            "accepted_objects_decode_in_go",
            async move |plane: &ControlPlane| {
                accepted_objects_decode_in_go(plane, &second, &in_go).await
            },
        ),
        Test::new(
            "accepted_objects_decode_in_python",
            async move |plane: &ControlPlane| {
                accepted_objects_decode_in_python(plane, &third, &stored).await
            },
        ),
    ])
}
