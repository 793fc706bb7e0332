//! docs/move.md, command by command, with each version of helm: the Kubeflow Trainer's own chart is installed with JobSet's, which is its
//! default, with both controllers and their webhooks, and runs TrainJobs of each policy. Trainyard's chart replaces it, and is replaced by it
//! again. Both times, the rehearsal says which TrainJobs are touched, and the JobSets, pods, ConfigMaps and Secrets of all others stay as they
//! are, byte for byte. No object of JobSet's chart is written.

mod jobset;
mod rehearsals;

use std::{collections::BTreeSet, fs};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use trainyard_cluster::{
    Cluster, ControlPlane, Helm, PodGroups, Reference, ReferencePorts, Shared, Test, Trainyard,
    Write,
};
use trainyard_schema::documents::Kind;

use crate::common::{
    Namespace, Objects,
    charts::{self, Charts, NAMESPACE},
    hold_after_initializers, is_running, kind,
    pages::{self, MOVE},
    runtimes,
};

/// TrainJobs, each named after its runtime. The first three are of runtimes that both charts install.
const JOBS: [&str; 8] = [
    "torch-distributed",
    "jax-distributed",
    "xgboost-distributed",
    "own-launcher",
    "launcher-node",
    "flux",
    "coscheduling",
    "volcano",
];
/// Those that the rehearsal of the way back says to wait for, if they run and Trainyard rendered them: the reference writes their scripts, key
/// and hostfile again.
const REWRITTEN: [&str; 2] = ["flux", "launcher-node"];
/// Suspended TrainJobs: the reference can start the first one's JobSet, and has to recreate the other's.
const SUSPENDED: [&str; 2] = ["torch-distributed", "jax-distributed"];
const INSTALL: &str = "4. **Install Trainyard**";
const BACK: &str = "## Move back to the Kubeflow Trainer\n";

/// A cluster with the kinds of gangs. Tests take turns, because a chart can be installed once.
pub(crate) struct Gangs {
    cluster: Cluster,
    jobset: jobset::Controller,
    turn: Mutex<()>,
}

