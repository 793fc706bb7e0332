//! The plugin of docs/write-a-plugin.md, from a folder, changes what TrainJobs become; where it can't, an Event says why; and a
//! broken file beside it harms nobody.
#![allow(clippy::indexing_slicing)]

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use trainyard_cluster::{
    Api, Cluster, ControlPlane, Fate, Resource, Shared, Test, Trainyard, Write, build_plugin,
    deploy, run,
};
use trainyard_schema::documents::Kind;

/// A cluster with a controller that has the guide's plugin, and a broken file beside it.
struct WithPlugins {
    cluster: Cluster,
    controller: Trainyard,
}

impl Shared for WithPlugins {
    fn start() -> Result<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugin-dir");
        std::fs::create_dir_all(&folder)?;
        build_the_guides_plugin(&folder.join("tracer.wasm"))?;
        std::fs::write(folder.join("broken.wasm"), "no component")?;
        let cluster = Cluster::start()?;
        let plane = cluster.plane();
        let arguments = ["--plugin-dir".into(), folder.into_os_string()];
        let controller = plane.block_on(async {
            let account = deploy(plane).await?;
            Trainyard::start(plane, &account, arguments).await
        })?;
        Ok(Self {
            cluster,
            controller,
        })
    }

    fn plane(&self) -> &ControlPlane {
        self.cluster.plane()
    }

    fn still_runs(&self) -> Result<()> {
        self.cluster.still_runs()?;
        self.controller.process().still_runs()
    }
}

/// Makes the crate of the guide from the guide's own text, and builds it.
fn build_the_guides_plugin(component: &Path) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = std::fs::read_to_string(root.join("docs/write-a-plugin.md"))?;
    let crate_folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tracer");
    for block in guide.split("<!-- file: ").skip(1) {
        let (name, rest) = block.split_once(" -->").context("a file has no name")?;
        let text = rest
            .split("```")
            .nth(1)
            .and_then(|text| text.split_once('\n'));
        let (_, text) = text.with_context(|| format!("{name} has no text"))?;
        let path = crate_folder.join(name);
        std::fs::create_dir_all(path.parent().context("no folder")?)?;
        std::fs::write(path, text)?;
    }
    let sdk = root.join("plugins/sdk").canonicalize()?;
    let manifest = format!(
        "[package]\nname = \"tracer\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[lib]\ncrate-type = [\"cdylib\", \"rlib\"]\n\n\
         [dependencies]\ntrainyard-sdk = {{ path = {:?} }}\n\n[workspace]\n",
        sdk.display().to_string()
    );
    std::fs::write(crate_folder.join("Cargo.toml"), manifest)?;
    build_plugin(&crate_folder, component, &[])
}

struct Place<'a> {
    shared: &'a WithPlugins,
    namespace: String,
    jobs: Resource,
    runtimes: Resource,
    job_sets: Resource,
    config_maps: Resource,
    events: Resource,
}

impl<'a> Place<'a> {
    async fn new(shared: &'a WithPlugins) -> Result<Self> {
        let place = Self {
            namespace: shared.cluster.new_namespace().await?,
            shared,
            jobs: Resource::defined_by(&Kind::TrainJob.crd()?)?,
            runtimes: Resource::defined_by(&Kind::TrainingRuntime.crd()?)?,
            job_sets: Resource::jobsets(),
            config_maps: Resource::namespaced("/api/v1", "configmaps"),
            events: Resource::namespaced("/api/v1", "events"),
        };
        shared
            .cluster
            .kubelet()
            .decide(&place.namespace, |_| Fate::Succeed);
        Ok(place)
    }

    fn api(&'a self, resource: &'a Resource) -> Api<'a> {
        self.shared.cluster.api(resource, &self.namespace)
    }

    /// A runtime with these plugins, and a TrainJob on it.
    async fn create(&self, name: &str, plugins: &Value) -> Result<Value> {
        let runtime = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime", "metadata": {"name": name},
            "spec": {"mlPolicy": {"torch": {}}, "plugins": plugins, "template": {"spec": {"replicatedJobs": [{
                "name": "node",
                "template": {
                    "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                    "spec": {"template": {"spec": {"containers": [{"name": "node", "image": "example.com/image"}]}}},
                },
            }]}}},
        });
        self.api(&self.runtimes)
            .create(&runtime, &Write::strict())
            .await?
            .accepted()?;
        let job = json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": name},
            "spec": {"runtimeRef": {"kind": "TrainingRuntime", "name": name}},
        });
        Ok(self
            .api(&self.jobs)
            .create(&job, &Write::strict())
            .await?
            .accepted()?)
    }

    async fn until_complete(&self, name: &str) -> Result<Value> {
        let is_complete = |job: &Value| {
            let conditions = job["status"]["conditions"].as_array();
            conditions.is_some_and(|all| {
                all.iter()
                    .any(|c| c["type"] == "Complete" && c["status"] == "True")
            })
        };
        self.api(&self.jobs)
            .until(name, "it is complete", is_complete)
            .await
    }

    async fn until_told(&self, name: &str, part: &str) -> Result<()> {
        let about = |event: &Value| {
            let text = event["message"].as_str().unwrap_or_default();
            event["involvedObject"]["name"] == name && text.contains(part)
        };
        let what = format!("an Event of {name} that says {part:?}");
        self.api(&self.events)
            .until_all(&what, |all| all.iter().any(about))
            .await?;
        Ok(())
    }
}

