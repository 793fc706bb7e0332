//! Errors say what is wrong, with which object, and what to do. These are the texts that no other test has as a whole.

use std::{fmt::Display, io, path::PathBuf, time::Duration};

use kube::core::Status;
use trainyard_controller::{
    ControllerError,
    client::{ClientError, NoAnswer, NotSent},
    keys::KeyError,
    reconcile::{LiveError, ReconcileError, SnapshotError},
    serve::ServeError,
    settings::{FeatureGates, PrintError},
    spans::{Endpoint, SpanExportError},
    watch::FeedError,
};
use trainyard_model::{
    lookup::{LookupKey, ObjectKey},
    material::KeyText,
};

const PANICKED: &str = "rendering panicked: index out of bounds; this is a bug in Trainyard, please report it with the TrainJob and its runtime";

fn each_is(table: &[(&dyn Display, &str)]) {
    for (error, text) in table {
        assert_eq!(error.to_string(), *text);
    }
}

fn secret() -> ReconcileError {
    ReconcileError::Secret(LookupKey::Object(ObjectKey::new("v1", "Secret", "s")))
}

fn deleting(is_recreated: bool) -> ReconcileError {
    ReconcileError::Deleting {
        kind: "JobSet".to_owned(),
        name: "a".to_owned(),
        finalizers: "example.com/x".to_owned(),
        is_recreated,
    }
}

#[test]
fn train_jobs_name_the_object_that_stops_them() {
    let unreadable = ReconcileError::Unreadable {
        kind: "JobSet",
        name: "a".to_owned(),
        why: "spec: the value cannot be decoded; correct it".to_owned(),
    };
    let foreign = ReconcileError::Foreign {
        kind: "Secret".to_owned(),
        name: "a-x".to_owned(),
        owner: "not controlled by anything".to_owned(),
    };
    let keys = ReconcileError::Keys {
        name: "s".to_owned(),
        problem: KeyError::Json,
    };
    let stale = ReconcileError::Stale {
        kind: "JobSet".to_owned(),
        name: "a".to_owned(),
    };
    let lost = ReconcileError::Lost {
        kind: "ConfigMap".to_owned(),
        name: "a-x".to_owned(),
        why: "its plugin changed",
    };
    each_is(&[
        (
            &unreadable,
            "JobSet `a`: spec: the value cannot be decoded; correct it; the controller does not change this TrainJob until the JobSet is fixed",
        ),
        (
            &keys,
            "Secret `s`: its keys could not be generated: the Secret could not be written as JSON",
        ),
        (
            &foreign,
            "Secret `a-x` does not belong to this TrainJob: it is not controlled by anything; create the TrainJob under another name, or delete the object if nothing else uses it",
        ),
        (
            &stale,
            "JobSet `a` belongs to a deleted TrainJob of the same name, and has not been garbage-collected yet; the TrainJob continues once it is gone",
        ),
        (
            &deleting(false),
            "JobSet `a` is being deleted; it has the finalizers example.com/x, which their controllers remove; if these wait for pods on a node that was lost, delete the Node",
        ),
        (
            &deleting(true),
            "JobSet `a` is being deleted, and is recreated afterwards; it has the finalizers example.com/x, which their controllers remove; if these wait for pods on a node that was lost, delete the Node",
        ),
        (
            &lost,
            "ConfigMap `a-x` is missing although the running JobSet uses it, and cannot be recreated because its plugin changed; restore it, or recreate the TrainJob",
        ),
    ]);
    let secret = secret().to_string();
    assert!(
        secret.ends_with(": plugins cannot read Secrets; use a version of the plugin without this lookup, or report it to its author"),
        "{secret}"
    );
}

