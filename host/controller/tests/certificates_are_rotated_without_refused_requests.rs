//! Replicas create and rotate their certificate. API servers that notice changes late, and call without pause, are never refused.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rcgen::{BasicConstraints, CertificateParams, GeneralSubtree, IsCa, KeyPair, NameConstraints};
use serde_json::json;
use tracing::Level;
use trainyard_api::yaml;

use crate::stub::{
    clock::TestClock,
    cluster::{Act, Cluster, When},
    controller::runtime,
    log::CapturedLog,
    replica::{CONFIGURATIONS, Caller, Replica, bundle, configuration, connect, secret_text},
};

const SECRET: &str = "kubeflow-trainer-webhook-cert";
const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn cluster() -> Cluster {
    let cluster = Cluster::new();
    cluster.put(runtime("plain", &[]));
    for index in 0..CONFIGURATIONS.len() {
        cluster.put(configuration(index, ""));
    }
    cluster
}

async fn ready(cluster: &Cluster, clock: &TestClock) -> Replica {
    let replica = Replica::start(cluster, clock).await;
    replica
        .until_probe(" 200 OK", || clock.advance(SECOND))
        .await;
    replica
}

/// API servers that are up to date, late, and almost too late.
struct Callers(Vec<Arc<Caller>>, Vec<tokio::task::JoinHandle<()>>);

impl Callers {
    fn start(cluster: &Cluster, clock: &TestClock) -> Self {
        let callers = [0, 4, 9].map(|late| Caller::start(cluster, clock, late));
        let (callers, calls) = callers.into_iter().unzip();
        Self(callers, calls)
    }

    fn set_endpoints(&self, endpoints: &[&Replica]) {
        self.0.iter().for_each(|it| it.set_endpoints(endpoints));
    }

