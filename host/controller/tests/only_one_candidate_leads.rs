//! Only one of several candidates leads at a time; a leader that cannot reach the API server stops before another one starts.

use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::Duration,
};

use axum::response::Response;
use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tracing::Level;
use trainyard_controller::{
    lease::{Candidate, LEASE_NAME, LeaseOptions, identity},
    metrics::Metrics,
    serve::Readiness,
};

use crate::stub::{self, answer, log::CapturedLog, metrics, status};

const WELL: u8 = 0;
const BROKEN: u8 = 1;
const HANGS: u8 = 2;
const FORBIDDEN: u8 = 3;

/// A Lease with the optimistic locking of an API server.
#[derive(Clone, Default)]
struct Server(Arc<State>);

#[derive(Default)]
struct State {
    lease: Mutex<Option<Value>>,
    writes: Mutex<Vec<(Method, Value)>>,
    health: AtomicU8,
    readiness: Arc<Readiness>,
    metrics: OnceLock<Arc<Metrics>>,
}

impl State {
    fn metrics(&self) -> Arc<Metrics> {
        self.metrics.get_or_init(metrics).clone()
    }
}

impl Server {
    fn client(&self) -> kube::Client {
        let server = self.clone();
        stub::client(move |request| {
            let server = server.clone();
            Box::pin(async move {
                match server.0.health.load(Ordering::SeqCst) {
                    BROKEN => return status(503, "ServiceUnavailable"),
                    HANGS => std::future::pending().await,
                    FORBIDDEN => return status(403, "Forbidden"),
                    _ => {}
                }
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                let body = match method {
                    Method::GET => Value::Null,
                    _ => stub::json(request).await,
                };
                assert!(path.starts_with("/apis/coordination.k8s.io/v1/namespaces/system/leases"));
                server.answer(method, body)
            })
        })
    }

    fn answer(&self, method: Method, mut body: Value) -> Response {
        let mut lease = self.0.lease.lock().unwrap();
        if method != Method::GET {
            self.0
                .writes
                .lock()
                .unwrap()
                .push((method.clone(), body.clone()));
        }
        let version = |lease: &Value| {
            lease["metadata"]["resourceVersion"]
                .as_str()
                .map(str::to_owned)
        };
        match (&method, &*lease) {
            (&Method::GET, None) | (&Method::PUT, None) => status(404, "NotFound"),
            (&Method::GET, Some(lease)) => answer(200, lease),
            (&Method::POST, Some(_)) => status(409, "AlreadyExists"),
            (&Method::PUT, Some(old)) if version(&body) != version(old) => status(409, "Conflict"),
            (&Method::POST | &Method::PUT, old) => {
                let last: u64 = old
                    .as_ref()
                    .and_then(version)
                    .map_or(0, |v| v.parse().unwrap());
                body["metadata"]["resourceVersion"] = json!((last + 1).to_string());
                *lease = Some(body.clone());
                answer(200, &body)
            }
            _ => status(405, "MethodNotAllowed"),
        }
    }

    fn spec(&self) -> Value {
        self.0.lease.lock().unwrap().as_ref().unwrap()["spec"].clone()
    }

    fn set(&self, spec: &Value) {
        *self.0.lease.lock().unwrap() = Some(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": LEASE_NAME, "namespace": "system", "resourceVersion": "1000"},
            "spec": spec
        }));
    }

    fn health(&self, health: u8) {
        self.0.health.store(health, Ordering::SeqCst);
    }

    fn candidate(&self, name: &str) -> Candidate {
        let options = LeaseOptions {
            namespace: "system".to_owned(),
            name: LEASE_NAME.to_owned(),
            identity: name.to_owned(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        };
        let readiness = self.0.readiness.clone();
        Candidate::new(self.client(), options, self.0.metrics(), readiness)
    }

    /// Returns what is missing for readiness, and whether the metric shows a problem.
    fn problem(&self) -> (String, bool) {
        let text = self.0.metrics().text().unwrap();
        let is_shown = text
            .lines()
            .any(|line| line == "trainyard_lease_unavailable 1");
        (self.0.readiness.missing().concat(), is_shown)
    }
}

