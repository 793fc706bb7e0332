//! The API server answers about the objects of each case in tests/admission/rules.yaml what `trainyard validate` prints, through the webhooks
//! of the chart. Their conditions are evaluated by the API server: while nobody serves the webhooks, TrainJobs can still be suspended,
//! resumed, labeled and deleted.

use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use trainyard_api::{Inputs, yaml};
use trainyard_cluster::{
    Answer, ControlPlane, Port, Resource, Shared, Test, Trainyard, Webhooks, Write, define_kinds,
    deploy, eventually,
};
use trainyard_model::names::without_digests;
use trainyard_plugin_folders::{cases, root};
use trainyard_schema::documents::Kind;

use crate::common::{kind, runtime};

/// What `trainyard validate` says of a runtime that it was not given, and what admission says of one that does not exist.
const MISSING: &str = " is not in the input";
const NO_RUNTIME: &str = "there is no ";

const BYPASS: &str = "trainer.kubeflow.org/webhook-validation";

/// A control plane with the controller, which serves webhooks.
pub(crate) struct Admitting {
    plane: ControlPlane,
    controller: Trainyard,
    _port: Port,
}

/// A control plane whose webhooks nobody serves.
pub(crate) struct Unserved(ControlPlane);

impl Shared for Unserved {
    fn start() -> Result<Self> {
        let plane = ControlPlane::start()?;
        plane.block_on(define_kinds(&plane))?;
        Ok(Self(plane))
    }

    fn plane(&self) -> &ControlPlane {
        &self.0
    }

    fn still_runs(&self) -> Result<()> {
        self.0.still_runs()
    }
}

impl Shared for Admitting {
    fn start() -> Result<Self> {
        let plane = ControlPlane::start()?;
        let port = Port::find()?;
        let controller = plane.block_on(async {
            define_kinds(&plane).await?;
            let controller = start(&plane, &port).await?;
            Webhooks::of_chart(&plane, &port)?.install(&plane).await?;
            anyhow::Ok(controller)
        })?;
        Ok(Self {
            plane,
            controller,
            _port: port,
        })
    }

    fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    fn still_runs(&self) -> Result<()> {
        self.plane.still_runs()?;
        self.controller.process().still_runs()
    }
}

/// Starts a controller with the rights of deploy/ that serves webhooks on this port.
async fn start(plane: &ControlPlane, port: &Port) -> Result<Trainyard> {
    let file = Webhooks::controller_configuration(plane, port)?;
    let account = deploy(plane).await?;
    Trainyard::start(plane, &account, [format!("--config={}", file.display())]).await
}

/// Returns the folder of a case.
fn case(name: &str) -> Result<PathBuf> {
    let found = cases(&root())?.remove(name);
    found.with_context(|| format!("there is no case {name}"))
}

/// Returns the sentences of the errors that `trainyard validate` prints for an object.
fn errors(validated: &str, object: &Value) -> Vec<String> {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    let named = match metadata["namespace"].as_str() {
        Some(namespace) => format!(" {kind} {namespace}/{name}: "),
        None => format!(" {kind} {name}: "),
    };
    // A runtime that is not in the input may be in the cluster, and has other words there.
    let is_missing = |line: &str| line.contains(MISSING);
    let errors = validated
        .lines()
        .filter(|line| line.starts_with("error: ") || is_missing(line));
    let sentences = errors.filter_map(|line| Some(line.split_once(&named)?.1));
    let known = |sentence: &str| match is_missing(sentence) {
        true => NO_RUNTIME.to_owned(),
        false => sentence.to_owned(),
    };
    sentences.map(known).collect()
}

fn validated(input: &Path) -> Result<String> {
    let mut validate = Command::new(Trainyard::program()?);
    let output = validate.arg("validate").arg("-f").arg(input).output()?;
    Ok(without_digests(&String::from_utf8(output.stderr)?))
}

/// How an object was answered.
#[derive(Debug, PartialEq, Eq)]
enum Answered {
    Accepted,
    Refused,
}

