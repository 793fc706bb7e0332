//! Where the binaries of the control plane come from: a folder of the caller's, or built from their published Go modules.

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};
use std::env;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
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
        if let Some(folder) = env::var_os(ASSETS).filter(|folder| !folder.is_empty()) {
            let binaries = Self {
                folder: PathBuf::from(folder),
            };
            if let Some((name, _)) = binaries.missing().next() {
                bail!(
                    "{ASSETS} is {}, which holds no {name}: put it there, or unset {ASSETS} to have it built",
                    binaries.folder.display()
                );
            }
            return Ok(binaries);
        }
        let root = cache_folder("control-plane")?;
        let key = key(&go_version()?)?;
        let binaries = Self {
            folder: root.join(&key),
        };
        if binaries.missing().next().is_some() {
            let lock = File::create(root.join(format!("{key}.lock")))?;
            lock.lock().context("cannot lock the cache")?;
            binaries.build(&root)?;
        }
        Ok(binaries)
    }

    /// Where a binary of the control plane is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn missing(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        PACKAGES
            .into_iter()
            .filter(|(name, _)| !self.path(name).is_file())
    }

    fn build(&self, root: &Path) -> Result<()> {
        let scratch = tempfile::Builder::new()
            .prefix(".building-")
            .tempdir_in(root)?;
        fs::create_dir_all(&self.folder)?;
        for (name, package) in self.missing() {
            say(&format!(
                "building {name} from {package}, once, into {} (takes minutes)",
                self.folder.display()
            ));
            let started = Instant::now();
            let built = scratch.path().join(name);
            go_build(package, &built)?;
            fs::rename(&built, self.path(name))?;
            say(&format!(
                "built {name} in {} s",
                started.elapsed().as_secs()
            ));
        }
        Ok(())
    }
}

/// The folder of that name in the user's cache folder, made if it is not there.
///
/// # Errors
/// Neither `XDG_CACHE_HOME` nor `HOME` is set, or the folder cannot be made.
pub fn cache_folder(name: &str) -> Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    let base = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| Path::new(&home).join(".cache")))
        .context("set XDG_CACHE_HOME or HOME: the built binaries are kept in a cache")?;
    let folder = base.join("trainyard").join(name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// What the built binaries depend on, as one short word.
fn key(go_version: &str) -> Result<String> {
    let mut digest = Sha256::new();
    for file in ["go.mod", "go.sum"] {
        let path = Path::new(TOOLS).join(file);
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(&text);
    }
    digest.update(format!(
        "{go_version} {} {}",
        env::consts::OS,
        env::consts::ARCH
    ));
    let digest = digest.finalize();
    Ok(digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn go_version() -> Result<String> {
    let go = Command::new("go")
        .args(["env", "GOVERSION"])
        .current_dir(TOOLS)
        .output();
    let output = match go {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "Go is missing: install Go 1.26 or newer, from which etcd and kube-apiserver are built, \
             or name a folder that holds both in {ASSETS}"
        ),
        Err(error) => return Err(error).context("cannot run go"),
    };
    ensure!(
        output.status.success(),
        "`go env GOVERSION` failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn go_build(package: &str, to: &Path) -> Result<()> {
    let output = Command::new("go")
        .args(["build", "-trimpath", "-ldflags", "-s -w", "-o"])
        .arg(to)
        .arg(package)
        .current_dir(TOOLS)
        .env("CGO_ENABLED", "0")
        .output()
        .context("cannot run go")?;
    ensure!(
        output.status.success(),
        "`go build {package}` in {TOOLS} failed:\n{}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

/// Past the capture of a test's output: who waits for minutes sees why.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
