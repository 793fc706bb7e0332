//! Real frameworks form their groups in the pods of TrainJobs, with the env vars, files, keys and addresses of the shipped runtimes alone.
//! A sum over all ranks proves that they are connected. A rank that always fails makes its TrainJob fail, and a TrainJob that was suspended
//! while its group ran completes after it is resumed. If a rank fails once or a pod is evicted, the group is restarted as a whole.

mod restarts;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use trainyard_cluster::{Framework, Images, Installed, Test, eventually};

use crate::common::{Controlled, Namespace, Setup, is, runtimes};

/// The shipped runtime of each framework.
pub(crate) struct Runtimes;

impl Setup for Runtimes {
    fn runtimes() -> Vec<Value> {
        Framework::ALL
            .map(|framework| runtimes::shipped(framework.runtime()))
            .into()
    }

    fn arguments() -> Result<Vec<OsString>> {
        Ok(Vec::new())
    }
}

pub(crate) type Shared = Controlled<Runtimes>;

/// A guarantee that is tested for each framework.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Guarantee {
    Completes,
    Fails,
    IsResumed,
    IsRestarted,
    IsEvicted,
}

impl Guarantee {
    pub(crate) const ALL: [Self; 5] = [
        Self::Completes,
        Self::Fails,
        Self::IsResumed,
        Self::IsRestarted,
        Self::IsEvicted,
    ];

    /// Returns the name of its test.
    pub(crate) fn test(self, framework: Framework) -> String {
        let guarantee = match self {
            Self::Completes => "sums_the_ranks_of_two_nodes_and_completes",
            Self::Fails => "fails_with_one_of_its_ranks",
            Self::IsResumed => "completes_after_it_was_suspended",
            Self::IsRestarted => "goes_on_from_its_checkpoint_after_a_rank_failed",
            Self::IsEvicted => "forms_its_group_again_after_an_eviction",
        };
        format!("{}_{guarantee}", framework.name())
    }

    async fn check(self, job: &Job<'_>) -> Result<()> {
        match self {
            Self::Completes => sums_the_ranks_of_two_nodes_and_completes(job).await,
            Self::Fails => fails_with_one_of_its_ranks(job).await,
            Self::IsResumed => completes_after_it_was_suspended(job).await,
            Self::IsRestarted => restarts::goes_on_from_its_checkpoint(job).await,
            Self::IsEvicted => restarts::forms_its_group_again_after_an_eviction(job).await,
        }
    }
}

/// The nodes of each TrainJob.
const NODES: usize = 2;
/// The rank that fails. It is on the second node, or is the second process of the first one.
const FAILING: &str = "1";
/// How long a TrainJob may take. A failing one forms its group several times, and imports alone take a minute on a busy machine.
const WITHIN: Duration = Duration::from_secs(10 * 60);
/// The pause between two looks at a TrainJob.
const PAUSE: Duration = Duration::from_millis(200);
/// A folder of the test in every pod.
const SHARED: &str = "/run/shared";
/// The file in it without which a held group goes on summing.
const GO: &str = "go";

/// A TrainJob of a framework in a namespace of its own.
struct Job<'a> {
    namespace: Namespace<'a>,
    framework: Framework,
    command: Vec<String>,
    logs: PathBuf,
    shared: TempDir,
}

/// The name of each TrainJob.
const NAME: &str = "llm";