/// Checks one answer: a refusal contains all errors, and what is accepted has no error without a warning.
fn compared(answer: Answer, errors: &[String]) -> Result<Answered> {
    let warnings = without_digests(&answer.warnings.join("\n"));
    match answer.accepted() {
        Ok(_) => {
            let unsaid = errors.iter().find(|error| !warnings.contains(*error));
            ensure!(
                unsaid.is_none(),
                "accepted in spite of {unsaid:?}: {warnings}"
            );
            Ok(Answered::Accepted)
        }
        Err(refusal) => {
            ensure!(
                refusal.code == 403 && refusal.reason == "Forbidden",
                "{refusal:?}"
            );
            let message = without_digests(&refusal.message);
            let unsaid = errors.iter().find(|error| !message.contains(*error));
            ensure!(
                unsaid.is_none() && !errors.is_empty(),
                "{message} instead of {errors:?}"
            );
            Ok(Answered::Refused)
        }
    }
}

impl Admitting {
    fn resource(object: &Value) -> Result<Resource> {
        let core = |plural: &str| Resource::namespaced("/api/v1", plural);
        Ok(match object["kind"].as_str().unwrap_or_default() {
            "TrainJob" => kind(Kind::TrainJob)?,
            "TrainingRuntime" => kind(Kind::TrainingRuntime)?,
            "ClusterTrainingRuntime" => kind(Kind::ClusterTrainingRuntime)?,
            "LimitRange" => core("limitranges"),
            "PriorityClass" => {
                Resource::cluster_wide("/apis/scheduling.k8s.io/v1", "priorityclasses")
            }
            other => bail!("the test does not create {other}"),
        })
    }

    /// Creates the objects of a case, TrainJobs as a dry run, and returns how they were answered. Then deletes them.
    async fn answers(&self, name: &str) -> Result<Vec<Answered>> {
        let input = case(name)?.join("input.yaml");
        let validated = validated(&input)?;
        let read = Inputs::read(std::slice::from_ref(&input), std::io::empty());
        let objects = read.objects.into_iter().map(|object| object.value);
        let (jobs, others): (Vec<_>, Vec<_>) =
            objects.partition(|object| object["kind"] == "TrainJob");
        let (mut answers, mut refused) = (Vec::new(), Vec::new());
        for object in &others {
            let resource = Self::resource(object)?;
            let namespace = self.namespace_of(object).await?;
            let api = self.plane.api(&resource, &namespace);
            let answer = api.create(object, &Write::default()).await?;
            let errors = match answer.status.is_success() {
                // What only a TrainJob shows.
                true => Vec::new(),
                false => errors(&validated, object),
            };
            if !answer.status.is_success() {
                refused.push(&object["metadata"]["name"]);
            }
            answers.push(compared(answer, &errors).with_context(|| format!("{object}"))?);
        }
        for job in &jobs {
            let errors = match refused.contains(&&job["spec"]["runtimeRef"]["name"]) {
                true => vec![NO_RUNTIME.to_owned()],
                false => errors(&validated, job),
            };
            answers.push(self.answer(job, &errors).await?);
        }
        for object in &others {
            let resource = Self::resource(object)?;
            let namespace = self.namespace_of(object).await?;
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let api = self.plane.api(&resource, &namespace);
            api.delete(name).await?;
        }
        Ok(answers)
    }

    /// Creates the namespace of an object, and returns its name.
    async fn namespace_of(&self, object: &Value) -> Result<String> {
        let Some(name) = object["metadata"]["namespace"].as_str() else {
            return Ok(String::new());
        };
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let namespaces = Resource::namespaces();
        let api = self.plane.api(&namespaces, "");
        api.apply(&namespace, &Write::by("test"))
            .await?
            .accepted()?;
        Ok(name.to_owned())
    }

