//! A queued JobSet is changed only if it is unchanged since it was read, is replaced only if a replacement is possible, and objects of
//! other owners are left unchanged.

use std::time::Duration;

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use trainyard_cluster::{Act, Call, Resource, Test, Write, eventually};

use crate::common::{Disturbed, Scenario, is, is_running, is_suspended};

const DEADLINE: Duration = Duration::from_secs(3600);
const JOB: &str = "queued";
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// Returns runtime patches with this pod spec.
fn patches(pods: &Value) -> Value {
    let job = json!({"name": "node", "template": {"spec": {"template": {"spec": pods}}}});
    json!([{
        "manager": "example.com/queue",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
    }])
}

/// A change that JobSet refuses even while a JobSet is suspended.
fn affinity() -> Value {
    json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone"},
    ]}}})
}

fn pods(job_set: &Value) -> &Value {
    &job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
}

/// A suspended TrainJob, and its JobSet.
async fn queued(scenario: &Scenario<'_>) -> Result<Value> {
    let spec = json!({"runtimeRef": {"name": "torch"}, "suspend": true});
    scenario.create(JOB, &spec).await?;
    scenario
        .api(&scenario.jobs)
        .until(JOB, "it waits", is_suspended)
        .await?;
    scenario.job_set(JOB).await
}

async fn immutable_job_set_is_replaced(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let scenario = Scenario::new(&shared.cluster, DEADLINE).await?;
    let before = queued(&scenario).await?;
    let spec = json!({"runtimePatches": patches(&affinity())});
    scenario.patch(JOB, &spec).await?;
    let changed = |job_set: &Value| pods(job_set)["affinity"] == affinity()["affinity"];
    let job_sets = scenario.api(&scenario.job_sets);
    let after = job_sets.until(JOB, "it is another", changed).await?;
    ensure!(after["metadata"]["uid"] != before["metadata"]["uid"]);
    ensure!(after["spec"]["suspend"] == true, "{after:#}");
    ensure!(job_sets.items().await?.len() == 1);
    let jobs = Resource::jobs();
    let is_its =
        |job: &Value| job["metadata"]["ownerReferences"][0]["uid"] == after["metadata"]["uid"];
    let all_are_its = |jobs: &[Value]| !jobs.is_empty() && jobs.iter().all(is_its);
    scenario
        .api(&jobs)
        .until_all("its Jobs are there, and no others", all_are_its)
        .await?;
    scenario.patch(JOB, &json!({"suspend": false})).await?;
    scenario
        .api(&scenario.jobs)
        .until(JOB, "it runs", is_running)
        .await?;
    controller.kill().map(drop)
}

/// An admission policy that denies this operation on JobSets of a namespace.
struct Policy<'a> {
    shared: &'a Disturbed,
    name: String,
    policies: Resource,
    bindings: Resource,
}

impl<'a> Policy<'a> {
    async fn new(shared: &'a Disturbed, scenario: &Scenario<'_>, operation: &str) -> Result<Self> {
        let policy = Self {
            name: format!("no-{}-{}", operation.to_lowercase(), scenario.name),
            policies: Resource::cluster_wide(ADMISSION, "validatingadmissionpolicies"),
            bindings: Resource::cluster_wide(ADMISSION, "validatingadmissionpolicybindings"),
            shared,
        };
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": policy.name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["jobset.x-k8s.io"], "apiVersions": ["*"], "resources": ["jobsets"],
                    "operations": [operation],
                }]},
                "validations": [{"expression": "false", "message": "not for now"}],
            },
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": policy.name},
            "spec": {
                "policyName": policy.name, "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": {
                    "matchLabels": {"kubernetes.io/metadata.name": scenario.name},
                }},
            },
        });
        let cluster = &shared.cluster;
        let policies = cluster.api(&policy.policies, "");
        policies
            .create(&object, &Write::strict())
            .await?
            .accepted()?;
        let bindings = cluster.api(&policy.bindings, "");
        bindings
            .create(&binding, &Write::strict())
            .await?
            .accepted()?;
        Ok(policy)
    }

    async fn end(self) -> Result<()> {
        let cluster = &self.shared.cluster;
        let bindings = cluster.api(&self.bindings, "");
        bindings.delete(&self.name).await?.accepted()?;
        let policies = cluster.api(&self.policies, "");
        policies.delete(&self.name).await?.accepted()?;
        Ok(())
    }
}

/// Waits until the operation on the JobSet is denied.
async fn until_refused(scenario: &Scenario<'_>, operation: &str) -> Result<()> {
    let job_sets = scenario.api(&scenario.job_sets);
    let mut count = 0;
    eventually("the policy holds", async || {
        count += 1;
        let answer = if operation == "CREATE" {
            let name = format!("probe-{count}");
            let probe = json!({
                "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
                "metadata": {"name": name}, "spec": {"suspend": true, "replicatedJobs": []},
            });
            let answer = job_sets.create(&probe, &Write::strict()).await?;
            if answer.status.is_success() {
                job_sets.delete(&name).await?.accepted()?;
            }
            answer
        } else {
            let touch =
                json!({"metadata": {"annotations": {"example.com/touched": count.to_string()}}});
            job_sets.merge(JOB, &touch, &Write::strict()).await?
        };
        Ok(format!("{answer:?}").contains("not for now").then_some(()))
    })
    .await
}

