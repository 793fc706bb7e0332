//! Our configuration file and the reference's are parsed strictly: an invalid file is refused, and all its errors are reported at once.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use trainyard_config::RenderingSettings;
use trainyard_controller::{
    certificate::{CertManagement, CipherSuite, TlsSettings, TlsVersion},
    serve::BindAddress,
    settings::{
        FeatureGate, LeaderElection, LoadedSettings, LogFormat, LogLevel, Logging, Overrides,
        PluginSettings, PluginsSource, RolloutSettings, SecureServing, Settings, schema,
    },
    spans::TracingSettings,
    status_server::StatusServerSettings,
    webhook::WebhookSettings,
};
use trainyard_oci::Signers;

const OURS: &str = "apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\n";
const REFERENCE: &str = "apiVersion: config.trainer.kubeflow.org/v1alpha1\nkind: Configuration\n";

/// The configuration that v2.3.0 deploys.
const DEPLOYED: &str = "
health:
  healthProbeBindAddress: :8081
  readinessEndpointName: readyz
  livenessEndpointName: healthz
metrics:
  bindAddress: :8443
  secureServing: true
webhook:
  port: 9443
  host: \"\"
leaderElection:
  leaderElect: true
  resourceName: trainer.kubeflow.org
  resourceNamespace: \"\"
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
controller:
  groupKindConcurrency:
    TrainJob.trainer.kubeflow.org: 5
    TrainingRuntime.trainer.kubeflow.org: 1
    ClusterTrainingRuntime.trainer.kubeflow.org: 1
certManagement:
  enable: true
  webhookServiceName: kubeflow-trainer-controller-manager
  webhookSecretName: kubeflow-trainer-webhook-cert
clientConnection:
  qps: 50
  burst: 100
statusServer:
  port: 10443
  qps: 5
  burst: 10
";

fn ours(rest: &str) -> Settings {
    let loaded = LoadedSettings::parse("c.yaml", &format!("{OURS}{rest}")).unwrap();
    assert_eq!(loaded.warnings, []);
    loaded.settings
}

fn errors(text: &str) -> Vec<String> {
    let errors = LoadedSettings::parse("c.yaml", text).unwrap_err();
    errors.iter().map(ToString::to_string).collect()
}

/// The fields that errors name, in order.
fn fields(text: &str) -> Vec<String> {
    let field = |error: String| error.split(": ").nth(1).unwrap().to_owned();
    let mut fields: Vec<_> = errors(text).into_iter().map(field).collect();
    fields.sort();
    fields
}

fn port(port: u16) -> BindAddress {
    BindAddress::all_interfaces(port)
}

fn count(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).unwrap()
}

#[test]
fn empty_file_means_the_defaults() {
    let settings = ours("");
    assert_eq!(settings, Settings::default());
    assert_eq!(settings.metrics_bind_address, port(8080));
    assert_eq!(settings.health_probe_bind_address, port(8081));
    assert_eq!(settings.concurrency, count(16));
    assert!(settings.rate().is_none());
    assert!(
        settings
            .leader_election
            .lease("system", "me".to_owned())
            .is_none()
    );
    // Nulls are nothing, as for an API server.
    assert_eq!(
        ours("leaderElection:\nmetrics: {bindAddress: null}\n"),
        settings
    );
}

const KEY: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAENxgwF0ZTDDgz3Fl0AIP3nnKYf0YdCzn3TTqSSGvlco1Yy8FBXRxeNopf8642dgAgXwMnlRVbk/LSm7bWmv35xw==
-----END PUBLIC KEY-----
";

/// The signers of a file with every key.
fn signers() -> Signers {
    let signer = serde_json::from_value(serde_json::json!({
        "name": "acme", "publicKey": KEY, "plugins": ["acme-*"], "repositories": ["registry.example.com/acme/*"],
    }));
    let unsigned = "registry.example.com/team/*".to_owned();
    Signers::new(vec![signer.unwrap()], vec![unsigned])
}

