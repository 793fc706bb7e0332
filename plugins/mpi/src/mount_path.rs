//! Where the keys are mounted.

use trainyard_sdk::Context;

use crate::{config::MpiConfig, implementation::HOSTFILE_DIR};

/// The configuration's path.
const FIELD: &str = "spec.mlPolicy.mpi.sshAuthMountPath";
/// The home directory of root.
const ROOT_HOME: &str = "/root";

/// A valid `sshAuthMountPath`.
#[derive(Debug)]
pub(crate) struct MountPath {
    written: String,
    /// Its directories, with `..`, `.` and repeated slashes resolved.
    folders: Vec<String>,
}

impl MountPath {
    /// Reads the path. Reports an error if it is not a valid mount path.
    pub(crate) fn read(ctx: &Context, config: &MpiConfig) -> Option<Self> {
        let written = &config.ssh_auth_mount_path;
        let path = Self {
            written: written.clone(),
            folders: folders(written),
        };
        let problem = if !written.starts_with('/') {
            "is not an absolute path"
        } else if written.contains(':') {
            "contains a `:`, which is not allowed in a mount path"
        } else if path.folders.is_empty() {
            "is the root of the file system"
        } else if path.is_in(HOSTFILE_DIR) {
            "is where the launcher mounts the hostfile"
        } else {
            return Some(path);
        };
        let message =
            format!("`{written}` {problem}; set it to the `.ssh` directory of the image's user");
        ctx.error(&message, Some(FIELD));
        None
    }

    /// The path as in the runtime.
    pub(crate) fn as_written(&self) -> &str {
        &self.written
    }

    /// Whether it is below the home directory of root.
    pub(crate) fn is_of_root(&self) -> bool {
        self.is_in(ROOT_HOME) && self.folders.len() > 1
    }

    /// Whether it is a directory or below it.
    fn is_in(&self, folder: &str) -> bool {
        self.folders.starts_with(&folders(folder))
    }
}

/// The directories of a path.
fn folders(path: &str) -> Vec<String> {
    let mut folders = Vec::new();
    for folder in path.split('/') {
        match folder {
            "" | "." => {}
            ".." => {
                folders.pop();
            }
            folder => folders.push(folder.to_owned()),
        }
    }
    folders
}
