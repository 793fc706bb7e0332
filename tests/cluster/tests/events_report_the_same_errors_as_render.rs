//! The controller's Events report the errors that `render` prints: every error of every case with the same field and wording, all at once,
//! and no others. If the API server refuses an input of MPI or Flux, it refuses the same field.

use std::{ffi::OsString, fs, path::Path};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use trainyard_api::yaml;
use trainyard_cluster::{Refusal, Resource, Test, Write};
use trainyard_schema::documents::Kind;

use crate::common::{Controlled, Namespace, Setup, kind};

/// A controller with the built-in plugins.
pub(crate) struct BuiltIn;

impl Setup for BuiltIn {
    fn arguments() -> Result<Vec<OsString>> {
        Ok(Vec::new())
    }
}

pub(crate) type Shared = Controlled<BuiltIn>;

/// The prefixes of the cases of invalid input for MPI and Flux.
const MPI_AND_FLUX: [&str; 3] = ["mpi-error-", "flux-error-", "dra-mpi-error-"];

/// The message of `render` about an object that is not in its input. A controller waits for the object.
const OF_FILES: [&str; 2] = ["add it to the input", "pass a file"];

/// Advice of `render` that Events do not have, because their reader does not start the controller.
const OF_THE_COMMAND: &str = "; use `--plugin FILE.wasm` to load one that is not built in";

/// The replacement of a digest in the expected files.
const DIGEST: &str = "(sha256:";

/// The kind of a runtime if `runtimeRef` names none.
const RUNTIME: &str = "ClusterTrainingRuntime";
const OF_NAMESPACE: &str = "TrainingRuntime";

/// A case with the objects of its input, each with the errors that `render` prints for it.
struct Case {
    name: String,
    documents: Vec<(Value, Vec<String>)>,
}

/// The outcome of a case.
enum Outcome<'a> {
    /// Its objects are in the cluster.
    Created(Box<Created<'a>>),
    /// The API server refuses one of its objects.
    Refused,
    /// It is about files and not about objects, and is skipped.
    OfFiles,
}

/// Returns all cases of invalid input.
fn cases() -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (name, folder) in trainyard_plugin_folders::cases(&trainyard_plugin_folders::root())? {
        if folder.join("expected.txt").exists() {
            let case = Case::read(name, &folder);
            cases.push(case.with_context(|| folder.display().to_string())?);
        }
    }
    Ok(cases)
}

impl Case {
    fn read(name: String, folder: &Path) -> Result<Self> {
        let mut documents = Vec::new();
        let input = fs::read_to_string(folder.join("input.yaml"))?;
        for document in yaml::read(&input) {
            let value = document.map_or(Value::Null, |document| document.value);
            documents.push((value, Vec::new()));
        }
        for line in fs::read_to_string(folder.join("expected.txt"))?.lines() {
            let Some(line) = line.strip_prefix("error: input.yaml:") else {
                ensure!(line.starts_with("warning: "), "{line}");
                continue;
            };
            // An error of the whole file, or of an unreadable document, belongs to all documents.
            let (number, error) = line.split_once(": ").context("no line")?;
            let number = number.parse().unwrap_or_default();
            // The message follows the kind and name.
            let error = error.split_once(": ").map_or(error, |(_, error)| error);
            let before = input.lines().take(number);
            let at = before.filter(|line| line.starts_with("---")).count();
            let document = documents.get_mut(at);
            let errors = &mut document.context("no document")?.1;
            errors.push(error.replace(OF_THE_COMMAND, ""));
        }
        Ok(Self { name, documents })
    }

    fn is_of_mpi_or_flux(&self) -> bool {
        MPI_AND_FLUX
            .iter()
            .any(|prefix| self.name.starts_with(prefix))
    }

    /// Returns whether the case is about the input of `render`: it has no object, or one of its objects is missing.
    fn is_of_files(&self) -> bool {
        let mut documents = self.documents.iter();
        documents.any(|(object, errors)| {
            let says = |text: &&str| errors.iter().any(|error| error.contains(text));
            !object.is_object() || OF_FILES.iter().any(says)
        })
    }
}

/// The message of an API server that did not check rules because of other errors, which `render` omits.
const NOT_CHECKED: &str = "some validation rules were not checked";

/// Returns the errors of an API server for a refused object, in the form of `render`.
fn printed(refusal: &Refusal) -> Vec<String> {
    let causes = refusal.causes.iter();
    let causes = causes.filter(|cause| !cause.message.contains(NOT_CHECKED));
    let printed = causes.map(|cause| match cause.field.as_str() {
        "<nil>" => cause.message.clone(),
        field => format!("{field}: {}", cause.message),
    });
    printed.collect()
}

/// Replaces the digests of plugins, which change with each build.
fn without_digests(text: &str) -> String {
    let mut parts = text.split(DIGEST);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out += DIGEST;
        out += "...";
        out += part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    out
}

/// A case in the cluster.
struct Created<'a> {
    namespace: Namespace<'a>,
    /// Each TrainJob, with the errors that its Events must report.
    jobs: Vec<(String, Vec<String>)>,
}

