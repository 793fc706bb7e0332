//! TrainJobs of each policy in each state move from the reference to Trainyard and back, with the programs of both. Trainyard writes to none
//! of them. The reference writes to none that it made, and to those of Trainyard only what docs/move.md says. What has ended stays ended,
//! with the exception that the rehearsal of the way back names, and nothing runs twice. After what the rehearsal says is done, all others run.
//!
//! With an earlier release of Trainyard, whose program [`EARLIER`] names (`make test-upgrade`), neither writes to TrainJobs of the other that have
//! started, and all end as they should.

mod crowd;

use std::{collections::BTreeSet, env, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use trainyard_cluster::{Reference, ReferenceLimits, Shared as _, Test, Trainyard};

use self::crowd::{Crowd, POLICIES, State};
use crate::common::{Handover, Objects, differing};

/// Objects of Trainyard's TrainJobs that the reference writes again, unless a deadline ended these, by policy and the end of their names.
const REWRITTEN: [(&str, &str); 3] = [
    ("flux", "-flux-entrypoint"),
    ("flux", "-flux-curve"),
    ("launcher-node", "-mpi-hostfile"),
];

/// The variable with the program of an earlier release.
const EARLIER: &str = "TRAINYARD_EARLIER";

/// Each controller is alone.
const FLAGS: [&str; 1] = ["--leader-elect=false"];

/// What the rehearsal says: the TrainJobs and what to do.
type Said = BTreeSet<(String, String)>;

/// Rehearses the way back.
async fn rehearse(shared: &Handover, namespace: &str) -> Result<Said> {
    let mut diff = Command::new(Trainyard::program()?);
    diff.args(["diff", "--back", "--output", "json", "--namespace"]);
    diff.arg(namespace).arg("--kubeconfig");
    diff.arg(shared.plane().kubeconfig());
    let output = tokio::task::spawn_blocking(move || diff.output()).await??;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_slice(&output.stdout).context(error)?;
    ensure!(report["notRead"] == serde_json::json!([]), "{report:#}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let objects = report["objects"].as_array().into_iter().flatten();
    // A runtime is of both namespaces.
    let objects = objects.filter(|object| object["kind"] == "TrainJob");
    let found = objects.flat_map(|object| {
        let findings = object["findings"].as_array().into_iter().flatten();
        let name = text(&object["name"]);
        findings.map(move |finding| (name.clone(), text(&finding["action"])))
    });
    Ok(found.collect())
}

/// Returns what the rehearsal says of Trainyard's TrainJobs.
fn expected() -> Said {
    let mut said = Said::new();
    for (policy, runtime) in POLICIES {
        let mut add = |state: State, action: &str| {
            said.insert((state.of(policy), action.to_owned()));
        };
        add(State::Collected, "delete");
        if ["flux", "launcher-node", "dra"].contains(&policy) {
            add(State::Running, "wait");
        }
        for state in [State::Queued, State::Preempted] {
            match policy {
                "torch" | "dra" => {}
                _ if runtime.starts_with("torchtune") => add(state, "recreate"),
                _ => add(state, "deleteJobSet"),
            }
        }
    }
    said
}

/// Returns whether the page says that the reference changes these fields of an object of Trainyard's TrainJobs.
fn is_said(key: &str, fields: &BTreeSet<String>) -> bool {
    let (kind, name) = key.split_once(' ').unwrap_or_default();
    let Some((policy, state)) =
        crowd::all().find(|(policy, state)| name.starts_with(&state.of(policy)))
    else {
        return false;
    };
    let is_suspended = state.is_suspended();
    let is_gang = ["coscheduling", "volcano"].contains(&policy);
    let of_initializer = "/spec/replicatedJobs/0/template/spec/template/metadata/";
    match kind {
        _ if state == State::Collected => true,
        "TrainJob" => fields.iter().all(|field| crowd::is_of_touch(field)),
        "ConfigMap" | "Secret" if state != State::Overdue => REWRITTEN
            .iter()
            .any(|(of, suffix)| *of == policy && name.ends_with(suffix)),
        "JobSet" if is_suspended => fields.iter().all(|field| {
            field == "/metadata/annotations" || (is_gang && field.starts_with(of_initializer))
        }),
        "PodGroup" if is_suspended && is_gang => {
            fields.iter().all(|field| field.starts_with("/spec/min"))
        }
        _ => false,
    }
}

/// Checks which objects of Trainyard's TrainJobs the reference has changed.
fn only_said_fields_are_changed(before: &Objects, now: &Objects) -> Result<()> {
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let mut unexpected = Vec::new();
    for key in keys {
        let (was, is) = (before.get(key), now.get(key));
        let of = |object: Option<&Value>| object.cloned().unwrap_or_default();
        let fields = differing(&of(was), &of(is));
        if was != is && !is_said(key, &fields) {
            unexpected.push(format!("{key}: {fields:?}"));
        }
    }
    ensure!(unexpected.is_empty(), "{}", unexpected.join("\n"));
    for (policy, suffix) in REWRITTEN {
        let name = State::Running.of(policy) + suffix;
        let is_rewritten = ["ConfigMap", "Secret"].iter().any(|kind| {
            let key = format!("{kind} {name}");
            before.get(&key) != now.get(&key)
        });
        ensure!(is_rewritten, "{name} is unchanged");
    }
    Ok(())
}

/// Checks that a controller writes to no TrainJob of another one, neither when it starts nor when it reconciles each again.
async fn writes_to_none(trainyard: &Trainyard, crowd: &Crowd<'_>, before: &Objects) -> Result<()> {
    trainyard.until_idle().await?;
    crowd.are_unchanged(before).await?;
    crowd.touch().await?;
    trainyard.until_idle().await?;
    crowd.are_only_touched(before).await
}

async fn each_policy_in_each_state(shared: &Handover) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let reference = Reference::start(shared.plane(), ReferenceLimits::SHIPPED).await?;
    let theirs = Crowd::new(shared, crowd::of_the_reference())
        .await
        .context("with the reference")?;
    let before = theirs.objects().await?;
    reference.process().kill()?;

    let trainyard = Trainyard::start(shared.plane(), &shared.kubeconfig, FLAGS).await?;
    writes_to_none(&trainyard, &theirs, &before).await?;

    let ours = Crowd::new(shared, crowd::back_to_the_reference())
        .await
        .context("with Trainyard")?;
    trainyard.until_idle().await?;
    let said = rehearse(shared, &ours.namespace.name).await?;
    ensure!(said == expected(), "{said:#?}");
    let said_of_theirs = rehearse(shared, &theirs.namespace.name).await?;
    ensure!(said_of_theirs.is_empty(), "{said_of_theirs:#?}");
    trainyard.stop().await?;
    let (touched, new) = (theirs.objects().await?, ours.objects().await?);

    let reference = Reference::start(shared.plane(), ReferenceLimits::SHIPPED).await?;
    let count = theirs.count() + ours.count();
    reference.until_reconciled(count).await?;
    theirs.are_unchanged(&touched).await?;
    ours.touch().await?;
    reference.until_reconciled(count + ours.count()).await?;
    only_said_fields_are_changed(&new, &ours.objects().await?)?;
    theirs
        .go_on(&Said::new())
        .await
        .context("made by the reference")?;
    ours.go_on(&said).await.context("made by Trainyard")?;
    drop(reference);
    Ok(())
}

async fn each_policy_in_each_state_with_an_earlier_release(shared: &Handover) -> Result<()> {
    let _turn = shared.turn.lock().await;
    let (plane, kubeconfig) = (shared.plane(), &shared.kubeconfig);
    let program = env::var_os(EARLIER).map(PathBuf::from).context(EARLIER)?;
    let earlier = Trainyard::start_release(&program, plane, kubeconfig, FLAGS).await?;
    let old = Crowd::new(shared, crowd::all())
        .await
        .context("with the earlier release")?
        .without_queued();
    earlier.until_idle().await?;
    earlier.stop().await?;
    let before = old.objects().await?;

    let later = Trainyard::start(plane, kubeconfig, FLAGS).await?;
    writes_to_none(&later, &old, &before).await?;
    let new = Crowd::new(shared, crowd::all())
        .await
        .context("with this release")?
        .without_queued();
    later.until_idle().await?;
    later.stop().await?;
    let (touched, before) = (old.objects().await?, new.objects().await?);

    let earlier = Trainyard::start_release(&program, plane, kubeconfig, FLAGS).await?;
    writes_to_none(&earlier, &new, &before).await?;
    old.are_unchanged(&touched).await?;
    new.queued_wait().await?;
    let nothing = Said::new();
    new.go_on(&nothing).await.context("made by this release")?;
    earlier.stop().await?;

    let later = Trainyard::start(plane, kubeconfig, FLAGS).await?;
    later.until_idle().await?;
    old.queued_wait().await?;
    old.go_on(&nothing)
        .await
        .context("made by the earlier one")?;
    later.stop().await.map(drop)
}

pub(crate) fn tests() -> Vec<Test<Handover>> {
    let mut tests = vec![Test::new(
        "each_policy_in_each_state",
        each_policy_in_each_state,
    )];
    if env::var_os(EARLIER).is_some() {
        tests.push(Test::new(
            "each_policy_in_each_state_with_an_earlier_release",
            each_policy_in_each_state_with_an_earlier_release,
        ));
    }
    tests
}