impl<'a> Job<'a> {
    async fn new(
        shared: &'a Shared,
        framework: Framework,
        installed: &Installed,
    ) -> Result<Job<'a>> {
        let namespace = Namespace::new(&shared.cluster).await?;
        let folder = tempfile::tempdir()?;
        // Programs of MPI have a user of their own.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let runtime = runtimes::shipped(framework.runtime());
        let image = installed.image.clone().file(folder.path(), SHARED);
        let names = image_names(&runtime).into_iter();
        let images = names.fold(Images::new(), |images, name| {
            images.with(name, image.clone())
        });
        let kubelet = shared.cluster.kubelet();
        kubelet.run(&namespace.name, images);
        Ok(Self {
            logs: kubelet.logs().join(&namespace.name),
            namespace,
            framework,
            command: installed.command.clone(),
            shared: folder,
        })
    }

    /// Returns the spec of the TrainJob, with options of the program.
    fn spec(&self, options: &[&str]) -> Value {
        // Of these programs, only XGBoost's starts the processes of a pod itself.
        let mut args: Vec<_> = options.iter().map(|&option| option.to_owned()).collect();
        if self.framework == Framework::XgBoost {
            args.extend(["--processes".to_owned(), self.processes().to_string()]);
        }
        json!({
            "runtimeRef": {"name": self.framework.runtime()},
            "trainer": {
                "numNodes": NODES,
                "numProcPerNode": self.processes(),
                "command": self.command,
                "args": args,
            },
        })
    }

    /// Creates the TrainJob, with options of the program.
    async fn create(&self, options: &[&str]) -> Result<()> {
        self.namespace.create(NAME, &self.spec(options)).await?;
        Ok(())
    }

    /// Returns the number of processes on each node.
    fn processes(&self) -> usize {
        match self.framework {
            // It has one process for all devices of a node.
            Framework::Jax => 1,
            Framework::Torch | Framework::XgBoost | Framework::OpenMpi | Framework::Mpich => 2,
        }
    }

    /// Returns the lines of all pods' logs.
    fn lines(&self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for log in files(&self.logs)? {
            let text = fs::read(&log)?;
            lines.extend(String::from_utf8_lossy(&text).lines().map(str::to_owned));
        }
        Ok(lines)
    }

    /// Returns how often each rank has reported its group, with its host.
    fn ranks(&self) -> Result<BTreeMap<Rank, usize>> {
        let mut ranks = BTreeMap::new();
        for line in self.lines()? {
            if let Some(rank) = Rank::of(&line) {
                *ranks.entry(rank).or_default() += 1;
            }
        }
        Ok(ranks)
    }

    /// Checks that the group was formed this often, with all ranks on the expected nodes, and that each rank knows the sum over all.
    fn check_groups(&self, groups: usize) -> Result<()> {
        let ranks = self.ranks()?;
        let size = NODES * self.processes();
        let mut hosts = BTreeMap::<&str, usize>::new();
        let mut numbers = BTreeMap::<usize, usize>::new();
        for (rank, times) in &ranks {
            ensure!(
                rank.size == size && rank.sum == (0..size).sum::<usize>(),
                "{rank:?}"
            );
            *hosts.entry(&rank.host).or_default() += times;
            *numbers.entry(rank.number).or_default() += times;
        }
        let expected: BTreeMap<_, _> = (0..size).map(|number| (number, groups)).collect();
        ensure!(numbers == expected, "{ranks:?}");
        let per_host = groups * self.processes();
        let expected = self.hosts().map(|host| (host, per_host));
        ensure!(hosts == BTreeMap::from(expected), "{ranks:?}");
        Ok(())
    }

    /// Returns the host names of the nodes. The launcher of MPI is one of them.
    fn hosts(&self) -> [&'static str; NODES] {
        match self.framework {
            Framework::OpenMpi | Framework::Mpich => ["llm-launcher-0-0", "llm-node-0-0"],
            Framework::Torch | Framework::Jax | Framework::XgBoost => {
                ["llm-node-0-0", "llm-node-0-1"]
            }
        }
    }

    /// Waits until the TrainJob has ended with this condition.
    async fn until_ended(&self, condition: &str) -> Result<()> {
        let jobs = self.namespace.api(&self.namespace.jobs);
        let deadline = Instant::now() + WITHIN;
        loop {
            let job = jobs.get(NAME).await?.accepted()?;
            if is(&job, condition, "True") {
                return Ok(());
            }
            let has_ended = is(&job, "Complete", "True") || is(&job, "Failed", "True");
            let is_late = Instant::now() > deadline;
            ensure!(!has_ended && !is_late, "not {condition}: {job:#}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until this many groups have been formed.
    async fn until_formed(&self, groups: usize) -> Result<()> {
        let reports = groups * NODES * self.processes();
        eventually("all ranks have reported", async || {
            let reported: usize = self.ranks()?.values().sum();
            Ok((reported >= reports).then_some(()))
        })
        .await
    }

    /// Creates the TrainJob, whose ranks sum until [`Self::go`], and waits until its group is formed.
    async fn hold(&self) -> Result<()> {
        let go = Path::new(SHARED).join(GO);
        let go = go.to_str().context("the path is not UTF-8")?;
        self.create(&["--hold-until", go]).await?;
        self.until_formed(1).await
    }

    /// Lets a group that is held end.
    fn go(&self) -> Result<()> {
        Ok(fs::write(self.shared.path().join(GO), "")?)
    }

    async fn until_no_pod_is_left(&self) -> Result<()> {
        let none = <[Value]>::is_empty;
        let pods = self.namespace.api(&self.namespace.pods);
        pods.until_all("the pods are gone", none).await?;
        Ok(())
    }
}

/// A line such as `rank 0 of 2 on llm-node-0-0 sum 1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    number: usize,
    size: usize,
    host: String,
    sum: usize,
}

impl Rank {
    fn of(line: &str) -> Option<Self> {
        let words: Vec<_> = line.split_whitespace().collect();
        // Other output may be on the same line before it.
        let start = words.len().checked_sub(8)?;
        let ["rank", number, "of", size, "on", host, "sum", sum] = *words.get(start..)? else {
            return None;
        };
        Some(Self {
            number: number.parse().ok()?,
            size: size.parse().ok()?,
            host: host.to_owned(),
            sum: sum.parse().ok()?,
        })
    }
}

/// Returns the images of a runtime's containers.
fn image_names(runtime: &Value) -> BTreeSet<String> {
    let jobs = runtime.pointer("/spec/template/spec/replicatedJobs");
    let jobs = jobs.and_then(Value::as_array).into_iter().flatten();
    let containers = jobs.filter_map(|job| {
        let pods = &job["template"]["spec"]["template"]["spec"];
        pods["containers"].as_array()
    });
    let names = containers
        .flatten()
        .filter_map(|container| container["image"].as_str());
    names.map(str::to_owned).collect()
}

/// Returns the files in a folder and its subfolders; none if it does not exist.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let into = if path.is_dir() {
                &mut folders
            } else {
                &mut files
            };
            into.push(path);
        }
    }
    Ok(files)
}