async fn a_plugin_waits_for_what_it_looks_up_and_then_changes_the_job(
    shared: &WithPlugins,
) -> Result<()> {
    let place = Place::new(shared).await?;
    place
        .create(
            "traced",
            &json!([{"name": "tracer", "config": {"sampling": 10}}]),
        )
        .await?;
    place.until_told("traced", "plugin tracer 0.1.0").await?;
    place
        .until_told("traced", "needs ConfigMap `tracing` (v1)")
        .await?;
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tracing"},
        "data": {"endpoint": "http://collector:4317"},
    });
    place
        .api(&place.config_maps)
        .create(&settings, &Write::strict())
        .await?
        .accepted()?;
    let job = place.until_complete("traced").await?;
    let job_set = place.api(&place.job_sets).get("traced").await?.accepted()?;
    let pod = &job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
    let env = pod["containers"][0]["env"].as_array().context("no env")?;
    let endpoint = env
        .iter()
        .find(|one| one["name"] == "OTEL_EXPORTER_OTLP_ENDPOINT");
    ensure!(
        endpoint.is_some_and(|one| one["value"] == "http://collector:4317"),
        "{job_set:#}"
    );
    ensure!(
        pod["volumes"][0]["configMap"]["name"] == "traced-tracer",
        "{job_set:#}"
    );
    let emitted = place
        .api(&place.config_maps)
        .get("traced-tracer")
        .await?
        .accepted()?;
    ensure!(
        emitted["data"]["tracer.yaml"] == "service: traced\nsampling: 10\n",
        "{emitted:#}"
    );
    ensure!(
        emitted["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"],
        "{emitted:#}"
    );
    let snapshot = place
        .api(&place.config_maps)
        .get("traced-runtime-snapshot")
        .await?
        .accepted()?;
    ensure!(
        snapshot["data"]["lookups"]
            .as_str()
            .is_some_and(|text| text.contains("collector:4317")),
        "{snapshot:#}"
    );
    ensure!(
        shared
            .controller
            .metric("trainyard_plugin_calls_total", "plugin=\"tracer\"")
            .await?
            > 0.0
            || shared
                .controller
                .metrics()
                .await?
                .contains("plugin=\"tracer\"")
    );
    Ok(())
}

async fn a_plugin_that_refuses_is_named_with_its_field(shared: &WithPlugins) -> Result<()> {
    let place = Place::new(shared).await?;
    let empty = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tracing"}, "data": {"other": "x"}});
    place
        .api(&place.config_maps)
        .create(&empty, &Write::strict())
        .await?
        .accepted()?;
    place
        .create("refused", &json!([{"name": "tracer"}]))
        .await?;
    place
        .until_told(
            "refused",
            "the ConfigMap `tracing` has no key `endpoint` (plugin tracer 0.1.0",
        )
        .await?;
    place
        .create(
            "misconfigured",
            &json!([{"name": "tracer", "config": {"sampling": 0}}]),
        )
        .await?;
    place
        .until_told("misconfigured", "spec.plugins[0].config.sampling: ")
        .await?;
    for name in ["refused", "misconfigured"] {
        let job = place.api(&place.jobs).get(name).await?.accepted()?;
        ensure!(job.pointer("/status/conditions").is_none(), "{job:#}");
        place.api(&place.jobs).delete(name).await?.accepted()?;
    }
    place
        .api(&place.jobs)
        .until_all("both are gone", <[Value]>::is_empty)
        .await?;
    Ok(())
}

async fn a_broken_file_harms_nobody(shared: &WithPlugins) -> Result<()> {
    let place = Place::new(shared).await?;
    place.create("plain", &json!([])).await?;
    place.until_complete("plain").await?;
    place
        .create("needs-it", &json!([{"name": "broken"}]))
        .await?;
    place
        .until_told(
            "needs-it",
            "spec.plugins[0].name: no loaded plugin has the name `broken`",
        )
        .await?;
    place.until_told("needs-it", "broken.wasm: ").await?;
    let metrics = shared.controller.metrics().await?;
    ensure!(
        metrics
            .lines()
            .any(|line| line.contains("refused") && line.contains("broken.wasm")),
        "{metrics}"
    );
    Ok(())
}

fn main() -> ExitCode {
    run::<WithPlugins>(vec![
        Test::new(
            "a_plugin_waits_for_what_it_looks_up_and_then_changes_the_job",
            a_plugin_waits_for_what_it_looks_up_and_then_changes_the_job,
        ),
        Test::new(
            "a_plugin_that_refuses_is_named_with_its_field",
            a_plugin_that_refuses_is_named_with_its_field,
        ),
        Test::new("a_broken_file_harms_nobody", a_broken_file_harms_nobody),
    ])
}
