//! Credentials of registries: Docker's config.json and credential helpers.
//!
//! A credential belongs to the registry that its document names, and is sent to no other host, except to the token server that this registry
//! names. No error and no log contains one.

mod document;
mod helper;

use std::{
    env,
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer};
use thiserror::Error;
use zeroize::Zeroizing;

use self::document::Document;
use crate::regular_file;

/// A credential.
#[derive(Clone)]
pub enum Secret {
    /// A user with a password.
    Password {
        /// The user.
        user: String,
        /// The password.
        password: Zeroizing<String>,
    },
    /// A token that the registry's token server exchanges for others.
    IdentityToken(Zeroizing<String>),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Reads a secret, which is overwritten when it is not needed any more.
pub(crate) fn secret_text<'de, D: Deserializer<'de>>(
    text: D,
) -> Result<Option<Zeroizing<String>>, D::Error> {
    let text = Option::<String>::deserialize(text)?;
    Ok(text.map(Zeroizing::new))
}

/// Why credentials cannot be read.
#[derive(Debug, Error)]
pub enum CredentialError {
    /// A file cannot be read.
    #[error("{}: cannot be read: {source}; correct --registry-config or DOCKER_CONFIG", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A document is not of Docker's form.
    #[error(
        "{document}: is not a config.json of Docker: wrong at line {line}, column {column}; write it with `docker login`"
    )]
    Form {
        /// The document's name.
        document: String,
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// The entry of a registry is not readable.
    #[error(
        "{document}: the entry of {registry} is not base64 of USER:PASSWORD; write it with `docker login {registry}`"
    )]
    Entry {
        /// The document's name.
        document: String,
        /// The registry.
        registry: String,
    },
    /// The helper does not work.
    #[error(
        "{document}: the credential helper {program} {problem}; run `echo {registry} | {program} get` to see why"
    )]
    Helper {
        /// The document's name.
        document: String,
        /// The program.
        program: String,
        /// The registry.
        registry: String,
        /// What is wrong, without its output.
        problem: String,
    },
    /// The helper's name is not one of a program.
    #[error(
        "{document}: the credential helper of {registry} is not a name of letters, digits, `.`, `_` and `-`; correct `credHelpers` or `credsStore`"
    )]
    HelperName {
        /// The document's name.
        document: String,
        /// The registry.
        registry: String,
    },
}

/// The most bytes of a document.
const MAX_BYTES: u64 = 1 << 20;

/// The credentials of a user.
#[derive(Debug, Default)]
pub struct Credentials {
    document: Option<Document>,
}

impl Credentials {
    /// Returns the credentials of a user: of that file, or else of `config.json` in `$DOCKER_CONFIG` or `~/.docker`, if there is one.
    ///
    /// # Errors
    /// The file cannot be read, or has another form.
    pub fn of_user(file: Option<&Path>) -> Result<Self, CredentialError> {
        let default = || default_file(|name| env::var_os(name));
        let path = file.map(Path::to_owned).or_else(default);
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let failure = |source| CredentialError::File {
            file: path.clone(),
            source,
        };
        let text = match read(&path) {
            Ok(text) => text,
            Err(error) if file.is_none() && error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(failure(error)),
        };
        let document = Document::parse(path.display().to_string(), &text)?;
        Ok(Self {
            document: Some(document),
        })
    }

    /// Returns the credential of a registry, for a repository in it.
    ///
    /// # Errors
    /// The registry has an entry that cannot be used.
    pub(crate) fn of(
        &self,
        registry: &str,
        repository: &str,
    ) -> Result<Option<Secret>, CredentialError> {
        match &self.document {
            Some(document) => document.of(registry, repository),
            None => Ok(None),
        }
    }
}

/// Returns Docker's file. A variable that is empty counts as missing, because the file would be one of the current directory otherwise.
fn default_file(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name| variable(name).filter(|value| !value.is_empty());
    let docker = folder("DOCKER_CONFIG").map(PathBuf::from);
    let home = || folder("HOME").map(|home| Path::new(&home).join(".docker"));
    Some(docker.or_else(home)?.join("config.json"))
}

fn read(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::new());
    regular_file::read(path, MAX_BYTES, &mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_variables_do_not_name_the_current_directory() {
        for (docker, home, expected) in [
            (Some("/d"), Some("/h"), Some("/d/config.json")),
            (Some(""), Some("/h"), Some("/h/.docker/config.json")),
            (None, Some("/h"), Some("/h/.docker/config.json")),
            (Some(""), Some(""), None),
            (None, None, None),
        ] {
            let variable = |name: &str| match name {
                "DOCKER_CONFIG" => docker.map(OsString::from),
                _ => home.map(OsString::from),
            };
            let found = default_file(variable);
            assert_eq!(
                found.as_deref(),
                expected.map(Path::new),
                "{docker:?} {home:?}"
            );
        }
    }
}