#[test]
fn signers_are_checked_with_the_path_of_each_error() {
    let key = KEY.replace('\n', "\\n");
    let signer = |name: &str, rest: &str| {
        format!("{OURS}plugins: {{signers: [{{name: {name}, publicKey: \"{key}\", {rest}}}]}}\n")
    };
    for (text, expected) in [
        (
            signer(
                "acme",
                "plugins: [acme-*, b], repositories: [r.example.com/acme/*]",
            ),
            None,
        ),
        (
            signer("Acme", "plugins: [x]"),
            Some(
                "plugins.signers[0].name: must be lowercase letters, digits, `-` and `.`, such as acme; found `Acme`",
            ),
        ),
        (
            signer("acme", "plugins: []"),
            Some("plugins.signers[0].plugins: must have at least 1 item"),
        ),
        (
            signer("acme", "also: 1"),
            Some("plugins.signers[0].plugins: is missing"),
        ),
        (
            signer("acme", "plugins: [a*b]"),
            Some(
                "plugins.signers[0].plugins[0]: must be the name of a plugin, such as tracer, or of several with a `*` at the end",
            ),
        ),
        // An emptied list does not open a signer to everywhere.
        (
            signer("acme", "plugins: [x]"),
            Some("plugins.signers[0].repositories: is missing"),
        ),
        (
            signer("acme", "plugins: [x], repositories: "),
            Some("plugins.signers[0].repositories: is missing"),
        ),
        (
            signer("acme", "plugins: [x], repositories: []"),
            Some("plugins.signers[0].repositories: must have at least 1 item"),
        ),
        (
            signer(
                "acme",
                "plugins: [x], repositories: [registry.example.com*]",
            ),
            Some("plugins.signers[0].repositories[0]: must be a registry with a repository"),
        ),
        (
            signer("acme", "plugins: [x], repositories: [\"*\"]"),
            Some("plugins.signers[0].repositories[0]: must be a registry with a repository"),
        ),
        (
            signer("acme", "plugins: [x], repositories: [r.example.com/*]").replace("MFkw", "MFkx"),
            Some("plugins.signers[0].publicKey: is not an ECDSA key of the curve P-256"),
        ),
        (
            signer("acme", "plugins: [x], repositories: [r.example.com/*]")
                .replace("PUBLIC", "PRIVATE"),
            Some("plugins.signers[0].publicKey: is a private key; replace it with the public key"),
        ),
        (
            format!("{OURS}plugins: {{unsigned: [\"https://registry.example.com/\"]}}\n"),
            Some("plugins.unsigned[0]: must be a registry with a repository"),
        ),
        (
            format!("{OURS}plugins: {{signer: []}}\n"),
            Some("plugins.signer: unknown field; did you mean `signers`?"),
        ),
    ] {
        let found = LoadedSettings::parse("c.yaml", &text)
            .err()
            .unwrap_or_default();
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.is_empty(), expected.is_none(), "{text}: {found:?}");
        assert!(
            expected.is_none_or(|expected| found.iter().any(|error| error.contains(expected))),
            "{expected:?}: {found:?}"
        );
        assert!(!found.concat().contains("AENxgwF0ZTDD"), "{found:?}");
    }
}

