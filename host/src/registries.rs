//! The client of registries that commands use.

use std::sync::Arc;

use trainyard_oci::{Client, Credentials, Https, Limits, Registries};
use trainyard_sandbox::LoadLimits;

use crate::{args::RegistryArgs, report::ErrorList};

/// Runs what asks registries.
pub(crate) fn block_on<T>(task: impl Future<Output = T>) -> Result<T, ErrorList> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(task);
    // A credential helper may still run in a thread of the runtime, for which nobody waits any more.
    runtime.shutdown_background();
    Ok(done)
}

impl RegistryArgs {
    /// Runs what a command does with registries.
    pub(crate) fn run<T>(
        &self,
        command: impl AsyncFnOnce(Client) -> Result<T, ErrorList>,
    ) -> Result<T, ErrorList> {
        let client = self.client()?;
        block_on(command(client))?
    }

    /// Returns the client, with the credentials and authorities that the files have now.
    pub(crate) fn client(&self) -> Result<Client, ErrorList> {
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