impl Shared for Gangs {
    fn start() -> Result<Self> {
        let kinds = PodGroups::ALL.map(PodGroups::definition);
        let cluster = Cluster::start_with(kinds.into_iter().collect::<Result<_>>()?)?;
        Ok(Self {
            jobset: cluster.plane().block_on(jobset::Controller::of(&cluster))?,
            cluster,
            turn: Mutex::default(),
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.cluster.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.cluster.still_runs()
    }
}

/// Returns the commands of a step, with names for the placeholders of the page.
fn step(page: &str, from: &str, to: &str) -> Result<Vec<String>> {
    let commands = pages::commands(page, from, to)?.into_iter();
    let named = commands.map(|command| {
        command
            .replace("NAMESPACE_OF_THE_RELEASE", NAMESPACE)
            .replace("RELEASE", "kubeflow-trainer")
            .replace("REGISTRY/", "example.com/")
            .replace(
                "oci://ghcr.io/kubeflow/charts/kubeflow-trainer --version 2.3.0",
                "charts/kubeflow-trainer",
            )
    });
    Ok(named.collect())
}

/// Returns the only command of helm among others, which waits until its pods are ready.
fn helm_install(charts: &Charts<'_>, commands: Vec<String>) -> Result<String> {
    let mut installs = commands
        .into_iter()
        .filter(|command| command.starts_with("helm install"));
    let install = installs.next().context("no command of helm")?;
    ensure!(installs.next().is_none());
    let takes = charts.taking_over().join(" ");
    let install = install.trim_end().replace("--take-ownership", &takes);
    Ok(format!("{install} --wait --timeout 5m"))
}

/// Creates the runtimes that are in no chart.
async fn create_runtimes(cluster: &Cluster) -> Result<()> {
    let resource = kind(Kind::ClusterTrainingRuntime)?;
    let api = cluster.api(&resource, "");
    for runtime in [
        runtimes::gang(PodGroups::Coscheduling),
        runtimes::gang(PodGroups::Volcano),
        runtimes::mpi("own-launcher", false),
        runtimes::mpi("launcher-node", true),
        runtimes::flux(),
    ] {
        let write = Write {
            force: true,
            ..Write::by("test")
        };
        api.apply(&runtime, &write).await?.accepted()?;
    }
    Ok(())
}

/// Creates a TrainJob of each policy in a new namespace, and waits until all run. Returns their objects.
async fn run_all(cluster: &Cluster) -> Result<(Namespace<'_>, Objects)> {
    let namespace = Namespace::new(cluster).await?;
    namespace.decide_pods(hold_after_initializers);
    for name in JOBS {
        namespace.create(name, &spec(name, false)).await?;
    }
    for name in JOBS {
        namespace.until(name, "it runs", is_running).await?;
    }
    let objects = settled(&namespace).await?;
    Ok((namespace, objects))
}

fn spec(runtime: &str, suspend: bool) -> Value {
    json!({
        "runtimeRef": {"name": runtime}, "trainer": {"numNodes": 2, "command": ["mpirun", "lmp"]}, "suspend": suspend,
    })
}

/// Waits until the objects are settled, and returns them with the PodGroups of both kinds.
async fn settled(namespace: &Namespace<'_>) -> Result<Objects> {
    let mut objects = namespace.settled().await?;
    for kind in PodGroups::ALL {
        let resource = kind.resource();
        let group = namespace.api(&resource).get(kind.policy()).await?;
        if let Ok(group) = group.accepted() {
            objects.insert(format!("PodGroup {}", kind.policy()), group);
        }
    }
    Ok(objects)
}

/// Returns the objects that are not the same, which is none unless they are those of these TrainJobs.
fn changed(before: &Objects, now: &Objects) -> BTreeSet<String> {
    let all = before.keys().chain(now.keys());
    let differs = |key: &&String| before.get(*key) != now.get(*key);
    all.filter(differs).cloned().collect()
}

/// Replaces the reference by Trainyard, as the page says.
async fn over(charts: &Charts<'_>, reference: Reference) -> Result<Trainyard> {
    const STOP: &str = "3. **Stop the old controller**";
    for command in step(MOVE, "2. **Keep the values", STOP)? {
        charts.shell(&command).await?;
    }
    let stop = step(MOVE, STOP, INSTALL)?;
    let [webhooks, of_chart, _without_chart, check] = &stop[..] else {
        anyhow::bail!("{stop:?}");
    };
    charts.shell(webhooks).await?;
    charts.shell(of_chart).await?;
    charts.until_no_pods().await?;
    reference.process().kill()?;
    drop(reference);
    let left = charts.shell(check).await?;
    ensure!(left.is_empty(), "{left}");
    let install = step(MOVE, INSTALL, "The commands of these steps")?;
    let install = helm_install(charts, install)?;
    charts.install_trainyard(charts.shell(&install)).await
}

/// Replaces Trainyard by the reference, as the page says.
async fn back(
    charts: &Charts<'_>,
    trainyard: Trainyard,
    ports: ReferencePorts,
) -> Result<Reference> {
    const INSTALL: &str = "3. **Install the Kubeflow Trainer**";
    let (_, page) = MOVE.split_once(BACK).context("no way back")?;
    let remove = step(page, "2. **Remove Trainyard", INSTALL)?;
    let [remove, _without_chart] = &remove[..] else {
        anyhow::bail!("{remove:?}");
    };
    charts.shell(remove).await?;
    charts.until_no_pods().await?;
    trainyard.stop().await?;
    let install = step(page, INSTALL, "4. **Delete the JobSets")?;
    let install = helm_install(charts, install)?;
    charts
        .install_the_reference(charts.shell(&install), ports)
        .await
}

/// Creates TrainJobs that are suspended, in a namespace of their own, and waits until they have their JobSets.
async fn suspend_some(cluster: &Cluster) -> Result<Namespace<'_>> {
    let namespace = Namespace::new(cluster).await?;
    for name in SUSPENDED {
        namespace.create(name, &spec(name, true)).await?;
    }
    for name in SUSPENDED {
        namespace.job_set(name).await?;
    }
    Ok(namespace)
}

/// Deletes the JobSet of the suspended TrainJob of which the rehearsal said so, as the page says, and resumes all. They run to their end.
async fn resume(charts: &Charts<'_>, held: &Namespace<'_>) -> Result<()> {
    let delete = step(
        MOVE,
        "4. **Delete the JobSets of suspended",
        "These commands are tested",
    )?;
    let [delete] = &delete[..] else {
        anyhow::bail!("{delete:?}");
    };
    let delete = delete.replace("NAMESPACE", &held.name);
    charts.shell(&delete.replace("NAME", SUSPENDED[1])).await?;
    for name in SUSPENDED {
        held.job_set(name).await?;
        held.patch(name, &json!({"suspend": false})).await?;
    }
    held.complete(&SUSPENDED).await
}

/// Checks that only ConfigMaps and Secrets of the TrainJobs are different of which the rehearsal said that they are written again.
fn only_said_objects_are_rewritten(touched: &BTreeSet<String>) -> Result<()> {
    for key in touched {
        let (kind, name) = key.split_once(' ').context("no kind")?;
        let is_said = REWRITTEN
            .iter()
            .any(|job| name.starts_with(&format!("{job}-")));
        let is_mounted = ["ConfigMap", "Secret"].contains(&kind);
        ensure!(is_said && is_mounted, "the reference changed {touched:?}");
    }
    let is_touched = |job: &&str| touched.iter().any(|key| key.contains(&format!(" {job}-")));
    ensure!(REWRITTEN.iter().all(is_touched), "{touched:?}");
    Ok(())
}

/// Checks which objects of both charts are left.
async fn nothing_of_the_reference_is_left(charts: &Charts<'_>) -> Result<()> {
    let left = charts.shell(
        "kubectl get -o name deployments,services,serviceaccounts,configmaps,roles,rolebindings,clusterroles,clusterrolebindings \
         --namespace kubeflow-system -l app.kubernetes.io/component=runtimes-installer",
    );
    let left = left.await?;
    ensure!(left.is_empty(), "{left}");
    let listed = charts.helm(&["list", "--short"]).await?;
    ensure!(listed.trim() == "trainyard", "{listed}");
    let deployment = charts.deployment().await?.to_string();
    ensure!(deployment.contains("example.com/trainyard"), "{deployment}");
    Ok(())
}

/// Removes Trainyard's CRDs, with which a cluster starts, and what an earlier turn left.
async fn clear(charts: &Charts<'_>) -> Result<()> {
    for release in ["kubeflow-trainer", "trainyard"] {
        charts
            .helm(&["uninstall", release, "--no-hooks", "--ignore-not-found"])
            .await?;
    }
    jobset::clear(charts).await?;
    charts.until_no_pods().await?;
    charts::delete_crds(charts.cluster.plane()).await
}

async fn over_and_back(shared: &Gangs, helm: Helm) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let cluster = &shared.cluster;
    let charts = Charts::new(cluster, helm)?;
    clear(&charts).await?;
    let ports = ReferencePorts::find()?;
    let mut config = ports.configuration();
    // It does not run in a pod, which would say its namespace.
    config["leaderElection"] = json!({"resourceNamespace": NAMESPACE});
    let values = json!({
        // Its default, which Trainyard's chart reads, too.
        "jobset": {"install": true}, "runtimes": {"defaultEnabled": true}, "manager": {"config": config},
    });
    fs::write(charts.path("reference.yaml"), values.to_string())?;
    let install = "helm install kubeflow-trainer charts/kubeflow-trainer --namespace kubeflow-system --create-namespace \
                   --values reference.yaml --wait --timeout 5m";
    let reference = charts
        .install_the_reference(charts.shell(install), ports.clone())
        .await?;
    shared.jobset.is_called(&charts).await?;
    create_runtimes(cluster).await?;
    let (theirs, before) = run_all(cluster).await.context("with the reference")?;

