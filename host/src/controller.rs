//! `trainyard controller`.

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
};
use tokio_util::sync::CancellationToken;
use trainyard_api::{FieldPath, Location};
use trainyard_config::RenderingSection;
use trainyard_controller::{
    Options,
    certificate::SystemClock,
    generation::Generations,
    metrics::Metrics,
    plugins::ClusterPlugins,
    queue::{Backoff, Queue},
    serve::BindAddress,
    settings::{
        FeatureGate, LoadedSettings, LogFormat, LogLevel, MAX_CONCURRENCY, Overrides,
        PluginsSource, Settings,
    },
    spans::{Endpoint, EndpointError, Process, SpanExport},
    threads::{Sizes, Threads},
    webhook::CERT_DIR,
};
use trainyard_model::text::clean;

use crate::{
    args::{DEFAULT_CACHE_SIZE, PluginArgs, SourceArgs},
    cluster::ClusterArgs,
    cluster_plugins::{self, Places, Shared},
    load::{self, CodeLoading, LenientLoad, Loading},
    log, output,
    policy::{self, Declared, Missing, Policy},
    report::{self, ErrorList},
};

/// The standard environment variable with the URL of a collector.
const ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Arguments of `controller`. Flags override the configuration file.
#[derive(Debug, Args)]
pub(crate) struct ControllerArgs {
    /// The configuration file: a trainyard.dev/v1alpha1 ControllerConfiguration or a config.trainer.kubeflow.org/v1alpha1
    /// Configuration.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArgs,
    // A plugin that is refused is skipped.
    #[command(flatten)]
    load: PluginArgs,
    /// Enable leader election with the Lease trainer.kubeflow.org [default: false].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    leader_elect: Option<bool>,
    /// The address that serves metrics, as HOST:PORT or :PORT; 0 disables them [default: :8080].
    #[arg(long, value_name = "ADDRESS")]
    metrics_bind_address: Option<BindAddress>,
    /// The address that serves /healthz and /readyz; 0 disables them [default: :8081].
    #[arg(long, value_name = "ADDRESS")]
    health_probe_bind_address: Option<BindAddress>,
    /// Serve admission webhooks, with the certificate tls.crt and the key tls.key of this directory, which are read again when they change.
    /// Without a value: /tmp/k8s-webhook-server/serving-certs.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, default_missing_value = CERT_DIR, value_hint = clap::ValueHint::DirPath)]
    webhook_cert_dir: Option<PathBuf>,
    /// Serve admission webhooks, with a certificate that the controller creates and renews in a Secret [default: false].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    cert_management: Option<bool>,
    /// The address that serves admission webhooks over HTTPS, as HOST:PORT or :PORT; used with a certificate [default: :9443].
    #[arg(long, value_name = "ADDRESS")]
    webhook_bind_address: Option<BindAddress>,
    /// Print the effective configuration as a configuration file, with all keys that have a value, and exit.
    #[arg(long)]
    print_config: bool,
    /// The maximum number of TrainJobs reconciled at the same time, up to 1024 [default: 16].
    #[arg(long, value_name = "N", value_parser = concurrency)]
    concurrency: Option<NonZeroUsize>,
    /// The maximum average number of API server calls per second; 0 for no limit [default: no limit].
    #[arg(long, value_name = "N", value_parser = qps)]
    kube_api_qps: Option<f64>,
    /// The maximum burst of API server calls; used with --kube-api-qps [default: twice its value].
    #[arg(long, value_name = "N")]
    kube_api_burst: Option<u32>,
    /// Write nothing: compare each TrainJob with the objects that another controller, such as the Kubeflow Trainer's, made for it. The
    /// differences are metrics, and a page at /shadow of the metrics server. Only `get`, `list` and `watch` are called, without leader
    /// election and webhooks.
    #[arg(long)]
    shadow: bool,
    /// The log format [default: json].
    #[arg(long, value_enum)]
    log_format: Option<LogFormat>,
    /// The log level; the environment variable TRAINYARD_LOG overrides it [default: info].
    #[arg(long, value_enum)]
    log_level: Option<LogLevel>,
    /// Export spans to this collector of OpenTelemetry, by OTLP over HTTP; by default to that of the environment variable
    /// OTEL_EXPORTER_OTLP_ENDPOINT, if it is set.
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    tracing_endpoint: Option<String>,
}

