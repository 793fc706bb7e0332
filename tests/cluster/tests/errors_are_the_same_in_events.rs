//! What `render` says of bad input, the controller's Events say: each error of the cases of MPI and Flux with the same field in the same words,
//! all of them at once, and nothing else. What an API server refuses, it refuses for that field.
#![allow(clippy::indexing_slicing)]

use std::ffi::OsString;
use std::fs;
use std::path::Path;

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

/// The cases of bad input for MPI and Flux begin so.
const CASES: [&str; 3] = ["mpi-error-", "flux-error-", "dra-mpi-error-"];

/// What is left of a digest in the expected files.
const DIGEST: &str = "(sha256:";

/// A case, and the objects of its input, each with the errors that `render` prints of it.
struct Case {
    name: String,
    documents: Vec<(Value, Vec<String>)>,
}

fn cases() -> Result<Vec<Case>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases");
    let mut cases = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().context("no name")?.to_string_lossy();
        if CASES.iter().any(|prefix| name.starts_with(prefix)) {
            cases.push(Case::read(name.into_owned(), &path)?);
        }
    }
    Ok(cases)
}

impl Case {
    fn read(name: String, folder: &Path) -> Result<Self> {
        let mut documents = Vec::new();
        for document in yaml::read(&fs::read_to_string(folder.join("input.yaml"))?) {
            let document = document.map_err(|error| anyhow::anyhow!("{name}: {}", error.kind))?;
            documents.push((document.value, Vec::new()));
        }
        for line in fs::read_to_string(folder.join("expected.txt"))?.lines() {
            let (number, error) = line
                .strip_prefix("error: input.yaml: document ")
                .and_then(|rest| rest.split_once(": "))
                .with_context(|| format!("{name}: {line}"))?;
            // Behind its kind and name.
            let (_, error) = error.split_once(": ").context("no object")?;
            let at = number
                .parse::<usize>()?
                .checked_sub(1)
                .context("no document")?;
            let document = documents.get_mut(at).context("no document")?;
            document.1.push(error.to_owned());
        }
        Ok(Self { name, documents })
    }
}

/// What an API server says of an object that it refuses, as `render` prints it.
fn said(refusal: &Refusal) -> Vec<String> {
    let causes = refusal.causes.iter();
    let said = causes.map(|cause| match cause.field.as_str() {
        "<nil>" => cause.message.clone(),
        field => format!("{field}: {}", cause.message),
    });
    said.collect()
}

/// Without digests of plugins, which change with each build.
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
    /// Each TrainJob, with the errors that its Events are to say.
    jobs: Vec<(String, Vec<String>)>,
}

/// Creates the objects of a case. None if the API server refuses one, with the errors that `render` prints of it.
async fn create<'a>(shared: &'a Shared, case: &Case) -> Result<Option<Created<'a>>> {
    let namespace = Namespace::new(&shared.cluster).await?;
    let runtimes = kind(Kind::ClusterTrainingRuntime)?;
    let claims = Resource::namespaced("/apis/resource.k8s.io/v1", "resourceclaimtemplates");
    // Runtimes of other cases have the same names.
    let own = |name: &Value| format!("{}-{}", name.as_str().unwrap_or_default(), namespace.name);
    let errors_of = |runtime: &str| {
        let mut documents = case.documents.iter();
        let found = documents.find(|(object, _)| {
            object["kind"] == "ClusterTrainingRuntime"
                && own(&object["metadata"]["name"]) == runtime
        });
        let (_, errors) = found.context("no runtime")?;
        let errors = errors.iter();
        anyhow::Ok(
            errors
                .map(|error| format!("ClusterTrainingRuntime {runtime}: {error}"))
                .collect(),
        )
    };
    let mut jobs = Vec::new();
    for (object, errors) in &case.documents {
        let mut object = object.clone();
        let (resource, place) = match object["kind"].as_str() {
            Some("ClusterTrainingRuntime") => {
                object["metadata"]["name"] = json!(own(&object["metadata"]["name"]));
                (&runtimes, "")
            }
            Some("TrainJob") => {
                let reference = &mut object["spec"]["runtimeRef"];
                reference["name"] = json!(own(&reference["name"]));
                (&namespace.jobs, &*namespace.name)
            }
            Some("ResourceClaimTemplate") => (&claims, &*namespace.name),
            other => bail!(
                "{}: a kind that this test does not create: {other:?}",
                case.name
            ),
        };
        if !place.is_empty() {
            object["metadata"]["namespace"] = json!(place);
        }
        let answer = shared
            .cluster
            .api(resource, place)
            .create(&object, &Write::strict())
            .await?;
        if !answer.status.is_success() {
            let said = said(&answer.refused()?);
            ensure!(said == *errors, "{}: {said:#?}", case.name);
            return Ok(None);
        }
        if object["kind"] == "TrainJob" {
            let runtime = object["spec"]["runtimeRef"]["name"].as_str();
            let mut expected: Vec<_> = errors_of(runtime.unwrap_or_default())?;
            expected.extend(errors.iter().cloned());
            let name = object["metadata"]["name"].as_str().context("no name")?;
            jobs.push((name.to_owned(), expected));
        }
    }
    Ok(Some(Created { namespace, jobs }))
}

impl Created<'_> {
    /// Waits until the Events of each TrainJob say its errors, and fails if they say anything else.
    async fn are_told(&self) -> Result<()> {
        for (job, expected) in &self.jobs {
            ensure!(!expected.is_empty(), "nothing is wrong with {job}");
            let messages = |events: &[Value]| -> Vec<String> {
                let of = events
                    .iter()
                    .filter(|event| event["involvedObject"]["name"] == **job);
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
            for message in messages(&found) {
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

async fn each_error_of_mpi_and_flux_is_told_in_events(shared: &Shared) -> Result<()> {
    let (mut refused, mut created) = (Vec::new(), Vec::new());
    for case in cases()? {
        match create(shared, &case)
            .await
            .with_context(|| case.name.clone())?
        {
            None => refused.push(case.name),
            Some(objects) => created.push((case.name, objects)),
        }
    }
    ensure!(
        created.len() >= 25 && refused.len() <= 2,
        "{refused:?} are refused"
    );
    for (name, objects) in created {
        objects.are_told().await.context(name)?;
    }
    Ok(())
}

pub(crate) fn tests() -> Vec<Test<Shared>> {
    vec![Test::new(
        "each_error_of_mpi_and_flux_is_told_in_events",
        each_error_of_mpi_and_flux_is_told_in_events,
    )]
}
