//! `trainyard policy-schema`.

use crate::{output, policy_file, report::ErrorList};

pub(crate) fn run() -> Result<(), ErrorList> {
    output::json(&policy_file::schema())
}
