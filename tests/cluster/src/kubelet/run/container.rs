//! The processes of containers.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{ChildStdin, Command, ExitStatus},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use k8s_openapi::api::core::v1::{Container, Pod as PodObject};
use trainyard_pods::kill_with;

use super::{
    env::{Env, command, find, resolve},
    expand::expand,
    facts::Facts,
    images::Image,
    isolation::Isolation,
    problem::Problem,
    sandbox::Sandbox,
    script::{Bind, Setup, User},
};

/// File systems that a container has by itself, or must not have.
const NOT_MOUNTED: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/tmp"];

/// The volumes of a pod on this machine, each with whether containers can only read it.
pub(super) type Volumes = BTreeMap<String, (PathBuf, bool)>;

/// A running container.
#[derive(Clone, Debug)]
pub(super) struct Process {
    /// `None` if it has exited already.
    pid: Option<u32>,
    /// Without this pipe, a container on loopback is killed.
    stdin: Arc<Mutex<Option<ChildStdin>>>,
}

impl Process {
    /// Starts a container in a pod, with a folder for its files. When it exits, its exit code is passed to a function.
    pub(super) fn start(
        pod: &Sandbox,
        setup: &Setup,
        folder: &Path,
        log: &Path,
        exited: impl FnOnce(i32) + Send + 'static,
    ) -> Result<Self, Problem> {
        let log = open(log).map_err(Problem::machine)?;
        let (mut child, pid) = pod.start(setup, folder, log)?;
        // Waiting would close it.
        let stdin = Arc::new(Mutex::new(child.stdin.take()));
        let folder = folder.to_owned();
        thread::spawn(move || {
            let status = child.wait();
            exited(Sandbox::exit_code(&folder).unwrap_or_else(|| status.map_or(128, code)));
        });
        Ok(Self { pid, stdin })
    }

    /// Sends SIGTERM to its first process, which may have exited.
    pub(super) fn terminate(&self) {
        if let Some(pid) = self.pid {
            kill_with("TERM", pid);
        }
    }

    /// Kills all its processes.
    pub(super) fn kill(&self) {
        if let Some(pid) = self.pid {
            kill_with("KILL", pid);
        }
        self.let_go();
    }

    /// Kills a container on loopback. Others are killed with their pod.
    pub(super) fn let_go(&self) {
        let mut stdin = self.stdin.lock().unwrap_or_else(PoisonError::into_inner);
        drop(stdin.take());
    }