fn concurrency(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok();
    let number = number.filter(|number: &NonZeroUsize| number.get() <= MAX_CONCURRENCY);
    number.ok_or_else(|| format!("must be an integer from 1 to {MAX_CONCURRENCY}"))
}

fn qps(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(qps) if qps >= 0.0 && f64::is_finite(qps) => Ok(qps),
        _ => Err("must be a positive number, or 0 for no limit".to_owned()),
    }
}

pub(crate) fn run(args: &ControllerArgs) -> Result<(), ErrorList> {
    let settings = settings(args)?;
    if args.print_config {
        return print_config(args, settings);
    }
    let queue = Queue::new(Backoff::default()).with_workers(settings.concurrency);
    let metrics = Arc::new(Metrics::new(&queue));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let spans = runtime.block_on(export_spans(args, &settings, &metrics))?;
    log::for_controller(settings.logging, spans.as_ref());
    // Servers bound their connections, by more than the usual soft limit.
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
    let (stop, loaded) = (CancellationToken::new(), CancellationToken::new());
    let signals = Signals::listen(&runtime);
    runtime.spawn(stop_on_signal(signals, stop.clone()));
    runtime.spawn(exit_while_loading(stop.clone(), loaded.clone()));
    tracing::info!("loading plugins");
    let status_url = if settings.feature_gates.is_on(FeatureGate::TrainJobStatus) {
        let cluster = runtime.block_on(args.cluster.config())?;
        Some(settings.status_server.url(&cluster.default_namespace))
    } else {
        None
    };
    let ProcessPlugins {
        generations,
        threads,
        cluster,
    } = plugins(args, &settings, status_url, &metrics)?;
    loaded.cancel();
    let ended = runtime.block_on(async {
        let options = Options {
            cluster: args.cluster.config().await?.into(),
            settings,
            instance: instance(),
            generations,
            threads,
            queue,
            metrics,
            clock: Arc::new(SystemClock),
            plugins: cluster,
        };
        let ended = trainyard_controller::run(options, stop).await;
        if let Some(spans) = spans {
            spans.finish().await;
        }
        ended.map_err(|error| ErrorList::from_iter([error]))
    });
    // Does not wait for the threads, so a long plugin call does not delay the exit.
    runtime.shutdown_background();
    ended
}

/// Returns the name of this process.
fn instance() -> String {
    std::env::var("HOSTNAME").unwrap_or_else(|_| "trainyard".to_owned())
}

/// Starts the export of spans, if there is a collector.
async fn export_spans(
    args: &ControllerArgs,
    settings: &Settings,
    metrics: &Arc<Metrics>,
) -> Result<Option<SpanExport>, ErrorList> {
    if settings.tracing.endpoint.is_none() {
        return Ok(None);
    }
    let process = Process {
        version: env!("CARGO_PKG_VERSION"),
        pod: instance(),
        namespace: args.cluster.config().await?.default_namespace,
    };
    let started = SpanExport::start(&settings.tracing, process, metrics);
    started.map_err(|error| ErrorList::from_iter([error]))
}

/// The plugins of the process.
struct ProcessPlugins {
    generations: Arc<Generations>,
    threads: Threads,
    /// Those that the cluster declares, if the settings say so.
    cluster: Option<ClusterPlugins>,
}