    /// Waits until each has called so often.
    async fn calls(&self, count: usize) {
        for caller in &self.0 {
            let until = caller.answered() + count;
            while caller.answered() < until {
                assert_eq!(caller.refused(), [""; 0]);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    /// Lets time pass in steps, with calls in each of them.
    async fn pass(&self, clock: &TestClock, step: Duration, steps: u32) {
        for _ in 0..steps {
            clock.advance(step);
            self.calls(4).await;
        }
    }

    fn ended(self) -> usize {
        self.1.iter().for_each(tokio::task::JoinHandle::abort);
        for caller in &self.0 {
            assert_eq!(caller.refused(), [""; 0]);
        }
        self.0.iter().map(|caller| caller.answered()).sum()
    }
}

/// Waits until a condition holds, with calls all the time.
async fn until(callers: &Callers, what: &str, holds: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if holds() {
            return;
        }
        callers.calls(1).await;
    }
    panic!("still not: {what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_is_refused_by_rotation_deletion_or_a_rolling_upgrade() {
    let (cluster, clock) = (cluster(), TestClock::new());
    // Two replicas start at once, without a Secret.
    let (one, two) = tokio::join!(
        Replica::start(&cluster, &clock),
        Replica::start(&cluster, &clock)
    );
    for replica in [&one, &two] {
        replica
            .until_probe(" 200 OK", || clock.advance(SECOND))
            .await;
    }
    assert_eq!(cluster.count("secrets"), 1);
    let text = |key: &str| secret_text(&cluster, key);
    let (authority, key) = (text("ca.crt"), text("ca.key"));
    assert_eq!(authority.as_ref().unwrap().matches("BEGIN").count(), 1);
    for index in 0..2 {
        assert_eq!(Some(bundle(&cluster, index)), authority);
    }
    let callers = Callers::start(&cluster, &clock);
    callers.set_endpoints(&[&one, &two]);
    callers.calls(20).await;

    // The Secret is deleted.
    let leaf = text("tls.crt");
    cluster.delete("secrets", "default", SECRET);
    until(&callers, "the Secret exists", || text("tls.key").is_some()).await;
    assert_eq!(
        (text("tls.crt"), text("ca.key")),
        (leaf.clone(), key.clone())
    );
    callers.pass(&clock, SECOND, 20).await;

    // The certificate is renewed by the same authority.
    callers.pass(&clock, 49 * DAY, 5).await;
    until(&callers, "the certificate is renewed", || {
        text("tls.crt") != leaf
    })
    .await;
    assert_eq!(
        (text("ca.crt"), text("ca.key")),
        (authority.clone(), key.clone())
    );
    callers.pass(&clock, SECOND, 20).await;

    // The authority gets a successor, which is trusted before it signs.
    callers.pass(&clock, 60 * DAY, 51).await;
    until(&callers, "there is a successor", || {
        text("next-ca.key").is_some()
    })
    .await;
    assert_eq!(text("ca.key"), key);
    callers.pass(&clock, SECOND, 20).await;
    callers.pass(&clock, DAY, 1).await;
    until(&callers, "the successor signs", || text("ca.key") != key).await;
    callers.pass(&clock, SECOND, 20).await;
    assert!(bundle(&cluster, 1).contains(authority.as_deref().unwrap()));
    assert_eq!(bundle(&cluster, 1).matches("BEGIN").count(), 2);

    // A rolling upgrade: new replicas start before old ones stop.
    let three = ready(&cluster, &clock).await;
    callers.set_endpoints(&[&two, &three]);
    callers.calls(8).await;
    one.stop().await;
    let four = ready(&cluster, &clock).await;
    callers.set_endpoints(&[&three, &four]);
    callers.calls(8).await;
    two.stop().await;
    callers.pass(&clock, SECOND, 20).await;

    // Two years later, the first authority has expired.
    callers.pass(&clock, 60 * DAY, 12).await;
    let answered = callers.ended();
    let metrics = three.metrics.text().unwrap();
    assert!(
        metrics.contains("trainyard_certificate_expiration_timestamp_seconds 2"),
        "{metrics}"
    );
    println!("{answered} requests were answered, and none was refused");
    three.stop().await;
    four.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bundle_that_is_overwritten_is_written_again_at_once() {
    let (cluster, clock) = (cluster(), TestClock::new());
    let replica = ready(&cluster, &clock).await;
    let wanted = bundle(&cluster, 0);
    for index in [0, 1, 0] {
        cluster.put(configuration(index, ""));
        let is_repaired = |cluster: &Cluster| bundle(cluster, index) == wanted;
        cluster.until("the bundle is written", is_repaired).await;
        let (_, plural, name) = CONFIGURATIONS[index];
        let written = cluster.get(plural, "", name).unwrap();
        assert_eq!(written["webhooks"][0]["newField"], 1);
        assert!(replica.probe().await.contains(" 200 OK"));
    }
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_of_the_reference_is_taken_over_without_waiting() {
    let text = include_str!("stub/reference-secret.yaml");
    let mut secret = yaml::read(text).into_iter().next().unwrap().unwrap().value;
    secret["metadata"]["namespace"] = "default".into();
    let decoded = |key: &str| {
        let text = BASE64_STANDARD.decode(secret["data"][key].as_str().unwrap());
        String::from_utf8(text.unwrap()).unwrap()
    };
    let (authority, key) = (decoded("ca.crt"), decoded("ca.key"));
    let (cluster, clock) = (cluster(), TestClock::new());
    cluster.put(secret);
    for index in 0..2 {
        cluster.put(configuration(index, &authority));
    }
    let replica = Replica::start(&cluster, &clock).await;
    replica.until_probe(" 200 OK", || {}).await;
    assert_eq!(secret_text(&cluster, "ca.crt").unwrap(), authority);
    assert_eq!(secret_text(&cluster, "ca.key").unwrap(), key);
    connect(replica.address, &authority, &clock).await.unwrap();
    // The successor of the reference's authority overlaps with it.
    for _ in 0..56 {
        clock.advance(60 * DAY);
    }
    let has_two = |cluster: &Cluster| bundle(cluster, 1).matches("BEGIN").count() == 2;
    cluster.until("the successor is trusted", has_two).await;
    assert!(bundle(&cluster, 1).starts_with(&authority));
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_secret_is_replaced_and_counted() {
    let (cluster, clock) = (cluster(), TestClock::new());
    let invalid = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": SECRET},
        "data": {"ca.crt": "AAAA", "ca.key": "AAAA", "tls.crt": "AAAA", "tls.key": "AAAA"},
    });
    cluster.put(invalid.clone());
    let replica = ready(&cluster, &clock).await;
    let before = secret_text(&cluster, "tls.crt");
    cluster.put(invalid);
    let restored = |cluster: &Cluster| secret_text(cluster, "tls.crt") == before;
    cluster.until("the Secret is written again", restored).await;
    let metrics = replica.metrics.text().unwrap();
    assert!(
        metrics.contains("trainyard_certificate_changes_total{change=\"replace-invalid\"} 2"),
        "{metrics}"
    );
    assert!(replica.probe().await.contains(" 200 OK"));
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_of_another_owner_is_not_overwritten() {
    let foreign = [
        (
            json!({"annotations": {"cert-manager.io/certificate-name": "a"}}),
            json!({}),
            "it has the annotation cert-manager.io/",
        ),
        (
            json!({"ownerReferences": [{"kind": "Certificate", "name": "a", "controller": true, "apiVersion": "v1", "uid": "u"}]}),
            json!({}),
            "Certificate a controls it",
        ),
        (
            json!({}),
            json!({"type": "kubernetes.io/tls"}),
            "its type is kubernetes.io/tls",
        ),
        (json!({}), json!({"immutable": true}), "it is immutable"),
        (
            json!({}),
            json!({"data": {"password": "AAAA"}}),
            "it has the key password",
        ),
    ];
    for (metadata, content, why) in foreign {
        let (cluster, clock) = (cluster(), TestClock::new());
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"tls.crt": "AAAA"}});
        for (key, value) in content.as_object().unwrap() {
            secret[key] = value.clone();
        }
        secret["metadata"] = metadata;
        secret["metadata"]["name"] = SECRET.into();
        secret["metadata"]["namespace"] = "default".into();
        cluster.put(secret);
        let before = cluster.get("secrets", "default", SECRET);
        let replica = Replica::start(&cluster, &clock).await;
        let reason =
            format!("certificate (Secret default/{SECRET}: it is not overwritten, because {why}");
        replica.until_probe(&reason, || {}).await;
        assert_eq!(cluster.get("secrets", "default", SECRET), before);
        replica.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_whose_certificates_no_client_accepts_is_the_reason_why_a_process_is_not_ready()
 {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName("example.com".to_owned())],
        excluded_subtrees: Vec::new(),
    });
    let authority = params.self_signed(&key).unwrap().pem();
    let data = json!({
        "ca.crt": BASE64_STANDARD.encode(authority), "ca.key": BASE64_STANDARD.encode(key.serialize_pem()),
    });
    let (cluster, clock) = (cluster(), TestClock::new());
    cluster.put(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": SECRET}, "data": data,
    }));
    let replica = Replica::start(&cluster, &clock).await;
    let why = "certificate (Secret default/kubeflow-trainer-webhook-cert: clients do not accept a certificate of the authority in ca.crt for kubeflow-trainer-webhooks.default.svc, kubeflow-trainer-controller-manager.default.svc, because of its constraints, its dates or these names; delete the Secret to have another authority created, or correct certManagement.webhookServiceName)";
    replica.until_probe(why, || {}).await;
    cluster.delete("secrets", "default", SECRET);
    replica
        .until_probe(" 200 OK", || clock.advance(SECOND))
        .await;
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_permission_is_the_reason_why_a_process_is_not_ready() {
    let cases = [
        (
            "get",
            "secrets",
            "Secret default/kubeflow-trainer-webhook-cert: cannot read it: Forbidden; grant the permissions",
        ),
        (
            "create",
            "secrets",
            "Secret default/kubeflow-trainer-webhook-cert: cannot write it: Forbidden; grant the permissions",
        ),
        (
            "get",
            "mutatingwebhookconfigurations",
            "MutatingWebhookConfiguration defaulter.trainer.kubeflow.org: cannot read it: Forbidden",
        ),
        (
            "update",
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration validator.trainer.kubeflow.org: cannot write the caBundle of it: Forbidden",
        ),
    ];
    for (verb, plural, why) in cases {
        let (cluster, clock) = (cluster(), TestClock::new());
        cluster.set_rule(move |_, when, call, _| match when {
            When::Before if call == (verb, plural) => Act::Forbid,
            _ => Act::GoOn,
        });
        let replica = Replica::start(&cluster, &clock).await;
        replica.until_probe(why, || {}).await;
        cluster.forget_rule();
        replica
            .until_probe(" 200 OK", || clock.advance(SECOND))
            .await;
        // Once it is ready, it stays so while its certificate is valid.
        cluster.set_rule(|_, when, (_, plural), _| match when {
            When::Before if plural == "secrets" => Act::Forbid,
            _ => Act::GoOn,
        });
        clock.advance(300 * DAY);
        cluster.put(configuration(0, "x"));
        assert!(replica.probe().await.contains(" 200 OK"));
        replica.stop().await;
    }
}

