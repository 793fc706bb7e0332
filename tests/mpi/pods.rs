//! The pods on this machine: namespaces with the files that real pods mount.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;
use trainyard_pods::{Machine, Rights, skip};

use crate::{
    implementations::{Installed, Name},
    network::{self, Running},
    rendered::{HOSTFILE_DIR, Pod, Rendered},
};

/// The program of the ranks.
const PROGRAM: &str = include_str!("program.c");
/// The timeout of a program in seconds, which takes one of them.
const PATIENCE: &str = "60";
/// The exit status of `timeout` after it.
const TIMED_OUT: i32 = 124;
/// The number of tries of a program whose ranks may hang when they end.
const TRIES: usize = 5;

/// Running pods and their files.
pub(crate) struct Pods {
    folder: TempDir,
    running: Vec<Running>,
    /// The pods end with it.
    _machine: Machine,
}

impl Pods {
    /// Starts the pods. Returns `None` and reports the reason if this machine lacks a requirement.
    pub(crate) fn start(rendered: &Rendered) -> Option<Self> {
        let sshd = Path::new("/usr/sbin/sshd");
        if !sshd.is_file() || run(Command::new("ssh").arg("-V")).is_none() {
            skip("ssh or sshd is not here: install openssh-client and openssh-server");
            return None;
        }
        let Ok(machine) = Machine::start_with(Rights::Root) else {
            skip("no namespaces can be made: run it as root, with iproute2 and util-linux");
            return None;
        };
        // The privilege separation directory of root's sshd, which its service would create.
        drop(fs::create_dir_all("/run/sshd"));
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        lay_keys(&at("keys"), rendered);
        fs::create_dir_all(at("mpi")).unwrap();
        fs::write(at("mpi/hostfile"), &rendered.hostfile).unwrap();
        keygen(&at("host-key"), "ed25519", &[]);
        write_configuration(folder.path());
        let command = |pod: &Pod| match pod.is_launcher {
            true => ("sleep".to_owned(), vec!["infinity".to_owned()]),
            false => {
                let configuration = at("sshd_config").display().to_string();
                let args = ["-D", "-e", "-f", &configuration].map(str::to_owned);
                (sshd.display().to_string(), args.into())
            }
        };
        let running = network::start(&machine, &rendered.pods, folder.path(), command);
        let pods = Self {
            folder,
            running,
            _machine: machine,
        };
        let launcher = pods.launcher();
        for node in pods.nodes() {
            node.wait_for_ssh(launcher, &pods.log(node));
        }
        Some(pods)
    }

    fn launcher(&self) -> &Running {
        let mut running = self.running.iter();
        running.find(|running| running.pod.is_launcher).unwrap()
    }

    fn nodes(&self) -> impl Iterator<Item = &Running> {
        let running = self.running.iter();
        running.filter(|running| !running.pod.is_launcher)
    }