#[test]
fn every_key_has_an_effect() {
    let settings = ours(
        "
leaderElection:
  leaderElect: true
  leaseDuration: 1m30s
  renewDeadline: 60s
  retryPeriod: 500ms
  resourceLock: leases
  resourceName: mine
  resourceNamespace: system
metrics: {bindAddress: \"0\", secureServing: true, auth: {enabled: true}}
health: {healthProbeBindAddress: \"[::1]:9\"}
certManagement: {enable: true, webhookServiceName: service, webhookSecretName: secret}
tls: {minVersion: VersionTLS13, cipherSuites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256], nextProtos: [http/1.1]}
controller: {concurrency: 32, renderTimeout: 5s}
clientConnection: {qps: 0.5, burst: 7}
jobSet: {writeDefaults: on}
policyFile: /etc/policy.yaml
pluginDir: /plugins
plugins:
  source: Cluster
  rollout: {steps: [5, 20], interval: 90s}
  signers:
  - name: acme
    publicKey: |
      -----BEGIN PUBLIC KEY-----
      MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAENxgwF0ZTDDgz3Fl0AIP3nnKYf0YdCzn3TTqSSGvlco1Yy8FBXRxeNopf8642dgAgXwMnlRVbk/LSm7bWmv35xw==
      -----END PUBLIC KEY-----
    plugins: [acme-*]
    repositories: [registry.example.com/acme/*]
  unsigned: [registry.example.com/team/*]
  store: /var/lib/store
rendering: {clusterDomain: k8s.example.com, catalogNamespace: catalog, facts: {site/zone: a}}
logging: {format: text, level: debug}
tracing: {endpoint: https://otel:4318, samplingRatio: 0.1}
statusServer: {port: 444, qps: 1.5, burst: 3}
featureGates: {TrainJobStatus: true}
webhook: {port: 443, host: 10.0.0.1}
",
    );
    let leader_election = LeaderElection {
        leader_elect: true,
        lease_duration: Duration::from_secs(90),
        renew_deadline: Duration::from_secs(60),
        retry_period: Duration::from_millis(500),
        resource_name: "mine".to_owned(),
        resource_namespace: Some("system".to_owned()),
    };
    let lease = leader_election.lease("elsewhere", "me".to_owned()).unwrap();
    assert_eq!(
        (lease.namespace.as_str(), lease.name.as_str()),
        ("system", "mine")
    );
    assert_eq!(
        settings,
        Settings {
            leader_election,
            metrics_bind_address: BindAddress::Off,
            health_probe_bind_address: BindAddress::At {
                host: "::1".to_owned(),
                port: 9
            },
            webhook: WebhookSettings {
                bind_address: BindAddress::At {
                    host: "10.0.0.1".to_owned(),
                    port: 443,
                },
                ..WebhookSettings::default()
            },
            status_server: StatusServerSettings {
                bind_address: port(444),
                qps: 1.5,
                burst: Some(3),
                ..StatusServerSettings::default()
            },
            feature_gates: "TrainJobStatus=true".parse().unwrap(),
            metrics_secure_serving: SecureServing::Always,
            metrics_auth: true,
            cert_management: CertManagement {
                enable: true,
                webhook_service_name: "service".to_owned(),
                webhook_secret_name: "secret".to_owned(),
            },
            tls: TlsSettings {
                min_version: TlsVersion::Tls13,
                cipher_suites: vec![CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256],
            },
            concurrency: count(32),
            render_timeout: Duration::from_secs(5),
            qps: Some(0.5),
            burst: Some(7),
            write_job_set_defaults: true,
            policy_file: Some(PathBuf::from("/etc/policy.yaml")),
            plugin_dir: Some(PathBuf::from("/plugins")),
            rendering: RenderingSettings {
                cluster_domain: Some("k8s.example.com".to_owned()),
                catalog_namespace: Some("catalog".to_owned()),
                facts: [("site/zone".to_owned(), "a".to_owned())].into(),
                ..RenderingSettings::default()
            },
            plugins: PluginSettings {
                source: PluginsSource::Cluster,
                signers: signers(),
                store: Some(PathBuf::from("/var/lib/store")),
                rollout: RolloutSettings {
                    steps: vec![5, 20],
                    interval: Duration::from_secs(90),
                },
            },
            logging: Logging {
                format: LogFormat::Text,
                level: LogLevel::Debug
            },
            tracing: TracingSettings {
                endpoint: Some("https://otel:4318".parse().unwrap()),
                sampling_ratio: Some(0.1),
                ..TracingSettings::default()
            },
            shadow: false,
        }
    );
    let mounted = ours("webhook: {certDir: /certs}\n");
    assert_eq!(mounted.webhook.cert_dir, Some(PathBuf::from("/certs")));
}

#[test]
fn rendering_is_checked_like_a_policy_file() {
    let text = format!(
        "{OURS}rendering: {{clusterDomain: a_b, facts: {{host/x: '1'}}, obeyedDomains: {{remove: [x.io]}}, domain: x}}\n"
    );
    assert_eq!(
        fields(&text),
        [
            "rendering.clusterDomain",
            "rendering.domain",
            "rendering.facts.host/x",
            "rendering.obeyedDomains.remove[0]",
        ]
    );
}

#[test]
fn tls_options_say_what_is_allowed() {
    let text = format!(
        "{OURS}
tls: {{minVersion: VersionTLS11, cipherSuites: [TLS_RSA_WITH_AES_128_CBC_SHA], nextProtos: [h2]}}
"
    );
    let found = errors(&text);
    assert_eq!(found.len(), 3, "{found:?}");
    for (error, allowed) in found.iter().zip([
        "VersionTLS13",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "http/1.1",
    ]) {
        assert!(error.contains(allowed), "{error}");
    }
    let found = errors(&text.replace(OURS, REFERENCE));
    assert_eq!(found.len(), 3, "{found:?}");
    let reference =
        "tls: {minVersion: \"\", cipherSuites: [TLS_AES_128_GCM_SHA256], nextProtos: [http/1.1]}\n";
    let loaded = LoadedSettings::parse("c.yaml", &format!("{REFERENCE}{reference}")).unwrap();
    assert_eq!(loaded.settings.tls.min_version, TlsVersion::Tls12);
}

#[test]
fn certificates_and_metrics_do_not_contradict_each_other() {
    let found = errors(&format!(
        "{OURS}certManagement: {{enable: true}}\nwebhook: {{certDir: /certs}}\nmetrics: {{auth: {{enabled: true}}}}\n"
    ));
    assert_eq!(
        found,
        [
            "c.yaml:3: certManagement.enable: is true, but webhook.certDir is set, too; remove one of the two",
            "c.yaml:5: metrics.auth.enabled: is true, but metrics.secureServing is false: tokens would be sent over plain HTTP; set metrics.secureServing to true",
        ]
    );
    let off = errors(&format!(
        "{REFERENCE}metrics: {{secureServing: false, auth: {{enabled: true}}}}\n"
    ));
    assert_eq!(off.len(), 1, "{off:?}");
    let on = LoadedSettings::parse(
        "c.yaml",
        &format!("{REFERENCE}metrics: {{auth: {{enabled: true}}}}\n"),
    );
    assert!(on.unwrap().settings.metrics_auth);
}

#[test]
fn flags_override_the_file() {
    let settings =
        ours("controller: {concurrency: 2}\nlogging: {level: warn}\nclientConnection: {qps: 3}\n");
    let same = settings.clone().with(Overrides::default());
    assert_eq!(same, settings);
    let flags = Overrides {
        leader_elect: Some(true),
        metrics_bind_address: Some(BindAddress::Off),
        health_probe_bind_address: Some(port(1)),
        webhook_bind_address: Some(port(2)),
        webhook_cert_dir: Some("certs".into()),
        feature_gates: "TrainJobStatus=true".parse().unwrap(),
        cert_management: Some(true),
        concurrency: Some(count(9)),
        qps: Some(0.0),
        burst: Some(4),
        policy_file: Some("p".into()),
        plugin_dir: Some("d".into()),
        plugin_store: Some("s".into()),
        log_format: Some(LogFormat::Text),
        log_level: None,
        tracing_endpoint: Some("http://otel".parse().unwrap()),
        shadow: true,
    };
    let settings = settings.with(flags);
    assert!(settings.shadow);
    assert!(settings.leader_election.leader_elect);
    assert_eq!(settings.metrics_bind_address, BindAddress::Off);
    assert_eq!(settings.health_probe_bind_address, port(1));
    assert_eq!(settings.webhook.bind_address, port(2));
    assert_eq!(settings.webhook.cert_dir, Some("certs".into()));
    assert!(settings.feature_gates.is_on(FeatureGate::TrainJobStatus));
    assert!(settings.cert_management.enable);
    assert_eq!(settings.concurrency, count(9));
    assert_eq!((settings.qps, settings.burst), (Some(0.0), Some(4)));
    assert!(
        settings.rate().is_none(),
        "0 switches the limit of the file off"
    );
    assert_eq!(settings.plugin_dir, Some("d".into()));
    assert_eq!(settings.plugins.store, Some("s".into()));
    assert_eq!(settings.policy_file, Some("p".into()));
    let endpoint = settings.tracing.endpoint.unwrap().to_string();
    assert_eq!(endpoint, "http://otel");
    assert_eq!(settings.logging.format, LogFormat::Text);
    assert_eq!(settings.logging.level, LogLevel::Warn);
}

#[test]
fn configuration_deployed_by_the_reference_is_read() {
    let LoadedSettings { settings, warnings } =
        LoadedSettings::parse("c.yaml", &format!("{REFERENCE}{DEPLOYED}")).unwrap();
    let expected = Settings {
        leader_election: LeaderElection {
            leader_elect: true,
            ..LeaderElection::default()
        },
        metrics_bind_address: port(8443),
        metrics_secure_serving: SecureServing::WithCertificate,
        // With its default true, the deployment without webhooks would need further permissions.
        cert_management: CertManagement {
            enable: false,
            webhook_service_name: "kubeflow-trainer-controller-manager".to_owned(),
            webhook_secret_name: "kubeflow-trainer-webhook-cert".to_owned(),
        },
        health_probe_bind_address: port(8081),
        concurrency: count(5),
        qps: Some(50.0),
        burst: Some(100),
        ..Settings::default()
    };
    assert_eq!(settings, expected);
    let mut reported: Vec<_> = warnings
        .iter()
        .map(|warning| warning.location.field.to_string())
        .collect();
    reported.sort_unstable();
    assert_eq!(
        reported,
        [
            "certManagement.enable",
            "clientConnection.qps",
            "controller.groupKindConcurrency[ClusterTrainingRuntime.trainer.kubeflow.org]",
            "controller.groupKindConcurrency[TrainingRuntime.trainer.kubeflow.org]",
            "metrics.secureServing",
        ]
    );
    assert!(
        warnings
            .iter()
            .any(|warning| warning.to_string().contains(":8443 over plain HTTP"))
    );
}

#[test]
fn empty_reference_configuration_means_its_defaults() {
    let read = |rest: &str| LoadedSettings::parse("c.yaml", &format!("{REFERENCE}{rest}")).unwrap();
    let empty = read("");
    assert_eq!(empty.settings.metrics_bind_address, port(8443));
    assert_eq!(empty.settings.health_probe_bind_address, port(8081));
    assert!(empty.settings.rate().is_none());
    let same = read("metrics: {bindAddress: \"\"}\nhealth: {healthProbeBindAddress: \"\"}\n");
    assert_eq!(same, empty);
    let off = read("metrics: {bindAddress: \"0\"}\nhealth: {healthProbeBindAddress: \"0\"}\n");
    assert_eq!(off.settings.metrics_bind_address, BindAddress::Off);
    assert_eq!(off.settings.health_probe_bind_address, BindAddress::Off);
    assert_eq!(off.warnings, []);
    let reported = read(
        "featureGates: {TrainJobStatus: true}\nhealth: {readinessEndpointName: ready}\nwebhook: {}\n",
    );
    let reported: Vec<_> = reported
        .warnings
        .iter()
        .map(|warning| warning.location.field.to_string())
        .collect();
    assert_eq!(
        reported,
        [
            "health.readinessEndpointName",
            "metrics.secureServing",
            "webhook"
        ]
    );
}

#[test]
fn all_errors_are_reported_at_once() {
    let text = format!(
        "{OURS}
leaderElection: {{leaderElect: sometimes, leaseDuration: 5, renewDeadline: 1s, retryPeriod: 1s}}
metrics: {{bindAddress: 8080}}
health: {{healthProbeBindAddress: nowhere}}
controller: {{concurrency: 0, groupKindConcurrency: {{}}, renderTimeout: 999ms}}
clientConnection: {{qps: -1, burst: 1.5}}
jobSet: {{writeDefaults: 1}}
logging: {{level: loud}}
tracing: {{endpoint: otel:4318, samplingRatio: 1.5}}
pluginsDir: /plugins
"
    );
    assert_eq!(
        fields(&text),
        [
            "clientConnection.burst",
            "clientConnection.qps",
            "controller.concurrency",
            "controller.groupKindConcurrency",
            "controller.renderTimeout",
            "health.healthProbeBindAddress",
            "jobSet.writeDefaults",
            "leaderElection.leaderElect",
            "leaderElection.leaseDuration",
            "leaderElection.retryPeriod",
            "logging.level",
            "metrics.bindAddress",
            "pluginsDir",
            "tracing.endpoint",
            "tracing.samplingRatio",
        ]
    );
    let mut all = errors(&text);
    all.sort();
    assert_eq!(
        all,
        [
            "c.yaml:10: logging.level: must be `error`, `warn`, `info`, `debug` or `trace`; found `loud`",
            "c.yaml:11: tracing.endpoint: `otel:4318` is not the URL of a collector; use a URL such as http://collector:4318",
            "c.yaml:11: tracing.samplingRatio: must be at most 1; found 1.5",
            "c.yaml:12: pluginsDir: unknown field; did you mean `pluginDir`?",
            "c.yaml:4: leaderElection.leaderElect: must be true or false; found `sometimes`",
            "c.yaml:4: leaderElection.leaseDuration: must be a string; found 5",
            "c.yaml:4: leaderElection.retryPeriod: is 1s; renewDeadline, which is 1s, must be more than 1.2 times as long",
            "c.yaml:5: metrics.bindAddress: must be a string; found 8080",
            "c.yaml:6: health.healthProbeBindAddress: `nowhere` is not an address to listen on; use `HOST:PORT`, `:PORT` for all interfaces, or `0` to disable the server",
            "c.yaml:7: controller.concurrency: must be at least 1; found 0",
            "c.yaml:7: controller.groupKindConcurrency: unknown field; valid fields are concurrency, renderTimeout",
            "c.yaml:7: controller.renderTimeout: must be at least 1s; found 999ms",
            "c.yaml:8: clientConnection.burst: must be an integer; found 1.5",
            "c.yaml:8: clientConnection.qps: must be at least 0; found -1",
            "c.yaml:9: jobSet.writeDefaults: must be true or false; found 1",
        ]
    );
}

/// Errors are sentences, whichever keyword of the schema rejects the value.
#[test]
fn errors_list_the_allowed_keys() {
    for (head, rest, wanted) in [
        (
            OURS,
            "logging: {format: xml}",
            "logging.format: must be `json` or `text`; found `xml`",
        ),
        (
            OURS,
            "logging: {format: 5}",
            "logging.format: must be `json` or `text`; found 5",
        ),
        (
            OURS,
            "logging: loud",
            "logging: must be a mapping; found `loud`",
        ),
        (OURS, "pluginDir: ''", "pluginDir: must not be empty"),
        (
            OURS,
            "plugins: {source: Folder}",
            "plugins.source: must be `File` or `Cluster`; found `Folder`",
        ),
        (
            OURS,
            "plugins: {rollout: {steps: [10, 10]}}",
            "plugins.rollout.steps[1]: must be larger than the one before, which is 10; found 10",
        ),
        (
            OURS,
            "plugins: {rollout: {steps: [100]}}",
            "plugins.rollout.steps[0]: must be at most 99; found 100",
        ),
        (
            OURS,
            "plugins: {rollout: {interval: 10ms}}",
            "plugins.rollout.interval: must be at least 1s; found 10ms",
        ),
        (
            OURS,
            "pluginDir: [a]",
            "pluginDir: must be a string; found a list",
        ),
        (
            OURS,
            "controller: {concurrency: 2000}",
            "controller.concurrency: must be at most 1024; found 2000",
        ),
        (
            OURS,
            "leaderElection: {resourceLock: endpoints}",
            "leaderElection.resourceLock: must be `leases`; found `endpoints`",
        ),
        (
            OURS,
            "leaderElection: {leaseDuration: soon}",
            "leaderElection.leaseDuration: must be a duration, such as 15s, 1m30s or 500ms; found `soon`",
        ),
        (
            OURS,
            "leaderElection: {leaderElected: true}",
            "leaderElection.leaderElected: unknown field; did you mean `leaderElect`?",
        ),
        (
            REFERENCE,
            "leaderElection: {leaseDuration: soon}",
            "leaderElection.leaseDuration: must be a duration, such as 15s, 1m30s or 500ms; found `soon`",
        ),
        (
            REFERENCE,
            "leaderElection: {resourceLock: 1}",
            "leaderElection.resourceLock: must be `leases`; found 1",
        ),
        (
            REFERENCE,
            "featureGates: {TrainJobs: true}",
            "featureGates.TrainJobs: `TrainJobs` is not a feature gate; the feature gates are TrainJobStatus, AllAlpha, AllBeta",
        ),
        (
            REFERENCE,
            "featureGates: {A: 'true'}",
            "featureGates.A: must be true or false; found `true`",
        ),
        (
            REFERENCE,
            "tls: {cipherSuites: all}",
            "tls.cipherSuites: must be a list; found `all`",
        ),
    ] {
        assert_eq!(
            errors(&format!("{head}{rest}\n")),
            [format!("c.yaml:3: {wanted}")]
        );
    }
}

#[test]
fn reference_configuration_is_parsed_as_strictly() {
    let text = format!(
        "{REFERENCE}
webhook: {{port: 0, hosts: a}}
clientConnection: {{qps: -1}}
controller: {{groupKindConcurrency: {{TrainJob.trainer.kubeflow.org: 0}}}}
featureGates: {{TrainJobStatus: \"true\"}}
progressServer: {{port: 1}}
health: {{healthProbeBindAddress: nowhere}}
"
    );
    assert_eq!(
        fields(&text),
        [
            "clientConnection.qps",
            "controller.groupKindConcurrency.TrainJob.trainer.kubeflow.org",
            "featureGates.TrainJobStatus",
            "health.healthProbeBindAddress",
            "progressServer",
            "webhook.hosts",
            "webhook.port",
        ]
    );
}

#[test]
fn impossible_lease_durations_are_refused_under_both_names() {
    for (durations, field) in [
        ("{renewDeadline: 15s}", "leaderElection.renewDeadline"),
        ("{leaseDuration: 10s}", "leaderElection.renewDeadline"),
        ("{retryPeriod: 9s}", "leaderElection.retryPeriod"),
        ("{retryPeriod: 0s}", "leaderElection.retryPeriod"),
        (
            "{leaseDuration: 900ms, renewDeadline: 500ms, retryPeriod: 100ms}",
            "leaderElection.leaseDuration",
        ),
        ("{leaseDuration: -15s}", "leaderElection.leaseDuration"),
        ("{leaseDuration: 1e300h}", "leaderElection.leaseDuration"),
        ("{leaseDuration: 15}", "leaderElection.leaseDuration"),
        ("{leaseDuration: \"\"}", "leaderElection.leaseDuration"),
        ("{resourceLock: endpoints}", "leaderElection.resourceLock"),
    ] {
        for head in [OURS, REFERENCE] {
            let text = format!("{head}leaderElection: {durations}\n");
            assert_eq!(fields(&text), [field], "{text}");
        }
    }
    // The maximum that the schema accepts does not panic.
    let most = "999999h999999h999999h999999h";
    let text = format!("leaderElection: {{leaseDuration: {most}}}\n");
    assert!(ours(&text).leader_election.lease_duration > Duration::from_secs(1 << 30));
}

#[test]
fn other_kinds_of_files_are_refused_with_a_suggestion() {
    let all = errors("apiVersion: trainyard.dev/v1alpha1\nkind: PolicyFile\n");
    assert_eq!(all.len(), 1);
    assert!(
        all[0].contains(
            "apiVersion `trainyard.dev/v1alpha1` with kind `PolicyFile` is not supported"
        ),
        "{all:?}"
    );
    assert!(all[0].contains("kind: ControllerConfiguration"), "{all:?}");
    assert!(errors("")[0].contains("is empty; it must begin with"));
    assert!(errors(&format!("{OURS}---\n{OURS}"))[0].contains("contains 2 YAML documents"));
    assert!(errors("a: [")[0].contains("line "));
    let absent = LoadedSettings::read(&PathBuf::from("/absent.yaml")).unwrap_err();
    assert!(
        absent[0]
            .to_string()
            .starts_with("/absent.yaml: cannot be read")
    );
}

#[test]
fn schema_describes_every_key() {
    fn undescribed(schema: &serde_json::Value, path: &str, found: &mut Vec<String>) {
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{key}");
            if property["description"].as_str().is_none_or(str::is_empty) {
                found.push(path);
            }
        }
    }
    let schema = schema();
    let mut found = Vec::new();
    undescribed(&schema, "", &mut found);
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        undescribed(definition, name, &mut found);
        let strict = definition["type"] != "object" || definition["additionalProperties"] == false;
        assert!(strict, "{name}");
    }
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn manual_names_every_key_and_its_example_is_valid() {
    let manual = include_str!("../../../docs/configuration.md");
    let schema = schema();
    /// Adds the keys below an object of the schema that have no keys themselves.
    fn add(
        schema: &serde_json::Value,
        properties: &serde_json::Value,
        above: &str,
        keys: &mut Vec<String>,
    ) {
        for (key, property) in properties.as_object().unwrap() {
            let path = match above {
                "" => key.clone(),
                above => format!("{above}.{key}"),
            };
            let inner = property["$ref"].as_str().map(|name| {
                let name = name.strip_prefix("#/$defs/").unwrap();
                &schema["$defs"][name]["properties"]
            });
            match inner.filter(|inner| inner.is_object()) {
                Some(inner) => add(schema, inner, &path, keys),
                None => keys.push(path),
            }
        }
    }
    let mut keys = Vec::new();
    add(&schema, &schema["properties"], "", &mut keys);
    assert_eq!(keys.len(), 49, "{keys:?}");
    for key in keys {
        let named = manual.contains(&format!("| `{key}` |"));
        assert!(named || key == "apiVersion" || key == "kind", "{key}");
    }
    let example = manual.split("```").nth(1).unwrap();
    let example = example.strip_prefix("yaml").unwrap();
    let settings = LoadedSettings::parse("example", example).unwrap().settings;
    assert_eq!(settings.concurrency, count(32));
}

#[test]
fn manual_shows_errors_as_they_are_printed() {
    let manual = include_str!("../../../docs/configuration.md");
    let shown = manual.split("```").nth(3).unwrap().trim();
    let file = "apiVersion: trainyard.dev/v1alpha1
kind: ControllerConfiguration
leaderElection:
  leaderElect: true
  leaseDuration: 15 sec
controller:
  concurency: 32
";
    let errors = LoadedSettings::parse("controller.yaml", file).unwrap_err();
    let printed: Vec<_> = errors
        .iter()
        .map(|error| format!("error: {error}"))
        .collect();
    assert_eq!(printed, shown.lines().collect::<Vec<_>>());
}

/// As in the reference, gates and the server are settings of either file, and flags take precedence.
#[test]
fn the_status_server_is_set_as_in_the_reference() {
    let read = |kind: &str| {
        let text = format!(
            "{kind}statusServer: {{port: 1, qps: 7}}\nfeatureGates: {{TrainJobStatus: true}}\n"
        );
        LoadedSettings::parse("c.yaml", &text).unwrap().settings
    };
    for settings in [read(OURS), read(REFERENCE)] {
        let server = StatusServerSettings {
            bind_address: port(1),
            qps: 7.0,
            burst: None,
            ..StatusServerSettings::default()
        };
        assert_eq!(settings.status_server, server);
        assert_eq!(
            server.url("ml"),
            "https://kubeflow-trainer-controller-manager.ml.svc:1"
        );
        let is_on = |settings: &Settings| settings.feature_gates.is_on(FeatureGate::TrainJobStatus);
        assert!(is_on(&settings));
        let off = Overrides {
            feature_gates: "TrainJobStatus=false".parse().unwrap(),
            ..Overrides::default()
        };
        assert!(!is_on(&settings.with(off)));
    }
    let default = StatusServerSettings::default();
    assert_eq!(
        (default.bind_address, default.qps, default.burst),
        (port(10443), 5.0, Some(10))
    );
}