    /// Creates a TrainJob as a dry run until it is answered as its errors say: watches may still show the runtime of another case.
    async fn answer(&self, job: &Value, errors: &[String]) -> Result<Answered> {
        let namespace = self.namespace_of(job).await?;
        let jobs = kind(Kind::TrainJob)?;
        let write = Write {
            dry_run: true,
            ..Write::default()
        };
        let last = RefCell::new(String::new());
        let answered = eventually("the TrainJob is answered as validate answers", async || {
            let answer = self
                .plane
                .api(&jobs, &namespace)
                .create(job, &write)
                .await?;
            match compared(answer, errors) {
                Ok(answered) => Ok(Some(answered)),
                Err(error) => {
                    *last.borrow_mut() = format!("{error:#}");
                    Ok(None)
                }
            }
        });
        answered
            .await
            .with_context(|| format!("{job}: {}", last.take()))
    }
}

async fn rules_are_answered_as_by_validate(shared: &Admitting) -> Result<()> {
    let rules = fs::read_to_string(root().join("tests/admission/rules.yaml"))?;
    let rules = yaml::read(&rules).pop().context("no rules")??.value;
    for rule in rules.as_array().context("no list")? {
        let text = |field: &str| rule[field].as_str().unwrap_or_default();
        for name in [text("refused"), text("accepted")] {
            let context = || format!("{}: {name}", text("rule"));
            let answers = shared.answers(name).await.with_context(context)?;
            let is_refused = answers.contains(&Answered::Refused);
            ensure!(
                is_refused == (name == text("refused")),
                "{}: {answers:?}",
                context()
            );
        }
    }
    Ok(())
}

fn forbidden(answer: Answer, why: &str) -> Result<()> {
    let refusal = answer.refused()?;
    ensure!(
        refusal.code == 403 && refusal.message.contains(why),
        "{refusal:?}"
    );
    Ok(())
}

async fn runtimes_are_checked_unless_their_label_says_not_to(shared: &Admitting) -> Result<()> {
    let runtimes = kind(Kind::ClusterTrainingRuntime)?;
    let runtimes = shared.plane.api(&runtimes, "");
    let mut two = runtime();
    two["metadata"]["name"] = "two".into();
    two["spec"]["template"]["spec"]["replicatedJobs"][0]["replicas"] = 2.into();
    let why = "replicas: is 2, but must be 1";
    forbidden(runtimes.create(&two, &Write::strict()).await?, why)?;
    two["metadata"]["labels"] = json!({BYPASS: "disabled"});
    runtimes.create(&two, &Write::strict()).await?.accepted()?;
    let labeled = json!({"metadata": {"labels": {"a": "b"}}});
    runtimes
        .merge("two", &labeled, &Write::strict())
        .await?
        .accepted()?;
    let checked = json!({"metadata": {"labels": {BYPASS: null}}});
    forbidden(
        runtimes.merge("two", &checked, &Write::strict()).await?,
        why,
    )?;
    let mut old = runtime();
    old["metadata"] =
        json!({"name": "old", "labels": {"trainer.kubeflow.org/support": "deprecated"}});
    let answer = runtimes.create(&old, &Write::strict()).await?;
    ensure!(
        answer.warnings.iter().any(|it| it.contains("deprecated")),
        "{answer:?}"
    );
    answer.accepted()?;
    for name in ["two", "old"] {
        runtimes.delete(name).await?.accepted()?;
    }
    Ok(())
}

