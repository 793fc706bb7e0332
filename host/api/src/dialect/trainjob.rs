//! Old forms of a TrainJob.

use serde_json::{Map, Value};

use super::{Conversion, overrides, spec};
use crate::fields::FieldProblem;

pub(super) fn convert(job: &mut Map<String, Value>, conversion: &mut Conversion) {
    runtime_group(job, conversion);
    processes(job, conversion);
    overrides::convert(job, conversion);
}

fn runtime_group(job: &mut Map<String, Value>, conversion: &mut Conversion) {
    let reference = job.get_mut("runtimeRef");
    let Some(group) = reference.and_then(|reference| reference.get_mut("apiGroup")) else {
        return;
    };
    let written = group.as_str().unwrap_or_default();
    let current = super::runtime_group(written).to_owned();
    if written != current {
        let message =
            format!("`{written}` is read as `{current}`; write that instead, or remove the field");
        conversion.warn(spec().field("runtimeRef").field("apiGroup"), message);
        *group = current.into();
    }
}

/// `trainer.numProcPerNode` was a number or a string up to v2.1; now it is a number.
fn processes(job: &mut Map<String, Value>, conversion: &mut Conversion) {
    let path = spec().field("trainer").field("numProcPerNode");
    let Some(trainer) = job.get_mut("trainer").and_then(Value::as_object_mut) else {
        return;
    };
    let Some(text) = trainer.get("numProcPerNode").and_then(Value::as_str) else {
        return;
    };
    match text {
        "auto" => {
            trainer.shift_remove("numProcPerNode");
            let message =
                "`auto` is the default, unless the runtime sets a number; remove the field";
            conversion.warn_of_file(path, message);
        }
        "cpu" | "gpu" => {
            let form =
                "a number (set `cpu` and `gpu` in the runtime's mlPolicy.torch.numProcPerNode)";
            let found = text.to_owned();
            trainer.shift_remove("numProcPerNode");
            conversion.refuse(path, FieldProblem::Form { form, found });
        }
        _ => {
            // Other strings are refused by the schema.
            if let Ok(number) = text.parse::<i32>() {
                trainer.insert("numProcPerNode".to_owned(), number.into());
                conversion.warn_of_file(
                    path,
                    format!("is read as the number {number}; write it without quotes"),
                );
            }
        }
    }
}
