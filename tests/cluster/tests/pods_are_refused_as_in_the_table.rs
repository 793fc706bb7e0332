//! An API server refuses the pods of the table `pods.yaml`, as the pods of a Job, for the fields that the table has, and accepts the others.
//! `tests/validate_refuses_pods_like_the_api_server.rs` compares `trainyard validate` with the same table.
use anyhow::{Result, ensure};
use serde_json::json;
use trainyard_cluster::{ControlPlane, PodRow, Resource, Test, Write};

/// Checks one row of the table.
async fn agrees(plane: &ControlPlane, namespace: &str, row: &PodRow) -> Result<()> {
    let mut pod = row.pod.clone();
    if let Some(pod) = pod.as_object_mut() {
        // JobSet sets it.
        pod.entry("restartPolicy").or_insert(json!("OnFailure"));
    }
    let mut spec = row.job.clone();
    // JobSet sets it, too.
    spec.entry("completionMode").or_insert(json!("Indexed"));
    spec.insert("template".to_owned(), json!({"spec": pod}));
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": row.name}, "spec": spec,
    });
    let write = Write {
        dry_run: true,
        ..Write::strict()
    };
    let jobs = Resource::jobs();
    let answer = plane.api(&jobs, namespace).create(&job, &write).await?;
    let Err(refusal) = answer.accepted() else {
        ensure!(row.refused.is_empty(), "it is accepted");
        return Ok(());
    };
    ensure!(!row.refused.is_empty(), "{refusal}");
    let is_refused = |field: &String| {
        let mut causes = refusal.causes.iter();
        causes.any(|cause| cause.field.strip_prefix("spec.") == Some(field))
    };
    // Kubernetes 1.37 has corrected a field that earlier releases name differently.
    let is_corrected = !row.refused.is_empty() && row.refused.iter().all(is_refused);
    for field in row.fields_of_server() {
        ensure!(is_corrected || is_refused(field), "not {field}: {refusal}");
    }
    Ok(())
}

async fn every_pod_of_the_table_has_the_recorded_verdict(plane: &ControlPlane) -> Result<()> {
    let rows = PodRow::read_all()?;
    ensure!(rows.len() >= 229, "{} rows", rows.len());
    let namespace = plane.new_namespace().await?;
    let mut wrong = Vec::new();
    for row in &rows {
        if let Err(error) = agrees(plane, &namespace, row).await {
            wrong.push(format!("{}: {error:#}", row.name));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

pub(crate) fn tests() -> Vec<Test> {
    tests![every_pod_of_the_table_has_the_recorded_verdict]
}
