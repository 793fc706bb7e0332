//! MPI implementations of Debian, with the SSH server of the nodes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use super::{Installed, program};
use crate::{cache::Entry, kubelet::Image};

/// The home directory in the runtimes' images.
const HOME: &str = "/home/mpiuser";
/// The programs that all implementations need.
const SSH: [&str; 2] = ["/usr/bin/ssh", "/usr/sbin/sshd"];

/// An implementation.
pub(super) struct Mpi {
    name: &'static str,
    /// The suffix of its programs, because several implementations can be installed.
    suffix: &'static str,
    packages: &'static [&'static str],
    /// The packages with all that they depend on, as measured on Debian 12 with those of both implementations.
    size: &'static str,
    /// Settings for several pods on one machine.
    env: &'static [(&'static str, &'static str)],
}

impl Mpi {
    pub(super) const OPEN_MPI: Self = Self {
        name: "Open MPI",
        suffix: "openmpi",
        packages: &[
            "openmpi-bin",
            "libopenmpi-dev",
            "openssh-client",
            "openssh-server",
        ],
        size: "up to 45 MB to download, 215 MB on disk",
        // Each pod's daemon would assign the machine's cores as if it were alone.
        env: &[("OMPI_MCA_hwloc_base_binding_policy", "none")],
    };
    pub(super) const MPICH: Self = Self {
        name: "MPICH",
        suffix: "mpich",
        packages: &["mpich", "libmpich-dev", "openssh-client", "openssh-server"],
        size: "up to 45 MB to download, 215 MB on disk",
        env: &[],
    };

    pub(super) fn install(&self) -> Result<Installed> {
        if !self.is_installed() {
            self.install_packages()?;
        }
        let version = self.version()?;
        let summing = self.compile(&version)?;
        let image = Image::default()
            .file(program("mpi/passwd"), "/etc/passwd")
            .file(program("mpi/ssh_config"), "/etc/ssh/ssh_config")
            .file(program("mpi/sshd_config"), format!("{HOME}/.sshd_config"))
            .file(summing, format!("{HOME}/sum"));
        let image = self
            .env
            .iter()
            .fold(image, |image, (name, value)| image.env(*name, *value));
        Ok(Installed {
            version,
            image,
            command: vec![self.of("mpirun"), format!("{HOME}/sum")],
        })
    }

    /// Returns the name of one of its programs.
    fn of(&self, program: &str) -> String {
        format!("{program}.{}", self.suffix)
    }

    fn is_installed(&self) -> bool {
        let programs = ["mpirun", "mpicc"].map(|name| format!("/usr/bin/{}", self.of(name)));
        let mut all = programs.iter().map(String::as_str).chain(SSH);
        all.all(|program| Path::new(program).is_file())
    }

    fn install_packages(&self) -> Result<()> {
        let (name, size, packages) = (self.name, self.size, self.packages.join(" "));
        let by_hand = || format!("{name} is missing; as root, run apt-get install {packages}");
        println!("installing {name} with apt-get: {packages}: {size}");
        let apt = |args: &[&str]| -> Result<()> {
            let mut command = Command::new("apt-get");
            command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
            let output = command.output().with_context(by_hand)?;
            let printed = String::from_utf8_lossy(&output.stderr).into_owned();
            ensure!(
                output.status.success(),
                "{}: apt-get {}: {}",
                by_hand(),
                args.join(" "),
                printed.trim()
            );
            Ok(())
        };
        apt(&["-q", "update"])?;
        let install = ["-q", "-y", "--no-install-recommends", "install"];
        apt(&[&install, self.packages].concat())
    }

    fn version(&self) -> Result<String> {
        let asked = Command::new(self.of("mpirun")).arg("--version").output()?;
        let printed = String::from_utf8_lossy(&asked.stdout).into_owned();
        let is_version = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
        let version = printed.split_whitespace().find(is_version);
        let version =
            version.with_context(|| format!("{} printed no version", self.of("mpirun")))?;
        Ok(format!("{} {version}", self.name))
    }

    /// Returns the program that sums the ranks, which is compiled if it is not in the cache.
    fn compile(&self, version: &str) -> Result<PathBuf> {
        let source = program("mpi/sum.c");
        let name = format!("framework-{}", self.suffix);
        let entry = Entry::of(&name, std::slice::from_ref(&source), version)?;
        let compiled = entry.folder.join("sum");
        let _lock = entry.lock()?;
        if !compiled.is_file() {
            let scratch = entry.folder.join(".compiling");
            let mut mpicc = Command::new(self.of("mpicc"));
            let output = mpicc.arg("-o").arg(&scratch).arg(&source).output()?;
            ensure!(
                output.status.success(),
                "{}: {}",
                self.of("mpicc"),
                String::from_utf8_lossy(&output.stderr).trim()
            );
            fs::rename(&scratch, &compiled)?;
        }
        Ok(compiled)
    }
}