/// Loads the plugins. Refused plugins are logged, counted and skipped. Those that the cluster declares are loaded later.
fn plugins(
    args: &ControllerArgs,
    settings: &Settings,
    status_url: Option<String>,
    metrics: &Arc<Metrics>,
) -> Result<ProcessPlugins, ErrorList> {
    let is_cluster = settings.plugins.source == PluginsSource::Cluster;
    if is_cluster {
        refuse_files(args, settings)?;
    }
    let paths: Vec<_> = settings.policy_file.iter().cloned().collect();
    let mut declared = Declared::read(&paths, &[])?;
    let policy_digest = declared.digest();
    for warning in std::mem::take(&mut declared.warnings) {
        tracing::warn!("{warning}");
    }
    let file = args
        .config
        .as_deref()
        .map_or_else(String::new, output::path);
    let own = RenderingSection {
        settings: settings.rendering.clone(),
        location: Location::file(file),
        field: FieldPath::of(["rendering"]),
    };
    declared.sections.push(own.clone());
    let policy = Policy::new(declared.plugins, declared.sections)?;
    let policy = policy.for_process(settings.feature_gates.clone(), status_url.clone());
    let mut policy = policy.with_signers(Some(settings.plugins.signers.clone()));
    let (files, missing) = match is_cluster {
        // PolicyPlugins name those that are loaded.
        true => (Vec::new(), Vec::new()),
        false => {
            let files = load::files(&args.load.plugin, settings.plugin_dir.as_deref())?;
            let source = SourceArgs {
                plugin_store: store(args, settings),
                registry: args.load.source.registry.clone(),
            };
            policy.available_files(files, &source)
        }
    };
    let sizes = Sizes::for_cores(load::cores());
    let shared = Arc::new(Shared {
        loader: load::loader(&args.load.cache, sizes.threads)?,
        rendering: own,
        gates: settings.feature_gates.clone(),
        status_url,
        metrics: metrics.clone(),
    });
    let wrap = |plugin| shared.wrap(plugin);
    let loading = Loading::new(&shared.loader, CodeLoading::Eager)
        .wrapping(&wrap)
        // The TrainJobs that need one of them wait, even if a built-in plugin has its name.
        .without(missing.iter().map(|it| it.name().to_owned()));
    let skipped = missing.iter().map(Missing::skipped).collect();
    let load = LenientLoad::load(&loading, &files, &policy, skipped)?;
    log_loaded(&load, settings, policy_digest.as_deref());
    let missing = missing.iter().map(Missing::refusal);
    for (file, why) in load.refused.iter().cloned().chain(missing) {
        let (file, why) = (file.as_str(), why.as_str());
        metrics.plugin_refused(file);
        tracing::error!(file, why, "plugin skipped");
    }
    let cluster = match is_cluster {
        true => Some(cluster_plugins::cluster_plugins(
            places(args, settings)?,
            shared.clone(),
        )),
        false => None,
    };
    let generations = Generations::new(load.renderer, settings.write_job_set_defaults);
    let threads = Threads::new(
        Arc::new(move |call| shared.loader.pool().spawn(call)),
        sizes,
        settings.render_timeout,
    );
    Ok(ProcessPlugins {
        generations: Arc::new(generations),
        threads,
        cluster,
    })
}

fn log_loaded(load: &LenientLoad, settings: &Settings, policy_digest: Option<&str>) {
    let generation = load.renderer.generation();
    let plan = generation.digest(&load.renderer.facts().facts);
    let plugins: Vec<_> = generation.plugins().map(|it| it.id.to_string()).collect();
    let path = settings.policy_file.as_ref();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        plugins = plugins.join(", "),
        plan,
        policy_file = path.map(|path| path.display().to_string()),
        policy_digest,
        "plugins are loaded"
    );
    for plugin in &load.disabled {
        tracing::info!(plugin, "disabled in its PolicyPlugin");
    }
    for warning in &load.warnings {
        tracing::warn!("{warning}");
    }
}

/// Fails if plugins are declared both in the cluster and in files.
fn refuse_files(args: &ControllerArgs, settings: &Settings) -> Result<(), ErrorList> {
    let mut errors = ErrorList::default();
    if let Some(path) = &settings.policy_file {
        errors.add(format!(
            "policyFile (--policy): is {}, but plugins.source is Cluster, so plugins are declared by PolicyPlugins in the cluster; apply what `trainyard plugin convert` prints of it, move the settings for all TrainJobs to `rendering`, and remove it",
            output::path(path)
        ));
    }
    for file in &args.load.plugin {
        errors.add(format!(
            "--plugin: is {}, but plugins.source is Cluster, so only plugins of PolicyPlugins are loaded; put the file into the plugin directory, and name it in `source.file` of a PolicyPlugin",
            output::path(file)
        ));
    }
    errors.or_ok(())
}

