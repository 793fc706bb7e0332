//! The life cycles of a TrainJob.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Scenario, is, is_running, is_suspended};

/// A TrainJob and the change that happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// It is created.
    Created,
    /// It is suspended while it runs.
    Suspended,
    /// It ran, was suspended, and is resumed.
    Resumed,
    /// It is created suspended; its patches are changed, and it is unsuspended.
    Queued,
    /// It exceeds its deadline.
    Overdue,
    /// It completes.
    Completes,
}

impl Case {
    pub(crate) const ALL: [Self; 6] = [
        Self::Created,
        Self::Suspended,
        Self::Resumed,
        Self::Queued,
        Self::Overdue,
        Self::Completes,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Suspended => "suspended",
            Self::Resumed => "resumed",
            Self::Queued => "queued",
            Self::Overdue => "overdue",
            Self::Completes => "completes",
        }
    }

    /// Creates the TrainJob, and waits for the state before the change.
    pub(crate) async fn prepare(self, scenario: &Scenario<'_>) -> Result<()> {
        match self {
            Self::Created => Ok(()),
            Self::Suspended | Self::Overdue | Self::Completes => self.run(scenario).await,
            Self::Resumed => {
                self.run(scenario).await?;
                self.patch(scenario, &json!({"suspend": true})).await?;
                scenario.until(self, "it is suspended", is_suspended).await
            }
            Self::Queued => {
                self.create(scenario, &json!({"suspend": true})).await?;
                scenario.until(self, "it is suspended", is_suspended).await
            }
        }
    }

    /// Makes the change.
    pub(crate) async fn happen(self, scenario: &Scenario<'_>) -> Result<()> {
        match self {
            Self::Created => self.create(scenario, &json!({})).await,
            Self::Suspended => self.patch(scenario, &json!({"suspend": true})).await,
            Self::Resumed => self.patch(scenario, &json!({"suspend": false})).await,
            Self::Queued => {
                let tolerations = json!({"tolerations": [{"operator": "Exists"}]});
                let job = json!({"name": "node", "template": {"spec": {"template": {"spec": tolerations}}}});
                let patch = json!({
                    "manager": "example.com/queue",
                    "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
                });
                let spec = json!({"suspend": false, "runtimePatches": [patch]});
                self.patch(scenario, &spec).await
            }
            // The deadline expires by itself.
            Self::Overdue => Ok(()),
            Self::Completes => {
                scenario.let_complete();
                Ok(())
            }
        }
    }

    /// Returns whether the TrainJob has reached the final state.
    pub(super) fn is_over(self, job: &Value) -> bool {
        match self {
            Self::Created => is_running(job),
            Self::Resumed => is_running(job) && is(job, "Suspended", "False"),
            Self::Queued => is_running(job) && is(job, "Suspended", "False"),
            Self::Suspended => is_suspended(job),
            Self::Overdue => is(job, "Failed", "True"),
            Self::Completes => is(job, "Complete", "True"),
        }
    }

    async fn run(self, scenario: &Scenario<'_>) -> Result<()> {
        let deadline = scenario.deadline.as_secs();
        let spec = match self {
            Self::Overdue => json!({"activeDeadlineSeconds": deadline}),
            _ => json!({}),
        };
        self.create(scenario, &spec).await?;
        scenario.until(self, "it runs", is_running).await
    }

    async fn create(self, scenario: &Scenario<'_>, spec: &Value) -> Result<()> {
        let mut spec = spec.clone();
        spec["runtimeRef"] = json!({"name": "torch"});
        scenario.create(self.name(), &spec).await.map(drop)
    }

    async fn patch(self, scenario: &Scenario<'_>, spec: &Value) -> Result<()> {
        scenario.patch(self.name(), spec).await.map(drop)
    }
}