#[tokio::test(start_paused = true)]
async fn second_candidate_leads_when_the_first_releases_the_lease() {
    let server = Server::default();
    let first = server.candidate("first").acquire().await;
    assert_eq!(server.spec()["holderIdentity"], "first");
    assert_eq!(server.spec()["leaseTransitions"], 0);
    assert_eq!(server.spec()["leaseDurationSeconds"], 15);
    let renewed = server.spec()["renewTime"].clone();
    let mut second = Box::pin(server.candidate("second").acquire());
    // Longer than the Lease lasts: the first one renews.
    assert!(timeout(Duration::from_secs(60), &mut second).await.is_err());
    assert_ne!(server.spec()["renewTime"], renewed);
    first.release().await;
    assert_eq!(server.spec()["holderIdentity"], "");
    let second = timeout(Duration::from_secs(3), second).await.unwrap();
    assert_eq!(server.spec()["holderIdentity"], "second");
    // Giving it back is a write too, but no transition; as in client-go.
    assert_eq!(server.spec()["leaseTransitions"], 1);
    drop(second);
}

#[tokio::test(start_paused = true)]
async fn dead_leader_is_replaced_when_its_lease_expires() {
    let server = Server::default();
    let first = server.candidate("first").acquire().await;
    drop(first);
    let start = Instant::now();
    let second = server.candidate("second");
    let _second = timeout(Duration::from_secs(30), second.acquire())
        .await
        .unwrap();
    assert!(
        start.elapsed() >= Duration::from_secs(15),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_behind_lets_others_go_first_for_a_limited_time() {
    let server = Server::default();
    let is_behind = Arc::new(AtomicBool::new(true));
    let behind = |name: &str| {
        let is_behind = is_behind.clone();
        let is_behind = move || is_behind.load(Ordering::SeqCst);
        server.candidate(name).letting_others_go_first(is_behind)
    };
    let within = |seconds| Duration::from_secs(seconds);
    let mut waits = Box::pin(behind("behind").acquire());
    // There is no Lease yet.
    assert!(timeout(within(20), &mut waits).await.is_err());
    let first = server.candidate("first").acquire().await;
    assert!(timeout(within(60), &mut waits).await.is_err());
    first.release().await;
    assert!(timeout(within(20), &mut waits).await.is_err());
    assert_eq!(server.problem(), (String::new(), false));
    let second = server.candidate("second").acquire().await;
    assert!(timeout(within(60), &mut waits).await.is_err());
    // It ends without releasing the Lease, and nobody else is there.
    drop(second);
    let start = Instant::now();
    let leader = timeout(within(60), &mut waits).await.unwrap();
    assert!(start.elapsed() >= within(40), "{:?}", start.elapsed());
    // It keeps the Lease although it is still behind, even if the Lease is deleted.
    *server.0.lease.lock().unwrap() = None;
    assert!(timeout(within(60), leader.lost()).await.is_err());
    leader.release().await;
    // One that has caught up does not wait.
    let mut waits = Box::pin(behind("late").acquire());
    assert!(timeout(within(10), &mut waits).await.is_err());
    is_behind.store(false, Ordering::SeqCst);
    drop(timeout(within(3), waits).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn one_of_many_candidates_wins() {
    let server = Server::default();
    server.set(&json!({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 4}));
    let leaders = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for n in 0..8 {
        let candidate = server.candidate(&n.to_string());
        let leaders = Arc::clone(&leaders);
        tasks.push(tokio::spawn(async move {
            let leadership = candidate.acquire().await;
            leaders.lock().unwrap().push(n.to_string());
            leadership.lost().await;
        }));
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let leaders = leaders.lock().unwrap().clone();
    assert_eq!(leaders.len(), 1, "{leaders:?}");
    assert_eq!(server.spec()["holderIdentity"], leaders[0].as_str());
    assert_eq!(server.spec()["leaseTransitions"], 5);
    for task in tasks {
        task.abort();
    }
    for (method, lease) in server.0.writes.lock().unwrap().iter() {
        let compared = lease["metadata"]["resourceVersion"].is_string();
        assert!(*method == Method::POST || compared, "{method} {lease}");
    }
}

#[tokio::test(start_paused = true)]
async fn unreachable_leader_steps_down_before_another_starts() {
    for health in [BROKEN, HANGS] {
        let server = Server::default();
        let leader = server.candidate("first").acquire().await;
        assert!(
            timeout(Duration::from_secs(10), leader.lost())
                .await
                .is_err()
        );
        server.health(health);
        let start = Instant::now();
        timeout(Duration::from_secs(30), leader.lost())
            .await
            .unwrap();
        let took = start.elapsed();
        assert!(
            took <= Duration::from_secs(12),
            "{took:?} in health {health}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn short_outage_does_not_lose_the_lease() {
    let server = Server::default();
    let leader = server.candidate("first").acquire().await;
    server.health(BROKEN);
    assert!(
        timeout(Duration::from_secs(5), leader.lost())
            .await
            .is_err()
    );
    server.health(WELL);
    assert!(
        timeout(Duration::from_secs(60), leader.lost())
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn lease_taken_by_another_is_lost_and_not_released() {
    let server = Server::default();
    let leader = server.candidate("first").acquire().await;
    let other = json!({"holderIdentity": "other", "leaseDurationSeconds": 60, "renewTime": "2020-01-01T00:00:00.000000Z"});
    server.set(&other);
    timeout(Duration::from_secs(3), leader.lost())
        .await
        .unwrap();
    leader.release().await;
    assert_eq!(server.spec(), other);
}

#[tokio::test(start_paused = true)]
async fn blocked_candidates_are_not_ready_and_log_it_repeatedly() {
    // A missing permission is reported at once, an outage once it lasts as long as a Lease.
    for (health, after) in [(FORBIDDEN, 1), (BROKEN, 20), (HANGS, 20)] {
        let log = CapturedLog::start(Level::INFO);
        let server = Server::default();
        server.health(health);
        let mut waits = Box::pin(server.candidate("first").acquire());
        let at_first = timeout(Duration::from_secs(after), &mut waits).await;
        assert!(at_first.is_err());
        let (missing, is_shown) = server.problem();
        assert!(missing.starts_with("Lease (") && is_shown, "{missing}");
        let later = timeout(Duration::from_secs(300), &mut waits).await;
        assert!(later.is_err());
        let lines = log.lines_with("the Lease cannot be taken");
        assert!((4..=8).contains(&lines.len()), "{lines:#?}");
        assert!(lines.iter().all(|line| line.contains("WARN")), "{lines:#?}");
        server.health(WELL);
        let leader = timeout(Duration::from_secs(10), waits).await.unwrap();
        assert_eq!(server.problem(), (String::new(), false));
        drop(leader);
    }
}

#[tokio::test(start_paused = true)]
async fn silence_changes_readiness_only_after_the_lease_duration() {
    let server = Server::default();
    server.set(&json!({"holderIdentity": identity("other"), "leaseDurationSeconds": 3_600}));
    server.health(HANGS);
    let mut waits = Box::pin(server.candidate("first").acquire());
    let unanswered = "Lease (no answer within 5s)".to_owned();
    for (health, after, problem) in [
        // Before the first answer, it is not known whether the candidate could lead.
        (HANGS, 6, (unanswered.clone(), false)),
        (WELL, 10, (String::new(), false)),
        (HANGS, 10, (String::new(), false)),
        // An attempt fails every 7 to 7.4 s: less than 15 s after the last answer until now, and more at the next one.
        (HANGS, 15, (unanswered, true)),
    ] {
        server.health(health);
        let waited = timeout(Duration::from_secs(after), &mut waits).await;
        assert!(waited.is_err());
        assert_eq!(server.problem(), problem, "health {health}");
    }
    // Silence does not hide a refusal either. The attempt fails less than 15 s after the last answer.
    for (health, after) in [(WELL, 10), (FORBIDDEN, 5), (HANGS, 8)] {
        server.health(health);
        let waited = timeout(Duration::from_secs(after), &mut waits).await;
        assert!(waited.is_err());
    }
    let (missing, is_shown) = server.problem();
    assert!(missing.starts_with("Lease (") && is_shown, "{missing}");
}

#[tokio::test(start_paused = true)]
async fn standby_is_ready_unless_the_holder_stops_renewing() {
    let server = Server::default();
    let leader = server.candidate(&identity("first")).acquire().await;
    let mut waits = Box::pin(server.candidate(&identity("second")).acquire());
    let waited = timeout(Duration::from_secs(600), &mut waits).await;
    assert!(waited.is_err());
    assert_eq!(server.problem(), (String::new(), false));
    drop(leader);

    server.set(&json!({"holderIdentity": "gone", "leaseDurationSeconds": 3_600}));
    let waited = timeout(Duration::from_secs(60), &mut waits).await;
    assert!(waited.is_err());
    let (missing, is_shown) = server.problem();
    assert!(
        missing.contains("held by gone, which does not renew it") && is_shown,
        "{missing}"
    );
}

/// Otherwise an installation beside the reference, which never reconciles anything, looks like a replica that stands by.
#[tokio::test(start_paused = true)]
async fn standby_behind_another_controller_says_so_repeatedly_and_is_ready() {
    let log = CapturedLog::start(Level::INFO);
    let server = Server::default();
    // As client-go builds it.
    let other = "trainer-controller-manager-5b8f7-x2x4z_8c0c1d0e-0f3c-4f0e-9d8e-2a7f3b1c5d6e";
    let leader = server.candidate(other).acquire().await;
    let mut waits = Box::pin(server.candidate(&identity("trainyard-0")).acquire());
    let waited = timeout(Duration::from_secs(240), &mut waits).await;
    assert!(waited.is_err());
    assert_eq!(server.problem(), (String::new(), false));
    let waited = timeout(Duration::from_secs(360), &mut waits).await;
    assert!(waited.is_err());
    assert_eq!(server.problem(), (String::new(), true));
    let lines = log.lines_with("the Lease cannot be taken");
    assert!((4..=8).contains(&lines.len()), "{lines:#?}");
    let are_told = lines
        .iter()
        .all(|line| line.contains("WARN") && line.contains(other));
    assert!(are_told, "{lines:#?}");
    leader.release().await;
    let leader = timeout(Duration::from_secs(10), waits).await.unwrap();
    assert_eq!(server.problem(), (String::new(), false));
    drop(leader);
}

#[tokio::test(start_paused = true)]
async fn deleted_lease_is_recreated() {
    let server = Server::default();
    let leader = server.candidate("first").acquire().await;
    *server.0.lease.lock().unwrap() = None;
    assert!(
        timeout(Duration::from_secs(5), leader.lost())
            .await
            .is_err()
    );
    assert_eq!(server.spec()["holderIdentity"], "first");
}

#[tokio::test(start_paused = true)]
async fn clocks_of_other_machines_are_not_trusted() {
    let server = Server::default();
    // By its time this ran out years ago; but it may be renewed right now by a machine whose clock is wrong.
    server.set(&json!({
        "holderIdentity": "go_0b3c", "leaseDurationSeconds": 15, "leaseTransitions": 7,
        "acquireTime": "2020-01-01T00:00:00.000000Z", "renewTime": "2020-01-01T00:00:00.000000Z"
    }));
    let start = Instant::now();
    let candidate = server.candidate("first");
    let _leader = timeout(Duration::from_secs(30), candidate.acquire())
        .await
        .unwrap();
    assert!(start.elapsed() >= Duration::from_secs(15));
    assert_eq!(server.spec()["leaseTransitions"], 8);
}

#[test]
fn every_start_of_a_process_has_its_own_identity() {
    let (one, two) = (identity("trainyard-0"), identity("trainyard-0"));
    assert!(one.starts_with("trainyard-0_"));
    assert_ne!(one, two);
}
