//! Makes a lookup of each kind, selected by a label of the TrainJob. The result becomes a label of all pods.

use trainyard_sdk::{Context, Failure, Transform};

/// The plugin.
pub struct Flavors;

trainyard_sdk::plugin!(Flavors: transform);

impl Transform for Flavors {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let asks = |what: &str| ctx.job().label(&format!("example.com/{what}"));
        put(ctx, "example.com/round", asks("round"));
        if asks("flavor").is_some() {
            let flavor = ctx.lookups().get("example.com/v1", "Flavor", "default");
            let gpu = flavor.and_then(|flavor| flavor.text("/spec/gpu"));
            put(ctx, "example.com/gpu", gpu);
        }
        if let Some(name) = asks("priority") {
            let class = ctx
                .lookups()
                .get("scheduling.k8s.io/v1", "PriorityClass", &name);
            let text = class.and_then(|class| class.text("/description"));
            put(ctx, "example.com/priority", text);
        }
        if asks("priorities").is_some() {
            let classes = ctx.lookups().all("scheduling.k8s.io/v1", "PriorityClass");
            put(
                ctx,
                "example.com/priorities",
                Some(classes.len().to_string()),
            );
        }
        if asks("config-maps").is_some() {
            let maps = ctx.lookups().all("v1", "ConfigMap");
            put(ctx, "example.com/config-maps", Some(maps.len().to_string()));
        }
        if asks("zone").is_some() {
            let served = ctx.lookups().served("late.example.com/v1", "Zone");
            put(ctx, "example.com/zoned", Some(served.to_string()));
        }
        if asks("zone").is_some_and(|zone| zone == "main") {
            let zone = ctx.lookups().get("late.example.com/v1", "Zone", "main");
            put(
                ctx,
                "example.com/zone",
                zone.and_then(|zone| zone.text("/spec/name")),
            );
        }
        Ok(())
    }
}

fn put(ctx: &Context, label: &str, value: Option<String>) {
    if let Some(value) = value {
        for pod_set in ctx.info().pod_sets() {
            pod_set.set_pod_label(label, &value);
        }
    }
}
