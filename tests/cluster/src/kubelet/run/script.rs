//! The script that turns a process in a pod's namespaces into a container.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use super::env::Env;

/// The first part of the script, which gives the container a file system of its own: that of this machine, which it cannot change.
const BEGIN: &str = r#"
set -e
exec </dev/null
trap 'echo fake kubelet: cannot set up the container >&2; exit 128' EXIT
cd "$1"
mount -t tmpfs -o mode=755 tmpfs "$PWD"
cd "$PWD"
mkdir upper work root
if ! mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work overlay root 2>/dev/null; then
  # A user namespace cannot separate / from the file systems in it, but its folders.
  mount -t tmpfs -o mode=755 tmpfs root
  for file in /*; do
    name=${file#/}
    if [ -L "$file" ]; then
      cp -P "$file" root/
    elif [ -d "$file" ]; then
      mkdir -p "root/$name" "uppers/$name" "works/$name"
      case $name in
        proc|sys|dev|run|tmp) ;;
        *)
          layers="lowerdir=$file,upperdir=uppers/$name,workdir=works/$name"
          mount -t overlay -o "$layers" overlay "root/$name" 2>/dev/null || mount --rbind "$file" "root/$name"
          ;;
      esac
    fi
  done
fi
cd root
mkdir .old
pivot_root . .old
mount -t proc proc /proc
mount --rbind /.old/sys /sys
mount --rbind /.old/dev /dev
mount -t tmpfs -o mode=1777 tmpfs /tmp
for file in hosts hostname resolv.conf; do rm -f /etc/$file; touch /etc/$file; done
mount --bind /.old/etc/hosts /etc/hosts
mount --bind /.old/etc/resolv.conf /etc/resolv.conf
hostname > /etc/hostname
"#;

/// A file or folder that a container sees at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bind {
    pub(super) from: PathBuf,
    pub(super) to: String,
    pub(super) is_file: bool,
    pub(super) is_read_only: bool,
}

/// The user of a container's process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct User {
    pub(super) id: u32,
    /// `None` for the group of the user in `/etc/passwd`.
    pub(super) group: Option<u32>,
    pub(super) other_groups: Vec<u32>,
}

/// What a script sets up.
#[derive(Clone, Debug, Default)]
pub(super) struct Setup {
    /// File systems of this machine other than the root's.
    pub(super) mounts: Vec<String>,
    pub(super) binds: Vec<Bind>,
    /// `None` for the user of this program.
    pub(super) user: Option<User>,
    pub(super) env: Env,
    pub(super) working_dir: String,
    pub(super) command: Vec<String>,
}

impl Setup {
    /// Returns the script. It is run by the first process of new mount and PID namespaces, with an empty folder as its argument.
    pub(super) fn script(&self) -> String {
        let mut script = BEGIN.to_owned();
        for mount in &self.mounts {
            let bind = Bind {
                from: PathBuf::from(mount),
                to: mount.clone(),
                is_file: false,
                is_read_only: false,
            };
            script += &bind.command("--rbind");
        }
        for bind in &self.binds {
            script += &bind.command("--bind");
        }
        script += "umount --lazy /.old\nrmdir /.old\n";
        let _ = writeln!(script, "mkdir -p {0}\ncd {0}", quote(&self.working_dir));
        script += &self.execute();
        script
    }

    fn execute(&self) -> String {
        let mut script = String::new();
        let id = self.user.as_ref().map_or(0, |user| user.id);
        let _ = writeln!(script, "entry=$(getent passwd {id} || echo :::0::/)");
        script += "home=$(echo \"$entry\" | cut -d: -f6)\n";
        let become_user = self.user.as_ref().map(|user| {
            let group = user.group.map(|group| group.to_string());
            let group = group.unwrap_or_else(|| "$(echo \"$entry\" | cut -d: -f4)".to_owned());
            let others: Vec<_> = user.other_groups.iter().map(u32::to_string).collect();
            let others = match others.is_empty() {
                true => "--clear-groups".to_owned(),
                false => format!("--groups {}", others.join(",")),
            };
            format!("setpriv --reuid {id} --regid {group} {others} ")
        });
        let become_user = become_user.unwrap_or_default();
        let _ = write!(script, "exec {become_user}env -i HOME=\"$home\"");
        for (name, value) in &self.env {
            let _ = write!(script, " {}", quote(&format!("{name}={value}")));
        }
        for word in &self.command {
            let _ = write!(script, " {}", quote(word));
        }
        script + "\n"
    }
}

impl Bind {
    fn command(&self, how: &str) -> String {
        let to = quote(&self.to);
        let make = match (self.is_file, Path::new(&self.to).parent()) {
            (true, Some(parent)) => {
                let parent = quote(&parent.display().to_string());
                format!("mkdir -p {parent}; [ -e {to} ] || touch {to}")
            }
            _ => format!("mkdir -p {to}"),
        };
        let from = quote(&format!("/.old{}", self.from.display()));
        let mut command = format!("{make}; mount {how} {from} {to}\n");
        if self.is_read_only {
            let _ = writeln!(command, "mount -o remount,bind,ro {to}");
        }
        command
    }
}

/// Quotes a word for the shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_command_reach_it_unchanged() {
        let setup = Setup {
            env: vec![("A".to_owned(), "it's \"$HOME\"\n`x`".to_owned())],
            command: ["sh", "-c", "echo $A"].map(str::to_owned).into(),
            ..Setup::default()
        };
        let script = setup.script();
        let end = "env -i HOME=\"$home\" 'A=it'\\''s \"$HOME\"\n`x`' 'sh' '-c' 'echo $A'\n";
        assert!(script.ends_with(end), "{script}");
        assert!(!script.contains("setpriv"), "{script}");
    }

    #[test]
    fn user_has_the_groups_of_the_pod() {
        let mut user = User {
            id: 1000,
            ..User::default()
        };
        let line = |user: &User| {
            let setup = Setup {
                user: Some(user.clone()),
                ..Setup::default()
            };
            let script = setup.script();
            script.lines().last().unwrap_or_default().to_owned()
        };
        let own =
            "exec setpriv --reuid 1000 --regid $(echo \"$entry\" | cut -d: -f4) --clear-groups env";
        assert!(line(&user).starts_with(own));
        user.group = Some(3);
        user.other_groups = vec![7, 8];
        assert!(line(&user).starts_with("exec setpriv --reuid 1000 --regid 3 --groups 7,8 env"));
    }

    #[test]
    fn files_are_mounted_in_order_and_only_if_asked_read_only() {
        let bind = |to: &str, is_file, is_read_only| Bind {
            from: PathBuf::from("/host/a b"),
            to: to.to_owned(),
            is_file,
            is_read_only,
        };
        let binds = vec![
            bind("/etc/mpi", false, true),
            bind("/etc/mpi/hostfile", true, false),
        ];
        let script = Setup {
            binds,
            ..Setup::default()
        }
        .script();
        let expected = "mkdir -p '/etc/mpi'; mount --bind '/.old/host/a b' '/etc/mpi'\n\
            mount -o remount,bind,ro '/etc/mpi'\n\
            mkdir -p '/etc/mpi'; [ -e '/etc/mpi/hostfile' ] || touch '/etc/mpi/hostfile'; \
            mount --bind '/.old/host/a b' '/etc/mpi/hostfile'\n";
        assert!(script.contains(expected), "{script}");
    }
}