async fn job_set_is_kept_if_refused(shared: &Disturbed, operation: &str) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let scenario = Scenario::new(&shared.cluster, DEADLINE).await?;
    let before = queued(&scenario).await?;
    let policy = Policy::new(shared, &scenario, operation).await?;
    until_refused(&scenario, operation).await?;
    let spec = json!({"runtimePatches": patches(&affinity())});
    scenario.patch(JOB, &spec).await?;
    scenario.event(JOB, "not for now").await?;
    let job_sets = scenario.api(&scenario.job_sets);
    let now = job_sets.get(JOB).await?.accepted()?;
    ensure!(now["metadata"]["uid"] == before["metadata"]["uid"]);
    ensure!(
        now["metadata"].get("deletionTimestamp").is_none(),
        "{now:#}"
    );
    // It is retried.
    policy.end().await?;
    let changed = |job_set: &Value| pods(job_set)["affinity"] == affinity()["affinity"];
    job_sets.until(JOB, "it is another", changed).await?;
    controller.kill().map(drop)
}

async fn foreign_snapshot_is_left_unchanged(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let scenario = Scenario::new(&shared.cluster, DEADLINE).await?;
    let spec = json!({"runtimeRef": {"name": "torch"}});
    scenario.create(JOB, &spec).await?;
    scenario
        .api(&scenario.jobs)
        .until(JOB, "it runs", is_running)
        .await?;
    let config_maps = scenario.api(&scenario.config_maps);
    let name = format!("{JOB}-runtime-snapshot");
    config_maps.delete(&name).await?.accepted()?;
    let foreign = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"mine": "yes"},
    });
    let foreign = config_maps.create(&foreign, &Write::strict()).await?;
    let foreign = foreign.accepted()?;
    scenario.patch(JOB, &json!({"suspend": true})).await?;
    let waits = |job: &Value| is(job, "Suspended", "True");
    scenario
        .api(&scenario.jobs)
        .until(JOB, "it is suspended", waits)
        .await?;
    let suspended = |job_set: &Value| job_set["spec"]["suspend"] == true;
    let job_sets = scenario.api(&scenario.job_sets);
    job_sets.until(JOB, "it is suspended", suspended).await?;
    let reported = format!("ConfigMap `{name}` does not belong to this TrainJob");
    scenario.event(JOB, &reported).await?;
    let found = config_maps.get(&name).await?.accepted()?;
    ensure!(found == foreign, "{found:#}");
    controller.kill().map(drop)
}

/// The controller's watches of JobSets are blocked while a user unsuspends one.
async fn externally_unsuspended_job_set_is_not_changed(shared: &Disturbed) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.controller().await?;
    let scenario = Scenario::new(&shared.cluster, DEADLINE).await?;
    queued(&scenario).await?;
    let mut cut = false;
    let own = format!("/namespaces/{}/", scenario.name);
    let rule = move |call: &Call| {
        if call.path.contains("/v1alpha2/jobsets?") {
            return Act::Hang;
        }
        if !cut && call.path.contains(&own) {
            cut = true;
            return Act::cut_before(|| ());
        }
        Act::Forward
    };
    shared.proxy.forget().await;
    shared.proxy.set_rule(rule).await;
    // Its first call closes all watches, and the watch of JobSets is not reopened.
    let zone =
        |zone: &str| json!({"runtimePatches": patches(&json!({"nodeSelector": {"zone": zone}}))});
    scenario.patch(JOB, &zone("a")).await?;
    let job_sets = scenario.api(&scenario.job_sets);
    let in_a = |job_set: &Value| pods(job_set)["nodeSelector"]["zone"] == "a";
    job_sets.until(JOB, "it has changed", in_a).await?;
    controller.until_idle().await?;
    let let_go = json!({"spec": {"suspend": false}});
    let runs = job_sets.merge(JOB, &let_go, &Write::strict()).await?;
    let generation = runs.accepted()?["metadata"]["generation"].clone();
    let before = shared.proxy.calls().await.len();
    scenario.patch(JOB, &zone("b")).await?;
    eventually("it is looked at, twice", async || {
        let calls = shared.proxy.calls().await;
        let mut calls = calls.iter().skip(before);
        let path = format!("/namespaces/{}/jobsets/{JOB}", scenario.name);
        let is_read = |call: &&Call| call.method == Method::GET && call.path.contains(&path);
        let reads = calls.by_ref().filter(is_read).count();
        Ok((reads >= 2).then_some(()))
    })
    .await?;
    let now = job_sets.get(JOB).await?.accepted()?;
    ensure!(
        now["metadata"]["generation"] == generation && in_a(&now),
        "{now:#}"
    );
    shared.proxy.forget().await;
    controller.kill().map(drop)
}

pub(crate) fn tests() -> Vec<Test<Disturbed>> {
    vec![
        Test::new(
            "immutable_job_set_is_replaced",
            immutable_job_set_is_replaced,
        ),
        Test::new(
            "job_set_that_cannot_be_recreated_is_kept",
            async |shared: &Disturbed| job_set_is_kept_if_refused(shared, "CREATE").await,
        ),
        Test::new(
            "job_set_protected_by_an_admission_policy_is_kept",
            async |shared: &Disturbed| job_set_is_kept_if_refused(shared, "UPDATE").await,
        ),
        Test::new(
            "foreign_snapshot_is_left_unchanged",
            foreign_snapshot_is_left_unchanged,
        ),
        Test::new(
            "externally_unsuspended_job_set_is_not_changed",
            externally_unsuspended_job_set_is_not_changed,
        ),
    ]
}
