//! Where the binaries of the control plane come from: a folder of the caller's, or built from their published Go modules.

use crate::cache::Entry;
use crate::go;
use anyhow::{Result, bail};
use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The environment's name for a folder that holds the binaries, as other projects of the field have it.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// The tools module: it names what is built, and of which version.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tools");

/// Each binary, and the package of the tools module that it is built from.
const PACKAGES: [(&str, &str); 2] = [
    ("etcd", "go.etcd.io/etcd/server/v3"),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
];

/// A folder that holds every binary of the control plane.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// Takes the folder that `KUBEBUILDER_ASSETS` names, or else the one in the cache, building what is not there yet.
    ///
    /// A build takes minutes and says so on standard error. Two that start at once build once; one that is ended leaves
    /// nothing that a later one would take for whole.
    ///
    /// # Errors
    /// A binary that the named folder lacks; no Go, or one that is too old; what the build said when it failed.
    pub fn find_or_build() -> Result<Self> {
        match env::var_os(ASSETS).filter(|folder| !folder.is_empty()) {
            Some(folder) => Self::find(PathBuf::from(folder)),
            None => Self::build(),
        }
    }

    /// Where a binary of the control plane is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn find(folder: PathBuf) -> Result<Self> {
        let binaries = Self { folder };
        if let Some((name, _)) = binaries.missing().next() {
            bail!(
                "{ASSETS} is {}, which holds no {name}: put it there, or unset {ASSETS} to have it built",
                binaries.folder.display()
            );
        }
        Ok(binaries)
    }

    fn build() -> Result<Self> {
        let tools = Path::new(TOOLS);
        let files = [tools.join("go.mod"), tools.join("go.sum")];
        let entry = Entry::of("control-plane", &files, &go::version()?)?;
        let binaries = Self {
            folder: entry.folder.clone(),
        };
        if binaries.missing().next().is_none() {
            return Ok(binaries);
        }
        let _lock = entry.lock()?;
        let scratch = tempfile::Builder::new()
            .prefix(".building-")
            .tempdir_in(&binaries.folder)?;
        for (name, package) in binaries.missing() {
            say(&format!(
                "building {name} from {package}, once, into {} (takes minutes)",
                binaries.folder.display()
            ));
            let started = Instant::now();
            let built = scratch.path().join(name);
            go::build(tools, package, &built)?;
            fs::rename(&built, binaries.path(name))?;
            say(&format!(
                "built {name} in {} s",
                started.elapsed().as_secs()
            ));
        }
        Ok(binaries)
    }

    fn missing(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        PACKAGES
            .into_iter()
            .filter(|(name, _)| !self.path(name).is_file())
    }
}

/// Past the capture of a test's output: who waits for minutes sees why.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
