//! The plugin's configuration in a runtime, and the catalog of datasets.

use std::collections::BTreeMap;

use trainyard_sdk::{Config, Context, Failure};

/// The ConfigMap of the catalog with the address of each dataset.
const DATASETS: &str = "datasets";

/// The plugin's configuration in a runtime.
#[derive(Config, Debug)]
pub(crate) struct CacheConfig {
    /// The name of a dataset in the catalog's ConfigMap `datasets`.
    #[config(pattern = "^[-._a-zA-Z0-9]{1,253}$")]
    pub(crate) dataset: Option<String>,
    /// The address of a dataset, such as `s3://bucket/imagenet`, instead of a name.
    #[config(min_length = 1)]
    pub(crate) source: Option<String>,
    /// Where the nodes and the container that fills the cache mount it.
    #[config(default = "/var/cache/dataset", pattern = "^/[^:]+$")]
    pub(crate) path: String,
    /// The image of the container that fills the cache.
    #[config(min_length = 1)]
    pub(crate) image: String,
    /// Its command, which reads from `$(DATASET_SOURCE)` and writes to `$(DATASET_PATH)`.
    #[config(min_items = 1)]
    pub(crate) command: Vec<String>,
    /// When it fills the cache.
    #[config(default = "beforeTraining")]
    pub(crate) fill: Fill,
    /// The most bytes that the cache can take of the Kubernetes node's disk, such as `500Gi`.
    #[config(min_length = 1)]
    pub(crate) size_limit: Option<String>,
    /// The resources that the container requests.
    pub(crate) requests: BTreeMap<String, String>,
    /// The Secret with the credentials, whose keys become files in /etc/dataset-cache.
    #[config(min_length = 1, max_length = 253)]
    pub(crate) credentials_secret: Option<String>,
}

/// When the cache is filled.
#[derive(Config, Debug)]
pub(crate) enum Fill {
    /// Training starts when the command has succeeded.
    BeforeTraining,
    /// The command runs beside training.
    WhileTraining,
}

impl CacheConfig {
    /// Returns the address of the dataset.
    ///
    /// # Errors
    /// There is not exactly one of a name and an address, or the catalog does not have the name.
    pub(crate) fn source(&self, ctx: &Context) -> Result<String, Failure> {
        match (&self.dataset, &self.source) {
            (Some(dataset), None) => in_catalog(ctx, dataset),
            (None, Some(source)) => Ok(source.clone()),
            _ => Err(refused(
                "the configuration of the plugin dataset-cache must have `dataset` or `source`, and not both; correct it",
            )),
        }
    }
}

/// Returns the address of a dataset in the catalog.
fn in_catalog(ctx: &Context, dataset: &str) -> Result<String, Failure> {
    let Some(datasets) = ctx.lookups().find_in_catalog("v1", "ConfigMap", DATASETS) else {
        return Err(refused(
            "the catalog has no ConfigMap `datasets`; create it in the namespace `rendering.catalogNamespace` of the controller's configuration, or set `source` instead of `dataset`",
        ));
    };
    datasets.text(&format!("/data/{dataset}")).ok_or_else(|| {
        let known = datasets.keys("/data").join(", ");
        refused(&format!(
            "the catalog has no dataset `{dataset}`; use one of {known}, or add it to the ConfigMap `datasets`"
        ))
    })
}

fn refused(message: &str) -> Failure {
    Failure::from(message).at("spec.plugins")
}
