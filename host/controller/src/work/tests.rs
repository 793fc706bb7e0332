#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::num::NonZeroUsize;

use kube::core::{Status, response::StatusSummary};
use serde_json::json;
use trainyard_render::{ClusterFacts, Renderer};

use super::{watches::WatchFollower, *};
use crate::{
    events::{EventWriter, Reporter, recorder},
    generation::Generations,
    queue::Backoff,
    threads::{Sizes, Threads},
    watch::{
        Change, CompleteList, Follower, Health, JobSetObject, RuntimeKey, TrainJobObject,
        script::{Answer, Script},
    },
};

fn work(client: &Client) -> (Work, EventWriter) {
    let queue = Queue::new(Backoff::default());
    let metrics = Arc::new(Metrics::new(&queue));
    let stores = Arc::new(Stores::default());
    let renderer = Renderer::new([], ClusterFacts::default()).unwrap();
    let generations = Arc::new(Generations::new(renderer, false));
    let threads = Threads::new(
        Arc::new(drop),
        Sizes::for_cores(NonZeroUsize::MIN),
        Duration::ZERO,
    );
    let reporter = Reporter {
        component: "trainjob_controller".to_owned(),
        instance: "test".to_owned(),
    };
    let (recorder, writer) = recorder(client.clone(), reporter, metrics.clone());
    let work = Work {
        reconciler: Reconciler::new(
            client.clone(),
            stores.clone(),
            (generations, threads),
            recorder.log_shares(),
            metrics.clone(),
        ),
        client: client.clone(),
        stores,
        queue,
        metrics,
        recorder,
        readiness: Arc::new(Readiness::default()),
        failures: Failures::default(),
        shadow: None,
        leads: AtomicBool::new(true),
    };
    (work, writer)
}

