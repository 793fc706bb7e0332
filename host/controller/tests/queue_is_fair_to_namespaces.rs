//! The queue is fair to namespaces, never runs a key twice at the same time, loses none, and backs off after failures.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::{Instant, timeout};
use trainyard_controller::queue::{Backoff, Load, NamespacedName, Queue};

const SECOND: Duration = Duration::from_secs(1);

fn queue() -> Queue {
    Queue::new(Backoff::default())
}

fn key(name: &str) -> NamespacedName {
    NamespacedName::new("team", name)
}

async fn is_idle(queue: &Queue, during: Duration) -> bool {
    timeout(during, queue.next()).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn five_thousand_keys_of_one_namespace_do_not_delay_another() {
    let queue = queue();
    for n in 0..5_000 {
        queue.add(NamespacedName::new("busy", format!("job-{n}")));
    }
    queue.next().await.unwrap().succeed();
    queue.add(NamespacedName::new("quiet", "one"));
    queue.add(NamespacedName::new("quiet", "two"));
    queue.add(NamespacedName::new("other", "three"));
    let mut order = Vec::new();
    for _ in 0..8 {
        let running = queue.next().await.unwrap();
        order.push(running.key().to_string());
        running.succeed();
    }
    let at = |name: &str| order.iter().position(|key| key == name).unwrap();
    assert!(at("quiet/one") <= 2, "{order:?}");
    assert!(at("other/three") <= 3, "{order:?}");
    assert!(at("quiet/two") <= 5, "{order:?}");
    assert_eq!(queue.load().waiting, 5_003 - 1 - 8);
}

#[tokio::test(start_paused = true)]
async fn queue_is_idle_without_waiting_or_running_keys() {
    let queue = queue();
    let load = |waiting, running| assert_eq!(queue.load(), Load { waiting, running });
    load(0, 0);
    queue.add(key("a"));
    queue.add(key("b"));
    load(2, 0);
    let running = queue.next().await.unwrap();
    load(1, 1);
    // Added while it runs, it waits for its own end.
    queue.add(running.key().clone());
    load(1, 1);
    running.succeed();
    load(2, 0);
    let (one, other) = (queue.next().await.unwrap(), queue.next().await.unwrap());
    load(0, 2);
    // Canceled, it has failed, and is delayed.
    drop(one);
    load(0, 1);
    other.succeed_and_add_after(SECOND);
    load(0, 0);
    queue.next().await.unwrap().succeed();
    load(0, 0);
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_namespace_keep_their_order() {
    let queue = queue();
    for name in ["c", "a", "b"] {
        queue.add(key(name));
    }
    for name in ["c", "a", "b"] {
        assert_eq!(queue.next().await.unwrap().key(), &key(name));
    }
}

#[tokio::test(start_paused = true)]
async fn key_added_twice_runs_once() {
    let queue = queue();
    queue.add(key("a"));
    queue.add(key("a"));
    queue.add_after(key("a"), SECOND);
    assert_eq!(queue.load().waiting, 1);
    queue.next().await.unwrap().succeed();
    assert!(is_idle(&queue, SECOND * 10).await);
}

#[tokio::test(start_paused = true)]
async fn keys_added_while_they_run_run_again_afterwards() {
    let queue = queue();
    queue.add(key("a"));
    let running = queue.next().await.unwrap();
    queue.add(key("a"));
    queue.add(key("a"));
    assert_eq!(queue.load().waiting, 0);
    assert!(is_idle(&queue, SECOND).await);
    running.succeed();
    let again = timeout(SECOND, queue.next()).await.unwrap();
    again.unwrap().succeed();
    assert!(is_idle(&queue, SECOND).await);
}

#[tokio::test(start_paused = true)]
async fn earliest_delay_wins() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after(key("a"), SECOND * 10);
    queue.add_after(key("a"), SECOND * 5);
    queue.add_after(key("a"), SECOND * 20);
    let running = queue.next().await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 5);
    running.succeed();
    assert!(is_idle(&queue, SECOND * 100).await);

    queue.add_after(key("a"), SECOND * 10);
    queue.add(key("a"));
    let start = Instant::now();
    queue
        .next()
        .await
        .unwrap()
        .succeed_and_add_after(SECOND * 3);
    assert_eq!(start.elapsed().as_secs(), 0);
    queue.next().await.unwrap().succeed();
    assert_eq!(start.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn earlier_key_wakes_a_waiting_worker() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after(key("late"), SECOND * 60);
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await.unwrap().key().clone() }
    });
    tokio::time::sleep(SECOND).await;
    queue.add_after(key("early"), SECOND);
    assert_eq!(worker.await.unwrap(), key("early"));
    assert_eq!(start.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_with_jitter_and_success_resets_the_backoff() {
    let queue = queue();
    queue.add(key("a"));
    let mut last = None;
    for expected in [1, 2, 4, 8, 16, 32, 64, 128, 150, 150, 1] {
        let running = queue.next().await.unwrap();
        if let Some((failed, delay)) = last {
            let waited = Instant::now().duration_since(failed);
            assert!(waited >= delay && waited < delay + SECOND, "{waited:?}");
        }
        if expected == 1 && last.is_some() {
            running.succeed();
            queue.add(key("a"));
            let delay = queue.next().await.unwrap().fail();
            assert!(delay >= SECOND && delay <= SECOND * 2, "{delay:?}");
            break;
        }
        let delay = running.fail();
        let expected = SECOND * expected;
        assert!(
            delay >= expected && delay <= expected * 2,
            "{delay:?} for {expected:?}"
        );
        last = Some((Instant::now(), delay));
    }
}

#[tokio::test(start_paused = true)]
async fn thousand_failures_are_not_retried_together() {
    let queue = queue();
    let mut delays = HashSet::new();
    for n in 0..1_000 {
        queue.add(key(&n.to_string()));
        delays.insert(queue.next().await.unwrap().fail().as_millis());
    }
    assert!(delays.len() > 200, "{} different delays", delays.len());
}

#[tokio::test(start_paused = true)]
async fn change_runs_a_failed_key_at_once_and_keeps_its_backoff() {
    let queue = queue();
    queue.add(key("a"));
    let first = queue.next().await.unwrap().fail();
    let start = Instant::now();
    queue.add(key("a"));
    let running = queue.next().await.unwrap();
    assert!(start.elapsed() < first);
    let second = running.fail();
    assert!(second >= SECOND * 2, "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn panicking_reconcile_counts_as_failed() {
    let queue = queue();
    queue.add(key("a"));
    let running = queue.next().await.unwrap();
    let worker = tokio::spawn(async move {
        let _running = running;
        panic!("a reconcile that panics");
    });
    worker.await.unwrap_err();
    let start = Instant::now();
    queue.next().await.unwrap().succeed();
    assert!(start.elapsed() >= SECOND);
}

#[tokio::test(start_paused = true)]
async fn cancelled_worker_loses_no_key() {
    let queue = queue();
    for _ in 0..3 {
        let abandoned = tokio::spawn({
            let queue = queue.clone();
            async move { queue.next().await.is_some() }
        });
        tokio::time::sleep(SECOND).await;
        abandoned.abort();
    }
    queue.add(key("a"));
    let running = timeout(SECOND, queue.next()).await.unwrap().unwrap();
    assert_eq!(running.key(), &key("a"));
}

#[tokio::test(start_paused = true)]
async fn backoff_stays_short_in_an_outage_and_grows_for_individual_failures() {
    let queue = queue();
    queue.add(key("a"));
    let mut last = Duration::ZERO;
    for _ in 0..20 {
        last = queue.next().await.unwrap().fail_in_outage();
        assert!(last <= SECOND * 30, "{last:?}");
    }
    assert!(last >= SECOND * 15, "{last:?}");
    let own = queue.next().await.unwrap().fail();
    assert!(own >= SECOND * 150 && own <= SECOND * 300, "{own:?}");
    let running = queue.next().await.unwrap();
    assert!(running.fail_in_outage() <= SECOND * 30);
    queue.next().await.unwrap().succeed();
    queue.add(key("a"));
    assert!(queue.next().await.unwrap().fail_in_outage() <= SECOND * 2);
}

#[tokio::test(start_paused = true)]
async fn closed_queue_ends_all_workers_and_accepts_no_keys() {
    let queue = queue();
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.next().await.is_none() })
        })
        .collect();
    tokio::time::sleep(SECOND).await;
    queue.close();
    for worker in workers {
        assert!(timeout(SECOND, worker).await.unwrap().unwrap());
    }
    queue.add(key("a"));
    assert!(queue.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_workers_never_share_a_key_and_see_every_add() {
    let queue = Queue::new(Backoff {
        first: Duration::from_millis(1),
        most: Duration::from_millis(2),
        most_in_outage: Duration::from_millis(2),
    });
    let running = Arc::new(Mutex::new(HashSet::new()));
    let wanted = Arc::new(Mutex::new(std::collections::HashMap::new()));
    let seen = Arc::new(Mutex::new(std::collections::HashMap::new()));
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let (queue, running) = (queue.clone(), Arc::clone(&running));
            let (wanted, seen) = (Arc::clone(&wanted), Arc::clone(&seen));
            tokio::spawn(async move {
                let mut runs = 0_usize;
                while let Some(turn) = queue.next().await {
                    let key = turn.key().clone();
                    assert!(running.lock().unwrap().insert(key.clone()), "{key} twice");
                    let version: usize = wanted.lock().unwrap()[&key];
                    tokio::task::yield_now().await;
                    runs += 1;
                    assert!(running.lock().unwrap().remove(&key));
                    if (runs + worker).is_multiple_of(7) {
                        turn.fail();
                    } else {
                        seen.lock().unwrap().insert(key, version);
                        turn.succeed();
                    }
                }
            })
        })
        .collect();
    for version in 0..200 {
        for n in 0..20 {
            let key = NamespacedName::new(format!("ns-{}", n % 3), n.to_string());
            wanted.lock().unwrap().insert(key.clone(), version);
            queue.add(key);
        }
        tokio::task::yield_now().await;
    }
    timeout(Duration::from_secs(30), async {
        while *seen.lock().unwrap() != *wanted.lock().unwrap() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await
    .expect("every key is seen at its last version");
    queue.close();
    for worker in workers {
        worker.await.unwrap();
    }
}
