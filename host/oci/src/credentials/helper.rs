//! Docker's credential helpers: programs that print a credential.

use std::{
    io::{self, Write as _},
    process::{Child, Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use trainyard_text::clean;
use zeroize::Zeroizing;

use super::{CredentialError, Secret, secret_text};

/// How long a helper may take. Some of them wait for a cloud.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The user with which a helper says that the secret is an identity token.
const TOKEN_USER: &str = "<token>";

/// What helpers print if they have no credential.
const NOT_FOUND: &str = "credentials not found";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Printed {
    username: String,
    #[serde(deserialize_with = "secret_text")]
    secret: Option<Zeroizing<String>>,
}

/// Runs a helper for a registry. `None` if it has no credential.
pub(super) fn get(
    document: &str,
    name: &str,
    registry: &str,
) -> Result<Option<Secret>, CredentialError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.chars().all(is_plain) {
        return Err(CredentialError::HelperName {
            document: document.to_owned(),
            registry: clean(registry),
        });
    }
    let program = format!("docker-credential-{name}");
    let failure = |problem: String| CredentialError::Helper {
        document: document.to_owned(),
        program: program.clone(),
        registry: clean(registry),
        problem,
    };
    let output = run(&program, registry).map_err(&failure)?;
    let stdout = Zeroizing::new(output.stdout);
    if !output.status.success() {
        // Helpers write this error to standard output.
        return if String::from_utf8_lossy(&stdout).contains(NOT_FOUND) {
            Ok(None)
        } else {
            Err(failure(format!("failed: {}", output.status)))
        };
    }
    let printed = serde_json::from_slice(&stdout).ok();
    let printed = printed.and_then(|Printed { username, secret }| Some((username, secret?)));
    let (user, password) =
        printed.ok_or_else(|| failure("printed something else than a credential".to_owned()))?;
    Ok(Some(if user == TOKEN_USER {
        Secret::IdentityToken(password)
    } else {
        Secret::Password { user, password }
    }))
}

fn run(program: &str, registry: &str) -> Result<Output, String> {
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "is not installed where Trainyard runs; the image of the controller has no helpers, so give it a config.json with `auths`".to_owned(),
            _ => format!("cannot be run: {error}"),
        })?;
    // A helper that does not read it says why by its exit code.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(registry.as_bytes());
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let output = output(child).recv_timeout(TIMEOUT);
    let Ok(output) = output else {
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::KILL);
        }
        return Err(format!("did not end within {TIMEOUT:?}"));
    };
    output.map_err(|error| format!("cannot be read: {error}"))
}

/// Waits for a process in a thread of its own, because the standard library has no limit for that.
fn output(child: Child) -> mpsc::Receiver<std::io::Result<Output>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let _ = send.send(child.wait_with_output());
    });
    receive
}
