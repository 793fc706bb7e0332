//! The pods, each with a command, on one network.

use std::{
    fs,
    net::Ipv4Addr,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use trainyard_pods::{HostsFile, Machine, PodSpec};

use crate::rendered::{DOMAIN, Pod};

/// A running pod.
pub(crate) struct Running {
    pub(crate) pod: Pod,
    process: Child,
    sandbox: trainyard_pods::Pod,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Starts the pods, each with a command.
pub(crate) fn start(
    machine: &Machine,
    pods: &[Pod],
    folder: &Path,
    command: impl Fn(&Pod) -> (String, Vec<String>),
) -> Vec<Running> {
    let named: Vec<_> = (1..)
        .zip(pods)
        .map(|(at, pod)| (pod, Ipv4Addr::new(10, 9, 0, at)))
        .collect();
    let start = |(pod, address): &(&Pod, Ipv4Addr)| {
        let file = |what: &str| folder.join(format!("{}.{what}", pod.name));
        let hosts = HostsFile::create(file("hosts"), hosts(pod, &named)).unwrap();
        let spec = PodSpec {
            host_name: pod.host_name(),
            address: *address,
            hosts: hosts.path(),
        };
        let sandbox = machine.start_pod(&spec).unwrap();
        let (program, args) = command(pod);
        let mut command = sandbox.enter();
        let command = command.arg(program).args(args).stdin(Stdio::null());
        let log = fs::File::create(file("log")).unwrap();
        Running {
            process: command.stderr(log).spawn().unwrap(),
            pod: (*pod).clone(),
            sandbox,
        }
    };
    named.iter().map(start).collect()
}

/// Returns the names that a pod resolves: its own, as the kubelet writes it, and those of all pods, as in DNS.
fn hosts(pod: &Pod, all: &[(&Pod, Ipv4Addr)]) -> String {
    let mut hosts = "127.0.0.1 localhost\n".to_owned();
    for (other, address) in all {
        let name = &other.name;
        let is_itself = *name == pod.name;
        if is_itself && pod.is_on_its_machine {
            hosts += &format!("{address} {}\n", pod.host_name());
        } else if is_itself {
            hosts += &format!("{address} {name}.{DOMAIN} {name}\n");
        }
        // The domain of the pods' namespace is always searched.
        hosts += &format!("{address} {name}.{DOMAIN} {name}.llm\n");
        if pod.searches_pods {
            hosts += &format!("{address} {name}\n");
        }
    }
    hosts
}

impl Running {
    /// Returns a command that runs in the pod.
    pub(crate) fn enter(&self) -> Command {
        self.sandbox.enter()
    }

    /// Waits until its SSH server answers another pod.
    pub(crate) fn wait_for_ssh(&self, other: &Self, log: &Path) {
        let connect = format!("echo > /dev/tcp/{}/22", self.sandbox.address());
        wait(
            || succeeds(other.enter().args(["bash", "-c", &connect])),
            log,
        );
    }
}

fn wait(mut is_so: impl FnMut() -> bool, log: &Path) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        let log = || fs::read_to_string(log).unwrap_or_default();
        assert!(Instant::now() < end, "a pod does not start: {}", log());
        thread::sleep(Duration::from_millis(20));
    }
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = quiet.stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
