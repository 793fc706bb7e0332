//! Only one of several controllers reconciles. If it is stopped, it releases the Lease; if it dies, another takes over; if it loses the Lease, it
//! exits. TrainJobs continue. A controller that may not take the Lease is not ready, and says why.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use trainyard_cluster::{
    Cluster, ControlPlane, Fate, Resource, Shared, Test, Trainyard, Write, eventually,
};

use crate::{common, common::Namespace};

/// A lease duration that is shorter than the default, so an unreleased Lease expires soon.
const CONFIGURATION: &str = "
apiVersion: trainyard.dev/v1alpha1
kind: ControllerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 6s, renewDeadline: 4s, retryPeriod: 500ms}
";

/// A cluster whose Lease belongs to one test at a time.
pub(crate) struct Led {
    cluster: Cluster,
    account: PathBuf,
    configuration: PathBuf,
    turn: Mutex<()>,
}

impl Shared for Led {
    fn start() -> Result<Self> {
        let configuration = Path::new(env!("CARGO_TARGET_TMPDIR")).join("short-leases.yaml");
        std::fs::write(&configuration, CONFIGURATION)?;
        let cluster = Cluster::start()?;
        Ok(Self {
            account: common::prepare(&cluster, &[common::runtime()])?,
            cluster,
            configuration,
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

impl Led {
    fn arguments(&self) -> [OsString; 2] {
        [
            OsString::from("--config"),
            self.configuration.clone().into(),
        ]
    }

    async fn controller(&self) -> Result<Trainyard> {
        Trainyard::start(self.plane(), &self.account, self.arguments()).await
    }

    /// Starts a controller, and waits until it leads.
    async fn leader(&self) -> Result<Trainyard> {
        let controller = self.controller().await?;
        until_it_leads(&controller).await?;
        Ok(controller)
    }

    /// Returns the holder of the Lease; `None` if it was released.
    async fn holder(&self) -> Result<Option<String>> {
        let leases = leases();
        let api = self.cluster.api(&leases, NAMESPACE);
        let lease = api.get(LEASE).await?.accepted()?;
        let holder = lease["spec"]["holderIdentity"].as_str();
        Ok(holder
            .filter(|holder| !holder.is_empty())
            .map(str::to_owned))
    }
}

const NAMESPACE: &str = "kubeflow-system";
const LEASE: &str = "trainer.kubeflow.org";

fn leases() -> Resource {
    Resource::namespaced("/apis/coordination.k8s.io/v1", "leases")
}

async fn leads(controller: &Trainyard) -> Result<bool> {
    Ok(controller.metric("trainyard_leader", "").await? == 1.0)
}

async fn until_it_leads(controller: &Trainyard) -> Result<()> {
    eventually("it leads", async || {
        Ok(leads(controller).await?.then_some(()))
    })
    .await
}

/// Does something, during which both replicas are asked all the time whether they lead.
async fn only_one_leads<T>(
    [first, second]: [&Trainyard; 2],
    something: impl Future<Output = Result<T>>,
) -> Result<T> {
    // A killed one does not answer.
    let leads = async |replica: &Trainyard| leads(replica).await.unwrap_or(false);
    let mut asked = 0_u32;
    let watch = async {
        loop {
            // The first one may have stopped before the second one began.
            let two_lead = leads(first).await && leads(second).await && leads(first).await;
            ensure!(!two_lead, "two replicas lead");
            asked += 1;
            tokio::time::sleep(PAUSE).await;
        }
    };
    let done = tokio::select! {
        done = something => done?,
        two = watch => return two,
    };
    ensure!(asked > 3, "asked {asked} times");
    Ok(done)
}

/// The time between two questions.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

async fn create(namespace: &Namespace<'_>, name: &str) -> Result<()> {
    let spec = json!({"runtimeRef": {"name": "torch"}});
    namespace.create(name, &spec).await.map(drop)
}

async fn stopped_leader_exits_cleanly_and_releases_the_lease(shared: &Led) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let controller = shared.leader().await?;
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    create(&namespace, "before").await?;
    namespace.until_complete("before").await?;
    ensure!(shared.holder().await?.is_some());
    let status = controller.stop().await?;
    let printed = controller.process().last_words();
    ensure!(status.code() == Some(0), "{status}\n{printed}");
    let holder = shared.holder().await?;
    ensure!(holder.is_none(), "{holder:?}\n{printed}");
    // The next leader does not have to wait, and continues.
    create(&namespace, "after").await?;
    let next = shared.leader().await?;
    namespace.until_complete("after").await?;
    let status = next.stop().await?;
    ensure!(status.code() == Some(0), "{status}");
    Ok(())
}

async fn waiting_replica_exits_cleanly(shared: &Led) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let leader = shared.leader().await?;
    let waiting = shared.controller().await?;
    let holder = shared.holder().await?;
    let status = waiting.stop().await?;
    let printed = waiting.process().last_words();
    ensure!(status.code() == Some(0), "{status}\n{printed}");
    ensure!(leads(&leader).await? && shared.holder().await? == holder);
    leader.stop().await.map(drop)
}

async fn standby_takes_over_from_a_killed_leader(shared: &Led) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let first = shared.leader().await?;
    let second = shared.controller().await?;
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Hold);
    let take_over = async {
        create(&namespace, "runs").await?;
        namespace.until_active("runs", 1).await?;
        let before = namespace.job_set("runs").await?;
        ensure!(!leads(&second).await?, "two lead");
        let holder = shared.holder().await?;
        first.kill()?;
        create(&namespace, "comes").await?;
        until_it_leads(&second).await?;
        ensure!(shared.holder().await? != holder);
        namespace.until_active("comes", 1).await?;
        namespace.fate(Fate::Succeed);
        namespace.until_complete("runs").await?;
        namespace.until_complete("comes").await?;
        let after = namespace.job_set("runs").await?;
        for field in ["uid", "generation"] {
            ensure!(before["metadata"][field] == after["metadata"][field]);
        }
        Ok(())
    };
    only_one_leads([&first, &second], take_over).await?;
    second.stop().await.map(drop)
}

