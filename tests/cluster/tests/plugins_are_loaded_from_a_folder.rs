//! The plugin of docs/write-a-plugin.md, loaded from a folder, changes TrainJobs, or an Event says why it cannot. A broken file beside it
//! affects nothing else, and neither does an entry of the policy file for a plugin that is not in the folder.

use std::{ffi::OsString, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use trainyard_cluster::{Fate, Shared as _, Test, Trainyard, Write, build_plugin};

use crate::{
    common,
    common::{Controlled, Namespace, Setup},
};

/// A controller with the guide's plugin, a broken file, and a plugin that the policy file does not accept.
pub(crate) struct PluginDir;

impl Setup for PluginDir {
    fn arguments() -> Result<Vec<OsString>> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugin-dir");
        std::fs::create_dir_all(&folder)?;
        build_the_guides_plugin(&folder.join("tracer.wasm"))?;
        std::fs::write(folder.join("broken.wasm"), "no component")?;
        build_for_claims(&folder.join("for-claims.wasm"))?;
        let policy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugin-dir.yaml");
        let digest = format!("sha256:{}", "0".repeat(64));
        let plugins = json!([{"name": "for-claims", "digest": digest}]);
        let file = json!({"apiVersion": "trainyard.dev/v1alpha1", "kind": "PolicyFile", "plugins": plugins});
        std::fs::write(&policy, file.to_string())?;
        Ok(vec![
            "--plugin-dir".into(),
            folder.into_os_string(),
            "--policy".into(),
            policy.into_os_string(),
        ])
    }
}

pub(crate) type Shared = Controlled<PluginDir>;

/// A controller whose policy file has an entry for a plugin that is not in its folder. A broken file could be that plugin, so the folder is
/// empty.
pub(crate) struct UnknownEntry;

impl Setup for UnknownEntry {
    fn runtimes() -> Vec<Value> {
        vec![common::runtime()]
    }

    fn arguments() -> Result<Vec<OsString>> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("empty-plugin-dir");
        std::fs::create_dir_all(&folder)?;
        let policy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("unknown-entry.yaml");
        let plugins = json!([{"name": "tracer", "after": ["torch"]}]);
        let file = json!({"apiVersion": "trainyard.dev/v1alpha1", "kind": "PolicyFile", "plugins": plugins});
        std::fs::write(&policy, file.to_string())?;
        Ok(vec![
            "--plugin-dir".into(),
            folder.into_os_string(),
            "--policy".into(),
            policy.into_os_string(),
        ])
    }
}

/// Writes the crate of the guide from its text, and builds it.
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
    // The versions that the other plugins are built with, so that no second set of macros is compiled.
    std::fs::copy(root.join("Cargo.lock"), crate_folder.join("Cargo.lock"))?;
    build_plugin(&crate_folder, component, &[])
}

/// Writes the same plugin under another name, for all pods with resource claims.
fn build_for_claims(component: &Path) -> Result<()> {
    let tracer = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tracer");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("for-claims");
    std::fs::create_dir_all(folder.join("src"))?;
    std::fs::copy(tracer.join("src/lib.rs"), folder.join("src/lib.rs"))?;
    std::fs::copy(tracer.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    for file in ["Cargo.toml", "manifest.json"] {
        let text = std::fs::read_to_string(tracer.join(file))?;
        let text = text.replace(
            "\"activeWhen\": \"plugins\"",
            "\"activeWhen\": \"resourceClaims\"",
        );
        let text = text.replace("\"name\": \"tracer\"", "\"name\": \"for-claims\"");
        let text = text.replace("name = \"tracer\"", "name = \"for-claims\"");
        std::fs::write(folder.join(file), text)?;
    }
    build_plugin(&folder, component, &[])
}

/// Creates a namespace whose pods succeed.
async fn namespace(shared: &Shared) -> Result<Namespace<'_>> {
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    Ok(namespace)
}

/// Creates a runtime with these plugins, and a TrainJob on it.
async fn create(namespace: &Namespace<'_>, name: &str, plugins: &Value) -> Result<()> {
    create_on(namespace, name, plugins, common::runtime()).await
}