    /// Returns the log of a pod's SSH server.
    fn log(&self, node: &Running) -> PathBuf {
        self.at(&format!("{}.log", node.pod.name))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns whether ssh can log in to a pod with the keys.
    pub(crate) fn can_log_in(&self) -> bool {
        let mut ssh = self.launcher().enter();
        run(ssh
            .arg(self.at("bin/ssh"))
            .args(["llm-node-0-0.llm", "true"]))
        .is_some()
    }

    pub(crate) fn widen_the_private_key(&self, mode: u32) {
        set_mode(&self.at("keys/id_rsa"), mode);
    }

    /// Returns the output of the program under mpirun. The rendered files alone determine its hosts and number of processes.
    ///
    /// Ranks of an MPICH that uses UCX, such as Debian's 4.0.2, may hang in MPI_Finalize after their work: one waits in a barrier of the
    /// process manager, where it answers no message, and another waits for its answer (pmodels/mpich#2514). On a busy machine, 1 of 10 runs
    /// hangs. Such a run is repeated if each rank has printed its line.
    pub(crate) fn mpirun(
        &self,
        installed: &Installed,
        rendered: &Rendered,
        ranks: usize,
    ) -> String {
        let program = self.program(installed);
        let mut tries = 0;
        loop {
            tries += 1;
            drop(fs::remove_file(self.at("calls")));
            let output = self.run_once(installed, rendered, &program);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (out, err) = (text(&output.stdout), text(&output.stderr));
            let has_finalized = output.status.code() != Some(TIMED_OUT)
                || installed.name != Name::Mpich
                || out.lines().filter(|line| line.starts_with("rank ")).count() != ranks;
            if has_finalized || tries == TRIES {
                assert!(output.status.success(), "{installed}: {out}{err}");
                return out;
            }
            println!("{installed} hung in MPI_Finalize in try {tries}");
        }
    }

    fn run_once(&self, installed: &Installed, rendered: &Rendered, program: &Path) -> Output {
        let path = format!(
            "{}:{}:/usr/bin:/bin",
            self.at("bin").display(),
            installed.mpirun.parent().unwrap().display()
        );
        let folder = self.at("mpi").display().to_string();
        let env = rendered.env.iter();
        let env = env.map(|(name, value)| (name.clone(), value.replace(HOSTFILE_DIR, &folder)));
        self.launcher()
            .enter()
            .args(["timeout", PATIENCE])
            .arg(&installed.mpirun)
            .arg(program)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.folder.path())
            .envs(env)
            .envs(installed.name.of_the_machine().iter().copied())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Returns the compiled program. Without a compiler, it is a script that prints the launcher's env vars.
    fn program(&self, installed: &Installed) -> PathBuf {
        let program = self.at("program");
        if let Some(mpicc) = &installed.mpicc {
            let source = self.at("program.c");
            fs::write(&source, PROGRAM).unwrap();
            let mut compile = Command::new(mpicc);
            compile.arg("-o").arg(&program).arg(source);
            if run(&mut compile).is_some() {
                return program;
            }
        }
        let [rank, size] = installed.name.rank_and_size();
        skip(&format!(
            "{installed} compiles nothing here, so its processes say their ranks, and send nothing: install its headers and libraries"
        ));
        let script = format!(
            "#!/bin/sh\necho rank ${rank} of ${size} on $(hostname) sum $(({size} * ({size} - 1) / 2))\n"
        );
        fs::write(&program, script).unwrap();
        set_mode(&program, 0o755);
        program
    }

    /// Checks that ssh logged in exactly once to each of these pods, with these arguments.
    pub(crate) fn assert_each_was_called_once_with(
        &self,
        pods: &[&Pod],
        args: &str,
        installed: &Installed,
    ) {
        let calls = fs::read_to_string(self.at("calls")).unwrap_or_default();
        let mut hosts: Vec<_> = calls
            .lines()
            .filter_map(|call| call.split_once(": "))
            .collect();
        hosts.sort_unstable();
        let found: Vec<_> = hosts.iter().map(|(host, _)| (*host).to_owned()).collect();
        let expected: Vec<_> = pods.iter().map(|pod| format!("{}.llm", pod.name)).collect();
        assert_eq!(found, expected, "{installed}");
        let has_args = hosts.iter().all(|(_, call)| call.contains(args));
        assert!(has_args, "{installed}: {calls}");
        for node in self.nodes() {
            let log = fs::read_to_string(self.log(node)).unwrap();
            assert!(log.contains("Accepted publickey"), "{installed}: {log}");
        }
    }
}

/// Writes keys like the Secret's volume: of the type that the host generates, in files with the rendered names and modes.
fn lay_keys(folder: &Path, rendered: &Rendered) {
    fs::create_dir_all(folder).unwrap();
    let pair = folder.with_file_name("pair");
    keygen(&pair, "ecdsa", &["-b", "521", "-m", "PEM"]);
    for (path, key, mode) in &rendered.keys {
        let from = match key.as_str() {
            "ssh-privatekey" => pair.clone(),
            "ssh-publickey" => pair.with_extension("pub"),
            other => panic!("the Secret has no key {other}"),
        };
        let file = folder.join(path);
        fs::copy(from, &file).unwrap();
        set_mode(&file, *mode);
    }
}

fn keygen(file: &Path, kind: &str, more: &[&str]) {
    let mut command = Command::new("ssh-keygen");
    let made = command
        .args(["-q", "-N", "", "-t", kind])
        .args(more)
        .arg("-f")
        .arg(file);
    assert!(run(made).is_some(), "ssh-keygen makes no key");
}

/// Writes the configuration of sshd, and an `ssh` that records each call and uses the keys in their folder.
fn write_configuration(folder: &Path) {
    let shown = folder.display();
    let sshd = format!(
        "HostKey {shown}/host-key\nAuthorizedKeysFile {shown}/keys/authorized_keys\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\nLogLevel VERBOSE\n"
    );
    let ssh = format!(
        "Host *\nIdentityFile {shown}/keys/id_rsa\nIdentitiesOnly yes\nBatchMode yes\n\
         StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"
    );
    // Implementations pass only two options with a value: -o and -l.
    let wrapper = format!(
        r#"#!/bin/bash
options=()
while [[ $1 == -* ]]; do
  case $1 in
    -o|-l) options+=("$1" "$2"); shift 2;;
    *) options+=("$1"); shift;;
  esac
done
pod=$1; shift
echo "$pod: ${{options[*]}}" >> {shown}/calls
exec /usr/bin/ssh -F {shown}/ssh_config "${{options[@]}}" "$pod" "$@"
"#
    );
    fs::write(folder.join("sshd_config"), sshd).unwrap();
    fs::write(folder.join("ssh_config"), ssh).unwrap();
    fs::create_dir_all(folder.join("bin")).unwrap();
    fs::write(folder.join("bin/ssh"), wrapper).unwrap();
    set_mode(&folder.join("bin/ssh"), 0o755);
}

fn set_mode(file: &Path, mode: u32) {
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns the output of a command, if it succeeds.
fn run(command: &mut Command) -> Option<Vec<u8>> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    output.status.success().then_some(output.stdout)
}
