//! A registry of plugins, built from the module of CNCF's distribution.

use std::{
    fs,
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Result, bail};
use serde_json::json;

use crate::{
    certificates::Certificates,
    go,
    ports::Port,
    process::Process,
    wait::{PAUSE, WITHIN},
};

/// The module with the version of the registry.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/registry");
const PACKAGE: &str = "github.com/distribution/distribution/v3/cmd/registry";

/// A registry in a process, which listens on this machine until this value is dropped.
#[derive(Debug)]
pub struct PluginRegistry {
    process: Process,
    port: Port,
    authority: PathBuf,
}

/// Who may use a registry, and how it is reached.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegistryOptions<'o> {
    /// A line of htpasswd with bcrypt. Without it, everybody may do everything.
    pub htpasswd: Option<&'o str>,
    /// Whether it serves TLS, with a certificate of its own authority.
    pub tls: bool,
}

impl PluginRegistry {
    /// Starts an empty registry in a folder.
    ///
    /// # Errors
    /// Go is missing, the build failed, or the registry does not start.
    pub fn start(folder: &Path, options: RegistryOptions<'_>) -> Result<Self> {
        let program = go::program("registry", Path::new(MODULE), PACKAGE)?;
        let certificates = Certificates::make(folder)?;
        let serving = certificates.serving();
        let port = Port::find()?;
        let address = format!("127.0.0.1:{}", port.number());
        let tls = options.tls.then(|| {
            let (certificate, key) = (serving.join("tls.crt"), serving.join("tls.key"));
            json!({"certificate": certificate, "key": key})
        });
        let passwords = folder.join("htpasswd");
        fs::write(&passwords, options.htpasswd.unwrap_or_default())?;
        let is_open = options.htpasswd.is_none();
        let auth = json!({"htpasswd": {"realm": "test", "path": passwords}});
        let config = json!({
            "version": "0.1",
            "log": {"level": "error"},
            "storage": {"filesystem": {"rootdirectory": folder.join("storage")}},
            "http": {"addr": address, "tls": tls.unwrap_or_else(|| json!({}))},
            "auth": if is_open { json!({}) } else { auth },
        });
        let file = folder.join("registry.yaml");
        // JSON is YAML.
        fs::write(&file, config.to_string())?;
        let mut command = Command::new(program);
        command
            .arg("serve")
            .arg(&file)
            .env("OTEL_TRACES_EXPORTER", "none");
        let registry = Self {
            process: Process::start("registry", &command, folder)?,
            port,
            authority: serving.join("ca.crt"),
        };
        registry.wait()?;
        Ok(registry)
    }

    /// Waits until it listens.
    fn wait(&self) -> Result<()> {
        let deadline = Instant::now() + WITHIN;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port.number())).is_err() {
            self.process.still_runs()?;
            if Instant::now() > deadline {
                bail!(
                    "the registry does not listen\n{}",
                    self.process.last_words()
                );
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Returns its host and port.
    #[must_use]
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port.number())
    }

    /// Returns the certificate of its authority.
    #[must_use]
    pub fn authority(&self) -> &Path {
        &self.authority
    }

    /// Ends it. Its content stays in the folder.
    ///
    /// # Errors
    /// The process does not exist.
    pub fn stop(&self) -> Result<()> {
        self.process.kill()?;
        Ok(())
    }
}
