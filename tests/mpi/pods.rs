//! "Pods" on this machine: hosts that ssh finds behind one sshd, with the files that the real ones have mounted.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    implementations::Installed,
    rendered::{HOSTFILE_DIR, Rendered},
};

/// The program of the ranks.
const PROGRAM: &str = include_str!("program.c");
/// How long a program may take that needs a second.
const PATIENCE: &str = "120";

/// A running sshd and the files beside it.
pub(crate) struct Pods {
    folder: TempDir,
    sshd: Child,
}

impl Drop for Pods {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.sshd.kill());
        drop(self.sshd.wait());
    }
}

impl Pods {
    /// None, and a line that says why, if this machine has no ssh.
    pub(crate) fn start(rendered: &Rendered) -> Option<Self> {
        let sshd = Path::new("/usr/sbin/sshd");
        if !sshd.is_file() || run(Command::new("ssh").arg("-V")).is_none() {
            println!("skipped: ssh or sshd is not here: install openssh-client and openssh-server");
            return None;
        }
        // Where sshd of root leaves its privileges; the service makes it.
        drop(fs::create_dir_all("/run/sshd"));
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        lay_keys(&at("keys"), rendered);
        fs::create_dir_all(at("mpi")).unwrap();
        fs::write(at("mpi/hostfile"), &rendered.hostfile).unwrap();
        keygen(&at("host-key"), "ed25519", &[]);
        let port = free_port();
        write_configuration(folder.path(), port);
        let sshd = Command::new(sshd)
            .args(["-D", "-e", "-f"])
            .arg(at("sshd_config"))
            .stderr(fs::File::create(at("sshd.log")).unwrap())
            .spawn()
            .unwrap();
        let pods = Self { folder, sshd };
        pods.wait(port);
        Some(pods)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn wait(&self, port: u16) {
        let end = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = || fs::read_to_string(self.at("sshd.log")).unwrap_or_default();
            assert!(Instant::now() < end, "sshd does not listen: {}", log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether ssh logs in to a pod by the keys.
    pub(crate) fn can_log_in(&self) -> bool {
        let mut ssh = Command::new(self.at("bin/ssh"));
        run(ssh.args(["llm-node-0-0.llm", "true"])).is_some()
    }

    pub(crate) fn widen_the_private_key(&self, mode: u32) {
        set_mode(&self.at("keys/id_rsa"), mode);
    }

    /// What the program prints that mpirun starts without any further argument: where and how often is what is rendered.
    pub(crate) fn mpirun(&self, installed: &Installed, rendered: &Rendered) -> String {
        drop(fs::remove_file(self.at("calls")));
        let program = self.program(installed);
        let path = format!(
            "{}:{}:/usr/bin:/bin",
            self.at("bin").display(),
            installed.mpirun.parent().unwrap().display()
        );
        let folder = self.at("mpi").display().to_string();
        let env = rendered.env.iter();
        let env = env.map(|(name, value)| (name.clone(), value.replace(HOSTFILE_DIR, &folder)));
        let output = Command::new("timeout")
            .arg(PATIENCE)
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
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{installed}: {out}{err}");
        out
    }

    /// The program, compiled; without a compiler, one that says what the launcher told it, and takes the others on trust.
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
        println!(
            "{installed} compiles nothing here: its processes say their ranks, and send nothing"
        );
        let script = format!(
            "#!/bin/sh\necho rank ${rank} of ${size} on $TRAINYARD_POD sum $(({size} * ({size} - 1) / 2))\n"
        );
        fs::write(&program, script).unwrap();
        set_mode(&program, 0o755);
        program
    }

    /// Each pod of the hostfile was logged in to once, with those arguments of ssh.
    pub(crate) fn assert_each_was_called_once_with(&self, args: &str, installed: &Installed) {
        let calls = fs::read_to_string(self.at("calls")).unwrap_or_default();
        let mut hosts: Vec<_> = calls
            .lines()
            .filter_map(|call| call.split_once(": "))
            .collect();
        hosts.sort_unstable();
        let names: Vec<_> = hosts.iter().map(|(host, _)| *host).collect();
        assert_eq!(
            names,
            ["llm-node-0-0.llm", "llm-node-0-1.llm"],
            "{installed}"
        );
        let told = hosts.iter().all(|(_, call)| call.contains(args));
        assert!(told, "{installed}: {calls}");
        let log = fs::read_to_string(self.at("sshd.log")).unwrap();
        assert!(log.contains("Accepted publickey"), "{installed}: {log}");
    }
}

/// The keys as the Secret's volume has them: of the kind that the host makes, in files of the rendered names and modes.
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

/// How sshd lets in, and an `ssh` that finds all pods behind it, as the names of pods do in a cluster. It notes each call, and tells
/// the pod its name.
fn write_configuration(folder: &Path, port: u16) {
    let shown = folder.display();
    let sshd = format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {shown}/host-key\nAuthorizedKeysFile {shown}/keys/authorized_keys\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\nLogLevel VERBOSE\n"
    );
    let ssh = format!(
        "Host *\nHostName 127.0.0.1\nPort {port}\nIdentityFile {shown}/keys/id_rsa\nIdentitiesOnly yes\nBatchMode yes\n\
         StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"
    );
    // Options with a value of their own are those that implementations write: -o and -l.
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
mkdir -p {shown}/tmp/$pod
exec /usr/bin/ssh -F {shown}/ssh_config "${{options[@]}}" "$pod" "export TRAINYARD_POD=$pod TMPDIR={shown}/tmp/$pod; $*"
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

/// A port that nothing listens at. Another process may take it before sshd does, which then does not start.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// What a command prints, if it succeeds.
fn run(command: &mut Command) -> Option<Vec<u8>> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    output.status.success().then_some(output.stdout)
}