async fn patches_change_only_while_nothing_runs(shared: &Admitting) -> Result<()> {
    let plane = &shared.plane;
    let runtimes = kind(Kind::ClusterTrainingRuntime)?;
    let cluster_wide = plane.api(&runtimes, "");
    let created = cluster_wide.create(&runtime(), &Write::strict()).await?;
    created.accepted()?;
    let namespace = plane.new_namespace().await?;
    let jobs = kind(Kind::TrainJob)?;
    let jobs = plane.api(&jobs, &namespace);
    let job = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"name": "bert"}, "spec": {"runtimeRef": {"name": "torch"}},
    });
    let created = jobs.create(&job, &Write::strict()).await?.accepted()?;
    let patches = |disk: &str| {
        let pods = json!({"spec": {"nodeSelector": {"disk": disk}}});
        let patched = json!([{"name": "node", "template": {"spec": {"template": pods}}}]);
        json!([{
            "manager": "example.com/queue",
            "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": patched}}},
        }])
    };
    let changed = json!({"spec": {"runtimePatches": patches("ssd")}});
    forbidden(
        jobs.merge("bert", &changed, &Write::strict()).await?,
        "runtimePatches",
    )?;
    let suspended = json!({"spec": {"suspend": true}});
    jobs.merge("bert", &suspended, &Write::strict())
        .await?
        .accepted()?;
    // The webhook sets the time, and keeps it while the patch is the same.
    let patched = jobs
        .merge("bert", &changed, &Write::strict())
        .await?
        .accepted()?;
    let time = patched["spec"]["runtimePatches"][0]["time"].clone();
    ensure!(time.is_string(), "{patched}");
    let again = jobs
        .merge("bert", &changed, &Write::strict())
        .await?
        .accepted()?;
    ensure!(
        again["spec"]["runtimePatches"][0]["time"] == time,
        "{again}"
    );
    // The runtime cannot be another one, by the rules of the CRD.
    let other = json!({"spec": {"runtimeRef": {"name": "other"}}});
    let refusal = jobs
        .merge("bert", &other, &Write::strict())
        .await?
        .refused()?;
    ensure!(refusal.reason == "Invalid", "{refusal:?}");
    ensure!(created["metadata"]["uid"] == again["metadata"]["uid"]);
    jobs.delete("bert").await?.accepted()?;
    plane.api(&runtimes, "").delete("torch").await?.accepted()?;
    Ok(())
}

async fn train_jobs_can_be_stopped_while_nobody_serves_the_webhooks(
    Unserved(plane): &Unserved,
) -> Result<()> {
    let runtimes = kind(Kind::ClusterTrainingRuntime)?;
    let mut always = runtime();
    always["metadata"]["name"] = "always".into();
    plane
        .api(&runtimes, "")
        .create(&always, &Write::strict())
        .await?
        .accepted()?;
    let namespace = plane.new_namespace().await?;
    let jobs = kind(Kind::TrainJob)?;
    let jobs = plane.api(&jobs, &namespace);
    let job = json!({
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"name": "bert"}, "spec": {"runtimeRef": {"name": "always"}},
    });
    jobs.create(&job, &Write::strict()).await?.accepted()?;
    // Nothing listens on this port.
    let nobody = Port::find()?;
    let unserved = Webhooks::of_chart(plane, &nobody)?;
    unserved.install(plane).await?;
    let mut second = job.clone();
    second["metadata"]["name"] = "second".into();
    let dry_run = Write {
        dry_run: true,
        ..Write::strict()
    };
    eventually("no TrainJob can be created", async || {
        let answer = jobs.create(&second, &dry_run).await?;
        Ok((answer.status.as_u16() == 500).then_some(()))
    })
    .await?;
    let changes = [
        json!({"spec": {"suspend": true}}),
        json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/kept"]}}),
        json!({"spec": {"suspend": false}}),
    ];
    for change in changes {
        jobs.merge("bert", &change, &Write::strict())
            .await?
            .accepted()?;
    }
    let labeled = json!({"metadata": {"annotations": {"a": "b"}}});
    let cluster_wide = plane.api(&runtimes, "");
    let changed = cluster_wide
        .merge("always", &labeled, &Write::strict())
        .await?;
    changed.accepted()?;
    jobs.delete("bert").await?.accepted()?;
    let released = json!({"metadata": {"finalizers": null}});
    jobs.merge("bert", &released, &Write::strict())
        .await?
        .accepted()?;
    let is_gone = async || Ok((jobs.get("bert").await?.status.as_u16() == 404).then_some(()));
    eventually("it is deleted", is_gone).await?;
    unserved.remove(plane).await
}

pub(crate) fn tests() -> Vec<Test<Admitting>> {
    tests![
        rules_are_answered_as_by_validate,
        runtimes_are_checked_unless_their_label_says_not_to,
        patches_change_only_while_nothing_runs,
    ]
}

/// These change the webhooks of their cluster.
pub(crate) fn tests_without_webhooks() -> Vec<Test<Unserved>> {
    tests![train_jobs_can_be_stopped_while_nobody_serves_the_webhooks]
}
