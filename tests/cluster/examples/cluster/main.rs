//! Kubernetes with Trainyard on this machine: `make cluster` keeps it until Ctrl-C, `make demo-cluster` runs one TrainJob on it, and
//! `make demo-train` runs one whose pods train.
//!
//! Everything is real except the containers: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, JobSet and Trainyard run as
//! processes; the nodes are the fake kubelet's, which reports pods as running and starts nothing, or runs their containers as processes.

mod changes;
mod demo;
mod train;

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};
use clap::Parser;
use trainyard_cluster::{
    Cluster, Fate, Framework, Installed, NodeSpec, StopSignals, Trainyard, apply, deploy,
    kustomized,
};

/// The number of nodes, each of which fits one pod of the example.
const GPU_NODES: usize = 4;

/// Starts Kubernetes with Trainyard on this machine.
#[derive(Parser)]
struct Arguments {
    /// Run the TrainJob in this folder until it is complete, then stop; by default, the cluster runs until Ctrl-C
    #[arg(long, value_name = "FOLDER")]
    demo: Option<PathBuf>,
    /// Run the TrainJob in this folder with real PyTorch until it is complete, then stop
    #[arg(long, value_name = "FOLDER", conflicts_with = "demo")]
    train: Option<PathBuf>,
    /// Install the frameworks that `make test-frameworks` uses, and start no cluster
    #[arg(long, exclusive = true)]
    install_frameworks: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if arguments.install_frameworks {
        return install_all();
    }
    let torch = match arguments.train {
        Some(_) => Some(train::install()?),
        None => None,
    };
    println!("starting Kubernetes (the first start builds it, which takes 10 to 15 minutes) ...");
    let cluster = Cluster::start_own()?;
    cluster.plane().block_on(async {
        let mut signals = StopSignals::catch()?;
        tokio::select! {
            result = run(&cluster, &arguments, torch) => result?,
            () = signals.recv() => {}
        }
        // Writing fails if the terminal was closed.
        let _ = writeln!(std::io::stdout(), "stopping the cluster ...");
        anyhow::Ok(())
    })
}

/// Installs what can be installed, and fails if anything is missing then.
fn install_all() -> Result<()> {
    let mut missing = 0;
    let frameworks = Framework::ALL.map(Framework::install);
    for installed in frameworks.into_iter().chain([Installed::transformers()]) {
        match installed {
            Ok(installed) => println!("{}: installed", installed.version),
            Err(error) => {
                missing += 1;
                println!("missing: {error:#}");
            }
        }
    }
    ensure!(missing == 0, "{missing} frameworks are not installed");
    Ok(())
}

async fn run(cluster: &Cluster, arguments: &Arguments, torch: Option<Installed>) -> Result<()> {
    for number in 0..GPU_NODES {
        cluster.kubelet().add_node(&gpu_node(number)).await?;
    }
    println!("starting the controller ...");
    let plane = cluster.plane();
    let account = deploy(plane).await?;
    let flags = ["--leader-elect=false", "--log-format=text"];
    let controller = Trainyard::start_logging_by_default(plane, &account, flags)?;
    controller.until_ready().await?;
    match (&arguments.demo, &arguments.train, torch) {
        (Some(folder), ..) => demo::run(cluster, folder).await,
        (None, Some(folder), Some(torch)) => train::run(cluster, folder, torch).await,
        _ => keep(cluster, &controller).await,
    }
}

/// Prints how to use the cluster, and returns only if one of its processes ends.
async fn keep(cluster: &Cluster, controller: &Trainyard) -> Result<()> {
    cluster.kubelet().set_default_fate(Fate::Hold);
    apply_runtimes(cluster).await?;
    print_usage(cluster);
    loop {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        cluster.still_runs()?;
        controller.process().still_runs()?;
    }
}

/// Applies the runtimes of deploy/.
async fn apply_runtimes(cluster: &Cluster) -> Result<()> {
    let runtimes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/runtimes");
    for runtime in kustomized(&runtimes)? {
        apply(cluster.plane(), &runtime, false).await?;
    }
    Ok(())
}

fn print_usage(cluster: &Cluster) {
    let kubeconfig = cluster.plane().kubeconfig().display();
    let logs = cluster.plane().folder().display();
    println!(
        "
Trainyard is running. Press Ctrl-C to stop the cluster. In another terminal:

  export KUBECONFIG={kubeconfig}
  kubectl get clustertrainingruntimes
  kubectl create namespace research
  kubectl apply --server-side -f examples/torch-llama
  kubectl get trainjobs,jobsets,pods -n research

Pods run no containers: they become ready at once and keep running until you say how they end:

  kubectl annotate pods -n research --all {annotation}=succeed   # or fail, fail:137

Logs: {logs}/*.log",
        annotation = Fate::ANNOTATION,
    );
}

/// A machine with capacity for one pod of the example.
fn gpu_node(number: usize) -> NodeSpec {
    let mut node = NodeSpec::large(format!("gpu-{number}"));
    node.labels = BTreeMap::from([("cloud.provider.com/rack".to_owned(), "rack-1".to_owned())]);
    node.capacity.insert("cpu".to_owned(), "192".to_owned());
    node.capacity.insert("memory".to_owned(), "2Ti".to_owned());
    node
}