    /// Returns a command that runs its arguments in the container.
    pub(super) fn enter(&self, isolation: Isolation) -> Option<Command> {
        let pid = self.pid?.to_string();
        if isolation == Isolation::Loopback {
            return Some(Command::new("env"));
        }
        let mut command = Command::new("nsenter");
        command.args(["--target", &pid]);
        if isolation == Isolation::User {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.args(["--mount", "--net", "--uts", "--ipc", "--pid", "--root"]);
        Some(command)
    }
}

fn open(log: &Path) -> std::io::Result<File> {
    if let Some(parent) = log.parent() {
        fs::create_dir_all(parent)?;
    }
    File::options().append(true).create(true).open(log)
}

/// Returns the exit code of a container, which is that of a shell if a signal ended it.
fn code(status: ExitStatus) -> i32 {
    let signal = || status.signal().map(|signal| 128 + signal);
    status.code().or_else(signal).unwrap_or(128)
}

/// Returns what a container needs of its pod, its image and its volumes.
pub(super) fn setup(
    container: &Container,
    image: &Image,
    facts: &Facts<'_>,
    volumes: &Volumes,
    host_name: &str,
    isolation: Isolation,
) -> Result<Setup, Problem> {
    let env = resolve(container, image, facts)?;
    let command = command(container, image, &env)?;
    let binds = binds(container, image, volumes, &env)?;
    let user = user(facts.pod, container);
    if isolation == Isolation::User && user.as_ref().is_some_and(|user| user.id != 0) {
        return Err(Problem::Unsupported(format!(
            "the container {} has a runAsUser, which needs root on this machine",
            container.name
        )));
    }
    let base = [
        ("PATH".to_owned(), path(image)),
        ("HOSTNAME".to_owned(), host_name.to_owned()),
    ];
    Ok(Setup {
        mounts: mounts(&fs::read_to_string("/proc/mounts").unwrap_or_default()),
        binds,
        user,
        env: base.into_iter().chain(env).collect(),
        working_dir: container.working_dir.clone().unwrap_or_else(|| "/".into()),
        command,
    })
}

fn path(image: &Image) -> String {
    let machine = env::var("PATH").unwrap_or_else(|_| "/usr/sbin:/usr/bin:/sbin:/bin".into());
    let folders = image
        .paths
        .iter()
        .map(|folder| folder.display().to_string());
    folders.chain([machine]).collect::<Vec<_>>().join(":")
}

/// Returns the other file systems in which this machine's files are.
fn mounts(table: &str) -> Vec<String> {
    let points = table.lines().filter_map(|line| line.split(' ').nth(1));
    let mut mounts: Vec<String> = Vec::new();
    for point in points.filter(|point| *point != "/" && !point.contains('\\')) {
        let is_in = |folder: &str| Path::new(point).starts_with(folder);
        if NOT_MOUNTED.into_iter().chain(["/etc"]).any(is_in) || mounts.iter().any(|it| is_in(it)) {
            continue;
        }
        mounts.push(point.to_owned());
    }
    mounts
}

fn binds(
    container: &Container,
    image: &Image,
    volumes: &Volumes,
    env: &Env,
) -> Result<Vec<Bind>, Problem> {
    let of_image = image.files.iter().map(|(from, to)| Bind {
        is_file: from.is_file(),
        from: from.clone(),
        to: to.display().to_string(),
        is_read_only: false,
    });
    let mut binds: Vec<_> = of_image.collect();
    let mut mounts: Vec<_> = container.volume_mounts.iter().flatten().collect();
    // A mount in another one comes after it.
    mounts.sort_by_key(|mount| mount.mount_path.len());
    for mount in mounts {
        let volume = volumes.get(&mount.name);
        let (folder, is_read_only) = volume
            .ok_or_else(|| Problem::Unsupported(format!("the pod has no volume {}", mount.name)))?;
        let expanded = mount.sub_path_expr.as_ref();
        let expanded = expanded.map(|path| expand(path, |name| find(env, name)));
        let from = match mount.sub_path.clone().or(expanded) {
            Some(path) if !path.is_empty() => folder.join(path),
            _ => folder.clone(),
        };
        if !from.exists() {
            fs::create_dir_all(&from).map_err(Problem::machine)?;
        }
        binds.push(Bind {
            is_file: !from.is_dir(),
            from,
            to: mount.mount_path.clone(),
            is_read_only: *is_read_only || mount.read_only == Some(true),
        });
    }
    Ok(binds)
}

/// Returns the user and the groups of a container, if the pod sets any.
fn user(pod: &PodObject, container: &Container) -> Option<User> {
    let spec = pod.spec.clone().unwrap_or_default();
    let of_pod = spec.security_context.unwrap_or_default();
    let own = container.security_context.clone().unwrap_or_default();
    let number = |id: Option<i64>| id.and_then(|id| u32::try_from(id).ok());
    let id = number(own.run_as_user.or(of_pod.run_as_user));
    let group = number(own.run_as_group.or(of_pod.run_as_group));
    let others = of_pod.supplemental_groups.into_iter().flatten();
    let others = others.chain(of_pod.fs_group).map(Some);
    let other_groups: Vec<_> = others.filter_map(number).collect();
    if id.is_none() && group.is_none() && other_groups.is_empty() {
        return None;
    }
    Some(User {
        id: id.unwrap_or(0),
        group,
        other_groups,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn other_file_systems_of_the_machine_are_mounted_once() {
        let table = "/dev/a / ext4 rw 0 0\nproc /proc proc rw 0 0\n/dev/b /home ext4 rw 0 0\n\
                     /dev/c /home/x ext4 rw 0 0\ntmpfs /run/user/1 tmpfs rw 0 0\n/dev/d /etc/hosts ext4 rw 0 0\n\
                     /dev/e /data ext4 rw 0 0\n";
        assert_eq!(mounts(table), ["/home", "/data"]);
    }

    #[test]
    fn mounts_follow_the_files_of_the_image_and_those_that_contain_them() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let volumes = [("work", false), ("keys", true)];
        let volumes = volumes.map(|(name, ro)| (name.to_owned(), (folder.path().to_owned(), ro)));
        let container = json!({"name": "node", "volumeMounts": [
            {"name": "keys", "mountPath": "/home/a/.ssh"},
            {"name": "work", "mountPath": "/home/a", "subPathExpr": "$(POD)/x"},
            {"name": "work", "mountPath": "/home/a/file", "subPath": "file", "readOnly": true},
        ]});
        let container = serde_json::from_value(container).unwrap();
        let image = Image::default().file("/usr", "/opt/usr");
        let env = vec![("POD".to_owned(), "p".to_owned())];
        let binds = binds(&container, &image, &volumes.into(), &env).unwrap();
        let found: Vec<_> = binds
            .iter()
            .map(|it| (it.to.as_str(), it.is_file, it.is_read_only))
            .collect();
        let expected = [
            ("/opt/usr", false, false),
            ("/home/a", false, false),
            ("/home/a/.ssh", false, true),
            ("/home/a/file", true, true),
        ];
        assert_eq!(found, expected);
        assert!(folder.path().join("p/x").is_dir());
    }

    #[test]
    fn container_overrides_the_user_of_its_pod() {
        let user = |pod: serde_json::Value, own: serde_json::Value| {
            let pod = json!({"spec": {"containers": [], "securityContext": pod}});
            let container = json!({"name": "node", "securityContext": own});
            let pod = serde_json::from_value(pod).unwrap();
            user(&pod, &serde_json::from_value(container).unwrap())
        };
        assert_eq!(user(json!({}), json!({})), None);
        let of_pod =
            json!({"runAsUser": 1, "runAsGroup": 2, "fsGroup": 3, "supplementalGroups": [4]});
        let expected = User {
            id: 5,
            group: Some(2),
            other_groups: vec![4, 3],
        };
        assert_eq!(user(of_pod, json!({"runAsUser": 5})), Some(expected));
    }
}