/// Creates a given runtime with these plugins, and a TrainJob on it.
async fn create_on(
    namespace: &Namespace<'_>,
    name: &str,
    plugins: &Value,
    mut runtime: Value,
) -> Result<()> {
    runtime["metadata"]["name"] = json!(name);
    runtime["spec"]["plugins"] = plugins.clone();
    namespace.create_runtime(runtime).await?;
    let spec = json!({"runtimeRef": {"kind": "TrainingRuntime", "name": name}});
    namespace.create(name, &spec).await?;
    Ok(())
}

async fn plugin_waits_for_its_lookup_and_then_changes_the_train_job(shared: &Shared) -> Result<()> {
    let namespace = namespace(shared).await?;
    create(
        &namespace,
        "traced",
        &json!([{"name": "tracer", "config": {"sampling": 10}}]),
    )
    .await?;
    namespace.event("traced", "plugin tracer 0.1.0").await?;
    namespace
        .event("traced", "needs ConfigMap `tracing` (v1)")
        .await?;
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tracing"},
        "data": {"endpoint": "http://collector:4317"},
    });
    namespace
        .api(&namespace.config_maps)
        .create(&settings, &Write::strict())
        .await?
        .accepted()?;
    let job = namespace.until_complete("traced").await?;
    let job_set = namespace
        .api(&namespace.job_sets)
        .get("traced")
        .await?
        .accepted()?;
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
    let emitted = namespace
        .api(&namespace.config_maps)
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
    let snapshot = namespace
        .api(&namespace.config_maps)
        .get("traced-runtime-snapshot")
        .await?
        .accepted()?;
    ensure!(
        snapshot["data"]["lookups"]
            .as_str()
            .is_some_and(|text| text.contains("collector:4317")),
        "{snapshot:#}"
    );
    let calls = "trainyard_plugin_call_duration_seconds_count";
    ensure!(shared.controller.metric(calls, "plugin=\"tracer\"").await? > 0.0);
    explain_works_without_the_plugin(shared, &namespace)
}

/// Fields that the runtime set are explained without the plugin; those that the plugin set are attributed to it.
fn explain_works_without_the_plugin(shared: &Shared, namespace: &Namespace<'_>) -> Result<()> {
    let container = "spec.replicatedJobs[node].template.spec.template.spec.containers[node]";
    let explain = |field: &str| {
        let mut command = std::process::Command::new(Trainyard::program()?);
        command.args(["explain", "trainjob/traced", "--output=json"]);
        command.arg(format!("{container}.{field}"));
        command.args(["--namespace", &namespace.name, "--kubeconfig"]);
        let output = command.arg(shared.plane().kubeconfig()).output()?;
        let errors = String::from_utf8(output.stderr)?;
        ensure!(output.status.success(), "{errors}");
        ensure!(
            errors.contains("the plugin tracer 0.1.0 (sha256:")
                && errors.contains("is not loaded, so the fields that it set are not explained"),
            "{errors}"
        );
        anyhow::Ok((String::from_utf8(output.stdout)?, errors))
    };
    let (explained, _) = explain("image")?;
    let explained: Value = serde_json::from_str(&explained)?;
    let by = explained.pointer("/0/fields/0/steps/0/by/kind");
    ensure!(by == Some(&json!("runtime")), "{explained:#}");
    let (_, errors) = explain("env[OTEL_EXPORTER_OTLP_ENDPOINT]")?;
    ensure!(
        errors.contains("http://collector:4317")
            && errors.contains("set by a plugin that is not loaded"),
        "{errors}"
    );
    Ok(())
}

