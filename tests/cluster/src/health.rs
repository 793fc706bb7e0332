//! Checks whether a server is ready.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use http::Request;
use kube::{Client, Config};

/// The timeout for a server to become ready.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// Returns a client without credentials for the health endpoint of a server on the loopback address.
pub(crate) fn client(server: &str, authority: &[u8]) -> Result<Client> {
    let mut config = Config::new(server.parse()?);
    config.root_cert = Some(vec![authority.to_vec()]);
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// Waits until the server reports at this path that it is ready. Fails as soon as its process exits.
pub(crate) async fn wait(
    name: &str,
    client: &Client,
    path: &str,
    still_runs: impl Fn() -> Result<()>,
) -> Result<()> {
    let deadline = Instant::now() + READY_WITHIN;
    loop {
        let asked = client
            .request_text(Request::get(path).body(Vec::new())?)
            .await;
        let Err(state) = asked else {
            return Ok(());
        };
        still_runs().with_context(|| format!("{name} did not start"))?;
        if Instant::now() > deadline {
            bail!(
                "{name} is not ready after {} s: {state}",
                READY_WITHIN.as_secs()
            );
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
