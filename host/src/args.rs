//! Arguments that several commands have.

use std::{convert::Infallible, fmt, path::PathBuf, str::FromStr, time::Duration};

use clap::{Args, ValueEnum};
use trainyard_controller::settings::FeatureGates;
use trainyard_model::{names::is_dns_label, quantity::Quantity};

/// The input and the plugins of a command that renders.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    /// Print the results of the other TrainJobs if one is refused. The exit code is still 1.
    #[arg(long)]
    pub(crate) keep_going: bool,
}

/// The input.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// A file, a directory (its *.yaml, *.yml and *.json files), or `-` for standard input, with TrainJobs, runtimes, and objects that
    /// plugins look up. Can be repeated.
    #[arg(short, long = "filename", value_name = "FILE|DIR|-", num_args = 1.., value_hint = clap::ValueHint::AnyPath)]
    pub(crate) filename: Vec<PathBuf>,
    /// The namespace of objects without one [default: default].
    #[arg(short, long, value_parser = namespace)]
    pub(crate) namespace: Option<String>,
    /// Select the TrainJob of this name from the input. Can be repeated.
    #[arg(long, value_name = "[NAMESPACE/]NAME", requires = "filename")]
    pub(crate) train_job: Vec<JobName>,
    #[command(flatten)]
    pub(crate) limit: TimeoutArgs,
}

/// How long a rendering may take.
#[derive(Clone, Debug, Args)]
pub(crate) struct TimeoutArgs {
    /// The maximum time for rendering one TrainJob, such as `2m`. The controller has `controller.renderTimeout`.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = timeout)]
    pub(crate) timeout: Duration,
}

/// The name of a TrainJob in one namespace or in any namespace.
#[derive(Clone, Debug)]
pub(crate) struct JobName {
    namespace: Option<String>,
    name: String,
}

impl FromStr for JobName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
            None => (None, text),
        };
        let name = name.to_owned();
        Ok(Self { namespace, name })
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl JobName {
    /// Whether it is the name of the TrainJob `name` in `namespace`.
    pub(crate) fn is_of(&self, namespace: &str, name: &str) -> bool {
        self.name == name && self.namespace.as_deref().is_none_or(|own| own == namespace)
    }
}

impl InputArgs {
    /// The namespace of objects without one.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }
}

/// The most digits of a time limit, which are enough for any.
const MOST_DIGITS: usize = 12;

/// Parses a time limit.
pub(crate) fn timeout(text: &str) -> Result<Duration, String> {
    // More digits can be more seconds than the type has, for which parsing panics.
    let is_short = text.bytes().filter(u8::is_ascii_digit).count() <= MOST_DIGITS;
    let duration = is_short.then(|| text.parse::<kube::core::Duration>().ok());
    let duration = duration.flatten();
    let duration = duration.filter(|duration| !duration.is_negative());
    let duration = duration.map(Duration::from);
    let duration = duration.filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| "must be a positive duration, such as `30s` or `2m`".to_owned())
}

/// Parses the name of a namespace.
pub(crate) fn namespace(text: &str) -> Result<String, String> {
    if is_dns_label(text) {
        Ok(text.to_owned())
    } else {
        Err("must be 1 to 63 characters of a-z, 0-9 and -, and start and end with a letter or digit".to_owned())
    }
}

/// Returns the name of a TrainJob in a cluster from `trainjob/NAME`; `None` for other texts.
pub(crate) fn live_train_job(text: &str) -> Option<&str> {
    let kinds = ["trainjob/", "trainjobs/"];
    kinds.iter().find_map(|kind| text.strip_prefix(kind))
}

/// Parses `trainjob/NAME`, or `NAME`.
pub(crate) fn train_job(text: &str) -> Result<String, String> {
    let name = live_train_job(text).unwrap_or(text);
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    if name.is_empty() || !name.chars().all(fits) {
        return Err("must be `trainjob/NAME` with the name of a TrainJob".to_owned());
    }
    Ok(name.to_owned())
}

/// The plugins of a command, and whose signatures of them count.
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    #[command(flatten)]
    pub(crate) signed: SignerArgs,
}

/// Whose signatures of plugins in registries count.
#[derive(Debug, Args)]
pub(crate) struct SignerArgs {
    /// A public key, such as cosign.pub, that must have signed each plugin of a registry. Can be repeated: one of the keys is enough.
    #[arg(long, value_name = "FILE", conflicts_with = "signers", value_hint = clap::ValueHint::FilePath)]
    pub(crate) key: Vec<PathBuf>,
    /// A configuration file of the controller, whose `plugins.signers` and `plugins.unsigned` say which plugins are accepted. Its other keys have
    /// no effect.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) signers: Option<PathBuf>,
}

