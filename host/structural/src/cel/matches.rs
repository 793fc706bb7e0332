//! The function `matches`, which compiles each regular expression once.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use cel::{
    DeclarationError, Env, ExecutionError,
    common::types::{CelBool, CelString},
};

use crate::pattern::Pattern;

/// The maximum number of cached patterns. Rules have few, but a rule can also compute one from a value.
const MOST: usize = 256;

static COMPILED: LazyLock<Mutex<HashMap<String, Arc<Pattern>>>> = LazyLock::new(Mutex::default);

/// Declares `x.matches(pattern)` and `matches(x, pattern)`.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_overload!(env, fn matches: (CelString, CelString) -> Result<CelBool>, id = "matches")?;
    cel::add_member_overload!(env, fn matches: (CelString, CelString) -> Result<CelBool>)
}

fn matches(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    let pattern = compiled(pattern.inner())?;
    Ok(CelBool::from(pattern.matches(text.inner())))
}

fn compiled(written: &str) -> Result<Arc<Pattern>, ExecutionError> {
    let all = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all().get(written).cloned();
    if let Some(known) = known {
        return Ok(known);
    }
    let pattern = Arc::new(Pattern::new(written));
    if let Err(error) = pattern.regex() {
        let problem = format!("'{written}' not a valid regex:\n{error}");
        return Err(ExecutionError::function_error("matches", problem));
    }
    let mut all = all();
    if all.len() >= MOST {
        all.clear();
    }
    all.insert(written.to_owned(), pattern.clone());
    Ok(pattern)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_pattern_is_compiled_once_and_few_are_kept() {
        let first = compiled("^a+$").unwrap();
        assert!(Arc::ptr_eq(&first, &compiled("^a+$").unwrap()));
        assert!(first.matches("aa") && !first.matches("ab"));
        for number in 0..=MOST {
            compiled(&format!("^{number}$")).unwrap();
        }
        assert!(COMPILED.lock().unwrap().len() <= MOST);
        assert!(compiled("(").is_err());
    }
}
