//! The mistakes that `trainyard plugin conform` finds, selected by its configuration.

use trainyard_sdk::{Config, Context, Failure, PodSet, Transform};

/// The configuration of the plugin.
#[derive(Config)]
pub struct Carelessness {
    /// The mistake. Without one, the plugin makes none.
    #[config(default = "none")]
    pub mistake: String,
}

/// The plugin.
pub struct Careless;

trainyard_sdk::plugin!(Careless: transform; config = Carelessness);

impl Transform for Careless {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let mistake = ctx.job().config_as::<Carelessness>()?.mistake;
        let sets = match mistake.as_str() {
            // The launcher of MPI is the trainer, and no node.
            "nodes" => ctx.info().with_ancestor("trainer"),
            "first-node" => ctx.info().nodes().into_iter().take(1).collect(),
            // Other pods may have to be ready before the nodes.
            "waiting-nodes" => {
                let mut nodes = ctx.info().nodes();
                nodes.retain(|node| node.depends_on().is_empty());
                nodes
            }
            _ => ctx.info().nodes(),
        };
        for set in sets {
            make(ctx, &set, &mistake);
            if mistake == "overwrite" {
                overwrite(&set);
            }
        }
        Ok(())
    }
}

fn make(ctx: &Context, set: &PodSet, mistake: &str) {
    let Some(node) = set.container("node") else {
        return;
    };
    match mistake {
        "env" => node.put_env("CARELESS", "yes"),
        // It is set, and the user's value stays.
        _ => node.default_env("CARELESS", "yes"),
    }
    match mistake {
        "many-nodes" => assert!(ctx.job().nodes() < 500, "too many nodes"),
        "host-names" => assert!(ctx.info().has_host_names(), "no names"),
        "in-order" => {
            let waits_for = set.depends_on();
            let is_known = waits_for.iter().all(|one| one.pod_set != "users-helper");
            assert!(is_known, "it has to wait");
        }
        "volume" => set.put_empty_dir("careless", None, None),
        "warning" => ctx.warn("something is wrong", None),
        "limits" => (0..70).for_each(|line| ctx.log("debug", &line.to_string())),
        // A claim would order it after the plugins that write the command. Without one, their order would matter.
        "order" => {
            let command = node.command().unwrap_or_default();
            node.default_env("CARELESS_COMMAND", &command.join(" "));
        }
        _ => {}
    }
}

/// Replaces what users set.
fn overwrite(set: &PodSet) {
    let Some(node) = set.container("node") else {
        return;
    };
    set.put_empty_dir("careless", None, None);
    set.set_pod_label("example.com/careless", "yes");
    set.set_pod_annotation("example.com/careless", "yes");
    set.set_scheduler_name("careless");
    node.set_limit("example.com/careless", "1");
    node.set_request("memory", "1Gi");
}
