//! A pod has its own host name, address, names, shared memory and processes; pods reach each other; and nothing outlives them.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use trainyard_pods::{Child, HostsFile, Machine, Pod, PodSpec, Rights, kill_with, skip};

/// Returns a machine for each kind of rights that this user has. Those that it does not have are skipped.
fn machines() -> Vec<Machine> {
    let all = [Rights::Root, Rights::UserNamespaces];
    all.into_iter()
        .filter_map(|rights| {
            let machine = Machine::start_with(rights);
            let reason = |error| skip(&format!("no machine with {rights:?}: {error:#}"));
            machine.map_err(reason).ok()
        })
        .collect()
}

fn start(machine: &Machine, number: u8, folder: &Path, hosts: &str) -> (Pod, HostsFile) {
    let path = folder.join(format!("hosts-{number}"));
    let hosts = HostsFile::create(path, hosts.to_owned()).unwrap();
    let spec = PodSpec {
        host_name: &format!("pod-{number}"),
        address: Ipv4Addr::new(10, 9, 0, number),
        hosts: hosts.path(),
    };
    (machine.start_pod(&spec).unwrap(), hosts)
}

/// Returns the output of a script in a pod.
fn output(pod: &Pod, script: &str) -> String {
    let mut command = pod.enter();
    let output = command.args(["bash", "-c", script]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {error}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn wait(mut until: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !until() {
        assert!(Instant::now() < end, "it does not happen");
        thread::sleep(Duration::from_millis(10));
    }
}

fn exists(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat"));
    state.is_ok_and(|state| !state.contains(") Z "))
}

#[test]
fn pod_has_its_own_host_name_address_and_names() {
    for machine in machines() {
        let folder = TempDir::new().unwrap();
        let (pod, mut hosts) = start(&machine, 1, folder.path(), "127.0.0.1 localhost\n");
        assert_eq!(output(&pod, "hostname"), "pod-1");
        assert!(output(&pod, "ip -4 addr show eth0").contains("10.9.0.1/8"));
        assert_eq!(output(&pod, "getent hosts pod-2 || echo none"), "none");
        let longer = "127.0.0.1 localhost\n10.9.0.2 pod-2\n".to_owned();
        hosts.set(longer).unwrap();
        assert!(output(&pod, "getent hosts pod-2").starts_with("10.9.0.2"));
        hosts.set("10.9.0.3 pod-2\n".to_owned()).unwrap();
        assert!(output(&pod, "getent hosts pod-2").starts_with("10.9.0.3"));
    }
}

#[test]
fn pods_reach_each_other_and_share_no_memory_or_processes() {
    for machine in machines() {
        let folder = TempDir::new().unwrap();
        let [first, second] =
            [1, 2].map(|number| start(&machine, number, folder.path(), "10.9.0.1 pod-1\n").0);
        output(&first, "echo one > /dev/shm/file");
        let seen = output(&second, "ls /dev/shm; ps -e -o args= | grep -c '^sh -c'");
        assert_eq!(seen, "1", "the second pod sees more than its own shell");
        let listen = "import socket; s = socket.create_server(('', 7000)); \
                      print(s.accept()[0].recv(9).decode())";
        let mut server = first.enter();
        let server = server
            .args(["python3", "-c", listen])
            .stdout(Stdio::piped());
        let server = server.spawn().unwrap();
        wait(|| {
            let mut send = second.enter();
            send.args(["bash", "-c", "echo hello > /dev/tcp/pod-1/7000"]);
            send.stderr(Stdio::null()).status().unwrap().success()
        });
        let heard = server.wait_with_output().unwrap().stdout;
        assert_eq!(String::from_utf8(heard).unwrap().trim(), "hello");
    }
}

#[test]
fn pods_reach_only_forwarded_ports_of_this_machine() {
    const HOST: Ipv4Addr = Ipv4Addr::new(10, 255, 255, 254);
    let [open, closed] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let (number, other) = (port(&open), port(&closed));
    thread::spawn(move || {
        for stream in open.incoming() {
            let mut stream = stream.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            stream.write_all(text.to_uppercase().as_bytes()).unwrap();
        }
    });
    for machine in machines() {
        let folder = TempDir::new().unwrap();
        let (pod, _hosts) = start(&machine, 1, folder.path(), "10.255.255.254 host\n");
        machine.forward(HOST, number).unwrap();
        let ask = |port: u16| {
            format!(
                "import socket; s = socket.create_connection(('host', {port})); s.sendall(b'hello'); \
                 s.shutdown(socket.SHUT_WR); print(s.recv(9).decode())"
            )
        };
        for _ in 0..2 {
            assert_eq!(
                output(&pod, &format!("python3 -c \"{}\"", ask(number))),
                "HELLO"
            );
        }
        let refused = format!("python3 -c \"{}\" 2>&1 || true", ask(other));
        let refused = output(&pod, &refused);
        assert!(refused.contains("Connection refused"), "{refused}");
        let twice = machine.forward(HOST, number).unwrap_err();
        assert!(
            format!("{twice:#}").contains("Address already in use"),
            "{twice:#}"
        );
    }
}

#[test]
fn dropped_pods_and_machines_leave_no_process() {
    for machine in machines() {
        let folder = TempDir::new().unwrap();
        let [first, second] = [1, 2].map(|number| start(&machine, number, folder.path(), "").0);
        let sleeping = |pod: &Pod| {
            let mut command = pod.enter();
            command.args(["unshare", "--pid", "--fork", "sleep", "1000"]);
            let command = command.stderr(Stdio::null()).spawn().unwrap();
            (Child::of(&command, 2).unwrap().pid, command)
        };
        let [(in_first, mut one), (in_second, mut two)] = [sleeping(&first), sleeping(&second)];
        drop(first);
        one.wait().unwrap();
        assert!(!exists(in_first) && exists(in_second));
        machine.stop();
        two.wait().unwrap();
        assert!(!exists(in_second));
        drop(second);
    }
}

#[test]
fn signals_reach_a_process_in_a_pod() {
    for machine in machines() {
        let folder = TempDir::new().unwrap();
        let (pod, _hosts) = start(&machine, 1, folder.path(), "");
        let ready = folder.path().join("ready");
        let script = format!(
            "trap 'exit 7' TERM; touch {}; while :; do sleep 0.01; done",
            ready.display()
        );
        let mut command = pod.enter();
        command.args(["unshare", "--pid", "--fork", "bash", "-c", &script]);
        let mut command = command.spawn().unwrap();
        wait(|| ready.exists());
        kill_with("TERM", Child::of(&command, 2).unwrap().pid);
        assert_eq!(command.wait().unwrap().code(), Some(7));
    }
}

/// Returns the processes that any thread of a process started.
fn children(of: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{of}/task")).unwrap();
    let files = tasks.map(|task| task.unwrap().path().join("children"));
    let texts: String = files
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    texts
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

/// The variable that tells this program to start a pod and wait, because another one will kill it.
const IS_KILLED: &str = "TRAINYARD_PODS_IS_KILLED";

#[test]
fn no_process_outlives_a_killed_program() {
    if env::var_os(IS_KILLED).is_some() {
        let machine = Machine::start().unwrap();
        let folder = TempDir::new().unwrap();
        let (pod, _hosts) = start(&machine, 1, folder.path(), "");
        let open = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = open.local_addr().unwrap().port();
        machine
            .forward(Ipv4Addr::new(10, 255, 255, 254), port)
            .unwrap();
        let mut command = pod.enter();
        command.args(["setsid", "unshare", "--pid", "--fork", "sleep", "1000"]);
        let mut command = command.spawn().unwrap();
        println!("\nprocess {}", Child::of(&command, 2).unwrap().pid);
        command.wait().unwrap();
    }
    if machines().is_empty() {
        return;
    }
    let name = "pods_are_machines_of_their_own::no_process_outlives_a_killed_program";
    let mut program = Command::new(env::current_exe().unwrap());
    program.args(["--exact", name, "--nocapture"]);
    program.env(IS_KILLED, "1").stdout(Stdio::piped());
    let mut program = program.spawn().unwrap();
    let output = BufReader::new(program.stdout.take().unwrap());
    let pid = output.lines().find_map(|line| {
        let pid = line.unwrap().strip_prefix("process ")?.parse();
        Some(pid.unwrap())
    });
    let pid = pid.unwrap();
    assert!(exists(pid));
    let mut started = children(program.id());
    // The machine, the pod, the forwarder, and the command in the pod.
    assert_eq!(started.len(), 4);
    started.push(pid);
    program.kill().unwrap();
    program.wait().unwrap();
    wait(|| !started.iter().any(|pid| exists(*pid)));
}
