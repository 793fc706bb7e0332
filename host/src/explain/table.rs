//! Prints the fields of a TrainJob as a table with a line for each change.

use serde_json::Value;
use trainyard_model::text::clean_to;

use super::{Explanation, path_of, without_name};
use crate::{
    field_changes::setter,
    output::{self, Table},
};

/// The maximum number of rows of a table. More rows are printed as several tables, because a table is formatted in memory.
const MAX_ROWS: usize = 4096;

pub(super) fn text(explained: &Explanation<'_>) -> String {
    let mut text = output::cleaned([explained.title()].into_iter().chain(explained.plugins()));
    let steps = explained.fields.iter();
    let steps = steps.flat_map(|field| field.steps.iter().map(move |step| (field, step)));
    let mut steps = steps.peekable();
    loop {
        let mut table = Table::new(&["field", "set by", "value", "was", "why"]);
        for (field, step) in steps.by_ref().take(MAX_ROWS) {
            let (by, why) = setter(&step.by);
            table.row([
                path_of(field),
                by,
                short(step.to.as_ref().map(|value| without_name(field, value))),
                short(step.from.as_ref()),
                why.unwrap_or("-").to_owned(),
            ]);
        }
        text += &output::cleaned(table.lines());
        if steps.peek().is_none() {
            return text;
        }
    }
}

/// Returns a value for a cell, truncated.
fn short(value: Option<&Value>) -> String {
    const MOST: usize = 60;
    let text = match value {
        None => return "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    clean_to(&text, MOST)
}
