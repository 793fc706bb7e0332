//! Linux namespaces as pods, and their network.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::rendered::{DOMAIN, Pod};

/// The script that sets up a pod: its host name, `/etc/hosts` and shared memory.
const BEGIN: &str = r#"
set -e
hostname "$1"
ip link set lo up
mount --bind "$2" /etc/hosts
mount -t tmpfs none /dev/shm
touch "$3"
shift 3
exec "$@"
"#;

/// A running pod.
pub(crate) struct Running {
    pub(crate) pod: Pod,
    process: Child,
    address: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Returns whether this user can create namespaces and has the programs for it.
pub(crate) fn can_be_made() -> bool {
    let mut tried = Command::new("unshare");
    tried.args(["--mount", "--net", "--uts", "ip", "link", "set", "lo", "up"]);
    succeeds(&mut tried) && succeeds(Command::new("nsenter").arg("--version"))
}

/// Starts the pods, each with a command, and connects them by a bridge in the first one.
pub(crate) fn start(
    pods: &[Pod],
    folder: &Path,
    command: impl Fn(&Pod) -> (String, Vec<String>),
) -> Vec<Running> {
    let named: Vec<_> = (1..)
        .zip(pods)
        .map(|(at, pod)| (pod, format!("10.9.0.{at}")))
        .collect();
    let running: Vec<_> = named
        .iter()
        .map(|(pod, address)| {
            let file = |what: &str| folder.join(format!("{}.{what}", pod.name));
            fs::write(file("hosts"), hosts(pod, &named)).unwrap();
            let (program, args) = command(pod);
            let process = Command::new("unshare")
                .args(["--mount", "--net", "--uts", "bash", "-c", BEGIN, "pod"])
                .arg(pod.host_name())
                .args([file("hosts"), file("ready")])
                .arg(program)
                .args(args)
                .stdin(Stdio::null())
                .stderr(fs::File::create(file("log")).unwrap())
                .spawn()
                .unwrap();
            wait(|| file("ready").exists(), &file("log"));
            Running {
                pod: (*pod).clone(),
                process,
                address: address.clone(),
            }
        })
        .collect();
    connect(&running);
    running
}

/// Returns the names that a pod resolves: its own, as the kubelet writes it, and those of all pods, as in DNS.
fn hosts(pod: &Pod, all: &[(&Pod, String)]) -> String {
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

fn connect(running: &[Running]) {
    let [first, others @ ..] = running else {
        return;
    };
    let ip = |pod: &Running, args: &str| {
        let made = succeeds(pod.enter().arg("ip").args(args.split(' ')));
        assert!(made, "{}: ip {args}", pod.pod.name);
    };
    ip(first, "link add name eth0 type bridge");
    for (at, other) in others.iter().enumerate() {
        let pid = other.process.id();
        ip(
            first,
            &format!("link add name pod{at} type veth peer name eth0 netns {pid}"),
        );
        ip(first, &format!("link set pod{at} master eth0 up"));
    }
    for pod in running {
        ip(pod, &format!("addr add {}/24 dev eth0", pod.address));
        ip(pod, "link set eth0 up");
    }
}

impl Running {
    /// Returns a command that runs in the pod.
    pub(crate) fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        let pid = self.process.id().to_string();
        command.args(["--target", &pid, "--mount", "--net", "--uts"]);
        command
    }

    /// Waits until its SSH server answers another pod.
    pub(crate) fn wait_for_ssh(&self, other: &Self, log: &Path) {
        let connect = format!("echo > /dev/tcp/{}/22", self.address);
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