/// Lists the files of the plugin directory, which are not loaded by themselves if plugins are declared in the cluster.
fn log_files(directory: &Path) {
    let names = |files: Vec<PathBuf>| {
        let names = files.iter().filter_map(|file| file.file_name());
        let names: Vec<_> = names.map(|name| clean(&name.to_string_lossy())).collect();
        names.join(", ")
    };
    match load::files(&[], Some(directory)) {
        Ok(files) => tracing::info!(
            files = names(files),
            "files of the plugin directory are loaded only if a PolicyPlugin of the cluster names them in source.file"
        ),
        Err(errors) => {
            let error = errors.lines().collect::<Vec<_>>().join("; ");
            tracing::warn!(error, "the plugin directory cannot be read");
        }
    }
}

/// Returns the directory that keeps plugins of registries; `None` if none is given and there is no home directory.
fn store(args: &ControllerArgs, settings: &Settings) -> Option<PathBuf> {
    let cache = args.load.cache.cache_dir.as_ref();
    let in_cache = || Some(cache?.join("store"));
    let store = settings.plugins.store.clone().or_else(in_cache);
    store.or_else(|| policy::store(None))
}

/// Returns where plugins of the cluster come from.
fn places(args: &ControllerArgs, settings: &Settings) -> Result<Places, ErrorList> {
    let store = store(args, settings).ok_or_else(|| {
        ErrorList::from_iter([
            "plugins.store: is not set, and there is no cache directory, because HOME is not set; set it, or pass --cache-dir",
        ])
    })?;
    tracing::info!(store = %store.display(), "plugins of registries are kept");
    if let Some(directory) = &settings.plugin_dir {
        log_files(directory);
    }
    Ok(Places {
        store,
        plugin_dir: settings.plugin_dir.clone(),
        signers: settings.plugins.signers.clone(),
        registry: args.load.source.registry.clone(),
    })
}

/// Returns the settings of the configuration file, overridden by the flags.
fn settings(args: &ControllerArgs) -> Result<Settings, ErrorList> {
    let settings = match &args.config {
        None => Settings::default(),
        Some(path) => {
            let loaded = LoadedSettings::read(path).map_err(ErrorList::from_iter)?;
            loaded.warnings.iter().for_each(report::warn);
            loaded.settings
        }
    };
    Ok(settings.with(Overrides {
        leader_elect: args.leader_elect,
        metrics_bind_address: args.metrics_bind_address.clone(),
        health_probe_bind_address: args.health_probe_bind_address.clone(),
        webhook_bind_address: args.webhook_bind_address.clone(),
        webhook_cert_dir: args.webhook_cert_dir.clone(),
        feature_gates: args.load.feature_gates.clone(),
        cert_management: args.cert_management,
        concurrency: args.concurrency,
        qps: args.kube_api_qps,
        burst: args.kube_api_burst,
        policy_file: policy_path(&args.load.policy)?,
        plugin_dir: args.load.plugin_dir.clone(),
        plugin_store: args.load.source.plugin_store.clone(),
        log_format: args.log_format,
        log_level: args.log_level,
        tracing_endpoint: tracing_endpoint(args)?,
        shadow: args.shadow,
    }))
}

/// Returns the path of `--policy`. The configuration has one, too.
fn policy_path(paths: &[PathBuf]) -> Result<Option<PathBuf>, ErrorList> {
    match paths {
        [] => Ok(None),
        [path] => Ok(Some(path.clone())),
        _ => Err(ErrorList::from_iter([
            "the controller takes one --policy; pass a directory that has the files",
        ])),
    }
}

