//! Shows the operator's settings of the policy file in the pods: configuration, the cluster's domain, a fact, the catalog, a grant, an order.

use trainyard_sdk::{Config, Context, Failure, Transform};

/// The operator's configuration.
#[derive(Config)]
pub struct Site {
    /// The proxy of the site.
    pub proxy: Option<String>,
}

/// The plugin.
pub struct SitePlugin;

trainyard_sdk::plugin!(SitePlugin: transform; operator_config = Site);

impl Transform for SitePlugin {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let site: Site = ctx.job().operator_config_as()?;
        for pod_set in ctx.info().with_ancestor("trainer") {
            pod_set.put_node_selector("example.com/pool", "training");
            let Some(node) = pod_set.container("node") else {
                continue;
            };
            if let Some(proxy) = &site.proxy {
                node.put_env("SITE_PROXY", proxy);
            }
            node.put_env("SITE_DOMAIN", &ctx.info().cluster_domain());
            if let Some(region) = ctx.fact("site/region") {
                node.put_env("SITE_REGION", &region);
            }
            let racks = ctx.lookups().find_in_catalog("v1", "ConfigMap", "racks");
            if let Some(rack) = racks.and_then(|racks| racks.text("/data/rack")) {
                node.put_env("SITE_RACK", &rack);
            }
            // Torch also writes it, so the final value shows the order.
            node.put_env("PET_NNODES", "site");
        }
        Ok(())
    }
}
