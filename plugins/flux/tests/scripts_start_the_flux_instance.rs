//! The scripts run with a fake `flux` that records its calls: as the lead broker and as a follower, in success and in failure. Only fixed
//! paths are replaced, and waits are short.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use trainyard_sdk::mock::MockContainer;

use crate::common::{file, of_node, outcome};

/// A pod's file system, with the scripts of one TrainJob.
struct Pod {
    folder: TempDir,
    /// The user of its containers; that of the tests where none is given.
    user: Option<u32>,
}

/// `flux`: notes its words, one call a line, and does what the file `behaviour` says.
const FLUX: &str = r#"#!/bin/bash
{ printf '<%s>' "$@"; printf '\n'; } >>"$LOG"
[[ $1 != R ]] || { echo '{"version": 1}'; exit 0; }
source "$BEHAVIOUR"
"#;

impl Pod {
    fn new(node: impl FnOnce(MockContainer) -> MockContainer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pod = Self { folder, user: None };
        let outcome = outcome(of_node(node));
        for name in ["entrypoint.sh", "init.sh", "settings.sh", "broker.toml"] {
            let mut text = file(&outcome, name);
            if name == "settings.sh" {
                let root = format!("={}/", pod.folder.path().display());
                text = text.replace("=/", &root);
                text = text.replace("pause=15", "pause=0.01");
            }
            pod.write(&format!("/etc/flux-config/{name}"), &text);
        }
        for folder in ["/mnt/flux", "/opt/software", "/bin"] {
            fs::create_dir_all(pod.path(folder)).unwrap();
        }
        pod.write("/opt/views/._view/abc/bin/flux", "the view's");
        pod.write("/opt/views/._view/abc/bin/python3.11", "");
        pod.write(
            "/opt/views/._view/abc/lib/python3.11/site-packages/flux.py",
            "",
        );
        pod.write("/opt/software/linux/lib", "spack");
        pod.write("/curve/curve.cert", "curve");
        pod.program("flux", FLUX);
        pod
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn program(&self, name: &str, text: &str) {
        let path = format!("/bin/{name}");
        self.write(&path, text);
        fs::set_permissions(self.path(&path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, script: &str, host: &str, words: &[&str]) -> Command {
        self.program("uname", &format!("#!/bin/bash\necho {host}\n"));
        let mut command = Command::new("/bin/bash");
        command
            .arg(self.path(&format!("/etc/flux-config/{script}")))
            .args(words)
            .env_clear()
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", self.path("/bin").display()),
            )
            .env("LOG", self.path("/log"))
            .env("BEHAVIOUR", self.path("/behaviour"))
            .env("PYTHONPATH", "/app")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// The pod with a user in its containers who is not root, and in its image folders and files that can't be written to.
    fn of_another_user(mut self) -> Self {
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        self.user = is_root.then_some(65534);
        let mode = |mode: &str, path: &str| {
            let chmod = Command::new("chmod")
                .args(["-R", mode])
                .arg(self.path(path))
                .status();
            assert!(chmod.unwrap().success(), "{path}");
        };
        mode("a+rwX", "/");
        mode("a-w", "/opt/software/linux");
        mode("a-w", "/opt/views/._view/abc/bin");
        self
    }

    /// Runs the init container's script.
    fn install(&self) -> Output {
        self.command("init.sh", "any", &[]).output().unwrap()
    }

    /// Runs the node container's script on a host, with a broker that does so.
    fn join(&self, host: &str, broker: &str, words: &[&str]) -> Output {
        self.write("/behaviour", broker);
        self.command("entrypoint.sh", host, words).output().unwrap()
    }

    /// The calls of `flux`, each as its words.
    fn calls(&self) -> Vec<Vec<String>> {
        let log = fs::read_to_string(self.path("/log")).unwrap_or_default();
        let words = |line: &str| -> Vec<String> {
            let inner = line.trim_start_matches('<').trim_end_matches('>');
            inner
                .split("><")
                .map(|word| word.replace(self.folder.path().to_str().unwrap(), ""))
                .collect()
        };
        log.lines().map(words).collect()
    }
}

const LEAD: &str = "lammps-node-0-0";
const FOLLOWER: &str = "lammps-node-0-2";

/// A pod whose init container has run.
fn installed(node: impl FnOnce(MockContainer) -> MockContainer) -> Pod {
    let pod = Pod::new(node);
    assert_ok(&pod.install());
    pod
}

fn assert_ok(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn flux_is_copied_from_its_image() {
    let pod = Pod::new(|c| c);
    for _ in 0..2 {
        assert_ok(&pod.install());
        assert_eq!(pod.read("/mnt/flux/view/bin/flux"), "the view's");
        assert_eq!(pod.read("/mnt/flux/software/linux/lib"), "spack");
        for link in ["python", "python3"] {
            let link = fs::read_link(pod.path(&format!("/mnt/flux/view/bin/{link}"))).unwrap();
            assert_eq!(link, Path::new("python3.11"));
        }
    }
    pod.write("/opt/views/._view/other/bin/flux", "");
    let several = pod.install();
    assert!(!several.status.success() && printed(&several).contains("more than one Flux view"));
    fs::remove_dir_all(pod.path("/opt/views")).unwrap();
    let none = pod.install();
    assert!(
        !none.status.success() && printed(&none).contains("no Flux view"),
        "{}",
        printed(&none)
    );
}

#[test]
fn lead_broker_runs_the_command_unchanged() {
    let pod = installed(|c| c.limit("nvidia.com/gpu", "4").request("cpu", "8"));
    let words = [
        "python3",
        "-c",
        "print('a  b')",
        "",
        "$(id)",
        "*",
        "--x=\"y\"",
    ];
    assert_ok(&pod.join(LEAD, "exit 0", &words));
    let calls = pod.calls();
    assert_eq!(
        calls[0],
        [
            "R",
            "encode",
            "--hosts=lammps-node-0-[0-3]",
            "--cores=0-7",
            "--gpus=0-3"
        ]
    );
    let start = &calls[1];
    assert_eq!(
        start[..4],
        [
            "start",
            "-o",
            "--config",
            "/mnt/flux/config/etc/flux/config"
        ]
    );
    for option in [
        "-Scron.directory=/mnt/flux/config/etc/flux/system/cron.d",
        "-Stbon.fanout=256",
        "-Srundir=/mnt/flux/config/run/flux",
        "-Sstatedir=/mnt/flux/config/var/lib/flux",
        "-Slocal-uri=local:///mnt/flux/config/run/flux/local",
    ] {
        assert!(
            start.iter().any(|word| word == option),
            "{option}: {start:?}"
        );
    }
    let run = start.iter().position(|word| word == "run").unwrap();
    assert_eq!(
        start[run - 1..run + 8],
        [
            "flux",
            "run",
            "--nodes=4",
            "--tasks-per-node=4",
            "-o",
            "cpu-affinity=off",
            "-o",
            "exit-timeout=30s",
            "--gpus-per-node=4"
        ]
    );
    assert_eq!(start[run + 8..], words);
    assert_eq!(calls.len(), 2, "the lead broker tries once: {calls:?}");
}

#[test]
fn without_gpus_none_are_requested() {
    let pod = installed(|c| c);
    assert_ok(&pod.join(LEAD, "exit 0", &["lmp"]));
    let calls = pod.calls();
    assert_eq!(
        calls[0],
        ["R", "encode", "--hosts=lammps-node-0-[0-3]", "--cores=0"]
    );
    assert!(
        !calls[1].iter().any(|word| word.contains("gpu")),
        "{calls:?}"
    );
}

#[test]
fn exit_status_of_the_run_is_the_pods() {
    for status in [0, 3, 137] {
        let pod = installed(|c| c);
        let output = pod.join(LEAD, &format!("exit {status}"), &["lmp"]);
        assert_eq!(output.status.code(), Some(status), "{}", printed(&output));
    }
}

#[test]
fn files_are_where_the_brokers_read_them() {
    let pod = installed(|c| c);
    // A container that starts again leaves nothing of its last instance.
    pod.write("/mnt/flux/config/var/lib/flux/content.sqlite", "old");
    assert_ok(&pod.join(FOLLOWER, "exit 0", &["lmp"]));
    assert!(
        !pod.path("/mnt/flux/config/var/lib/flux/content.sqlite")
            .exists()
    );
    assert!(pod.path("/mnt/flux/config/var/lib/flux").is_dir());
    assert!(pod.path("/mnt/flux/config/run/flux").is_dir());
    assert_eq!(
        pod.read("/mnt/flux/config/etc/flux/system/hostlist"),
        "lammps-node-0-[0-3]\n"
    );
    assert_eq!(
        pod.read("/mnt/flux/config/etc/flux/system/R"),
        "{\"version\": 1}\n"
    );
    assert!(
        pod.read("/mnt/flux/config/etc/flux/config/broker.toml")
            .contains("[bootstrap]")
    );
    assert_eq!(pod.read("/opt/software/linux/lib"), "spack");
    let certificate = pod.path("/mnt/flux/config/etc/curve/curve.cert");
    assert_eq!(fs::read_to_string(&certificate).unwrap(), "curve");
    assert_eq!(
        fs::metadata(certificate).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // A person in the container gets the same programs.
    let shell = "source \"$1\"; echo \"$PATH|$PYTHONPATH|$fluxsocket\"";
    let output = Command::new("/bin/bash")
        .args(["-c", shell, "bash"])
        .arg(pod.path("/mnt/flux/flux-view.sh"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text.replace(pod.folder.path().to_str().unwrap(), "");
    assert_eq!(
        text.trim(),
        "/bin:/usr/bin:/bin:/mnt/flux/view/bin|/app:/mnt/flux/view/lib/python3.11/site-packages|local:///mnt/flux/config/run/flux/local"
    );
}

#[test]
fn unreadable_certificate_is_reported() {
    let pod = installed(|c| c);
    fs::remove_file(pod.path("/curve/curve.cert")).unwrap();
    let output = pod.join(LEAD, "exit 0", &["lmp"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        printed(&output).contains("runAsUser"),
        "{}",
        printed(&output)
    );
    assert!(pod.calls().is_empty());
}

#[test]
fn follower_ends_with_the_instance() {
    let pod = installed(|c| c);
    assert_ok(&pod.join(FOLLOWER, "exit 0", &["lmp"]));
    let calls = pod.calls();
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert!(
        !calls[1].iter().any(|word| word == "run" || word == "lmp"),
        "{calls:?}"
    );
}

#[test]
fn user_env_vars_reach_the_command() {
    let pod = installed(|c| c.limit("nvidia.com/gpu", "4"));
    // Every word of the scripts that could be a variable of theirs, and is none of those that they are there to set.
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let scripts =
        ["entrypoint.sh", "settings.sh"].map(|name| pod.read(&format!("/etc/flux-config/{name}")));
    let names: BTreeSet<&str> = scripts
        .iter()
        .flat_map(|text| text.split(|c| !is_part(c)))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))
        .filter(|word| !word.starts_with("trainyard_"))
        .chain([
            "root", "config", "state", "nodes", "hosts", "tasks", "run", "start", "try", "status",
        ])
        .collect();
    assert!(names.len() > 50, "{names:?}");
    for host in [LEAD, FOLLOWER] {
        pod.write("/behaviour", "env -0 >\"$LOG.env\"");
        let mut command = pod.command("entrypoint.sh", host, &["lmp"]);
        command.envs(names.iter().map(|name| (name, "the user's")));
        assert_ok(&command.env("FLUX_RC_EXTRA", "/rc").output().unwrap());
        let env = pod.read("/log.env");
        let env: BTreeMap<_, _> = env
            .split('\0')
            .filter_map(|var| var.split_once('='))
            .collect();
        for name in &names {
            assert_eq!(env.get(name), Some(&"the user's"), "{host}: {name}");
        }
        assert!(env["FLUX_RC_EXTRA"].ends_with("/mnt/flux/view/etc/flux/rc1.d:/rc"));
        let added: Vec<_> = env
            .keys()
            .filter(|name| name.starts_with("trainyard"))
            .collect();
        assert_eq!(added, <[&&str; 0]>::default(), "{host}");
    }
}

#[test]
fn non_root_container_can_restart() {
    let pod = Pod::new(|c| c).of_another_user();
    for _ in 0..2 {
        assert_ok(&pod.install());
    }
    assert_eq!(pod.read("/mnt/flux/view/bin/flux"), "the view's");
    // The node container has a volume of its own there, which is empty at first.
    fs::remove_dir_all(pod.path("/opt/software/linux")).unwrap();
    for host in [FOLLOWER, LEAD, FOLLOWER] {
        assert_ok(&pod.join(host, "exit 0", &["lmp"]));
        assert_eq!(pod.read("/opt/software/linux/lib"), "spack");
    }
    // One that was ended while it copied has a part of it.
    fs::remove_file(pod.path("/mnt/flux/software-is-copied")).unwrap();
    assert_ok(&pod.join(LEAD, "exit 0", &["lmp"]));
}

/// A broker that fails this many times, and then joins.
fn joins_after(failures: usize) -> String {
    format!("(( $(grep -c '^<start>' \"$LOG\") > {failures} )) && exit 0; exit 9")
}

#[test]
fn follower_waits_for_its_lead_without_a_limit() {
    let pod = installed(|c| c);
    let output = pod.join(FOLLOWER, &joins_after(80), &["lmp"]);
    assert_ok(&output);
    assert_eq!(pod.calls().len(), 1 + 81);
    assert!(
        printed(&output).contains("status 9: no instance at lammps-node-0-0; try 81 follows"),
        "{}",
        printed(&output)
    );
}

/// Runs the node container's script until the broker runs, ends it as a kubelet does, and gives its status.
fn ended(host: &str, broker: &str) -> (Pod, Option<i32>) {
    ended_in(installed(|c| c), host, broker)
}

/// The same in a pod.
fn ended_in(pod: Pod, host: &str, broker: &str) -> (Pod, Option<i32>) {
    pod.write("/behaviour", broker);
    let mut child = pod
        .command("entrypoint.sh", host, &["lmp"])
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !pod.path("/ready").exists() {
        assert!(Instant::now() < until, "the broker does not run");
        thread::sleep(Duration::from_millis(20));
    }
    let killed = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    let code = child.wait().unwrap().code();
    (pod, code)
}

#[test]
fn signals_reach_the_broker() {
    let broker = "trap 'touch \"${LOG%/*}/stopped\"; exit 7' TERM; touch \"${LOG%/*}/ready\"; while :; do sleep 0.05; done";
    for host in [LEAD, FOLLOWER] {
        let (pod, code) = ended(host, broker);
        assert_eq!(code, Some(7), "{host}");
        assert!(pod.path("/stopped").exists());
        assert_eq!(pod.calls().len(), 2, "it does not try again");
    }
    // Between two tries as well.
    let (pod, code) = ended(FOLLOWER, "touch \"${LOG%/*}/ready\"; sleep 0.05; exit 9");
    assert_ne!(code, Some(0));
    assert!(pod.calls().len() <= 4);
}

/// A follower's broker shuts down and exits with 0. The pod must not count as done.
#[test]
fn follower_that_is_stopped_fails() {
    let broker = "trap 'exit 0' TERM; touch \"${LOG%/*}/ready\"; while :; do sleep 0.05; done";
    let (_, code) = ended(FOLLOWER, broker);
    assert_eq!(code, Some(143));
}

#[test]
fn signal_before_the_broker_starts_is_not_lost() {
    for host in [LEAD, FOLLOWER] {
        let pod = installed(|c| c);
        pod.program(
            "cp",
            "#!/bin/bash\ntouch \"${LOG%/*}/ready\"\nexec sleep 60\n",
        );
        let (pod, code) = ended_in(pod, host, "exit 0");
        assert_eq!(code, Some(143), "{host}");
        assert!(pod.calls().is_empty(), "{host}: {:?}", pod.calls());
    }
}

#[test]
fn brokers_ignore_no_signals() {
    let ignored_in = |status: &str| {
        let line = status.lines().find(|line| line.starts_with("SigIgn:"));
        let mask = line.unwrap().split_whitespace().next_back().unwrap();
        u64::from_str_radix(mask, 16).unwrap()
    };
    let own = ignored_in(&fs::read_to_string("/proc/self/status").unwrap());
    let broker = "grep SigIgn: /proc/self/status >\"$LOG.ignored\"";
    for host in [LEAD, FOLLOWER] {
        let pod = installed(|c| c);
        assert_ok(&pod.join(host, broker, &["lmp"]));
        let ignored = ignored_in(&pod.read("/log.ignored"));
        // SIGINT and SIGQUIT are 2 and 3; a test that runs in the background of a shell ignores them itself.
        assert_eq!(ignored & 0b110 & !own, 0, "{host}: {ignored:x}");
    }
}