/// Returns the collector of the flag, or else of the environment variable. clap would quote a URL that it refuses, which may have a password.
fn tracing_endpoint(args: &ControllerArgs) -> Result<Option<Endpoint>, ErrorList> {
    let flag = args.tracing_endpoint.clone();
    let flag = flag.map(|text| ("--tracing-endpoint", text));
    let variable = std::env::var(ENDPOINT_VARIABLE).ok();
    let variable = variable.filter(|text| !text.is_empty());
    let variable = variable.map(|text| (ENDPOINT_VARIABLE, text));
    let Some((name, text)) = flag.or(variable) else {
        return Ok(None);
    };
    let refused = |error: EndpointError| ErrorList::from_iter([format!("{name}: {error}")]);
    text.parse().map(Some).map_err(refused)
}

/// Prints a configuration file with these settings. Comments name the flags that have no key, and are in effect.
fn print_config(args: &ControllerArgs, mut settings: Settings) -> Result<(), ErrorList> {
    let mut comments = args.without_key();
    match log::named() {
        Some(Ok(level)) => settings.logging.level = level,
        Some(Err(filter)) => comments.push(format!(
            "{}={filter} takes precedence over logging.level",
            log::LOG_VARIABLE
        )),
        None => {}
    }
    let file = settings
        .to_file()
        .map_err(|error| ErrorList::from_iter([error.to_string()]))?;
    output::print(&output::commented(&comments, &[file]))
}

impl ControllerArgs {
    /// Returns a line for each flag that is set, and that a configuration file has no key for.
    fn without_key(&self) -> Vec<String> {
        let path = |flag: &'static str, path: &Path| (flag, path.display().to_string());
        let cache = &self.load.cache;
        let plugins = self.load.plugin.iter().map(|file| path("--plugin", file));
        let mut flags: Vec<_> = plugins.collect();
        flags.extend(cache.cache_dir.iter().map(|dir| path("--cache-dir", dir)));
        if cache.cache_size != DEFAULT_CACHE_SIZE {
            flags.push(("--cache-size", cache.cache_size.to_string()));
        }
        flags.extend(
            cache
                .compiled_dir
                .iter()
                .map(|dir| path("--compiled-dir", dir)),
        );
        flags.extend(
            self.cluster
                .kubeconfig
                .iter()
                .map(|file| path("--kubeconfig", file)),
        );
        flags.extend(self.load.source.registry.set());
        if self.shadow {
            flags.push(("--shadow", "true".to_owned()));
        }
        let context = self.cluster.context.iter();
        flags.extend(context.map(|name| ("--context", name.clone())));
        let line = |(flag, value)| format!("{flag}={value} has no key; pass it with --config");
        flags.into_iter().map(line).collect()
    }
}

/// Exits if the process is stopped while plugins are loading, because a compilation may take minutes and cannot be interrupted.
async fn exit_while_loading(stop: CancellationToken, loaded: CancellationToken) {
    tokio::select! {
        biased;
        () = loaded.cancelled() => {}
        () = stop.cancelled() => {
            tracing::info!("stopped before all plugins were loaded");
            std::process::exit(0);
        }
    }
}

/// The signals that stop a controller. The kernel ignores them for the first process of a container unless it has a handler, so the handlers
/// are installed before anything else.
struct Signals {
    terminate: Option<Signal>,
    interrupt: Option<Signal>,
}

impl Signals {
    fn listen(runtime: &Runtime) -> Self {
        let _context = runtime.enter();
        let listen = |kind, name| {
            let failed = |error: &std::io::Error| {
                tracing::warn!(%error, "cannot handle {name}; the signal ends this process immediately");
            };
            signal(kind).inspect_err(failed).ok()
        };
        Self {
            terminate: listen(SignalKind::terminate(), "SIGTERM"),
            interrupt: listen(SignalKind::interrupt(), "SIGINT"),
        }
    }

    /// Waits for the next signal.
    async fn next(&mut self) {
        async fn of(signal: &mut Option<Signal>) {
            match signal {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = of(&mut self.terminate) => {}
            () = of(&mut self.interrupt) => {}
        }
    }
}

/// Stops the controller at the first signal, and exits at the second.
async fn stop_on_signal(mut signals: Signals, stop: CancellationToken) {
    signals.next().await;
    tracing::info!("stopping; a second signal ends this process immediately");
    stop.cancel();
    signals.next().await;
    tracing::warn!("stopped immediately by a second signal");
    std::process::exit(1);
}