/// The plugins.
#[derive(Debug, Args)]
pub(crate) struct PluginArgs {
    /// A plugin file to load in addition to the built-in plugins. Can be repeated.
    #[arg(long = "plugin", value_name = "FILE.wasm", value_hint = clap::ValueHint::FilePath)]
    pub(crate) plugin: Vec<PathBuf>,
    /// A directory of plugin files: every *.wasm file in it is loaded.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) plugin_dir: Option<PathBuf>,
    /// A file with PolicyPlugins, which have the grants, limits and configuration of plugins, or a ControllerConfiguration, of which only
    /// `rendering`, `plugins.signers` and `plugins.unsigned` are used; or a directory of such files. Can be repeated. A policy file is still
    /// read.
    #[arg(long, value_name = "FILE|DIR", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) policy: Vec<PathBuf>,
    /// Features to switch on or off, as NAME=BOOL with commas between them: TrainJobStatus, with which pods report progress [default:
    /// TrainJobStatus=false].
    #[arg(
        long,
        value_name = "NAME=BOOL,...",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) feature_gates: FeatureGates,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

/// The maximum size of the cache by default, in bytes.
pub(crate) const DEFAULT_CACHE_SIZE: u64 = 512 << 20;

/// The cache of compiled plugins.
#[derive(Clone, Debug, Args)]
pub(crate) struct CacheArgs {
    /// The directory that caches compiled plugins [default: $XDG_CACHE_HOME/trainyard]. The key that authenticates them is in
    /// $XDG_STATE_HOME/trainyard, or in the cache directory if there is no home directory.
    #[arg(long, value_name = "DIR", env = "TRAINYARD_CACHE_DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) cache_dir: Option<PathBuf>,
    /// The maximum size of the cache, such as 512Mi. The least recently used entries are deleted first.
    #[arg(long, value_name = "BYTES", env = "TRAINYARD_CACHE_SIZE", default_value = "512Mi", value_parser = bytes)]
    pub(crate) cache_size: u64,
    /// A directory that `trainyard plugin compile` wrote. Its code is not checked, so only those who may replace this program may be able to
    /// write to it.
    #[arg(long, value_name = "DIR", env = "TRAINYARD_COMPILED_DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) compiled_dir: Option<PathBuf>,
}

/// Parses a number of bytes in the notation of Kubernetes quantities.
fn bytes(text: &str) -> Result<u64, String> {
    let quantity = Quantity::parse(text).and_then(Quantity::ceil);
    let bytes = quantity.and_then(|bytes| u64::try_from(bytes).ok());
    bytes.ok_or_else(|| "must be a number of bytes, such as 512Mi".to_owned())
}

/// The output format of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectFormat {
    /// A YAML document for each object.
    Yaml,
    /// A v1 List, as kubectl prints it.
    Json,
}

/// The output format of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// A table.
    Table,
    /// JSON.
    Json,
}

/// How registries are reached.
#[derive(Clone, Debug, Args)]
pub(crate) struct RegistryArgs {
    /// The credentials of registries, as `docker login` writes them [default: config.json in $DOCKER_CONFIG or ~/.docker].
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) registry_config: Option<PathBuf>,
    /// The mirrors of registries, and their certificate authorities, in the form of registries.yaml of k3s.
    #[arg(long, value_name = "FILE", env = "TRAINYARD_REGISTRIES", value_hint = clap::ValueHint::FilePath)]
    pub(crate) registries: Option<PathBuf>,
    /// A file of certificate authorities in PEM, which are trusted in addition to those of this machine. Can be repeated.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) ca_file: Vec<PathBuf>,
    /// Connect without TLS, which lets the network read and change everything. Registries on localhost need no flag.
    #[arg(long)]
    pub(crate) plain_http: bool,
    /// The maximum time for the whole transfer, such as `10m`.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = timeout)]
    pub(crate) registry_timeout: Duration,
}

impl RegistryArgs {
    /// Returns the flags that are set.
    pub(crate) fn set(&self) -> Vec<(&'static str, String)> {
        let path = |flag: &'static str, path: &PathBuf| (flag, path.display().to_string());
        let config = self.registry_config.iter();
        let config = config.map(|file| path("--registry-config", file));
        let registries = self.registries.iter();
        let registries = registries.map(|file| path("--registries", file));
        let authorities = self.ca_file.iter().map(|file| path("--ca-file", file));
        let plain = self.plain_http.then(|| ("--plain-http", "true".to_owned()));
        config
            .chain(registries)
            .chain(authorities)
            .chain(plain)
            .collect()
    }
}

/// Where plugins of registries are found.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// The directory in the OCI image layout that keeps plugins of registries [default: $XDG_CACHE_HOME/trainyard/store].
    #[arg(long, value_name = "DIR", env = "TRAINYARD_PLUGIN_STORE", value_hint = clap::ValueHint::DirPath)]
    pub(crate) plugin_store: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}