/// A TrainJob and a JobSet, as the API server sends them.
fn object(name: &str, version: u64, end: Option<&str>) -> String {
    let conditions: Vec<_> = end
        .map(|kind| {
            json!({
                "type": kind, "status": "True", "reason": "r", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        })
        .into_iter()
        .collect();
    let object = json!({
        "metadata": {
            "name": name, "namespace": "a", "uid": name, "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"runtimeRef": {"name": "r"}},
        "status": {"conditions": conditions},
    });
    object.to_string()
}

fn refused(code: u16) -> kube::Error {
    kube::Error::Api(Box::new(Status {
        status: Some(StatusSummary::Failure),
        code,
        message: "too busy".to_owned(),
        ..Status::default()
    }))
}

/// Returns the number of writes of Events while a TrainJob fails with this error for that many minutes.
async fn events_after(minutes: u64, error: impl Fn() -> kube::Error) -> usize {
    let written = || Answer::ok(json!({"metadata": {"name": "e"}}).to_string());
    let script = Script::new(std::iter::repeat_with(written).take(1_000));
    let (work, writer) = work(&script.client());
    let (key, read) = crate::watch::read::<TrainJobObject>(&object("one", 1, None)).unwrap();
    work.stores.jobs.put_read(key.clone(), read);
    work.queue.add(key);
    let writer = tokio::spawn(writer.run());
    let end = tokio::time::Instant::now() + Duration::from_secs(minutes * 60);
    while let Ok(Some(running)) = tokio::time::timeout_at(end, work.queue.next()).await {
        work.failed(running, &ReconcileError::api("writing it", error()), None);
    }
    drop(work);
    writer.await.unwrap();
    script.requests().len()
}

#[tokio::test(start_paused = true)]
async fn errors_of_all_train_jobs_are_reported_if_they_persist() {
    let no_answer = || {
        kube::Error::Service(Box::new(crate::client::NoAnswer {
            verb: "apply",
            path: "/".to_owned(),
            after: Duration::from_secs(10),
        }))
    };
    assert_eq!(events_after(4, || refused(429)).await, 0);
    assert_eq!(events_after(4, || refused(503)).await, 0);
    assert_eq!(events_after(4, no_answer).await, 0);
    assert_eq!(events_after(6, || refused(429)).await, 1);
    assert_eq!(events_after(6, || refused(503)).await, 1);
    assert_eq!(events_after(6, no_answer).await, 1);
    // Then at most once per period.
    let events = events_after(60, || refused(503)).await;
    assert!((9..=12).contains(&events), "{events}");
}

/// A conflict is retried within 30 seconds, so its backoff never shows that it lasts.
#[tokio::test(start_paused = true)]
async fn a_temporary_error_is_reported_once_it_lasts() {
    assert_eq!(events_after(1, || refused(409)).await, 0);
    assert!(events_after(5, || refused(409)).await > 0);
}

#[test]
fn a_candidate_forgets_deleted_job_sets_whose_end_is_in_the_status() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _context = runtime.enter();
    let script = Script::new([]);
    let (work, _writer) = work(&script.client());
    let reconciler = &work.reconciler;
    let jobs = &work.stores.jobs;
    let put = |name: &str, version, end| {
        let (key, read) =
            crate::watch::read::<TrainJobObject>(&object(name, version, end)).unwrap();
        jobs.put_read(key.clone(), read);
        reconciler.job_changed(&key);
        key
    };
    let ends = |key: &NamespacedName| {
        let (_, read) =
            crate::watch::read::<JobSetObject>(&object("j", 5, Some("Completed"))).unwrap();
        let gone = crate::watch::DeletedObject {
            last: Arc::new(read.unwrap()),
            was_seen: true,
        };
        reconciler.job_set_deleted(key, gone);
    };
    for number in 0..100 {
        let ended = put(&format!("ended-{number}"), 1, None);
        ends(&ended);
        assert_eq!(reconciler.count_kept()[2], 1);
        // Other changes keep it.
        put(&ended.name, 2, None);
        assert_eq!(reconciler.count_kept()[2], 1);
        put(&ended.name, 3, Some("Complete"));
        assert_eq!(reconciler.count_kept()[2], 0);
        let gone = put(&format!("gone-{number}"), 1, None);
        ends(&gone);
        jobs.remove(&gone, 9);
        reconciler.job_changed(&gone);
        assert_eq!(reconciler.count_kept()[2], 0);
    }
}

#[tokio::test(start_paused = true)]
async fn annotations_do_not_end_the_backoff_of_failing_train_jobs() {
    let (work, _writer) = work(&Script::new([]).client());
    let state = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut object: serde_json::Value = serde_json::from_str(&object("one", 1, None)).unwrap();
        change(&mut object);
        let (_, read) = crate::watch::read::<TrainJobObject>(&object.to_string()).unwrap();
        Arc::new(read.unwrap())
    };
    let plain = || state(&|_| {});
    let annotated = || {
        state(&|job| {
            job["metadata"]["annotations"] = json!({names::ERROR_ANNOTATION: "Refused: a"});
        })
    };
    let suspended = || {
        state(&|job| {
            job["metadata"]["annotations"] = json!({names::ERROR_ANNOTATION: "Refused: a"});
            job["spec"]["suspend"] = json!(true);
        })
    };
    let key = NamespacedName::new("a", "one");
    let put = |state| {
        let state = Arc::into_inner(state).unwrap();
        work.stores.jobs.put(key.clone(), state)
    };
    put(plain());
    let wakes = |before, after| {
        let change = Change::Updated { before, after };
        work.job_changed(&key, &change);
        let is_woken = work.queue.load().waiting == 1;
        let next = work.queue.next().now_or_never().flatten();
        next.into_iter().for_each(Running::succeed);
        is_woken
    };
    // Another client's annotation is removed from a TrainJob that does not fail.
    assert!(wakes(plain(), annotated()));
    let error = ReconcileError::Internal("a".to_owned());
    work.failures.note(&key, &error);
    assert!(!wakes(plain(), annotated()));
    assert!(!wakes(annotated(), plain()));
    assert!(wakes(plain(), suspended()));
    // Nothing that is kept has changed, as after a pod has reported progress.
    assert!(!wakes(plain(), plain()));
    // The watch may show the annotation before the reconcile that wrote it has failed.
    work.failures.forget(&key);
    work.reconciler.note_annotation(&key, Some("Refused: a"));
    assert!(!wakes(plain(), annotated()));
    assert!(wakes(annotated(), plain()));
    // It is shown late, so the TrainJob is reconciled again, which removes it.
    assert!(!work.reconciler.note_success(&key));
    assert!(wakes(plain(), annotated()));
    work.reconciler.note_annotation(&key, Some("Refused: a"));
    let shown = state(&|job| {
        job["metadata"]["annotations"] = json!({names::ERROR_ANNOTATION: "Refused: a"});
        job["metadata"]["resourceVersion"] = json!("2");
    });
    put(shown);
    assert!(work.reconciler.note_success(&key));
    assert!(!work.reconciler.note_success(&key));
    work.reconciler.note_annotation(&key, None);
    assert!(!wakes(annotated(), plain()));
    assert!(!work.reconciler.note_success(&key));
}

#[test]
fn lost_watches_make_a_process_not_ready() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _context = runtime.enter();
    let (work, _writer) = work(&Script::new([]).client());
    let part = WatchFollower {
        work: &work,
        part: names::TRAIN_JOB,
        store: &work.stores.jobs,
        changed: |_: &NamespacedName, _| {},
    };
    let health = |health| Follower::<TrainJobObject>::health(&part, health);
    let missing = || work.readiness.missing();
    health(Health::NotServed("install it".to_owned()));
    assert_eq!(missing(), ["TrainJob (install it)"]);
    work.stores.jobs.remove_missing(&CompleteList {
        objects: Vec::new(),
        version: 1,
        before: 0,
    });
    health(Health::Working);
    assert!(missing().is_empty());
    health(Health::Lost("it fails".to_owned()));
    assert_eq!(missing(), ["TrainJob (it fails)"]);
    health(Health::Working);
    assert!(missing().is_empty());
    // If the kind is removed later, the known objects stay.
    health(Health::NotServed("install it".to_owned()));
    assert!(missing().is_empty());
}

