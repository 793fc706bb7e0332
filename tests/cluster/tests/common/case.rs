//! What may happen to a TrainJob.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Place, is, is_running, is_suspended};

/// A TrainJob, and what happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// It is created.
    Created,
    /// It is suspended while it runs.
    Suspended,
    /// It ran, was suspended, and is resumed.
    Resumed,
    /// It was created suspended; its patches are changed, and it is let go.
    Queued,
    /// It runs for longer than it may.
    Overdue,
    /// It ends.
    Completes,
}

impl Case {
    pub const ALL: [Self; 6] = [
        Self::Created,
        Self::Suspended,
        Self::Resumed,
        Self::Queued,
        Self::Overdue,
        Self::Completes,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Suspended => "suspended",
            Self::Resumed => "resumed",
            Self::Queued => "queued",
            Self::Overdue => "overdue",
            Self::Completes => "completes",
        }
    }

    /// Brings it to where something happens to it.
    pub async fn prepare(self, place: &Place<'_>) -> Result<()> {
        match self {
            Self::Created => Ok(()),
            Self::Suspended | Self::Overdue | Self::Completes => self.run(place).await,
            Self::Resumed => {
                self.run(place).await?;
                self.patch(place, &json!({"suspend": true})).await?;
                place.until(self, "it is suspended", is_suspended).await
            }
            Self::Queued => {
                self.create(place, &json!({"suspend": true})).await?;
                place.until(self, "it is suspended", is_suspended).await
            }
        }
    }

    /// What happens to it.
    pub async fn happen(self, place: &Place<'_>) -> Result<()> {
        match self {
            Self::Created => self.create(place, &json!({})).await,
            Self::Suspended => self.patch(place, &json!({"suspend": true})).await,
            Self::Resumed => self.patch(place, &json!({"suspend": false})).await,
            Self::Queued => {
                let tolerations = json!({"tolerations": [{"operator": "Exists"}]});
                let job = json!({"name": "node", "template": {"spec": {"template": {"spec": tolerations}}}});
                let patch = json!({
                    "manager": "example.com/queue",
                    "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
                });
                let spec = json!({"suspend": false, "runtimePatches": [patch]});
                self.patch(place, &spec).await
            }
            // Time alone makes it happen.
            Self::Overdue => Ok(()),
            Self::Completes => {
                place.let_complete();
                Ok(())
            }
        }
    }

    /// Whether it came to where it should.
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

    async fn run(self, place: &Place<'_>) -> Result<()> {
        let deadline = place.deadline.as_secs();
        let spec = match self {
            Self::Overdue => json!({"activeDeadlineSeconds": deadline}),
            _ => json!({}),
        };
        self.create(place, &spec).await?;
        place.until(self, "it runs", is_running).await
    }

    async fn create(self, place: &Place<'_>, spec: &Value) -> Result<()> {
        let mut spec = spec.clone();
        spec["runtimeRef"] = json!({"name": "torch"});
        place.create(self.name(), &spec).await.map(drop)
    }

    async fn patch(self, place: &Place<'_>, spec: &Value) -> Result<()> {
        place.patch(self.name(), spec).await.map(drop)
    }
}