#[tokio::test]
async fn private_keys_are_not_logged() {
    let log = CapturedLog::start(Level::TRACE);
    let (cluster, clock) = (cluster(), TestClock::new());
    let bodies = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = bodies.clone();
    cluster.set_rule(
        move |_, when, (verb, plural), body| match (when, verb, plural) {
            (When::Before, "create", "secrets") => {
                seen.lock().unwrap().push(body.clone());
                Act::Quote
            }
            _ => Act::GoOn,
        },
    );
    let replica = Replica::start(&cluster, &clock).await;
    let why = "the message of the API server quotes a private key and is not shown";
    replica.until_probe(why, || {}).await;
    cluster.forget_rule();
    replica
        .until_probe(" 200 OK", || clock.advance(SECOND))
        .await;
    let log = log.text();
    assert!(log.contains(why), "{log}");
    let mut keys = vec![
        secret_text(&cluster, "ca.key").unwrap(),
        secret_text(&cluster, "tls.key").unwrap(),
    ];
    for body in bodies.lock().unwrap().iter() {
        let text = body["data"]["ca.key"].as_str().unwrap();
        keys.push(String::from_utf8(BASE64_STANDARD.decode(text).unwrap()).unwrap());
    }
    assert!(keys.len() > 2);
    for key in keys {
        let line = key.lines().nth(1).unwrap();
        assert!(!log.contains(line) && !log.contains(&BASE64_STANDARD.encode(&key)[..40]));
    }
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cert_manager_and_the_controller_do_not_write_the_same_bundle() {
    let (cluster, clock) = (cluster(), TestClock::new());
    let mut injected = configuration(0, "");
    injected["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "a/b"});
    cluster.put(injected);
    let replica = Replica::start(&cluster, &clock).await;
    let why = "certificate (MutatingWebhookConfiguration defaulter.trainer.kubeflow.org: cert-manager writes its caBundle, because of the annotation cert-manager.io/inject-ca-from; remove the annotation, or set certManagement.enable to false and mount cert-manager's certificate)";
    replica.until_probe(why, || {}).await;
    cluster.put(configuration(0, ""));
    replica
        .until_probe(" 200 OK", || clock.advance(SECOND))
        .await;
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_are_served_with_the_same_certificate() {
    use tokio::io::AsyncWriteExt as _;

    let (cluster, clock) = (cluster(), TestClock::new());
    let replica = ready(&cluster, &clock).await;
    let authority = secret_text(&cluster, "ca.crt").unwrap();
    let mut stream = connect(replica.metrics_address, &authority, &clock)
        .await
        .unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let (code, text) = crate::stub::webhooks::answer(&mut stream).await;
    assert_eq!(code, 200);
    assert!(
        text.contains("trainyard_certificate_changes_total{change=\"create\"} 1"),
        "{text}"
    );
    replica.stop().await;
}
