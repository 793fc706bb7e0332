//! The table of pods, and the fields for which an API server refuses them as the pods of a Job.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value};
use trainyard_api::yaml;

/// The file of the table.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pods.yaml");

/// One row of the table.
#[derive(Clone, Debug)]
pub struct PodRow {
    /// The name of the row.
    pub name: String,
    /// The spec of the pod.
    pub pod: Value,
    /// Fields of the Job's spec beside its pods.
    pub job: Map<String, Value>,
    /// The fields below the Job's spec that Trainyard refuses; empty for a Job that is accepted.
    pub refused: Vec<String>,
    /// The fields of the server's answer where they differ.
    server: Vec<String>,
}

impl PodRow {
    /// Reads the whole table.
    ///
    /// # Errors
    /// The table has an invalid form.
    pub fn read_all() -> Result<Vec<Self>> {
        let mut documents = yaml::read(&fs::read_to_string(FILE)?);
        let document = documents.pop().context("the table is empty")??;
        let rows = document.value.as_array().context("not a list")?.iter();
        rows.map(|row| Self::read(row.as_object().cloned().context("not a map")?))
            .collect()
    }

    fn read(mut row: Map<String, Value>) -> Result<Self> {
        let name = row.remove("name").context("`name` is missing")?;
        let read = Self {
            name: name.as_str().context("not a string")?.to_owned(),
            pod: row.remove("pod").context("`pod` is missing")?,
            job: match row.remove("job") {
                Some(job) => job.as_object().cloned().context("`job` is not a map")?,
                None => Map::new(),
            },
            refused: fields(row.remove("refused")),
            server: fields(row.remove("server")),
        };
        ensure!(row.is_empty(), "unknown keys: {:?}", row.keys());
        Ok(read)
    }

    /// Returns the fields of the server's answer.
    pub fn fields_of_server(&self) -> &[String] {
        match self.server.is_empty() {
            true => &self.refused,
            false => &self.server,
        }
    }
}

/// Reads fields of a pod, or fields of the Job, which begin with `job.`.
fn fields(list: Option<Value>) -> Vec<String> {
    let list = list
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    list.filter_map(Value::as_str)
        .map(|field| match field.strip_prefix("job.") {
            Some(field) => field.to_owned(),
            None => format!("template.spec.{field}"),
        })
        .collect()
}
