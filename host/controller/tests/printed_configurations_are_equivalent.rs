//! A printed configuration is a valid file with the same settings, and the published schema accepts every file that is read.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, json};
use trainyard_api::{nulls, yaml};
use trainyard_config::{ObeyedDomainChanges, RenderingSettings};
use trainyard_controller::{
    certificate::{CertManagement, CipherSuite, TlsSettings, TlsVersion},
    serve::BindAddress,
    settings::{
        FeatureGate, LeaderElection, LoadedSettings, LogFormat, LogLevel, Logging, MAX_CONCURRENCY,
        PluginSettings, PluginsSource, RolloutSettings, SecureServing, Settings, schema,
    },
    spans::TracingSettings,
    status_server::StatusServerSettings,
    webhook::WebhookSettings,
};
use trainyard_oci::Signers;

fn reread(settings: &Settings) -> Settings {
    let file = settings.to_file().unwrap();
    let accepted = jsonschema::validator_for(&schema()).unwrap();
    assert!(accepted.is_valid(&file), "{file}");
    let text = yaml::write(&file);
    let loaded = LoadedSettings::parse("c.yaml", &text).unwrap_or_else(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        panic!("{text}: {errors:?}")
    });
    assert_eq!(loaded.warnings, [], "{text}");
    loaded.settings
}

#[test]
fn defaults_are_printed() {
    let file = Settings::default().to_file().unwrap();
    let expected = json!({
        "apiVersion": "trainyard.dev/v1alpha1",
        "kind": "ControllerConfiguration",
        "leaderElection": {
            "leaderElect": false,
            "leaseDuration": "15s",
            "renewDeadline": "10s",
            "retryPeriod": "2s",
            "resourceLock": "leases",
            "resourceName": "trainer.kubeflow.org",
        },
        "metrics": {"bindAddress": ":8080", "secureServing": false, "auth": {"enabled": false}},
        "health": {"healthProbeBindAddress": ":8081"},
        "webhook": {"port": 9443, "host": ""},
        "statusServer": {"port": 10443, "qps": 5.0, "burst": 10},
        "featureGates": {"TrainJobStatus": false},
        "certManagement": {
            "enable": false,
            "webhookServiceName": "kubeflow-trainer-webhooks",
            "webhookSecretName": "kubeflow-trainer-webhook-cert",
        },
        "tls": {"minVersion": "VersionTLS12", "cipherSuites": []},
        "controller": {"concurrency": 16, "renderTimeout": "30s"},
        "clientConnection": {},
        "jobSet": {"writeDefaults": false},
        "plugins": {"source": "File", "rollout": {"steps": [10, 50], "interval": "5m"}, "signers": [], "unsigned": []},
        "logging": {"format": "json", "level": "info"},
        "tracing": {},
    });
    assert_eq!(file, expected);
}

/// Strings that YAML could read as another type, or that need quotes.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("0".to_owned()),
        Just("yes".to_owned()),
        Just(" #: 'a\"\\".to_owned()),
        Just("\u{202e}é\u{7f}".to_owned()),
        "[a-z/.-]{1,20}",
    ]
}

fn path() -> impl Strategy<Value = PathBuf> {
    text().prop_map(PathBuf::from)
}

fn address() -> impl Strategy<Value = BindAddress> {
    prop_oneof![
        Just(BindAddress::Off),
        any::<u16>().prop_map(BindAddress::all_interfaces),
        ("[a-z0-9.]{1,9}|::1", any::<u16>())
            .prop_map(|(host, port)| BindAddress::At { host, port }),
    ]
}

/// Up to the most hours that a file can have.
fn duration() -> impl Strategy<Value = Duration> {
    let nanoseconds = prop_oneof![Just(0), 0..1_000_000_000_u32];
    (0..4 * 999_999 * 3600_u64, nanoseconds).prop_map(|(s, ns)| Duration::new(s, ns))
}

prop_compose! {
    fn leader_election()(
        leader_elect: bool,
        retry_period in duration(),
        resource_name in "[a-z.]{1,9}",
        resource_namespace in option::of("[a-z]{1,9}"),
    ) -> LeaderElection {
        let second = Duration::from_secs(1);
        let retry_period = retry_period.max(Duration::from_nanos(4)) / 4;
        LeaderElection {
            leader_elect,
            retry_period,
            renew_deadline: retry_period * 2 + second,
            lease_duration: retry_period * 3 + second * 2,
            resource_name,
            resource_namespace,
        }
    }
}

