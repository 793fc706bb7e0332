//! The namespaces that the pods of a test program share.

use std::{
    net::Ipv4Addr,
    process::{Command, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    pod::{Pod, PodSpec},
    process::Shell,
    rights::{Rights, enter},
};

/// Makes the bridge of the pods, and waits until the test program ends.
const BEGIN: &str = "
set -e
ip link set lo up
ip link add name pods type bridge
ip link set pods up
echo ready
read -r _
";

/// The program that forwards the connections of pods.
const FORWARD: &str = include_str!("forward.py");

/// A network for pods, and a PID namespace: when this value is dropped or this program ends in any way, the kernel kills all their processes.
#[derive(Debug)]
pub struct Machine {
    shell: Mutex<Option<Shell>>,
    forwards: Mutex<Vec<Shell>>,
    pid: u32,
    rights: Rights,
    pods: AtomicU32,
}

impl Machine {
    /// Makes the namespaces, as root if this user is, or in a user namespace.
    ///
    /// # Errors
    /// This user may make neither, or a program is missing.
    pub fn start() -> Result<Self> {
        let as_root = Self::start_with(Rights::Root);
        as_root.or_else(|as_root| {
            Self::start_with(Rights::UserNamespaces).with_context(|| {
                format!("cannot create namespaces as this user ({as_root:#}), nor a user namespace")
            })
        })
    }

    /// Makes the namespaces with these rights.
    ///
    /// # Errors
    /// This user does not have them, or a program is missing.
    pub fn start_with(rights: Rights) -> Result<Self> {
        let mut command = Command::new("unshare");
        if rights == Rights::UserNamespaces {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["--mount", "--net", "--pid", "--fork", "--kill-child"]);
        command.args(["sh", "-c", BEGIN]);
        let shell = Shell::start(&mut command, 1)?;
        Ok(Self {
            pid: shell.pid,
            shell: Mutex::new(Some(shell)),
            forwards: Mutex::default(),
            rights,
            pods: AtomicU32::new(0),
        })
    }

    /// Returns the rights with which it was made.
    pub fn rights(&self) -> Rights {
        self.rights
    }

    /// Starts a pod and connects it.
    ///
    /// # Errors
    /// A program failed: with what it printed.
    pub fn start_pod(&self, spec: &PodSpec<'_>) -> Result<Pod> {
        let mut enter = self.enter(self.pid, &["--net", "--pid"]);
        let pod = Pod::start(&mut enter, self.rights, spec)?;
        self.connect(&pod, spec)
            .with_context(|| format!("cannot connect the pod {}", spec.host_name))?;
        Ok(pod)
    }

    /// Makes a port of this machine's loopback interface reachable for pods at an address in 10.0.0.0/8, until the machine is stopped. This
    /// needs Python.
    ///
    /// # Errors
    /// A program failed: with what it printed.
    pub fn forward(&self, address: Ipv4Addr, port: u16) -> Result<()> {
        ip(
            self.enter(self.pid, &["--net"]),
            &format!("addr replace {address}/8 dev pods"),
        )?;
        let enter = self.enter(self.pid, &["--net"]);
        let mut forward = Command::new("python3");
        forward
            .args(["-c", FORWARD, &address.to_string(), &port.to_string()])
            .arg(enter.get_program())
            .args(enter.get_args());
        let shell = Shell::start(&mut forward, 0)
            .with_context(|| format!("cannot forward port {port} of this machine to pods"))?;
        let mut forwards = self.forwards.lock().unwrap_or_else(PoisonError::into_inner);
        forwards.push(shell);
        Ok(())
    }

    /// Kills all processes in all pods, and waits until they have exited.
    pub fn stop(&self) {
        let mut forwards = self.forwards.lock().unwrap_or_else(PoisonError::into_inner);
        forwards.clear();
        let mut shell = self.shell.lock().unwrap_or_else(PoisonError::into_inner);
        drop(shell.take());
    }

    fn connect(&self, pod: &Pod, spec: &PodSpec<'_>) -> Result<()> {
        let number = self.pods.fetch_add(1, Ordering::Relaxed);
        let (pid, address) = (pod.pid(), spec.address);
        let here = || self.enter(self.pid, &["--net"]);
        let there = || pod.enter();
        ip(
            here(),
            &format!("link add name pod{number} type veth peer name eth0 netns {pid}"),
        )?;
        ip(here(), &format!("link set pod{number} master pods up"))?;
        ip(there(), &format!("addr add {address}/8 dev eth0"))?;
        ip(there(), "link set eth0 up")
    }

    fn enter(&self, pid: u32, namespaces: &[&str]) -> Command {
        enter(self.rights, pid, namespaces)
    }
}

fn ip(mut enter: Command, args: &str) -> Result<()> {
    let command = enter.arg("ip").args(args.split(' '));
    let output = command.stdin(Stdio::null()).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {args}: {}", error.trim());
    Ok(())
}
