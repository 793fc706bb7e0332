//! The functions and macros of rules.

use std::sync::{Arc, LazyLock};

use cel::{DeclarationError, Env, extensions};

use super::matches;

static ENVIRONMENT: LazyLock<Result<Arc<Env>, DeclarationError>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    env.add_extension(extensions::strings)?;
    env.add_extension(matches::declare)?;
    env.set_error_on_duplicate_map_keys(false);
    Ok(Arc::new(env))
});

/// The functions that rules can call, as `f(x)` or `x.f()`: those of CEL, of its strings library and of optional values.
///
/// Kubernetes' own libraries (`quantity`, `url`, `isSorted`, `find`, ...) are not supported: a rule that calls one does not compile.
const FUNCTIONS: [&str; 46] = [
    "bool",
    "bytes",
    "charAt",
    "contains",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "format",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "hasValue",
    "indexOf",
    "int",
    "join",
    "lastIndexOf",
    "lowerAscii",
    "matches",
    "none",
    "of",
    "ofNonZeroValue",
    "or",
    "orValue",
    "quote",
    "replace",
    "reverse",
    "size",
    "split",
    "startsWith",
    "string",
    "substring",
    "timestamp",
    "trim",
    "type",
    "uint",
    "upperAscii",
    "value",
    "@not_strictly_false",
];

/// The namespaces of functions, such as `optional.of(x)`.
pub(super) const NAMESPACES: [&str; 2] = ["optional", "strings"];

/// The environment of every rule.
pub(super) fn environment() -> Result<Arc<Env>, DeclarationError> {
    ENVIRONMENT.clone()
}

/// Returns whether rules can call the function.
pub(super) fn is_function(name: &str) -> bool {
    FUNCTIONS.contains(&name)
}