prop_compose! {
    fn certificates()(
        enable: bool,
        names in ("[a-z]{1,9}", "[a-z]{1,9}"),
    ) -> CertManagement {
        CertManagement {
            enable,
            webhook_service_name: names.0,
            webhook_secret_name: names.1,
        }
    }
}

fn tls() -> impl Strategy<Value = TlsSettings> {
    let suites = [
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ];
    let versions = [TlsVersion::Tls12, TlsVersion::Tls13];
    let suites = proptest::sample::subsequence(suites.to_vec(), 0..=2);
    (proptest::sample::select(versions.to_vec()), suites).prop_map(
        |(min_version, cipher_suites)| TlsSettings {
            min_version,
            cipher_suites,
        },
    )
}

fn status_server() -> impl Strategy<Value = StatusServerSettings> {
    (1..u16::MAX, 0.0..1e300_f64, any::<u32>()).prop_map(|(port, qps, burst)| {
        StatusServerSettings {
            bind_address: BindAddress::all_interfaces(port),
            qps,
            burst: Some(burst),
            ..StatusServerSettings::default()
        }
    })
}

/// Keys of `cosign generate-key-pair`.
const KEYS: [&str; 2] = [
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAENxgwF0ZTDDgz3Fl0AIP3nnKYf0YdCzn3TTqSSGvlco1Yy8FBXRxeNopf8642dgAgXwMnlRVbk/LSm7bWmv35xw==",
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEKih6hKvDJy06ei2nqJ4W7Hx3NizG3qFF7Tob0vRiyiOIGFtoToJ5CZIgVUgCfzIE8iw8GJxHmxZKKwVKKSAHEw==",
];

fn pem(key: &str) -> String {
    format!("-----BEGIN PUBLIC KEY-----\n{key}\n-----END PUBLIC KEY-----\n")
}

prop_compose! {
    fn signers()(
        names in proptest::sample::subsequence(vec!["acme", "a.b-c"], 0..=2),
        plugins in vec("[a-z0-9][a-z0-9-]{0,9}[*]?|[*]", 1..3),
        repositories in vec("[a-z.]{1,9}(:5000)?/([a-z][a-z0-9._/-]{0,9}[*]?|[*])", 1..3),
        unsigned in vec("[a-z.]{1,9}/[*]", 0..3),
    ) -> Signers {
        let signers = names.iter().zip(KEYS).map(|(name, key)| {
            let signer = json!({
                "name": name,
                "publicKey": pem(key),
                "plugins": plugins,
                "repositories": repositories,
            });
            serde_json::from_value(signer).unwrap()
        });
        Signers::new(signers.collect(), unsigned)
    }
}

prop_compose! {
    fn rendering()(
        cluster_domain in option::of("[a-z]{1,9}"),
        accelerators in option::of(vec("[a-z]{1,9}\\.io/[a-z]{1,9}\\*?", 0..3)),
        facts in prop::collection::btree_map("[a-z]{1,9}/[a-z]{1,9}", text(), 0..3),
        add in vec("[a-z]{1,9}\\.io", 0..3),
    ) -> RenderingSettings {
        RenderingSettings {
            accelerators,
            cluster_domain,
            catalog_namespace: None,
            facts: facts.into_iter().map(|(name, text)| (format!("site-{name}"), text)).collect(),
            obeyed_domains: ObeyedDomainChanges { add, remove: Vec::new() },
        }
    }
}

