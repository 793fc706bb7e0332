//! A TrainJob that has not started is rendered again when an object, list or kind that its plugins looked up appears, changes or
//! disappears. The controller has only the roles that `trainyard rbac` prints for its plugins.
//!
//! The TrainJobs are suspended and their JobSets exist, so that nothing else triggers a reconcile.

use anyhow::{Result, ensure};
use serde_json::json;
use trainyard_cluster::{Install, Resource, Test, Write, install};

use crate::common::flavors::{self, FlavorNamespace, WithFlavors, flavor};

async fn changed_object_updates_a_suspended_train_job(shared: &WithFlavors) -> Result<()> {
    let namespace = FlavorNamespace::new(&shared.plane).await?;
    let flavors = Resource::namespaced("/apis/example.com/v1", "flavors");
    namespace.create(&flavors, &flavor("a100")).await?;
    namespace.job("queued", true, ("flavor", "default")).await?;
    namespace
        .until_labeled("queued", "gpu", Some("a100"))
        .await?;
    for gpu in ["h100", "b200"] {
        let patch = json!({"spec": {"gpu": gpu}});
        namespace
            .api(&flavors)
            .merge("default", &patch, &Write::strict())
            .await?
            .accepted()?;
        namespace.until_labeled("queued", "gpu", Some(gpu)).await?;
    }
    Ok(())
}

async fn changed_list_updates_a_suspended_train_job(shared: &WithFlavors) -> Result<()> {
    let namespace = FlavorNamespace::new(&shared.plane).await?;
    let classes = Resource::cluster_wide("/apis/scheduling.k8s.io/v1", "priorityclasses");
    let there = namespace.api(&classes).items().await?.len();
    namespace.job("counts", true, ("priorities", "all")).await?;
    let count = |more: usize| (there + more).to_string();
    namespace
        .until_labeled("counts", "priorities", Some(&count(0)))
        .await?;
    let class = |description: &str| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"},
            "value": 7, "description": description,
        })
    };
    namespace.create(&classes, &class("first")).await?;
    namespace
        .until_labeled("counts", "priorities", Some(&count(1)))
        .await?;
    // This TrainJob looks up one object by name, although all objects may be watched.
    namespace.job("reads", true, ("priority", "urgent")).await?;
    namespace
        .until_labeled("reads", "priority", Some("first"))
        .await?;
    let patch = json!({"description": "second"});
    namespace
        .api(&classes)
        .merge("urgent", &patch, &Write::strict())
        .await?
        .accepted()?;
    namespace
        .until_labeled("reads", "priority", Some("second"))
        .await?;
    namespace.api(&classes).delete("urgent").await?.accepted()?;
    namespace
        .until_labeled("counts", "priorities", Some(&count(0)))
        .await
}

/// A snapshot contains all lookups. If it contained other snapshots, it would double in size at every reconcile.
async fn lists_contain_no_snapshots(shared: &WithFlavors) -> Result<()> {
    let namespace = FlavorNamespace::new(&shared.plane).await?;
    let config_maps = Resource::namespaced("/api/v1", "configmaps");
    let api = namespace.api(&config_maps);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-the-user"}});
    namespace.create(&config_maps, &map).await?;
    let jobs = namespace.api(&namespace.jobs);
    let mut size = None;
    for name in ["first", "second"] {
        namespace.job(name, true, ("config-maps", "all")).await?;
        for round in 0..5 {
            let round = round.to_string();
            let patch = json!({"metadata": {"labels": {"example.com/round": round}}});
            jobs.merge(name, &patch, &Write::strict())
                .await?
                .accepted()?;
            namespace.until_labeled(name, "round", Some(&round)).await?;
            namespace
                .until_labeled(name, "config-maps", Some("1"))
                .await?;
            let snapshot = api.get(&format!("{name}-runtime-snapshot")).await?;
            let now = snapshot.accepted()?["data"]["lookups"].to_string().len();
            let first = *size.get_or_insert(now);
            ensure!(now == first, "the lookups grew from {first} to {now} bytes");
        }
    }
    Ok(())
}

async fn installed_or_removed_kind_updates_suspended_train_jobs(
    shared: &WithFlavors,
) -> Result<()> {
    let namespace = FlavorNamespace::new(&shared.plane).await?;
    namespace.job("asks", true, ("zone", "any")).await?;
    namespace.job("reads", true, ("zone", "main")).await?;
    for name in ["asks", "reads"] {
        namespace
            .until_labeled(name, "zoned", Some("false"))
            .await?;
    }
    let zone = flavors::definition("late.example.com", "Zone", "zones");
    let zones = install(&shared.plane, &zone, Install::ServerSide).await?;
    let main = json!({
        "apiVersion": "late.example.com/v1", "kind": "Zone", "metadata": {"name": "main"}, "spec": {"name": "north"},
    });
    namespace.create(&zones, &main).await?;
    namespace
        .until_labeled("asks", "zoned", Some("true"))
        .await?;
    namespace
        .until_labeled("reads", "zone", Some("north"))
        .await?;
    let patch = json!({"spec": {"name": "south"}});
    namespace
        .api(&zones)
        .merge("main", &patch, &Write::strict())
        .await?
        .accepted()?;
    namespace
        .until_labeled("reads", "zone", Some("south"))
        .await?;
    let crds = Resource::crds();
    let deleted = namespace
        .api(&crds)
        .delete("zones.late.example.com")
        .await?;
    deleted.accepted()?;
    for name in ["asks", "reads"] {
        namespace
            .until_labeled(name, "zoned", Some("false"))
            .await?;
    }
    namespace.until_labeled("reads", "zone", None).await
}

pub(crate) fn tests() -> Vec<Test<WithFlavors>> {
    tests![
        changed_object_updates_a_suspended_train_job,
        changed_list_updates_a_suspended_train_job,
        lists_contain_no_snapshots,
        installed_or_removed_kind_updates_suspended_train_jobs,
    ]
}