/// Everything that is kept of TrainJobs beside the stores has one entry for each, until it is deleted.
#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_deleted_train_jobs() {
    const COUNT: usize = 1_000;
    let (work, _writer) = work(&Script::new([]).client());
    let (reconciler, jobs) = (&work.reconciler, &work.stores.jobs);
    let keys: Vec<_> = (0..COUNT)
        .map(|number| {
            let (key, read) =
                crate::watch::read::<TrainJobObject>(&object(&number.to_string(), 1, None))
                    .unwrap();
            jobs.put_read(key.clone(), read);
            key
        })
        .collect();
    for _ in 0..3 {
        for key in &keys {
            work.queue.add(key.clone());
            let running = work.queue.next().await.unwrap();
            let runtime = RuntimeKey {
                namespace: Some(key.namespace.clone()),
                name: key.name.clone(),
            };
            reconciler.interests.wait_for(key, &runtime);
            reconciler.interests.settle(key);
            reconciler.note_last(key);
            reconciler.note_annotation(key, Some("Refused: a"));
            let (_, read) =
                crate::watch::read::<JobSetObject>(&object("j", 5, Some("Completed"))).unwrap();
            let last = Arc::new(read.unwrap());
            let was_seen = true;
            reconciler.job_set_deleted(key, crate::watch::DeletedObject { last, was_seen });
            work.failed(running, &ReconcileError::Internal("a".to_owned()), None);
        }
    }
    assert_eq!(reconciler.count_kept(), [COUNT; 3]);
    assert_eq!(reconciler.interests.count(), [COUNT, COUNT, 0]);
    assert_eq!(
        (work.failures.len(), work.queue.count()),
        (COUNT, [COUNT; 3])
    );
    for key in &keys {
        jobs.remove(key, 2);
        work.job_changed(key, &Change::Other);
        let running = work.queue.next().await.unwrap();
        work.reconcile(running).await;
    }
    assert_eq!(reconciler.count_kept(), [0; 3]);
    assert_eq!(reconciler.interests.count(), [0; 3]);
    assert_eq!((work.failures.len(), work.queue.count()), (0, [0; 3]));
    assert!(jobs.is_empty() && jobs.text_bytes().is_empty());
}

/// What is known of an earlier version of a TrainJob that cannot be decoded must not be used. A TrainJob of another controller may come back.
#[tokio::test(start_paused = true)]
async fn of_train_jobs_that_are_not_reconciled_little_is_forgotten() {
    let unreadable = json!({"status": {"conditions": "a"}});
    let unmanaged = json!({"spec": {"managedBy": "example.com/other"}});
    for (change, is_read, interests, kept) in
        [(unreadable, false, 1, [0, 1]), (unmanaged, true, 0, [1, 1])]
    {
        let (work, _writer) = work(&Script::new([]).client());
        let (reconciler, jobs) = (&work.reconciler, &work.stores.jobs);
        let mut object: serde_json::Value = serde_json::from_str(&object("one", 1, None)).unwrap();
        for (member, value) in change.as_object().unwrap() {
            object[member] = value.clone();
        }
        let (key, read) = crate::watch::read::<TrainJobObject>(&object.to_string()).unwrap();
        jobs.put_read(key.clone(), read);
        assert_eq!(jobs.unreadable(&key).is_none(), is_read);
        let runtime = RuntimeKey {
            namespace: Some(key.namespace.clone()),
            name: key.name.clone(),
        };
        reconciler.interests.wait_for(&key, &runtime);
        reconciler.interests.settle(&key);
        reconciler.note_last(&key);
        let (_, read) =
            crate::watch::read::<JobSetObject>(&self::object("j", 5, Some("Completed"))).unwrap();
        let last = Arc::new(read.unwrap());
        let was_seen = true;
        reconciler.job_set_deleted(&key, crate::watch::DeletedObject { last, was_seen });
        work.queue.add(key.clone());
        let running = work.queue.next().await.unwrap();
        work.reconcile(running).await;
        assert_eq!(reconciler.interests.count()[0], interests);
        let [last, _, deleted] = reconciler.count_kept();
        assert_eq!([last, deleted], kept);
        assert_eq!(work.failures.len(), usize::from(!is_read));
    }
}

