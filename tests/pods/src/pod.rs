//! The namespaces of one pod.

use std::{net::Ipv4Addr, path::Path, process::Command};

use anyhow::{Context as _, Result};

use crate::{
    process::Shell,
    rights::{Rights, enter},
};

/// Sets up a pod: its host name, `/etc/hosts` and shared memory. A name that is not in `/etc/hosts` is unknown at once: the servers of this
/// machine can't be reached from the pod, and asking them would take half a minute.
const BEGIN: &str = r#"
set -e
hostname "$1"
ip link set lo up
mount --bind "$2" /etc/hosts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
echo 'nameserver 127.0.0.1' > /dev/shm/resolv.conf
mount --bind /dev/shm/resolv.conf /etc/resolv.conf
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
echo ready
read -r _
"#;

/// The namespaces of a container that belong to its pod.
const NAMESPACES: [&str; 5] = ["--mount", "--net", "--uts", "--ipc", "--pid"];

/// The specification of a pod.
#[derive(Clone, Copy, Debug)]
pub struct PodSpec<'a> {
    /// Its host name.
    pub host_name: &'a str,
    /// Its address, in 10.0.0.0/8.
    pub address: Ipv4Addr,
    /// Its `/etc/hosts`, which it sees when it is [written in place](crate::HostsFile).
    pub hosts: &'a Path,
}

/// A running pod. Dropping it kills all its processes.
#[derive(Debug)]
pub struct Pod {
    shell: Shell,
    rights: Rights,
    address: Ipv4Addr,
}

impl Pod {
    pub(crate) fn start(machine: &mut Command, rights: Rights, spec: &PodSpec<'_>) -> Result<Self> {
        let new = ["--mount", "--net", "--uts", "--ipc", "--pid"];
        let started = machine
            .arg("unshare")
            .args(new)
            .args(["--fork", "--kill-child", "--mount-proc"])
            .args(["sh", "-c", BEGIN, "pod", spec.host_name])
            .arg(spec.hosts);
        let shell = Shell::start(started, 2)
            .with_context(|| format!("cannot start the pod {}", spec.host_name))?;
        Ok(Self {
            shell,
            rights,
            address: spec.address,
        })
    }

    /// Returns its address.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Returns a command that runs its arguments in the pod, with the environment of this program or the command.
    pub fn enter(&self) -> Command {
        enter(self.rights, self.pid(), &NAMESPACES)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.shell.pid
    }
}
