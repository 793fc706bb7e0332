//! NCCL's configuration file.

use std::fmt::Write as _;

use trainyard_sdk::Container;

/// Returns the container's env vars of NCCL as a file, whoever set them. NCCL prefers the env vars of a process.
pub(crate) fn of(node: &Container) -> String {
    let mut text = String::new();
    for name in node.env_names() {
        // The kubelet replaces references only in env vars.
        let value = node.env(&name).filter(|value| !value.contains("$("));
        if let Some(value) = value.filter(|_| name.starts_with("NCCL_")) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}={value}");
        }
    }
    text
}