/// Creates the objects of a case.
async fn create<'a>(shared: &'a Shared, case: &Case) -> Result<Outcome<'a>> {
    if case.is_of_files() {
        return Ok(Outcome::OfFiles);
    }
    let namespace = Namespace::new(&shared.cluster).await?;
    let runtimes = kind(Kind::ClusterTrainingRuntime)?;
    let of_namespace = kind(Kind::TrainingRuntime)?;
    let claims = Resource::namespaced("/apis/resource.k8s.io/v1", "resourceclaimtemplates");
    // Runtimes of other cases have the same names.
    let own = |name: &Value| format!("{}-{}", name.as_str().unwrap_or_default(), namespace.name);
    let mut jobs = Vec::new();
    // A TrainJob that is created before its runtime waits for it.
    let mut documents: Vec<_> = case.documents.iter().collect();
    documents.sort_by_key(|(object, _)| object["kind"] == "TrainJob");
    for (object, errors) in documents {
        let mut object = object.clone();
        let (resource, within) = match object["kind"].as_str() {
            Some(RUNTIME) => {
                object["metadata"]["name"] = json!(own(&object["metadata"]["name"]));
                (&runtimes, "")
            }
            Some(OF_NAMESPACE) => (&of_namespace, &*namespace.name),
            Some("TrainJob") => {
                let reference = &mut object["spec"]["runtimeRef"];
                if reference["kind"] != OF_NAMESPACE {
                    reference["name"] = json!(own(&reference["name"]));
                }
                (&namespace.jobs, &*namespace.name)
            }
            Some("ResourceClaimTemplate") => (&claims, &*namespace.name),
            other => bail!("this test creates no {other:?}"),
        };
        if !within.is_empty() {
            object["metadata"]["namespace"] = json!(within);
        }
        let api = shared.cluster.api(resource, within);
        let answer = api.create(&object, &Write::strict()).await?;
        if !answer.status.is_success() {
            let printed = printed(&answer.refused()?);
            ensure!(
                !case.is_of_mpi_or_flux() || printed == *errors,
                "{printed:#?}"
            );
            return Ok(Outcome::Refused);
        }
        if object["kind"] == "TrainJob" {
            let reference = &object["spec"]["runtimeRef"];
            let kind = reference["kind"].as_str().unwrap_or(RUNTIME);
            let runtime = reference["name"].as_str().unwrap_or_default();
            let mut documents = case.documents.iter();
            let its_runtime = documents.find(|(object, _)| {
                let name = &object["metadata"]["name"];
                object["kind"] == kind && (name == runtime || own(name) == runtime)
            });
            let (its_runtime, of_runtime) = its_runtime.context("no runtime")?;
            let of_runtime = of_runtime.iter();
            let of_runtime = of_runtime.map(|error| format!("{kind} {runtime}: {error}"));
            let in_case = its_runtime["metadata"]["name"].as_str().unwrap_or_default();
            let (in_case, here) = (format!("{kind} {in_case},"), format!("{kind} {runtime},"));
            let of_job = errors.iter().map(|error| error.replace(&in_case, &here));
            let expected = of_job.chain(of_runtime).collect();
            let name = object["metadata"]["name"].as_str().context("no name")?;
            jobs.push((name.to_owned(), expected));
        }
    }
    Ok(Outcome::Created(Box::new(Created { namespace, jobs })))
}

impl Created<'_> {
    /// Waits until the Events of each TrainJob report its errors, and fails if they report anything else.
    async fn are_reported(&self) -> Result<()> {
        let wrong = self.jobs.iter().filter(|(_, errors)| !errors.is_empty());
        for (job, expected) in wrong {
            let messages = |events: &[Value]| -> Vec<String> {
                let about = json!({"kind": "TrainJob", "name": job});
                let is_about =
                    |event: &Value, field: &str| event["involvedObject"][field] == about[field];
                let of = events
                    .iter()
                    .filter(|event| is_about(event, "kind") && is_about(event, "name"));
                let messages = of.filter_map(|event| event["message"].as_str());
                messages.map(without_digests).collect()
            };
            let events = self.namespace.api(&self.namespace.events);
            let what = format!("Events of {job} that say {expected:#?}");
            let all_said = |events: &[Value]| {
                let messages = messages(events);
                let is_said = |error: &String| messages.iter().any(|it| it.contains(error));
                expected.iter().all(is_said)
            };
            let found = events.until_all(&what, all_said).await?;
            // The watch of runtimes can lag behind that of TrainJobs.
            let waits = |message: &String| {
                message.contains("spec.runtimeRef.name: there is no ")
                    || message.contains("; create it, and the TrainJob continues")
            };
            for message in messages(&found).into_iter().filter(|it| !waits(it)) {
                let rest = expected
                    .iter()
                    .fold(message.clone(), |rest, error| rest.replace(error, ""));
                let nothing = rest.chars().all(|c| matches!(c, ';' | ' '));
                ensure!(nothing, "{job}: {message}");
            }
        }
        Ok(())
    }
}

async fn every_error_of_every_case_is_reported(shared: &Shared) -> Result<()> {
    let (mut created, mut of_mpi_and_flux) = (Vec::new(), 0);
    let (mut refused, mut of_files) = (Vec::new(), Vec::new());
    for case in cases()? {
        let outcome = create(shared, &case).await;
        match outcome.with_context(|| case.name.clone())? {
            Outcome::Created(objects) => {
                of_mpi_and_flux += usize::from(case.is_of_mpi_or_flux());
                created.push((case.name, objects));
            }
            Outcome::Refused => refused.push(case.name),
            Outcome::OfFiles => of_files.push(case.name),
        }
    }
    for (name, objects) in &created {
        let wrong = objects.jobs.iter().any(|(_, errors)| !errors.is_empty());
        ensure!(wrong, "{name}: nothing is wrong with its TrainJobs");
        objects.are_reported().await.with_context(|| name.clone())?;
    }
    ensure!(
        of_mpi_and_flux >= 25 && created.len() >= 60,
        "{of_mpi_and_flux} of MPI and Flux, {} in all; refused: {refused:?}; of files: {of_files:?}",
        created.len()
    );
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Shared>> {
    tests![every_error_of_every_case_is_reported]
}
