//! A cluster that `make plane` keeps running, for one test program after another.
//!
//! A kept cluster is a folder with its certificates and a file with its URL. `TRAINYARD_PLANE` names that folder. One test program at a
//! time is attached to it, and removes what an earlier one left behind.

use std::{
    env,
    fs::{self, File, TryLockError},
    net::TcpStream,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use http::StatusCode;
use serde_json::{Value, json};
use trainyard_schema::documents::Kind;

use crate::{
    api::{Api, Write},
    control_plane::ControlPlane,
    resource::Resource,
    wait::eventually,
};

/// The environment's name for the folder of a kept cluster.
const VARIABLE: &str = "TRAINYARD_PLANE";
/// The file that names the URL of its API server.
const URL: &str = "url";
/// The file that the attached test program has locked.
const IN_USE: &str = "in-use";
/// The namespaces of tests begin so.
pub(crate) const NAMESPACES: &str = "test-";

/// A kept cluster that this process is attached to, until this value is dropped.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) folder: PathBuf,
    pub(crate) url: String,
    #[expect(dead_code, reason = "the lock goes when the file is closed")]
    in_use: File,
}

/// Writes down that a cluster of this URL is kept in the folder.
pub(crate) fn announce(folder: &Path, url: &str) -> Result<()> {
    fs::write(folder.join(URL), url)?;
    Ok(())
}

impl Kept {
    /// The cluster that the environment names, if it names one.
    ///
    /// # Errors
    /// There is none in that folder, or another test program is attached to it.
    pub(crate) fn find() -> Result<Option<Self>> {
        let named = env::var_os(VARIABLE).filter(|folder| !folder.is_empty());
        named.map(|folder| Self::attach(folder.into())).transpose()
    }

    fn attach(folder: PathBuf) -> Result<Self> {
        let place = || format!("{VARIABLE} is {}", folder.display());
        let url = fs::read_to_string(folder.join(URL)).with_context(|| {
            let place = place();
            format!("{place}, where no cluster is kept; start one with `make plane`, or unset {VARIABLE}")
        })?;
        if let Err(error) = TcpStream::connect(url.trim_start_matches("https://")) {
            bail!(
                "{}, where the cluster has ended ({error}); start one with `make plane`, or unset {VARIABLE}",
                place()
            );
        }
        let in_use = File::create(folder.join(IN_USE)).with_context(place)?;
        match in_use.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "{}, which another test program uses; wait until it has ended, or unset {VARIABLE} to have a cluster started",
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

/// Removes what tests have left behind: their namespaces with everything in them, runtimes, kinds, nodes and the controller's Lease.
///
/// Namespaces go by themselves after that. Of what a controller would act on nothing is left.
pub(crate) async fn clear(plane: &ControlPlane, kinds: &[Value]) -> Result<()> {
    let namespaces = Resource::namespaces();
    let jobs = Resource::defined_by(&Kind::TrainJob.crd()?)?;
    let runtimes = Resource::defined_by(&Kind::ClusterTrainingRuntime.crd()?)?;
    let namespaces = plane.api(&namespaces, "");
    for name in names(&namespaces).await? {
        if name.starts_with(NAMESPACES) {
            delete_all(&plane.api(&jobs, &name)).await?;
            delete(&namespaces, &name).await?;
        }
    }
    delete_all(&plane.api(&runtimes, "")).await?;
    delete_all(&plane.api(&Resource::cluster_wide("/api/v1", "nodes"), "")).await?;
    let leases = Resource::namespaced("/apis/coordination.k8s.io/v1", "leases");
    delete_all(&plane.api(&leases, "kubeflow-system")).await?;
    let crds = Resource::crds();
    let crds = plane.api(&crds, "");
    let kinds: Vec<_> = kinds.iter().map(name_of).collect();
    for crd in names(&crds).await? {
        if !kinds.contains(&crd) {
            delete(&crds, &crd).await?;
        }
    }
    let everywhere = Resource::cluster_wide("/apis/trainer.kubeflow.org/v1alpha1", "trainjobs");
    eventually("the TrainJobs of earlier tests are gone", async || {
        let all = plane.api(&everywhere, "").items().await?;
        for job in &all {
            release(plane, &jobs, job).await?;
        }
        Ok(all.is_empty().then_some(()))
    })
    .await
}

/// Takes away the finalizers by which a test held up a deletion.
async fn release(plane: &ControlPlane, jobs: &Resource, job: &Value) -> Result<()> {
    if job.pointer("/metadata/finalizers").is_some() {
        let namespace = job.pointer("/metadata/namespace").and_then(Value::as_str);
        let api = plane.api(jobs, namespace.unwrap_or_default());
        let patch = json!({"metadata": {"finalizers": null}});
        let name = name_of(job);
        api.merge(&name, &patch, &Write::default()).await?;
    }
    Ok(())
}

fn name_of(object: &Value) -> String {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default().to_owned()
}

async fn names(api: &Api<'_>) -> Result<Vec<String>> {
    Ok(api.items().await?.iter().map(name_of).collect())
}

async fn delete_all(api: &Api<'_>) -> Result<()> {
    for name in names(api).await? {
        delete(api, &name).await?;
    }
    Ok(())
}

async fn delete(api: &Api<'_>, name: &str) -> Result<()> {
    let answer = api.delete(name).await?;
    match answer.status {
        // It went by itself, or is about to.
        StatusCode::NOT_FOUND | StatusCode::CONFLICT => Ok(()),
        _ => answer.accepted().map(drop).map_err(Into::into),
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
        assert!(refused(path).contains("where no cluster is kept; start one with `make plane`"));
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", server.local_addr().unwrap());
        announce(path, &url).unwrap();
        let attached = Kept::attach(path.to_owned()).unwrap();
        assert_eq!(attached.url, url);
        assert!(refused(path).contains("which another test program uses; wait until it has ended"));
        drop(attached);
        drop(Kept::attach(path.to_owned()).unwrap());
        drop(server);
        assert!(refused(path).contains("where the cluster has ended"));
    }
}
