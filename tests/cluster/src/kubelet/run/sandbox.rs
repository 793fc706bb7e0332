//! Where the containers of a pod run: in namespaces, or on the loopback interface of this machine.

use std::{
    fs,
    io::Read as _,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    process::{Child as OsChild, Command, Stdio},
};

use trainyard_pods::{Child, Pod};

use super::{HOST, problem::Problem, script::Setup};

/// The library of Debian's package libnss-wrapper, which maps names for programs that use the C library.
const WRAPPER: &str = "libnss_wrapper.so";

/// Runs its arguments in the group of processes of this shell, and kills the group when they have exited, with the exit code in a file, or
/// when standard input closes.
const KEEPER: &str = r#"
exec 3<&0
code=$1
cd "$2"
shift 2
"$@" </dev/null 3<&- &
kept=$!
(read -r _ <&3; kill -9 0) &
wait "$kept"
echo $? > "$code"
kill -9 0
"#;

/// A pod without containers.
pub(super) enum Sandbox {
    Namespaces(Pod),
    Loopback(Loopback),
}

/// A pod on the loopback interface.
pub(super) struct Loopback {
    hosts: PathBuf,
    host_name: String,
}

/// Returns the address that a pod or node with this address has on the loopback interface.
pub(super) fn on_loopback(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(HOST) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V4(ip) => {
            let [_, b, c, d] = ip.octets();
            IpAddr::V4(Ipv4Addr::new(127, b, c, d))
        }
        IpAddr::V6(_) => ip,
    }
}

/// Returns whether the library that maps names can be loaded.
pub(super) fn names_can_be_mapped() -> bool {
    let mut tried = Command::new("true");
    let output = tried.env("LD_PRELOAD", WRAPPER).output();
    // The loader reports a missing library, and continues.
    output.is_ok_and(|output| output.stderr.is_empty())
}

impl Loopback {
    /// Returns a pod whose names are in a file.
    pub(super) fn new(hosts: PathBuf, host_name: String) -> Result<Self, Problem> {
        match names_can_be_mapped() {
            true => Ok(Self { hosts, host_name }),
            false => Err(Problem::Unsupported(format!(
                "this user can't create namespaces, and {WRAPPER} can't be loaded; run as root, or install libnss-wrapper"
            ))),
        }
    }

    /// Checks that a container needs no file system of its own.
    fn check(&self, setup: &Setup) -> Result<(), Problem> {
        let refused = |what: &str| {
            Err(Problem::Unsupported(format!(
                "this user can't create namespaces, so {what}; run as root"
            )))
        };
        let tokens = "/var/run/secrets/kubernetes.io/serviceaccount";
        let is_there = |from: &Path, to: &str| from == Path::new(to) || to == tokens;
        let mut binds = setup.binds.iter();
        if let Some(bind) = binds.find(|bind| !is_there(&bind.from, &bind.to)) {
            return refused(&format!("nothing can be mounted at {}", bind.to));
        }
        match &setup.user {
            Some(user) => refused(&format!("no container can have the user {}", user.id)),
            None => Ok(()),
        }
    }

    fn command(&self, setup: &Setup, folder: &Path) -> Command {
        let mut command = Command::new("setsid");
        command
            .args(["sh", "-c", KEEPER, "keeper"])
            .arg(folder.join("code"))
            .arg(&setup.working_dir)
            .args(["env", "-i"])
            .arg(format!("LD_PRELOAD={WRAPPER}"))
            .arg(format!("NSS_WRAPPER_HOSTS={}", self.hosts.display()))
            .arg(format!("NSS_WRAPPER_HOSTNAME={}", self.host_name))
            .args(
                setup
                    .env
                    .iter()
                    .map(|(name, value)| format!("{name}={value}")),
            )
            .args(&setup.command);
        command
    }
}

impl Sandbox {
    /// Starts a container, whose files are in an empty folder. Returns the command that waits for it, and the process ID of its first process.
    pub(super) fn start(
        &self,
        setup: &Setup,
        folder: &Path,
        output: fs::File,
    ) -> Result<(OsChild, Option<u32>), Problem> {
        fs::create_dir_all(folder).map_err(Problem::machine)?;
        let (mut command, depth) = match self {
            Self::Namespaces(pod) => {
                let script = folder.with_extension("sh");
                fs::write(&script, setup.script()).map_err(Problem::machine)?;
                let mut command = pod.enter();
                command
                    .args([
                        "unshare",
                        "--mount",
                        "--pid",
                        "--fork",
                        "--kill-child",
                        "sh",
                    ])
                    .args([&script, folder]);
                (command, 2)
            }
            Self::Loopback(loopback) => {
                loopback.check(setup)?;
                (loopback.command(setup, folder), 1)
            }
        };
        let both = output.try_clone().map_err(Problem::machine)?;
        command.stdin(Stdio::piped()).stdout(both).stderr(output);
        let child = command.spawn().map_err(Problem::machine)?;
        let pid = Child::of(&child, depth).ok().map(|child| child.pid);
        Ok((child, pid))
    }

