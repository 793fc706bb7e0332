//! The table of inputs: objects, and the answer of an API server with our CRDs to each.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};
use trainyard_api::yaml;

use crate::{
    answer::Answer,
    api::{Api, Write},
};

/// The folder of the table.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/inputs");

/// One file of the table.
#[derive(Clone, Debug)]
pub struct Input {
    /// The file's name without its ending.
    pub name: String,
    /// The guarantee that it proves, as one sentence.
    pub proves: String,
    /// The stored object that `object` updates.
    pub before: Option<Value>,
    /// The object that is sent.
    pub object: Value,
    /// Whether it is sent to the status subresource.
    pub status: bool,
    /// The fields for which it is refused, in any order; empty for an accepted object.
    pub refused: Option<Vec<String>>,
    /// Whether older servers, such as those of Kubernetes 1.33, accept it.
    pub was_accepted: bool,
    /// The fields that are dropped as unknown.
    pub unknown: Vec<String>,
    /// Values of the stored object, by JSON pointer; null for absent ones.
    pub stored: Map<String, Value>,
}

impl Input {
    /// Reads the whole table.
    ///
    /// # Errors
    /// The first file with an invalid form.
    pub fn read_all() -> Result<Vec<Self>> {
        let mut inputs = Vec::new();
        for entry in fs::read_dir(FOLDER).context(FOLDER)? {
            let path = entry?.path();
            inputs.push(Self::read(&path).with_context(|| path.display().to_string())?);
        }
        inputs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(inputs)
    }

    fn read(path: &Path) -> Result<Self> {
        let name = path
            .file_stem()
            .context("the file has no name")?
            .to_string_lossy();
        let mut fields = document(&fs::read_to_string(path)?)?;
        let mut take = |key: &str| fields.remove(key).filter(|value| !value.is_null());
        let mut object = take("object").context("`object` is missing")?;
        for grow in items(take("grow"))? {
            self::grow(&mut object, &grow).with_context(|| format!("grow: {grow}"))?;
        }
        let input = Self {
            name: name.into_owned(),
            proves: text(&take("proves").context("`proves` is missing")?)?,
            before: take("before"),
            object,
            status: take("status") == Some(Value::Bool(true)),
            refused: take("refused").map(texts).transpose()?,
            was_accepted: take("wasAccepted") == Some(Value::Bool(true)),
            unknown: take("unknown").map(texts).transpose()?.unwrap_or_default(),
            stored: match take("stored") {
                Some(Value::Object(stored)) => stored,
                None => Map::new(),
                Some(other) => bail!("`stored` is not a map: {other}"),
            },
        };
        ensure!(fields.is_empty(), "unknown keys: {:?}", fields.keys());
        Ok(input)
    }

    /// Sends it to an API without an object of its name. The object that it updates is created first.
    ///
    /// # Errors
    /// The server did not answer, or refused the object that it updates.
    pub async fn send(&self, api: Api<'_>) -> Result<Answer> {
        let write = Write::default();
        let Some(before) = &self.before else {
            return api.create(&self.object, &write).await;
        };
        let before = api.create(before, &write).await?.accepted()?;
        let mut object = self.object.clone();
        let metadata = object
            .pointer_mut("/metadata")
            .and_then(Value::as_object_mut);
        if let (Some(metadata), Some(version)) =
            (metadata, before.pointer("/metadata/resourceVersion"))
        {
            metadata.insert("resourceVersion".to_owned(), version.clone());
        }
        if self.status {
            api.replace_status(&object, &write).await
        } else {
            api.replace(&object, &write).await
        }
    }

    /// Returns the kind of the object.
    pub fn kind(&self) -> &str {
        let kind = self.object.get("kind").and_then(Value::as_str);
        kind.unwrap_or_default()
    }
}

fn document(text: &str) -> Result<Map<String, Value>> {
    let mut documents = yaml::read(text);
    let document = documents.pop().context("the file has no document")??;
    ensure!(documents.is_empty(), "the file has more than one document");
    match document.value {
        Value::Object(fields) => Ok(fields),
        other => bail!("not a map: {other}"),
    }
}

fn items(value: Option<Value>) -> Result<Vec<Value>> {
    match value {
        Some(Value::Array(items)) => Ok(items),
        None => Ok(Vec::new()),
        Some(other) => bail!("not a list: {other}"),
    }
}

fn texts(value: Value) -> Result<Vec<String>> {
    items(Some(value))?.iter().map(text).collect()
}

fn text(value: &Value) -> Result<String> {
    Ok(value.as_str().context("not a string")?.to_owned())
}

/// Generates long values, which keeps the files short: `{at, text, to}` repeats a text `to` times, and `{at, item, to}` is a list of `to`
/// items, in which `#` is the number of the item.
fn grow(object: &mut Value, how: &Value) -> Result<()> {
    let get = |key| how.get(key).context("`at` or `to` is missing");
    let to = usize::try_from(get("to")?.as_u64().context("`to` is not a number")?)?;
    let place = object
        .pointer_mut(get("at")?.as_str().context("`at` is not a string")?)
        .context("`at` points to no value")?;
    *place = match (how.get("text").and_then(Value::as_str), how.get("item")) {
        (Some(text), None) => Value::String(text.repeat(to)),
        (None, Some(item)) => {
            let item = serde_json::to_string(item)?;
            (0..to)
                .map(|number| {
                    serde_json::from_str::<Value>(&item.replace('#', &number.to_string()))
                })
                .collect::<Result<_, _>>()?
        }
        _ => bail!("exactly one of `text` and `item` must be set"),
    };
    Ok(())
}