#[test]
fn started_train_jobs_say_how_they_continue() {
    let pinned = ReconcileError::PlanIsPinned {
        pinned: "torch 1.0.0".to_owned(),
        change: "torch 2.0.0 is loaded".to_owned(),
    };
    let keys_lost = ReconcileError::KeysLost {
        name: "s".to_owned(),
    };
    let old_placement = ReconcileError::JobsHaveOldPlacement {
        name: "a".to_owned(),
    };
    let conflict = ReconcileError::Conflict {
        what: "JobSet `a`".to_owned(),
    };
    let too_slow = ReconcileError::TooSlow {
        name: "a".to_owned(),
        kib: 900,
        after: Duration::from_secs(30),
    };
    each_is(&[
        (
            &pinned,
            "this TrainJob was started with the plugins torch 1.0.0, and torch 2.0.0 is loaded; existing objects are left unchanged; undo this change to have missing ones recreated",
        ),
        (
            &keys_lost,
            "Secret `s` is missing while its JobSet runs, and is not recreated, because running pods have its keys and new pods would get others; restore it, or suspend and resume the TrainJob to create it with new keys",
        ),
        (
            &old_placement,
            "the Jobs of JobSet `a` still have the placement of an earlier admission; they are deleted, and the JobSet is unsuspended once they are recreated",
        ),
        (
            &conflict,
            "JobSet `a`: another client changed the object concurrently",
        ),
        (
            &too_slow,
            "writing JobSet `a` (900 KiB) timed out after 30s; make it smaller, especially the labels, annotations and node selectors of its pods",
        ),
        (
            &ReconcileError::Panicked("index out of bounds".to_owned()),
            PANICKED,
        ),
        (
            &ReconcileError::Internal("no answer".to_owned()),
            "internal error: no answer; this is a bug in Trainyard, please report it with the TrainJob and its runtime",
        ),
        (
            &ReconcileError::Abandoned,
            "a plugin call was abandoned because the process is stopping",
        ),
    ]);
}

#[test]
fn snapshots_say_how_they_are_recreated() {
    let name = || "a-runtime-snapshot".to_owned();
    let unreadable = SnapshotError::Unreadable {
        name: name(),
        key: "runtime",
        problem: "it is not JSON".to_owned(),
    };
    let other = SnapshotError::OtherRuntime {
        name: name(),
        found: "TrainingRuntime `x`".to_owned(),
        wanted: "TrainingRuntime `y`".to_owned(),
    };
    let changed = SnapshotError::Changed {
        name: name(),
        job: "a".to_owned(),
    };
    let shown = LiveError::SnapshotChanged {
        map: name(),
        name: "a".to_owned(),
    };
    each_is(&[
        (
            &unreadable,
            "ConfigMap `a-runtime-snapshot`, key `runtime`: it is not JSON; delete the ConfigMap to have it recreated",
        ),
        (
            &other,
            "ConfigMap `a-runtime-snapshot` holds TrainingRuntime `x`, but the TrainJob references TrainingRuntime `y`; delete the ConfigMap to have it recreated",
        ),
        (
            &changed,
            "ConfigMap `a-runtime-snapshot`: data: another client changed it: its digest differs from the one in the annotation trainyard.dev/snapshot of JobSet `a`; its content is not used; delete the ConfigMap to have it recreated from the current runtime",
        ),
        (
            &SnapshotError::Unproven { name: name() },
            "ConfigMap `a-runtime-snapshot`: data: its content cannot be verified, because the JobSet with its digest was deleted before the controller started, and cannot be replaced, because it is immutable; it differs from the current runtime; delete the ConfigMap to have it recreated from the current runtime",
        ),
        (
            &shown,
            "ConfigMap `a-runtime-snapshot`: data: another client changed it: its digest differs from the one in the annotation trainyard.dev/snapshot of JobSet `a`; this explanation shows that client's content, which the controller does not use; delete the ConfigMap to have it recreated from the current runtime",
        ),
    ]);
}

#[test]
fn explanations_say_where_to_look() {
    let no_train_job = LiveError::NoTrainJob {
        namespace: "ml".to_owned(),
        name: "a".to_owned(),
    };
    let no_snapshot = LiveError::NoSnapshot {
        name: "a".to_owned(),
    };
    each_is(&[
        (
            &no_train_job,
            "there is no TrainJob `a` in namespace `ml`; use -n for another namespace",
        ),
        (
            &no_snapshot,
            "TrainJob `a` has no snapshot yet, because its JobSet has not been created; see its Events for the reason",
        ),
    ]);
}