/// Puts a TrainJob, and possibly its JobSet with these annotations, into the stores.
fn put(work: &Work, name: &str, job: &serde_json::Value, job_set: Option<(bool, &str)>) {
    let mut changed: serde_json::Value = serde_json::from_str(&object(name, 1, None)).unwrap();
    for (member, value) in job.as_object().unwrap() {
        changed[member] = value.clone();
    }
    let (key, read) = crate::watch::read::<TrainJobObject>(&changed.to_string()).unwrap();
    work.stores.jobs.put_read(key, read);
    if let Some((suspended, annotation)) = job_set {
        let mut object: serde_json::Value = serde_json::from_str(&object(name, 1, None)).unwrap();
        object["spec"] = json!({"suspend": suspended});
        object["metadata"]["annotations"] = json!({annotation: "a"});
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": names::TRAINER_API_VERSION, "kind": names::TRAIN_JOB, "name": name, "uid": name, "controller": true,
        }]);
        let (key, read) = crate::watch::read::<JobSetObject>(&object.to_string()).unwrap();
        work.stores.job_sets.put_read(key, read);
    }
}

#[tokio::test(start_paused = true)]
async fn only_train_jobs_that_have_not_started_follow_the_plugins() {
    let (work, _writer) = work(&Script::new([]).client());
    let (inputs, started) = (crate::annotations::INPUTS, crate::annotations::STARTED);
    let plain = json!({});
    let suspended = json!({"spec": {"runtimeRef": {"name": "r"}, "suspend": true}});
    put(&work, "new", &plain, None);
    put(&work, "queued", &suspended, Some((true, inputs)));
    put(&work, "running", &plain, Some((false, started)));
    put(&work, "paused", &suspended, Some((true, started)));
    let has_run = json!({"jobsStatus": [{"name": "node", "ready": 1, "active": 1, "succeeded": 0, "failed": 0, "suspended": 0}]});
    put(
        &work,
        "recreated",
        &json!({"status": has_run}),
        Some((true, inputs)),
    );
    let ended = json!({"conditions": [{
        "type": "Complete", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]});
    put(&work, "ended", &json!({"status": ended}), None);
    let unmanaged = json!({"spec": {"managedBy": "example.com/other"}});
    put(&work, "unmanaged", &unmanaged, None);
    work.queue_unstarted();
    let mut followed = Vec::new();
    let second = Duration::from_secs(1);
    while let Ok(Some(running)) = tokio::time::timeout(second, work.queue.next()).await {
        followed.push(running.key().name.to_string());
        running.succeed();
    }
    followed.sort();
    assert_eq!(followed, ["new", "queued"]);
}

#[tokio::test(start_paused = true)]
async fn thousands_of_train_jobs_follow_the_plugins_at_a_bounded_rate() {
    const COUNT: usize = 10_000;
    let (work, _writer) = work(&Script::new([]).client());
    for number in 0..COUNT {
        put(&work, &number.to_string(), &json!({}), None);
    }
    // The namespaces of half of them have the same plugins as before, as in a step of a rollout.
    let is_new = |key: &NamespacedName| key.name.ends_with(['0', '2', '4', '6', '8']);
    for (key, _) in work.stores.jobs.objects() {
        if !is_new(&key) {
            work.reconciler.note_last(&key);
        }
    }
    let began = tokio::time::Instant::now();
    work.queue_unstarted();
    let mut by_second = [0; 101];
    for _ in 0..COUNT {
        let running = work.queue.next().await.unwrap();
        let second = usize::try_from(began.elapsed().as_secs()).unwrap();
        by_second[second] += usize::from(is_new(running.key()));
        running.succeed();
    }
    assert!(by_second.iter().all(|count| *count <= 51), "{by_second:?}");
    assert_eq!(work.queue.count(), [0; 3]);
}
