//! The binaries of a cluster, from a given folder or built from their published Go modules.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result, bail};

use crate::{cache::Entry, go};

/// The environment variable for a folder with the binaries, as in controller-runtime's envtest.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// The tools module, which has the packages and versions to build.
pub(crate) const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tools");

/// The module with the version of Kubernetes, and the variable in which its programs say it. Helm compares it with what a chart supports.
const KUBERNETES: &str = "k8s.io/kubernetes";
const VERSION: &str = "k8s.io/component-base/version.gitVersion";

/// The module whose manifests are installed with its binary, and their folder in it.
const JOBSET: (&str, &str) = ("sigs.k8s.io/jobset", "config/components");
/// The folder of those manifests in the cache.
const MANIFESTS: &str = "jobset-manifests";
/// The paths of the manifests in both folders.
const MANIFEST_FILES: [&str; 4] = [
    "crd/bases/jobset.x-k8s.io_jobsets.yaml",
    "webhook/manifests.yaml",
    "webhook/patches/mutating-patch.yaml",
    "webhook/patches/validating-patch.yaml",
];

/// A program of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its usual name, in folders and logs.
    pub(crate) name: &'static str,
    /// The package from which it is built.
    package: &'static str,
    /// The name of the binary that Go builds.
    built: &'static str,
}

pub(crate) const ETCD: Program = Program {
    name: "etcd",
    package: "go.etcd.io/etcd/server/v3",
    built: "server",
};
pub(crate) const API_SERVER: Program = Program {
    name: "kube-apiserver",
    package: "k8s.io/kubernetes/cmd/kube-apiserver",
    built: "kube-apiserver",
};
pub(crate) const CONTROLLER_MANAGER: Program = Program {
    name: "kube-controller-manager",
    package: "k8s.io/kubernetes/cmd/kube-controller-manager",
    built: "kube-controller-manager",
};
pub(crate) const SCHEDULER: Program = Program {
    name: "kube-scheduler",
    package: "k8s.io/kubernetes/cmd/kube-scheduler",
    built: "kube-scheduler",
};
pub(crate) const JOBSET_CONTROLLER: Program = Program {
    name: "jobset-controller",
    package: "sigs.k8s.io/jobset",
    built: "jobset",
};

/// The programs of a control plane.
const CONTROL_PLANE: &[Program] = &[ETCD, API_SERVER];
/// The programs that run JobSets.
const CONTROLLERS: &[Program] = &[CONTROLLER_MANAGER, SCHEDULER, JOBSET_CONTROLLER];

/// The programs that a folder of the cache must contain.
#[derive(Clone, Debug)]
struct Wanted {
    programs: Vec<Program>,
    manifests: bool,
}

/// The folders of the programs.
#[derive(Clone, Debug)]
pub(crate) struct Binaries {
    /// A program is in the caller's folder if it is there, and otherwise in the cache.
    assets: Option<PathBuf>,
    cache: PathBuf,
}

impl Binaries {
    /// Returns etcd and kube-apiserver, from the folder that `KUBEBUILDER_ASSETS` names, or else from the cache, where they are built
    /// if they are missing.
    ///
    /// A build takes minutes, and prints a line on standard error. Concurrent processes build once. An interrupted build leaves no
    /// incomplete entry in the cache.
    ///
    /// # Errors
    /// The named folder lacks a binary, Go is missing or too old, or the build failed.
    pub(crate) fn of_a_control_plane() -> Result<Self> {
        let programs = CONTROL_PLANE.to_vec();
        match assets()? {
            Some(assets) => Ok(Self {
                cache: assets.clone(),
                assets: Some(assets),
            }),
            None => Self::build(
                None,
                &Wanted {
                    programs,
                    manifests: false,
                },
            ),
        }
    }

    /// Returns the programs of [`Self::of_a_control_plane`] and those that run JobSets. Programs that the named folder lacks are built.
    ///
    /// # Errors
    /// See [`Self::of_a_control_plane`].
    pub(crate) fn of_a_cluster() -> Result<Self> {
        let assets = assets()?;
        let mut programs = [CONTROL_PLANE, CONTROLLERS].concat();
        if let Some(assets) = &assets {
            programs = missing(assets, &programs);
        }
        Self::build(
            assets,
            &Wanted {
                programs,
                manifests: true,
            },
        )
    }

