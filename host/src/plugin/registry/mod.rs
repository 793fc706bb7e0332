//! The commands of `trainyard plugin` that use registries: `push`, `pull` and `copy`, and how they connect.

mod copy;
mod pull;
mod push;

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use trainyard_oci::{Client, Credentials, Https, Limits, Location, Registries};
use trainyard_sandbox::LoadLimits;

pub(super) use self::{
    copy::{CopyArgs, run as copy},
    pull::{PullArgs, run as pull},
    push::{PushArgs, run as push},
};
use crate::{args, report::ErrorList};

/// How registries are reached.
#[derive(Debug, Args)]
pub(crate) struct RegistryArgs {
    /// The credentials of registries, as `docker login` writes them [default: config.json in $DOCKER_CONFIG or ~/.docker].
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    registry_config: Option<PathBuf>,
    /// The mirrors of registries, and their certificate authorities, in the form of registries.yaml of k3s.
    #[arg(long, value_name = "FILE", env = "TRAINYARD_REGISTRIES", value_hint = clap::ValueHint::FilePath)]
    registries: Option<PathBuf>,
    /// A file of certificate authorities in PEM, which are trusted in addition to those of this machine. Can be repeated.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    ca_file: Vec<PathBuf>,
    /// Connect without TLS, which lets the network read and change everything. Registries on localhost need no flag.
    #[arg(long)]
    plain_http: bool,
    /// The maximum time for the whole transfer, such as `10m`.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = args::timeout)]
    registry_timeout: Duration,
}

impl RegistryArgs {
    /// Runs what a command does with registries.
    pub(crate) fn run<T>(
        &self,
        command: impl AsyncFnOnce(Client) -> Result<T, ErrorList>,
    ) -> Result<T, ErrorList> {
        let client = self.client()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let done = runtime.block_on(command(client));
        // A credential helper may still run in a thread of the runtime, for which nobody waits any more.
        runtime.shutdown_background();
        done
    }

    /// Returns the flags that are set.
    pub(crate) fn set(&self) -> Vec<(&'static str, String)> {
        let path = |flag: &'static str, path: &PathBuf| (flag, path.display().to_string());
        let config = self.registry_config.iter();
        let config = config.map(|file| path("--registry-config", file));
        let registries = self.registries.iter();
        let registries = registries.map(|file| path("--registries", file));
        let authorities = self.ca_file.iter().map(|file| path("--ca-file", file));
        let plain = self.plain_http.then(|| ("--plain-http", "true".to_owned()));
        config
            .chain(registries)
            .chain(authorities)
            .chain(plain)
            .collect()
    }

    fn client(&self) -> Result<Client, ErrorList> {
        let registries = match &self.registries {
            Some(file) => Registries::read(file).map_err(ErrorList::from_iter)?,
            None => Registries::default(),
        };
        let credentials = Credentials::of_user(self.registry_config.as_deref());
        let credentials = credentials.map_err(|error| ErrorList::from_iter([error.to_string()]))?;
        let limits = Limits {
            file_bytes: LoadLimits::default().bytes,
            total: self.registry_timeout,
            ..Limits::default()
        };
        let https = Https::new(&registries, &self.ca_file, limits.answer);
        let https = https.map_err(|error| ErrorList::from_iter([error.to_string()]))?;
        Ok(Client::new(
            Arc::new(https),
            credentials,
            registries,
            limits,
            self.plain_http,
        ))
    }
}

/// Parses the reference of a plugin in a registry or a folder.
pub(super) fn location(text: &str) -> Result<Location, String> {
    text.parse::<Location>().map_err(|error| error.to_string())
}