prop_compose! {
    fn settings()(
        leader_election in leader_election(),
        addresses in (address(), address(), address()),
        cert_dir in option::of(path()),
        concurrency in 1..=MAX_CONCURRENCY,
        render_timeout in duration(),
        rate in (option::of(0.0..1e300_f64), option::of(any::<u32>())),
        write_job_set_defaults: bool,
        paths in (option::of(path()), option::of(path()), option::of(path())),
        rendering in rendering(),
        logging in (prop::bool::ANY, 0..5_usize),
        tracing in (option::of("https?://[a-z]{1,9}(:4318)?/?"), option::of(0.0..=1.0)),
        servers in (status_server(), certificates(), tls()),
        flags in (any::<bool>(), any::<bool>(), any::<bool>()),
        signers in signers(),
        plugins in (any::<bool>(), prop::collection::btree_set(1..100_u8, 0..16), duration()),
    ) -> Settings {
        let (metrics_bind_address, health_probe_bind_address, bind_address) = addresses;
        let levels = [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace];
        Settings {
            leader_election,
            metrics_bind_address,
            health_probe_bind_address,
            webhook: WebhookSettings { bind_address, cert_dir, ..WebhookSettings::default() },
            metrics_secure_serving: match flags.0 {
                true => SecureServing::Always,
                false => SecureServing::Never,
            },
            metrics_auth: flags.0 && flags.1,
            status_server: servers.0,
            feature_gates: [(FeatureGate::TrainJobStatus, flags.2)].into_iter().collect(),
            cert_management: servers.1,
            tls: servers.2,
            shadow: false,
            concurrency: NonZeroUsize::new(concurrency).unwrap(),
            render_timeout: render_timeout.max(Duration::from_secs(1)),
            qps: rate.0,
            burst: rate.1,
            write_job_set_defaults,
            policy_file: paths.0,
            plugin_dir: paths.1,
            rendering,
            plugins: PluginSettings {
                source: if plugins.0 { PluginsSource::Cluster } else { PluginsSource::File },
                signers,
                store: paths.2,
                rollout: RolloutSettings {
                    steps: plugins.1.into_iter().collect(),
                    interval: plugins.2.max(Duration::from_secs(1)),
                },
            },
            logging: Logging {
                format: if logging.0 { LogFormat::Json } else { LogFormat::Text },
                level: *levels.get(logging.1).unwrap(),
            },
            tracing: TracingSettings {
                endpoint: tracing.0.map(|url| url.parse().unwrap()),
                sampling_ratio: tracing.1,
                ..TracingSettings::default()
            },
        }
    }
}

proptest! {
    #[test]
    fn printed_settings_are_read_back(settings in settings()) {
        let mut expected = settings.clone();
        // A mounted certificate takes precedence.
        expected.cert_management.enable &= expected.webhook.cert_dir.is_none();
        if expected.webhook.bind_address == BindAddress::Off {
            if expected.webhook.cert_dir.is_some() || expected.cert_management.enable {
                let error = settings.to_file().unwrap_err().to_string();
                prop_assert!(error.contains("--webhook-bind-address=0"), "{error}");
                return Ok(());
            }
            // Neither serves webhooks.
            expected.webhook = WebhookSettings::default();
        }
        prop_assert_eq!(reread(&settings), expected);
    }

    /// The schema describes what is accepted: what it refuses is refused, with values of any type in the place of a setting's.
    #[test]
    fn schema_accepts_what_is_read(
        settings in settings(),
        changes in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..3),
    ) {
        let Ok(mut file) = settings.to_file() else {
            return Ok(());
        };
        let values = [
            json!(null), json!(0), json!(-1), json!(1.5), json!("0"), json!(""), json!("15s"), json!(true), json!([]), json!({}),
            json!({"a": 1}), json!("info"), json!(70_000),
        ];
        for (place, value) in changes {
            let mut places = places(&file, "");
            places.push("/unknown".to_owned());
            let pointer = places.get(place.index(places.len())).unwrap();
            set(&mut file, pointer, values.get(value.index(values.len())).unwrap().clone());
        }
        // A key without a value is absent.
        nulls::drop_nulls(&mut file);
        let accepted = jsonschema::validator_for(&schema()).unwrap();
        if LoadedSettings::parse("c.yaml", &yaml::write(&file)).is_ok() {
            prop_assert!(accepted.is_valid(&file), "{file}");
        }
    }
}

/// Returns the pointers of all values.
fn places(value: &Value, at: &str) -> Vec<String> {
    let members = value.as_object().into_iter().flatten();
    let below = members.flat_map(|(key, value)| {
        let pointer = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        std::iter::once(pointer.clone()).chain(places(value, &pointer))
    });
    below.collect()
}

fn set(file: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = file.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    parent.insert(key.replace("~1", "/").replace("~0", "~"), value);
}

#[cfg(unix)]
#[test]
fn paths_that_are_not_utf8_are_refused() {
    use std::os::unix::ffi::OsStringExt as _;

    let file = std::ffi::OsString::from_vec(b"p\xff".to_vec());
    let settings = Settings {
        policy_file: Some(file.into()),
        ..Settings::default()
    };
    let error = settings.to_file().unwrap_err().to_string();
    assert!(
        error.contains("policyFile") && error.contains("UTF-8"),
        "{error}"
    );
}