async fn sums_the_ranks_of_two_nodes_and_completes(job: &Job<'_>) -> Result<()> {
    job.create(&[]).await?;
    job.until_ended("Complete").await?;
    job.check_groups(1)
}

async fn fails_with_one_of_its_ranks(job: &Job<'_>) -> Result<()> {
    job.create(&["--fail-rank", FAILING]).await?;
    job.until_ended("Failed").await?;
    let lines = job.lines()?;
    let said = format!("rank {FAILING} fails");
    ensure!(lines.iter().any(|line| line.contains(&said)), "{lines:#?}");
    Ok(())
}

async fn completes_after_it_was_suspended(job: &Job<'_>) -> Result<()> {
    job.hold().await?;
    job.namespace.suspend(NAME).await?;
    job.until_no_pod_is_left().await?;
    job.go()?;
    job.namespace
        .patch(NAME, &json!({"suspend": false}))
        .await?;
    job.until_ended("Complete").await?;
    job.check_groups(2)
}

/// Returns the tests of a framework.
pub(crate) fn tests(framework: Framework, installed: &Installed) -> Vec<Test<Shared>> {
    let test = |guarantee: Guarantee| {
        let installed = installed.clone();
        Test::new(guarantee.test(framework), async move |shared: &Shared| {
            let job = Job::new(shared, framework, &installed).await?;
            let checked = guarantee.check(&job).await;
            checked.with_context(|| {
                let lines = job.lines().unwrap_or_default();
                format!("{}; the pods' logs: {lines:#?}", installed.version)
            })
        })
    };
    Guarantee::ALL.map(test).into()
}
