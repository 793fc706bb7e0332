//! For every input of the table, the offline schema check agrees with the API server: the same verdict, fields, wording and stored object.
//! Older servers, such as those of Kubernetes 1.33, say some of it in other words.
use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use trainyard_cluster::{
    Api, Cause, ControlPlane, Definition, Definitions, Input, Test, Validation, Write,
};
use trainyard_structural::{Options, Schema, Scope};

use crate::common::without_server_metadata;

/// A definition, compiled by the offline schema check.
struct Compiled {
    structural: Schema,
    options: Options,
}

impl Compiled {
    fn of(definition: &Definition) -> Result<Self> {
        let version = definition
            .crd
            .pointer("/spec/versions/0")
            .context("no version")?;
        let schema = version
            .pointer("/schema/openAPIV3Schema")
            .context("no schema")?;
        Ok(Self {
            structural: Schema::compile(schema)?,
            options: Options {
                scope: if definition.resource.namespaced {
                    Scope::Namespaced
                } else {
                    Scope::Cluster
                },
                status_subresource: version.pointer("/subresources/status").is_some(),
            },
        })
    }
}

/// The verdict of one side on an input.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    /// The errors for which it is refused, sorted by field.
    refused: Vec<Cause>,
    /// The fields that are dropped, sorted.
    unknown: Vec<String>,
    /// The stored object without fields that only a server sets; `None` if the input is refused.
    stored: Option<Value>,
}

impl Verdict {
    /// Keeps the fields of the errors.
    fn forget_words(&mut self) {
        for cause in &mut self.refused {
            cause.message.clear();
        }
        self.refused.dedup();
    }
}

/// The minor version of Kubernetes whose words the schema check has, and which newer ones have, too.
const SAME_WORDS: u32 = 36;

/// Returns the verdict of the API server on the input.
async fn served(api: Api<'_>, input: &Input) -> Result<Verdict> {
    let answer = input.send(api).await?;
    let mut unknown: Vec<String> = answer
        .warnings
        .iter()
        .filter_map(|text| unknown_field(text))
        .collect();
    unknown.sort();
    let (refused, stored) = match answer.accepted() {
        Ok(object) => {
            let name = object.pointer("/metadata/name").and_then(Value::as_str);
            let stored = api.get(name.context("a name")?).await?.accepted()?;
            (Vec::new(), Some(without_server_metadata(stored)))
        }
        Err(refusal) => {
            ensure!(refusal.code == 422, "not for its content: {refusal}");
            let mut causes = refusal.causes;
            causes.sort();
            (causes, None)
        }
    };
    Ok(Verdict {
        refused,
        unknown,
        stored,
    })
}

/// Returns the field of a warning about an unknown field.
fn unknown_field(warning: &str) -> Option<String> {
    let field = warning
        .strip_prefix("unknown field \"")?
        .strip_suffix('"')?;
    Some(field.to_owned())
}

/// Returns the verdict of the offline schema check on the input.
fn computed(kind: &Compiled, input: &Input) -> Result<Verdict> {
    let old = input.before.clone().map(|mut before| {
        let outcome = kind.structural.admit(&mut before, None, &kind.options);
        (before, outcome)
    });
    if let Some((_, outcome)) = &old {
        ensure!(outcome.errors.is_empty(), "before: {:?}", outcome.errors);
    }
    let old = old.map(|(before, _)| before);
    let mut options = kind.options;
    let mut object = input.object.clone();
    if input.status {
        // A status is written to the stored object.
        options.status_subresource = false;
        let status = object.get("status").cloned().context("a status")?;
        object = old.clone().context("an object before")?;
        object
            .as_object_mut()
            .context("an object")?
            .insert("status".to_owned(), status);
    }
    let outcome = kind.structural.admit(&mut object, old.as_ref(), &options);
    let mut refused: Vec<Cause> = outcome
        .errors
        .iter()
        .map(|violation| Cause {
            field: violation.field(),
            message: violation.body(),
        })
        .collect();
    if input.status {
        from_the_status_on(&mut refused);
    }
    refused.sort();
    let mut unknown: Vec<String> = outcome
        .unknown
        .iter()
        .map(|unknown| unknown.path.to_string())
        .collect();
    unknown.sort();
    let stored = refused.is_empty().then(|| without_server_metadata(object));
    Ok(Verdict {
        refused,
        unknown,
        stored,
    })
}