    /// Returns the path of a program.
    pub(crate) fn path(&self, program: Program) -> PathBuf {
        let given = self
            .assets
            .as_ref()
            .map(|assets| assets.join(program.name))
            .filter(|path| path.is_file());
        given.unwrap_or_else(|| self.cache.join(program.name))
    }

    /// Returns the text of one of JobSet's manifests, by its path below `config/components` of its module.
    pub(crate) fn jobset_manifest(&self, path: &str) -> Result<String> {
        let path = self.cache.join(MANIFESTS).join(path);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    fn build(assets: Option<PathBuf>, wanted: &Wanted) -> Result<Self> {
        let tools = Path::new(TOOLS);
        let files = [tools.join("go.mod"), tools.join("go.sum")];
        let tool = format!("{} {VERSION}", go::version()?);
        let entry = Entry::of("control-plane", &files, &tool)?;
        let missing = wanted.missing(&entry.folder);
        if !missing.programs.is_empty() || missing.manifests {
            let _lock = entry.lock()?;
            wanted.missing(&entry.folder).build(tools, &entry.folder)?;
        }
        Ok(Self {
            assets,
            cache: entry.folder,
        })
    }
}

impl Wanted {
    fn missing(&self, folder: &Path) -> Self {
        Self {
            programs: missing(folder, &self.programs),
            manifests: self.manifests && !folder.join(MANIFESTS).is_dir(),
        }
    }

    /// Builds all programs at once, because they share most of their packages.
    fn build(&self, tools: &Path, folder: &Path) -> Result<()> {
        let scratch = tempfile::Builder::new()
            .prefix(".building-")
            .tempdir_in(folder)?;
        if self.manifests {
            let manifests = scratch.path().join(MANIFESTS);
            copy_manifests(&go::source(tools, JOBSET.0)?.join(JOBSET.1), &manifests)?;
            fs::rename(manifests, folder.join(MANIFESTS))?;
        }
        if self.programs.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.programs.iter().map(|program| program.name).collect();
        let names = names.join(", ");
        say(&format!(
            "building {names} from their Go modules, once, into {} (takes minutes)",
            folder.display()
        ));
        let started = Instant::now();
        let packages: Vec<&str> = self
            .programs
            .iter()
            .map(|program| program.package)
            .collect();
        // It must exist: for one package, Go would write a file of that name.
        let built = scratch.path().join("built");
        fs::create_dir(&built)?;
        let version = go::about(tools, KUBERNETES, "{{.Version}}")?;
        go::build_with(tools, &packages, &format!("{VERSION}={version}"), &built)?;
        for program in &self.programs {
            fs::rename(built.join(program.built), folder.join(program.name))?;
        }
        say(&format!("built them in {} s", started.elapsed().as_secs()));
        Ok(())
    }
}

/// Returns the caller's folder, which must contain the programs of a control plane.
fn assets() -> Result<Option<PathBuf>> {
    let Some(folder) = env::var_os(ASSETS).filter(|folder| !folder.is_empty()) else {
        return Ok(None);
    };
    let folder = PathBuf::from(folder);
    if let Some(program) = missing(&folder, CONTROL_PLANE).first() {
        bail!(
            "{ASSETS} is {}, which has no {}; put it there, or unset {ASSETS} to build it",
            folder.display(),
            program.name
        );
    }
    Ok(Some(folder))
}

fn missing(folder: &Path, wanted: &[Program]) -> Vec<Program> {
    let is_missing = |program: &&Program| !folder.join(program.name).is_file();
    wanted.iter().filter(is_missing).copied().collect()
}

fn copy_manifests(from: &Path, to: &Path) -> Result<()> {
    for file in MANIFEST_FILES {
        let text =
            fs::read(from.join(file)).with_context(|| format!("{} of {}", file, from.display()))?;
        let path = to.join(file);
        fs::create_dir_all(path.parent().context("the path has no parent folder")?)?;
        fs::write(path, text)?;
    }
    Ok(())
}

/// Prints a line past the capture of a test's output, because the user waits for minutes.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