#[test]
fn controllers_that_do_not_start_name_the_setting() {
    let path = || PathBuf::from("/x");
    let not_utf8 = PrintError::NotUtf8 {
        key: "policyFile",
        path: path(),
    };
    let gates = "TrainJobStatus".parse::<FeatureGates>().unwrap_err();
    let parsed = str::parse::<Endpoint>;
    let endpoint = parsed("http://user:word@collector:4318").unwrap_err();
    let client = SpanExportError::Client {
        endpoint: parsed("https://collector:4318").unwrap(),
        source: Box::new(kube::Error::Service("no such file".into())),
    };
    each_is(&[
        (
            &ControllerError::NoCertificate("metrics.auth.enabled"),
            "metrics.auth.enabled: it requires a certificate; set certManagement.enable to true, except in the shadow mode, or mount one and set webhook.certDir to its directory",
        ),
        (
            &ControllerError::ShadowAuth,
            "metrics.auth.enabled: the shadow mode creates nothing, so it cannot ask the API server who may read metrics; turn it off, and restrict the port by a NetworkPolicy",
        ),
        (
            &ControllerError::LeaseLost,
            "the Lease is lost; another process is the leader",
        ),
        (
            &ControllerError::ShadowPlugins,
            "plugins.source: is Cluster, but the shadow mode writes nothing, and so rolls out no plugins; set it to File",
        ),
        (
            &ControllerError::NoPluginSource,
            "plugins.source: is Cluster, but this program cannot pull plugins; set it to File, and declare plugins in `policyFile`",
        ),
        (
            &ControllerError::WatchesEnded,
            "the watches ended; this is a bug in Trainyard",
        ),
        (
            &ServeError::Ended(io::Error::other("closed")),
            "a server ended: closed",
        ),
        (
            &ServeError::Tls(rustls::Error::HandshakeNotComplete),
            "TLS cannot be used with these options: handshake not complete",
        ),
        (
            &not_utf8,
            "the configuration cannot be printed: policyFile: the path /x is not valid UTF-8; rename the file or the directory",
        ),
        (
            &PrintError::WebhooksOff,
            "the configuration cannot be printed: --webhook-bind-address=0 has no key; to serve no webhooks, leave out the certificate",
        ),
        (
            &gates,
            "`TrainJobStatus` does not set a feature gate; use NAME=true or NAME=false, such as TrainJobStatus=true",
        ),
        (
            &endpoint,
            "must be a URL without a user name, a password and a query; pass credentials in the environment variable OTEL_EXPORTER_OTLP_HEADERS, from a Secret",
        ),
        (
            &client,
            "cannot export spans to https://collector:4318: the HTTP client cannot be created: ServiceError: no such file; check the certificates of the system, or the file that OTEL_EXPORTER_OTLP_CERTIFICATE names",
        ),
    ]);
}

#[test]
fn calls_to_the_api_server_name_the_path() {
    let no_answer = NoAnswer {
        verb: "patch",
        path: "/api/v1/x".to_owned(),
        after: Duration::from_secs(30),
    };
    let not_sent = NotSent {
        verb: "patch",
        path: "/api/v1/x".to_owned(),
    };
    let broken = || kube::Error::Service("no route".into());
    let ended = Status::failure("too old", "Expired").with_code(410);
    each_is(&[
        (
            &ClientError::Configuration(Box::new(broken())),
            "cannot connect to the API server with this configuration: ServiceError: no route",
        ),
        (
            &no_answer,
            "patch /api/v1/x: no answer from the API server within 30s",
        ),
        (
            &not_sent,
            "patch /api/v1/x: not sent, because this command only reads; this is a bug of the program",
        ),
        (
            &FeedError::NoVersion,
            "the API server sent a list without a resourceVersion",
        ),
        (
            &FeedError::Ended(Box::new(ended)),
            "the API server ended the watch: too old (code 410)",
        ),
        (
            &FeedError::Broken(io::Error::other("reset")),
            "connection lost: reset",
        ),
        (
            &FeedError::TooLarge,
            "the list exceeds 128 MiB and is not read; delete objects or make them smaller",
        ),
        (
            &KeyError::Random(getrandom::Error::UNSUPPORTED),
            "the operating system provides no random bytes: getrandom: this target is not supported",
        ),
        (
            &KeyError::Encoding(KeyText::Spki),
            "a key could not be encoded as spki-pem",
        ),
    ]);
}
