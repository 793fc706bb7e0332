//! The admission of stored objects.

use std::sync::LazyLock;

use serde_json::Value;
use trainyard_api::{Admitted, Located, Object, Source};
use trainyard_schema::Admission;

/// The same admission as for files: the API server's schema may be the reference's, and does not check converted forms.
static ADMISSION: LazyLock<Admission> = LazyLock::new(Admission::default);

/// Admits a stored object.
///
/// # Errors
/// What is wrong with its header.
pub(crate) fn admit(object: Value) -> Result<Admitted, Vec<String>> {
    let object = Object::read(Source::new("", 1), object).map_err(|errors| {
        let errors = errors.into_iter().map(Located::from);
        errors.map(|error| error.in_object()).collect::<Vec<_>>()
    })?;
    let admitted = ADMISSION.admit(object, None, "");
    admitted.map_err(|error| vec![error.to_string()])
}

/// Returns the errors for which an object is refused.
pub(crate) fn errors_of(admitted: &Admitted) -> Vec<String> {
    admitted.errors.iter().map(Located::in_object).collect()
}
