//! Fills a cache of each node with a dataset. An init container copies it before training starts, or a sidecar provides it while training
//! runs. The nodes mount the cache, and cannot write to it.

mod config;

use trainyard_sdk::{Context, Failure, Mount, NODE, PodSet, Transform, json};

use self::config::{CacheConfig, Fill};

/// The volume, and the container that fills it.
const NAME: &str = "dataset-cache";
/// The volume with the credentials.
const CREDENTIALS: &str = "dataset-cache-credentials";
/// Where the container that fills the cache mounts the credentials.
const CREDENTIALS_PATH: &str = "/etc/dataset-cache";
/// The env vars of the container that fills the cache.
const SOURCE: &str = "DATASET_SOURCE";
const PATH: &str = "DATASET_PATH";

/// The plugin.
pub struct DatasetCache;

trainyard_sdk::plugin!(DatasetCache: transform; config = CacheConfig);

impl Transform for DatasetCache {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let config = ctx.job().config_as::<CacheConfig>()?;
        let source = config.source(ctx)?;
        for set in ctx.info().nodes() {
            // A mount of the runtime or the TrainJob at the path is data that the user provides.
            let node = set.container(NODE);
            let Some(node) = node.filter(|node| node.mount(&config.path).is_none()) else {
                continue;
            };
            set.reserve_volume(NAME)?;
            if config.credentials_secret.is_some() {
                set.reserve_volume(CREDENTIALS)?;
            }
            ctx.because("the nodes read the dataset from this cache");
            set.put_empty_dir(NAME, None, config.size_limit.as_deref());
            node.default_mount(&Mount::new(NAME, &config.path).read_only());
            add_container(ctx, &set, &config, &source);
        }
        Ok(())
    }
}

/// Adds the container that fills the cache.
fn add_container(ctx: &Context, set: &PodSet, config: &CacheConfig, source: &str) {
    ctx.because("it fills the cache");
    let container = set.add_init_container(NAME, &config.image);
    if matches!(config.fill, Fill::WhileTraining) {
        // A sidecar: the nodes start when it has started, and it is stopped when they have ended.
        container.set_restart_policy("Always");
    }
    container.put_env(SOURCE, source);
    container.put_env(PATH, &config.path);
    container.set_command(&config.command);
    container.put_mount(&Mount::new(NAME, &config.path));
    for (resource, amount) in &config.requests {
        container.set_request(resource, amount);
    }
    if let Some(secret) = &config.credentials_secret {
        let source = json::object([("secretName", json::quoted(secret))]);
        set.put_raw_volume(CREDENTIALS, &json::object([("secret", source)]));
        container.put_mount(&Mount::new(CREDENTIALS, CREDENTIALS_PATH).read_only());
    }
}
