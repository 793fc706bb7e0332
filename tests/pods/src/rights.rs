//! What the user of a test program may do with namespaces.

use std::process::Command;

/// What this user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Create all namespaces and become any user.
    Root,
    /// Create namespaces in a user namespace, in which this user is root and there is no other user.
    UserNamespaces,
}

/// Returns a command that runs its arguments in these namespaces of a process.
pub(crate) fn enter(rights: Rights, pid: u32, namespaces: &[&str]) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["--target", &pid.to_string()]);
    if rights == Rights::UserNamespaces {
        command.args(["--user", "--preserve-credentials"]);
    }
    command.args(namespaces);
    command
}
