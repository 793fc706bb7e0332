//! Old forms of a TrainJob.

use serde_json::{Map, Value};

use super::{Modernized, overrides, spec};
use crate::fields::FieldProblem;

pub(super) fn modernize(job: &mut Map<String, Value>, modernized: &mut Modernized) {
    runtime_group(job, modernized);
    processes(job, modernized);
    overrides::convert(job, modernized);
}

fn runtime_group(job: &mut Map<String, Value>, modernized: &mut Modernized) {
    let reference = job.get_mut("runtimeRef");
    let Some(group) = reference.and_then(|reference| reference.get_mut("apiGroup")) else {
        return;
    };
    let written = group.as_str().unwrap_or_default();
    let current = super::runtime_group(written).to_owned();
    if written != current {
        let message = format!("`{written}` is read as `{current}`; write that, or leave it out");
        modernized.warn(spec().field("runtimeRef").field("apiGroup"), message);
        *group = current.into();
    }
}

/// `trainer.numProcPerNode` was a number or a word up to v2.1, and is a number.
fn processes(job: &mut Map<String, Value>, modernized: &mut Modernized) {
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
            let message = "`auto` is what a TrainJob without it means, unless the runtime gives a number; leave it out";
            modernized.warn(path, message);
        }
        "cpu" | "gpu" => {
            let form =
                "a number; `cpu` and `gpu` stand in the runtime's mlPolicy.torch.numProcPerNode";
            let found = text.to_owned();
            trainer.shift_remove("numProcPerNode");
            modernized.refuse(path, FieldProblem::Form { form, found });
        }
        _ => {
            // Any other text is refused as every text is.
            if let Ok(number) = text.parse::<i32>() {
                trainer.insert("numProcPerNode".to_owned(), number.into());
                modernized.warn(
                    path,
                    format!("is read as the number {number}; write it without quotes"),
                );
            }
        }
    }
}