async fn standby_takes_over_from_a_stopped_leader(shared: &Led) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let first = shared.leader().await?;
    let second = shared.controller().await?;
    let take_over = async {
        first.stop().await?;
        until_it_leads(&second).await
    };
    only_one_leads([&first, &second], take_over).await?;
    second.stop().await.map(drop)
}

async fn leader_exits_when_it_loses_the_lease(shared: &Led) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let leader = shared.leader().await?;
    let taken: Value = json!({"spec": {"holderIdentity": "somebody"}});
    let leases = leases();
    let api = shared.cluster.api(&leases, NAMESPACE);
    api.merge(LEASE, &taken, &Write::strict())
        .await?
        .accepted()?;
    let status = leader.until_ended().await?;
    let printed = leader.process().log()?;
    ensure!(status.code() == Some(1), "{status}\n{printed}");
    ensure!(printed.contains("the Lease is lost"), "{printed}");
    ensure!(shared.holder().await?.as_deref() == Some("somebody"));
    // The leader disappears, and the next one takes over.
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    create(&namespace, "after").await?;
    let next = shared.leader().await?;
    namespace.until_complete("after").await?;
    next.stop().await.map(drop)
}

/// Creates a ServiceAccount with the controller's permissions, except for `update` on the Lease. Returns its kubeconfig file.
async fn account_without_update(plane: &ControlPlane) -> Result<PathBuf> {
    let create = async |resource: Resource, namespace: &str, object: Value| -> Result<()> {
        let api = plane.api(&resource, namespace);
        api.create(&object, &Write::strict()).await?.accepted()?;
        Ok(())
    };
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": RESTRICTED}});
    create(Resource::service_accounts(), NAMESPACE, account).await?;
    let role = role(&["create", "get"]);
    create(Resource::namespaced(RBAC, "roles"), NAMESPACE, role).await?;
    for (resource, namespace, kind, role) in [
        (
            Resource::namespaced(RBAC, "rolebindings"),
            NAMESPACE,
            "Role",
            RESTRICTED,
        ),
        (
            Resource::cluster_wide(RBAC, "clusterrolebindings"),
            "",
            "ClusterRole",
            "kubeflow-trainer-controller-manager",
        ),
    ] {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": {"name": RESTRICTED},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": RESTRICTED, "namespace": NAMESPACE}],
        });
        create(resource, namespace, binding).await?;
    }
    plane
        .kubeconfig_for_service_account(NAMESPACE, RESTRICTED)
        .await
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const RESTRICTED: &str = "without-update";

/// Returns a role with these permissions for Leases.
fn role(verbs: &[&str]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": RESTRICTED},
        "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}],
    })
}

async fn controller_without_update_on_leases_is_not_ready(shared: &Led) -> Result<()> {
    let _turn = shared.turn.lock().await;
    // The Lease exists, and nobody holds it.
    shared.leader().await?.stop().await?;
    let plane = shared.plane();
    let account = account_without_update(plane).await?;
    let controller = Trainyard::start_unready(plane, &account, shared.arguments())?;
    let unavailable = "trainyard_lease_unavailable";
    let reason = eventually("only the Lease is refused", async || {
        controller.process().still_runs()?;
        // It may not be listening yet, and then its watches are not ready either.
        let Ok((code, reason)) = controller.readiness().await else {
            return Ok(None);
        };
        ensure!(code == 503, "{code}: {reason}");
        let only_lease = reason.contains("Lease (") && !reason.contains("TrainJob");
        let is_refused = reason.contains("is forbidden");
        Ok((only_lease && is_refused).then_some(reason))
    })
    .await?;
    let missing = format!(
        "cannot update resource \"leases\" in API group \"coordination.k8s.io\" in the namespace \"{NAMESPACE}\""
    );
    ensure!(reason.contains(&missing), "{reason}");
    ensure!(controller.metric(unavailable, "").await? == 1.0);
    ensure!(!leads(&controller).await? && shared.holder().await?.is_none());
    let log = controller.process().log()?;
    let warning = log
        .lines()
        .find(|line| line.contains("the Lease cannot be taken"));
    ensure!(
        warning.is_some_and(|line| line.contains(&missing.replace('"', "\\\""))),
        "{log}"
    );

    // It continues as soon as it has the permission.
    let roles = Resource::namespaced(RBAC, "roles");
    let roles = shared.cluster.api(&roles, NAMESPACE);
    let rules = json!({"rules": role(&["create", "get", "update"])["rules"]});
    let merged = roles.merge(RESTRICTED, &rules, &Write::strict()).await?;
    merged.accepted()?;
    controller.until_ready().await?;
    until_it_leads(&controller).await?;
    ensure!(controller.metric(unavailable, "").await? == 0.0);
    controller.stop().await.map(drop)
}

pub(crate) fn tests() -> Vec<Test<Led>> {
    tests![
        stopped_leader_exits_cleanly_and_releases_the_lease,
        waiting_replica_exits_cleanly,
        standby_takes_over_from_a_killed_leader,
        standby_takes_over_from_a_stopped_leader,
        leader_exits_when_it_loses_the_lease,
        controller_without_update_on_leases_is_not_ready,
    ]
}