async fn refusing_plugin_is_named_with_its_field(shared: &Shared) -> Result<()> {
    let namespace = namespace(shared).await?;
    let empty = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tracing"}, "data": {"other": "x"}});
    namespace
        .api(&namespace.config_maps)
        .create(&empty, &Write::strict())
        .await?
        .accepted()?;
    create(&namespace, "refused", &json!([{"name": "tracer"}])).await?;
    namespace
        .event(
            "refused",
            "the ConfigMap `tracing` has no key `endpoint` (plugin tracer 0.1.0",
        )
        .await?;
    create(
        &namespace,
        "misconfigured",
        &json!([{"name": "tracer", "config": {"sampling": 0}}]),
    )
    .await?;
    namespace
        .event("misconfigured", "spec.plugins[0].config.sampling: ")
        .await?;
    for name in ["refused", "misconfigured"] {
        let job = namespace.api(&namespace.jobs).get(name).await?.accepted()?;
        ensure!(job.pointer("/status/conditions").is_none(), "{job:#}");
        namespace
            .api(&namespace.jobs)
            .delete(name)
            .await?
            .accepted()?;
    }
    namespace
        .api(&namespace.jobs)
        .until_all("both are gone", <[Value]>::is_empty)
        .await?;
    Ok(())
}

async fn broken_file_affects_nothing_else(shared: &Shared) -> Result<()> {
    let namespace = namespace(shared).await?;
    create(&namespace, "plain", &json!([])).await?;
    namespace.until_complete("plain").await?;
    create(&namespace, "needs-it", &json!([{"name": "broken"}])).await?;
    namespace
        .event(
            "needs-it",
            "spec.plugins[0].name: no loaded plugin has the name `broken`",
        )
        .await?;
    namespace.event("needs-it", "broken.wasm: ").await?;
    let metrics = shared.controller.metrics().await?;
    ensure!(
        metrics
            .lines()
            .any(|line| line.contains("refused") && line.contains("broken.wasm")),
        "{metrics}"
    );
    Ok(())
}

/// The runtime does not name the plugin, which would be activated by the pods' resource claims.
async fn train_job_waits_for_a_plugin_that_would_be_active(shared: &Shared) -> Result<()> {
    let namespace = namespace(shared).await?;
    let mut runtime = common::runtime();
    let pod = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec";
    let pod = runtime.pointer_mut(pod).context("no pod")?;
    pod["resourceClaims"] = json!([{"name": "gpu", "resourceClaimTemplateName": "gpu"}]);
    create_on(&namespace, "claims", &json!([]), runtime).await?;
    let event = namespace
        .event(
            "claims",
            "the plugin `for-claims`, which `resourceClaims` activates, was skipped: ",
        )
        .await?;
    let note = event["message"].as_str().context("no message")?;
    ensure!(
        note.contains("for-claims.wasm: ")
            && note.contains("accepts only digest")
            && !note.contains("broken.wasm"),
        "{note}"
    );
    create(&namespace, "without-claims", &json!([])).await?;
    namespace.until_complete("without-claims").await?;
    let made = namespace.api(&namespace.job_sets).get("claims").await?;
    ensure!(made.status.as_u16() == 404, "{made:?}");
    Ok(())
}

async fn policy_entry_without_its_plugin_affects_nothing_else(
    shared: &Controlled<UnknownEntry>,
) -> Result<()> {
    let metrics = shared.controller.metrics().await?;
    let mut refused = metrics
        .lines()
        .filter(|line| line.starts_with("trainyard_plugin_refused{"));
    ensure!(
        refused
            .next()
            .is_some_and(|line| line.contains("unknown-entry.yaml") && line.ends_with(" 1"))
            && refused.next().is_none(),
        "{metrics}"
    );
    let namespace = Namespace::new(&shared.cluster).await?;
    namespace.fate(Fate::Succeed);
    let spec = json!({"runtimeRef": {"name": "torch"}});
    namespace.create("plain", &spec).await?;
    namespace.until_complete("plain").await?;
    create(&namespace, "needs-it", &json!([{"name": "tracer"}])).await?;
    let missing = "spec.plugins[0].name: no loaded plugin has the name `tracer`";
    namespace.event("needs-it", missing).await?;
    Ok(())
}

pub(crate) fn tests_with_an_unknown_entry() -> Vec<Test<Controlled<UnknownEntry>>> {
    tests![policy_entry_without_its_plugin_affects_nothing_else]
}

pub(crate) fn tests() -> Vec<Test<Shared>> {
    tests![
        plugin_waits_for_its_lookup_and_then_changes_the_train_job,
        refusing_plugin_is_named_with_its_field,
        broken_file_affects_nothing_else,
        train_job_waits_for_a_plugin_that_would_be_active,
    ]
}
