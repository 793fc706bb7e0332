//! The test cluster is a real one: webhooks default its JobSets, which become Jobs and scheduled pods, finish with their pods, and leave
//! nothing behind when they are deleted.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use trainyard_cluster::{Cluster, Fate, Resource, Test, Write};

/// Returns a JobSet of two Jobs with two pods each.
fn jobset(name: &str, fate: &str, restart_policy: Option<&str>) -> Value {
    let mut pod = json!({"containers": [{"name": "node", "image": "example.com/trainer"}]});
    if let Some(policy) = restart_policy {
        pod["restartPolicy"] = json!(policy);
    }
    let annotations = json!({Fate::ANNOTATION: fate});
    let job = json!({
        "parallelism": 2,
        "completions": 2,
        "backoffLimit": 0,
        "template": {"metadata": {"annotations": annotations}, "spec": pod},
    });
    json!({
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {
            "replicatedJobs": [{"name": "workers", "replicas": 2, "template": {"spec": job}}],
        },
    })
}

/// The namespace of one test.
struct TestNamespace<'a> {
    cluster: &'a Cluster,
    namespace: String,
    jobsets: Resource,
    jobs: Resource,
    pods: Resource,
}

impl<'a> TestNamespace<'a> {
    async fn new(cluster: &'a Cluster) -> Result<Self> {
        Ok(Self {
            cluster,
            namespace: cluster.new_namespace().await?,
            jobsets: Resource::jobsets(),
            jobs: Resource::jobs(),
            pods: Resource::pods(),
        })
    }

    fn api(&'a self, resource: &'a Resource) -> trainyard_cluster::Api<'a> {
        self.cluster.api(resource, &self.namespace)
    }

    async fn create(&self, jobset: &Value) -> Result<Value> {
        let api = self.api(&self.jobsets);
        let created = api.create(jobset, &Write::strict()).await?;
        Ok(created.accepted()?)
    }

    async fn until_state(&self, name: &str, state: &str) -> Result<Value> {
        let is_so = |jobset: &Value| jobset["status"]["terminalState"] == state;
        self.api(&self.jobsets).until(name, state, is_so).await
    }

    async fn until_pods(&self, count: usize, phase: &str) -> Result<Vec<Value>> {
        let what = format!("{count} pods are {phase}");
        let are_so = |pods: &[Value]| {
            let so = pods.iter().filter(|pod| pod["status"]["phase"] == phase);
            pods.len() == count && so.count() == count
        };
        self.api(&self.pods).until_all(&what, are_so).await
    }
}

async fn job_set_of_two_jobs_with_two_pods_completes(cluster: &Cluster) -> Result<()> {
    let test = TestNamespace::new(cluster).await?;
    test.create(&jobset("done", "succeed", None)).await?;
    test.until_state("done", "Completed").await?;
    let jobs = test.api(&test.jobs).items().await?;
    let succeeded = jobs.iter().filter(|job| job["status"]["succeeded"] == 2);
    ensure!(jobs.len() == 2 && succeeded.count() == 2, "{jobs:#?}");
    let pods = test.until_pods(4, "Succeeded").await?;
    let mut addresses: Vec<&Value> = pods.iter().map(|pod| &pod["status"]["podIP"]).collect();
    addresses.sort_unstable_by_key(|address| address.to_string());
    addresses.dedup();
    ensure!(addresses.len() == 4, "{addresses:?}");
    let bound = |pod: &Value| pod["spec"]["nodeName"].as_str().map(str::to_owned);
    ensure!(
        pods.iter()
            .all(|pod| bound(pod).is_some_and(|node| node.starts_with("node-"))),
        "{pods:#?}"
    );
    Ok(())
}

async fn webhooks_default_and_refuse(cluster: &Cluster) -> Result<()> {
    let test = TestNamespace::new(cluster).await?;
    let created = test.create(&jobset("defaulted", "hold", None)).await?;
    let spec = &created["spec"];
    let job = &spec["replicatedJobs"][0]["template"]["spec"];
    ensure!(job["completionMode"] == "Indexed", "{created:#}");
    ensure!(
        job["template"]["spec"]["restartPolicy"] == "OnFailure",
        "{created:#}"
    );
    ensure!(spec["successPolicy"]["operator"] == "All", "{created:#}");
    ensure!(spec["network"]["enableDNSHostnames"] == true, "{created:#}");
    let mut bad = jobset("refused", "hold", None);
    bad["spec"]["successPolicy"] = json!({"operator": "All", "targetReplicatedJobs": ["nobody"]});
    let api = test.api(&test.jobsets);
    let refusal = api.create(&bad, &Write::strict()).await?.refused()?;
    ensure!(
        refusal.message.contains("vjobset.kb.io") && refusal.message.contains("nobody"),
        "{refusal}"
    );
    Ok(())
}

