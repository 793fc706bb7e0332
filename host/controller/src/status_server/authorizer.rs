//! Who may report for a TrainJob: its own pods.
//!
//! A token is for one TrainJob, by its audience, and bound to one pod. But whoever writes the template of pods, such as the author of another
//! TrainJob, can ask for a token with any audience. So the pod also has to belong to the JobSet of the TrainJob: the JobSet controller sets
//! the labels that say so, whatever the template says.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use k8s_openapi::api::{authentication::v1::TokenReviewStatus, core::v1::Pod};
use kube::{Api, Client, api::ObjectMeta};
use thiserror::Error;
use tokio::time::Instant;

use super::token::{BoundPod, Claims};
use crate::{
    client::Rate,
    reconcile::owner,
    serve::{Peer, bearer, turns::Turns},
    watch::JobSetObject,
};

/// How long a confirmed token is accepted without asking again, as by kubelets. The API server stops confirming it when its pod is deleted.
const REMEMBERED: Duration = Duration::from_secs(120);

/// The most pods whose tokens are remembered. The tokens of others are confirmed at each request.
const MOST_REMEMBERED: usize = 16 << 10;

/// The maximum rate of confirmations per second, and of their bursts. Each takes up to three calls. A pod needs one every two minutes.
const CONFIRMATIONS: (f64, u32) = (20.0, 40);

/// The parts of a token's user that the API server has confirmed.
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";

/// The labels that the JobSet controller sets on pods.
const JOB_SET_NAME: &str = "jobset.sigs.k8s.io/jobset-name";
const JOB_SET_UID: &str = "jobset.sigs.k8s.io/jobset-uid";

/// The TrainJob that a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
}

impl Target {
    /// Returns the audience of its tokens, which is the reference's.
    fn audience(&self) -> String {
        let Self { namespace, name } = self;
        format!("trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/{name}/status")
    }
}

/// Why a request may not write.
#[derive(Debug, Error)]
pub(super) enum AuthError {
    #[error(
        "the request has no bearer token; send the one in the file that KUBEFLOW_TRAINER_SERVER_TOKEN names"
    )]
    NoToken,
    #[error(
        "the token is not that of a pod for this TrainJob; send the one in the file that KUBEFLOW_TRAINER_SERVER_TOKEN names"
    )]
    OtherToken,
    #[error("the API server does not accept the token; read its file again, because tokens expire")]
    InvalidToken,
    #[error("the pod of the token does not belong to the TrainJob")]
    OtherPod,
    /// The token cannot be checked.
    #[error(transparent)]
    Api(#[from] kube::Error),
}

/// Confirms tokens.
pub(super) struct Authorizer {
    client: Client,
    turns: Turns,
    /// The confirmed tokens, by the UIDs of their pods, so that a pod with many tokens takes no more room than others.
    confirmed: Mutex<HashMap<Box<str>, Confirmed>>,
}

/// A confirmed token.
#[derive(Clone)]
struct Confirmed {
    digest: [u8; 32],
    target: Target,
    /// The UID of the TrainJob.
    train_job: Arc<str>,
    until: Instant,
}

impl Authorizer {
    pub(super) fn new(client: Client) -> Self {
        let (qps, burst) = CONFIRMATIONS;
        Self {
            client,
            turns: Turns::new(Rate::new(qps, burst)),
            confirmed: Mutex::default(),
        }
    }

    /// Returns the UID of the TrainJob, if the header has the token of one of its pods.
    ///
    /// Whatever the token itself shows to be wrong is refused without a call.
    pub(super) async fn authorize(
        &self,
        peer: Peer,
        header: Option<&str>,
        target: &Target,
    ) -> Result<Arc<str>, AuthError> {
        let token = header.and_then(bearer::bearer).ok_or(AuthError::NoToken)?;
        let claims = Claims::of(token).ok_or(AuthError::OtherToken)?;
        let pod = claims.pod_in(&target.namespace);
        let pod = pod.filter(|_| claims.is_for(&target.audience()));
        let pod = pod.ok_or(AuthError::OtherToken)?;
        let digest = bearer::digest(token);
        let known = self.confirmed().get(&*pod.uid).cloned();
        if let Some(known) = known
            && known.digest == digest
            && known.target == *target
            && known.until > Instant::now()
        {
            return Ok(known.train_job);
        }
        self.turns.take(&peer.key()).await;
        self.confirm(token, target, pod).await?;
        let train_job = self.train_job_of(target, pod).await?;
        self.remember(
            pod,
            Confirmed {
                digest,
                target: target.clone(),
                train_job: train_job.clone(),
                until: Instant::now() + remembered(claims.exp),
            },
        );
        Ok(train_job)
    }