    rehearsals::of_the_way_there(&charts, &theirs).await?;
    rehearsals::by_the_shadow_mode(&charts)
        .await
        .context("the shadow mode")?;
    let touched = changed(&before, &settled(&theirs).await?);
    ensure!(touched.is_empty(), "the rehearsal changed {touched:?}");
    let installed = jobset::objects(&charts).await?;
    let trainyard = over(&charts, reference).await?;
    nothing_of_the_reference_is_left(&charts).await?;
    ensure!(
        jobset::objects(&charts).await? == installed,
        "JobSet was written"
    );
    // It leads when these run.
    let (ours, new) = run_all(cluster).await.context("with Trainyard")?;
    trainyard.until_idle().await?;
    let touched = changed(&before, &settled(&theirs).await?);
    ensure!(touched.is_empty(), "Trainyard changed {touched:?}");

    let held = suspend_some(cluster).await?;
    trainyard.until_idle().await?;
    let said = rehearsals::of_the_way_back(&charts).await?;
    let mut expected: rehearsals::Said = REWRITTEN
        .map(|name| (ours.name.clone(), name.to_owned(), "wait".to_owned()))
        .into();
    expected.insert((
        held.name.clone(),
        SUSPENDED[1].to_owned(),
        "deleteJobSet".to_owned(),
    ));
    ensure!(said == expected, "{said:?}");

    let reference = back(&charts, trainyard, ports).await?;
    ensure!(
        jobset::objects(&charts).await? == installed,
        "JobSet was written"
    );
    reference
        .until_reconciled(2 * JOBS.len() + SUSPENDED.len())
        .await?;
    let touched = changed(&before, &settled(&theirs).await?);
    ensure!(touched.is_empty(), "the reference changed {touched:?}");
    let touched = changed(&new, &settled(&ours).await?);
    only_said_objects_are_rewritten(&touched)?;
    resume(&charts, &held).await?;
    for namespace in [&theirs, &ours] {
        namespace.complete(&JOBS).await?;
    }
    drop(reference);
    Ok(())
}

async fn with_helm_3(shared: &Gangs) -> Result<()> {
    over_and_back(shared, Helm::Three).await
}

async fn with_helm_4(shared: &Gangs) -> Result<()> {
    over_and_back(shared, Helm::Four).await
}

pub(crate) fn tests() -> Vec<Test<Gangs>> {
    tests![with_helm_3, with_helm_4]
}