async fn failed_pod_fails_the_job_set(cluster: &Cluster) -> Result<()> {
    let test = TestNamespace::new(cluster).await?;
    let index = "batch.kubernetes.io/job-completion-index";
    cluster.kubelet().decide(&test.namespace, move |pod: &Pod| {
        let job = pod.labels().get("jobset.sigs.k8s.io/job-index");
        let pod = pod.annotations().get(index);
        match (job.map(String::as_str), pod.map(String::as_str)) {
            (Some("1"), Some("0")) => Fate::Fail(3),
            _ => Fate::Hold,
        }
    });
    test.create(&jobset("failed", "succeed", Some("Never")))
        .await?;
    let failed = test.until_state("failed", "Failed").await?;
    ensure!(
        failed["status"]["conditions"]
            .as_array()
            .is_some_and(|conditions| conditions
                .iter()
                .any(|condition| condition["type"] == "Failed" && condition["status"] == "True")),
        "{failed:#}"
    );
    let pods = test.api(&test.pods).items().await?;
    let code = |pod: &Value| {
        pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"].clone()
    };
    let codes: Vec<Value> = pods.iter().map(code).collect();
    ensure!(codes.contains(&json!(3)), "{codes:?}");
    Ok(())
}

async fn restarting_pod_stays_in_place_until_its_job_fails(cluster: &Cluster) -> Result<()> {
    let test = TestNamespace::new(cluster).await?;
    test.create(&jobset("restarted", "fail:7", None)).await?;
    let pods = test.api(&test.pods);
    let restarted = |pods: &[Value]| {
        pods.iter().any(|pod| {
            let container = &pod["status"]["containerStatuses"][0];
            container["restartCount"].as_i64() > Some(0)
                && container["lastState"]["terminated"]["exitCode"] == 7
        })
    };
    pods.until_all("a container restarted", restarted).await?;
    test.until_state("restarted", "Failed").await?;
    let jobs = test.api(&test.jobs).items().await?;
    let gave_up = |job: &Value| {
        let conditions = job["status"]["conditions"].as_array();
        conditions.is_some_and(|conditions| {
            conditions
                .iter()
                .any(|condition| condition["reason"] == "BackoffLimitExceeded")
        })
    };
    ensure!(jobs.iter().any(gave_up), "{jobs:#?}");
    Ok(())
}

async fn pods_are_held_until_decided(cluster: &Cluster) -> Result<()> {
    let test = TestNamespace::new(cluster).await?;
    test.create(&jobset("held", "hold", None)).await?;
    let pods = test.until_pods(4, "Running").await?;
    let annotations = json!({"metadata": {"annotations": {Fate::ANNOTATION: "succeed"}}});
    let first = pods[0]["metadata"]["name"].as_str().context("no name")?;
    let api = test.api(&test.pods);
    api.merge(first, &annotations, &Write::default())
        .await?
        .accepted()?;
    let is_done = |pod: &Value| pod["status"]["phase"] == "Succeeded";
    api.until(first, "it is let go", is_done).await?;
    let others = api.items().await?;
    let running = others
        .iter()
        .filter(|pod| pod["status"]["phase"] == "Running");
    ensure!(running.count() == 3, "{others:#?}");
    cluster
        .kubelet()
        .decide(&test.namespace, |_: &Pod| Fate::Succeed);
    test.until_state("held", "Completed").await?;
    Ok(())
}

async fn deleting_a_job_set_leaves_no_job_and_no_pod(cluster: &Cluster) -> Result<()> {
    let test = TestNamespace::new(cluster).await?;
    test.create(&jobset("deleted", "hold", None)).await?;
    test.until_pods(4, "Running").await?;
    let jobsets = test.api(&test.jobsets);
    jobsets.delete("deleted").await?.accepted()?;
    let none = |objects: &[Value]| objects.is_empty();
    jobsets.until_all("no JobSet", none).await?;
    test.api(&test.jobs).until_all("no Job", none).await?;
    test.api(&test.pods).until_all("no pod", none).await?;
    Ok(())
}

async fn pod_with_unknown_fate_fails_with_a_message(cluster: &Cluster) -> Result<()> {
    let test = TestNamespace::new(cluster).await?;
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "unknown", "annotations": {Fate::ANNOTATION: "perish"}},
        "spec": {"containers": [{"name": "node", "image": "example.com/trainer"}]},
    });
    let api = test.api(&test.pods);
    api.create(&pod, &Write::strict()).await?.accepted()?;
    let has_failed = |pod: &Value| pod["status"]["phase"] == "Failed";
    let pod = api.until("unknown", "it failed", has_failed).await?;
    ensure!(pod["status"]["reason"] == "UnknownFate", "{pod:#}");
    let message = pod["status"]["message"].as_str().unwrap_or_default();
    ensure!(message.contains("\"perish\""), "{pod:#}");
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Cluster>> {
    tests![
        job_set_of_two_jobs_with_two_pods_completes,
        webhooks_default_and_refuse,
        failed_pod_fails_the_job_set,
        restarting_pod_stays_in_place_until_its_job_fails,
        pods_are_held_until_decided,
        deleting_a_job_set_leaves_no_job_and_no_pod,
        pod_with_unknown_fate_fails_with_a_message,
    ]
}