    /// Forgets what was confirmed for a TrainJob that no longer exists.
    pub(super) fn forget(&self, train_job: &str) {
        self.confirmed().retain(|_, it| &*it.train_job != train_job);
    }

    /// Checks that the API server accepts the token for the TrainJob, and that it is bound to this pod.
    async fn confirm(&self, token: &str, target: &Target, pod: &BoundPod) -> Result<(), AuthError> {
        let audience = target.audience();
        let audiences = Some(vec![audience.clone()]);
        let status = bearer::review(&self.client, token, audiences).await?;
        let is_confirmed = is_accepted(&status, &audience) && is_bound_to(&status, target, pod);
        is_confirmed.then_some(()).ok_or(AuthError::InvalidToken)
    }

    /// Returns the UID of the TrainJob, if the pod belongs to its JobSet.
    async fn train_job_of(&self, target: &Target, pod: &BoundPod) -> Result<Arc<str>, AuthError> {
        let Target { namespace, name } = target;
        let pods = Api::<Pod>::namespaced(self.client.clone(), namespace);
        let found = pods.get_metadata_opt(&pod.name).await?;
        let labels = found.and_then(|found| labels_of(found.metadata, pod));
        let labels = labels.ok_or(AuthError::OtherPod)?;
        if labels.get(JOB_SET_NAME).map(String::as_str) != Some(&**name) {
            return Err(AuthError::OtherPod);
        }
        let job_sets = Api::<JobSetObject>::namespaced(self.client.clone(), namespace);
        let found = job_sets.get_metadata_opt(name).await?;
        let job_set = found.ok_or(AuthError::OtherPod)?.metadata;
        // Pods of a JobSet that was replaced may still be terminating. Early versions of JobSet do not set the label.
        let uid = labels.get(JOB_SET_UID);
        let is_its_pod = uid.is_none_or(|uid| Some(uid) == job_set.uid.as_ref());
        let owner = owner::train_job(&job_set).filter(|owner| is_its_pod && owner.name == **name);
        let owner = owner.ok_or(AuthError::OtherPod)?;
        Ok(owner.uid.as_str().into())
    }

    fn remember(&self, pod: &BoundPod, confirmed: Confirmed) {
        let mut all = self.confirmed();
        if all.len() >= MOST_REMEMBERED {
            let now = Instant::now();
            all.retain(|_, it| it.until > now);
        }
        if all.len() < MOST_REMEMBERED || all.contains_key(&*pod.uid) {
            all.insert(pod.uid.as_str().into(), confirmed);
        }
    }

    fn confirmed(&self) -> MutexGuard<'_, HashMap<Box<str>, Confirmed>> {
        self.confirmed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the labels of the pod, if it is the one of the token.
fn labels_of(found: ObjectMeta, pod: &BoundPod) -> Option<BTreeMap<String, String>> {
    let is_same = found.uid.as_deref() == Some(&pod.uid);
    found.labels.filter(|_| is_same)
}

fn is_accepted(status: &TokenReviewStatus, audience: &str) -> bool {
    let mut audiences = status.audiences.iter().flatten();
    status.authenticated == Some(true) && audiences.any(|it| it == audience)
}

/// Whether the token is one of a ServiceAccount in the namespace of the TrainJob, bound to the pod.
fn is_bound_to(status: &TokenReviewStatus, target: &Target, pod: &BoundPod) -> bool {
    let Some(user) = &status.user else {
        return false;
    };
    let prefix = format!("system:serviceaccount:{}:", target.namespace);
    let name = user.username.as_deref().unwrap_or_default();
    let extra = |key: &str| user.extra.as_ref()?.get(key)?.first();
    name.starts_with(&prefix)
        && extra(POD_NAME) == Some(&pod.name)
        && extra(POD_UID) == Some(&pod.uid)
}

/// Returns how long a token is remembered that expires at a time in seconds.
fn remembered(expires: Option<i64>) -> Duration {
    let expires = expires.and_then(|seconds| u64::try_from(seconds).ok());
    let expires = expires.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
    let left = expires.and_then(|at| at.duration_since(SystemTime::now()).ok());
    left.unwrap_or_default().min(REMEMBERED)
}