/// For a write of the status subresource, the server's messages name fields relative to the status.
fn from_the_status_on(causes: &mut [Cause]) {
    for cause in causes {
        cause.message =
            cause
                .message
                .replacen(": status.", ": ", 1)
                .replacen(": status in", ":  in", 1);
    }
}

/// Checks that both sides agree with each other and with the table.
async fn agree(plane: &ControlPlane, all: &All, input: &Input) -> Result<()> {
    let definition = all.definitions.on(plane, input.kind()).await?;
    let namespace = plane.new_namespace().await?;
    let api = plane.api(&definition.resource, &namespace);
    let mut served = served(api, input).await?;
    let mut computed = computed(
        all.compiled.get(input.kind()).context("no such kind")?,
        input,
    )?;
    if plane.minor_version().await? < SAME_WORDS {
        if input.was_accepted {
            ensure!(served.refused.is_empty(), "{:#?}", served.refused);
            return Ok(());
        }
        served.forget_words();
        computed.forget_words();
    }
    ensure!(
        served == computed,
        "{}\nthe server says  {}\nthe schema says  {}",
        input.proves,
        shown(&served, &computed),
        shown(&computed, &served)
    );
    expected(input, &served).with_context(|| input.proves.clone())?;
    if !input.unknown.is_empty() && input.before.is_none() {
        strict(api, input).await?;
    }
    Ok(())
}

/// Describes the parts of one verdict that the other does not have.
fn shown(verdict: &Verdict, other: &Verdict) -> String {
    let mut text = String::new();
    if verdict.refused != other.refused {
        text += &format!("refused: {:#?} ", verdict.refused);
    }
    if verdict.unknown != other.unknown {
        text += &format!("unknown: {:?} ", verdict.unknown);
    }
    if verdict.stored != other.stored {
        let stored = verdict.stored.as_ref().map(Value::to_string);
        text += &format!("stored: {}", stored.unwrap_or_default());
    }
    text
}

fn expected(input: &Input, served: &Verdict) -> Result<()> {
    let mut fields: Vec<&str> = served
        .refused
        .iter()
        .map(|cause| cause.field.as_str())
        .collect();
    fields.dedup();
    let mut wanted: Vec<&str> = input.refused.iter().flatten().map(String::as_str).collect();
    wanted.sort_unstable();
    ensure!(
        fields == wanted,
        "refused for {:#?}\ninstead of {wanted:?}",
        served.refused
    );
    ensure!(
        served.unknown == input.unknown,
        "unknown: {:?}",
        served.unknown
    );
    let Some(stored) = &served.stored else {
        return Ok(());
    };
    for (pointer, wanted) in &input.stored {
        let found = stored.pointer(pointer).unwrap_or(&Value::Null);
        ensure!(found == wanted, "{pointer} is {found}, not {wanted}");
    }
    Ok(())
}

/// Fields that are dropped with a warning are refused if the client requests strict validation, as kubectl does.
async fn strict(api: Api<'_>, input: &Input) -> Result<()> {
    let write = Write {
        dry_run: true,
        validation: Validation::Strict,
        ..Write::default()
    };
    let refusal = api.create(&input.object, &write).await?.refused()?;
    for field in &input.unknown {
        ensure!(
            refusal
                .message
                .contains(&format!("unknown field \"{field}\"")),
            "{refusal}"
        );
    }
    Ok(())
}

struct All {
    definitions: Definitions,
    compiled: BTreeMap<String, Compiled>,
}

pub(crate) fn tests() -> Result<Vec<Test>> {
    let definitions = Definitions::read()?;
    let mut compiled = BTreeMap::new();
    for (kind, definition) in definitions.iter() {
        let of = Compiled::of(definition).with_context(|| kind.to_owned())?;
        compiled.insert(kind.to_owned(), of);
    }
    let all = Arc::new(All {
        definitions,
        compiled,
    });
    let tests = Input::read_all()?.into_iter().map(|input| {
        let all = Arc::clone(&all);
        Test::new(input.name.clone(), async move |plane: &ControlPlane| {
            agree(plane, &all, &input).await
        })
    });
    Ok(tests.collect())
}
