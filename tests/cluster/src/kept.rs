//! A cluster that `make plane` keeps running, for one test program after another.
//!
//! A kept cluster is a folder with its certificates and a file with its URL. `TRAINYARD_PLANE` names that folder. One test program at a
//! time is attached to it, and removes the objects of earlier ones.

use std::{
    env,
    fs::{self, File, TryLockError},
    net::TcpStream,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

/// The environment variable for the folder of a kept cluster.
const VARIABLE: &str = "TRAINYARD_PLANE";
/// The file with the URL of its API server.
const URL: &str = "url";
/// The file that the attached test program locks.
const IN_USE: &str = "in-use";
/// The prefix of the names of tests' namespaces.
pub(crate) const NAMESPACES: &str = "test-";

/// A kept cluster that this process is attached to, until this value is dropped.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) folder: PathBuf,
    pub(crate) url: String,
    #[expect(dead_code, reason = "the lock is released when the file is closed")]
    in_use: File,
}

/// Records that a cluster with this URL is kept in the folder.
pub(crate) fn announce(folder: &Path, url: &str) -> Result<()> {
    fs::write(folder.join(URL), url)?;
    Ok(())
}

impl Kept {
    /// Attaches to the cluster that the environment names, if it names one.
    ///
    /// # Errors
    /// The folder has no running cluster, or another test program is attached to it.
    pub(crate) fn find() -> Result<Option<Self>> {
        let named = env::var_os(VARIABLE).filter(|folder| !folder.is_empty());
        named.map(|folder| Self::attach(folder.into())).transpose()
    }

    fn attach(folder: PathBuf) -> Result<Self> {
        let place = || format!("{VARIABLE} is {}", folder.display());
        let url = fs::read_to_string(folder.join(URL)).with_context(|| {
            let place = place();
            format!("{place}, which has no kept cluster; start one with `make plane`, or unset {VARIABLE}")
        })?;
        if let Err(error) = TcpStream::connect(url.trim_start_matches("https://")) {
            bail!(
                "{}, whose cluster has stopped ({error}); start one with `make plane`, or unset {VARIABLE}",
                place()
            );
        }
        let in_use = File::create(folder.join(IN_USE)).with_context(place)?;
        match in_use.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "{}, which another test program uses; wait until it has ended, or unset {VARIABLE} to start a separate cluster",
                place()
            ),
            Err(TryLockError::Error(error)) => return Err(error).with_context(place),
        }
        Ok(Self {
            folder,
            url,
            in_use,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::TcpListener;

    use super::*;

    fn refused(folder: &Path) -> String {
        format!("{:#}", Kept::attach(folder.to_owned()).unwrap_err())
    }

    #[test]
    fn running_cluster_is_attached_to_one_program_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert!(refused(path).contains("which has no kept cluster; start one with `make plane`"));
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", server.local_addr().unwrap());
        announce(path, &url).unwrap();
        let attached = Kept::attach(path.to_owned()).unwrap();
        assert_eq!(attached.url, url);
        assert!(refused(path).contains("which another test program uses; wait until it has ended"));
        drop(attached);
        drop(Kept::attach(path.to_owned()).unwrap());
        drop(server);
        assert!(refused(path).contains("whose cluster has stopped"));
    }
}