    /// Returns the exit code of a container that was started with this folder and has exited.
    pub(super) fn exit_code(folder: &Path) -> Option<i32> {
        let mut code = String::new();
        let mut file = fs::File::open(folder.join("code")).ok()?;
        file.read_to_string(&mut code).ok()?;
        // It may be started again.
        fs::remove_file(folder.join("code")).ok()?;
        code.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use std::{thread, time::Duration};

    use super::*;
    use crate::kubelet::run::script::{Bind, User};

    /// Without libnss-wrapper there is nothing to test.
    fn loopback(folder: &Path) -> Option<Loopback> {
        let hosts = folder.join("hosts");
        fs::write(&hosts, "127.244.0.9\tother.llm\n").unwrap();
        let loopback = Loopback::new(hosts, "pod-0".to_owned());
        if loopback.is_err() {
            trainyard_pods::skip(
                "libnss-wrapper is not installed: `apt-get install libnss-wrapper`",
            );
        }
        loopback.ok()
    }

    fn until(what: &str, holds: impl Fn() -> bool) {
        let pause = Duration::from_millis(10);
        let mut pauses = std::iter::repeat_n(pause, 6000);
        while !holds() {
            let pause = pauses.next();
            thread::sleep(pause.unwrap_or_else(|| panic!("timed out waiting until {what}")));
        }
    }

    fn setup(script: &str) -> Setup {
        Setup {
            env: vec![("PATH".to_owned(), std::env::var("PATH").unwrap())],
            working_dir: "/".to_owned(),
            command: ["bash", "-c", script].map(str::to_owned).into(),
            ..Setup::default()
        }
    }

    #[test]
    fn loopback_maps_names_and_reports_the_exit_code() {
        let folder = tempfile::tempdir().unwrap();
        let Some(loopback) = loopback(folder.path()) else {
            return;
        };
        let log = folder.path().join("log");
        let script = "getent hosts other.llm; python3 -c 'import socket; print(socket.gethostname())'; exit 7";
        let output = fs::File::create(&log).unwrap();
        let pod = Sandbox::Loopback(loopback);
        let node = folder.path().join("node");
        let (mut child, _) = pod.start(&setup(script), &node, output).unwrap();
        let stdin = child.stdin.take();
        child.wait().unwrap();
        drop(stdin);
        assert_eq!(Sandbox::exit_code(&node), Some(7));
        let log = fs::read_to_string(log).unwrap();
        let words: Vec<_> = log.split_whitespace().collect();
        assert_eq!(words, ["127.244.0.9", "other.llm", "pod-0"]);
    }

    #[test]
    fn all_processes_end_with_a_container_on_loopback() {
        let folder = tempfile::tempdir().unwrap();
        let Some(loopback) = loopback(folder.path()) else {
            return;
        };
        let pod = Sandbox::Loopback(loopback);
        let output = fs::File::create(folder.path().join("log")).unwrap();
        let node = folder.path().join("node");
        let (mut child, _) = pod
            .start(
                &setup("sleep 1000 & echo $! > /dev/stderr; wait"),
                &node,
                output,
            )
            .unwrap();
        let log = || fs::read_to_string(folder.path().join("log")).unwrap();
        until("the container has started", || log().ends_with('\n'));
        // This closes its standard input.
        child.wait().unwrap();
        assert_eq!(Sandbox::exit_code(&node), None);
        let is_over = || {
            let state = fs::read_to_string(format!("/proc/{}/stat", log().trim()));
            state.map_or(true, |state| state.contains(") Z "))
        };
        until("its process is over", is_over);
    }

    #[test]
    fn mounts_and_users_are_refused_on_loopback() {
        let pod = Loopback {
            hosts: PathBuf::new(),
            host_name: String::new(),
        };
        let bind = |from: &str, to: &str| Bind {
            from: PathBuf::from(from),
            to: to.to_owned(),
            is_file: false,
            is_read_only: false,
        };
        let with = |binds: Vec<Bind>, user: Option<User>| {
            pod.check(&Setup {
                binds,
                user,
                ..Setup::default()
            })
        };
        assert_eq!(with(vec![bind("/opt", "/opt")], None), Ok(()));
        let refused = [
            with(vec![bind("/tmp/volume", "/data")], None),
            with(Vec::new(), Some(User::default())),
        ];
        for refused in refused {
            assert!(
                matches!(refused, Err(Problem::Unsupported(_))),
                "{refused:?}"
            );
        }
    }
}
