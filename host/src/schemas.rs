//! `trainyard policy-schema` and `trainyard config-schema`.

use trainyard_config::PolicyFile;
use trainyard_controller::settings;

use crate::{output, report::ErrorList};

/// Prints the JSON Schema of the policy file.
pub(crate) fn policy_file() -> Result<(), ErrorList> {
    output::json(&PolicyFile::schema())
}

/// Prints the JSON Schema of the controller's configuration file.
pub(crate) fn configuration() -> Result<(), ErrorList> {
    output::json(&settings::schema())
}
