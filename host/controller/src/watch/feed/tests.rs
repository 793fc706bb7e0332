#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::{
    watch::script::{Answer, Script, page},
    wire::Identity,
};

const PATH: &str = "/apis/a/v1/bs";

fn object(name: &str, version: u64) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}}}}"#)
}

fn line(kind: &str, name: &str, version: u64) -> String {
    format!(
        "{{\"type\":\"{kind}\",\"object\":{}}}\n",
        object(name, version)
    )
}

fn name(object: &str) -> String {
    let name = Identity::of(object).and_then(|identity| identity.name);
    name.unwrap_or_default()
}

fn feed(script: &Script) -> Feed<String> {
    Feed::new(script.client(), PATH, ListParams::default(), name)
}

/// Returns the first events of a feed, as text, and when they came.
async fn timed_news(feed: &Feed<String>, count: usize) -> Vec<(String, Instant)> {
    let mut words = Vec::new();
    feed.run(|event| {
        let word = match event {
            FeedEvent::ListBegins => "list".to_owned(),
            FeedEvent::Listed(names) => format!("page {}", names.join(" ")),
            FeedEvent::ListEnds(_) => "end".to_owned(),
            FeedEvent::Watching => "watching".to_owned(),
            FeedEvent::Changed(name) => format!("changed {name}"),
            FeedEvent::Deleted(name) => format!("deleted {name}"),
            FeedEvent::Bookmark => "bookmark".to_owned(),
            FeedEvent::Failed(error) => format!("error: {error}"),
        };
        words.push((word, Instant::now()));
        match words.len() < count {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })
    .await;
    words
}

/// Returns the first events of a feed, as text.
async fn news(feed: &Feed<String>, count: usize) -> Vec<String> {
    let words = timed_news(feed, count).await.into_iter();
    words.map(|(word, _)| word).collect()
}

#[tokio::test(start_paused = true)]
async fn whole_lists_have_a_maximum_size() {
    let pages = || {
        let first = page(&[&object("a", 1)], 9, "more");
        [first, page(&[&object("b", 2)], 9, "")]
    };
    let script = Script::new(pages().map(Answer::ok));
    let half = |_: &String| LARGEST_LIST / 2;
    let feed = |script: &Script| {
        let read = |text: &str| Some(name(text));
        Feed::new(script.client(), PATH, ListParams::default(), read)
    };
    assert_eq!(feed(&script).all(half).await.unwrap(), ["a", "b"]);
    let script = Script::new(pages().map(Answer::ok));
    let all = feed(&script).all(|name| half(name) + 1).await;
    assert!(matches!(all, Err(FeedError::TooLarge)), "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn lists_that_cannot_be_decoded_are_requested_again() {
    let list = || Answer::ok(page(&[&object("a", 1)], 9, ""));
    let script = Script::new([Answer::ok("{".to_owned()), list(), list()]);
    let reads = AtomicUsize::new(0);
    let read = move |text: &str| {
        assert!(reads.fetch_add(1, Ordering::SeqCst) > 0, "a bug");
        name(text)
    };
    let feed = Feed::new(script.client(), PATH, ListParams::default(), read);
    let news = news(&feed, 6).await;
    assert_eq!(
        (&news[0..3], &news[4..]),
        (
            &[
                "list",
                "error: the API server's answer is malformed at byte 1",
                "list"
            ]
            .map(str::to_owned)[..],
            &["list", "page a"].map(str::to_owned)[..],
        )
    );
    let wanted = "error: decoding the API server's answer failed: ";
    assert!(
        news[3].starts_with(wanted) && news[3].contains("a bug"),
        "{news:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_comes_in_pages_and_changes_follow_from_its_version() {
    let script = Script::new([
        Answer::ok(page(&[&object("a", 1), &object("b", 2)], 9, "more")),
        Answer::ok(page(&[&object("c", 3)], 9, "")),
        Answer::watch(
            line("ADDED", "d", 10)
                + &line("MODIFIED", "a", 11)
                + &line("BOOKMARK", "", 15)
                + &line("DELETED", "b", 17),
        ),
        Answer::watch(line("ADDED", "e", 20)),
    ]);
    let feed = feed(&script);
    assert_eq!(
        news(&feed, 11).await,
        [
            "list",
            "page a b",
            "page c",
            "end",
            "watching",
            "changed d",
            "changed a",
            "bookmark",
            "deleted b",
            "watching",
            "changed e"
        ]
    );
    let [first, second, watch, again] = script.requests().try_into().unwrap();
    assert_eq!(first, format!("{PATH}?&limit=50"));
    // Objects are small: as many as may be.
    assert_eq!(second, format!("{PATH}?&limit=500&continue=more"));
    assert!(
        watch.contains("watch=true") && watch.contains("allowWatchBookmarks=true"),
        "{watch}"
    );
    assert!(
        watch.contains("timeoutSeconds=60") && watch.ends_with("resourceVersion=9"),
        "{watch}"
    );
    assert!(again.ends_with("resourceVersion=17"), "{again}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_page_is_requested_again_with_fewer_objects() {
    let script = Script::new([
        Answer::ok(page(&[&object("a", 1)], 9, "more")),
        Answer::status(503),
        Answer::status(429),
        Answer::ok(page(&[&object("b", 2)], 9, "")),
    ]);
    let feed = feed(&script);
    assert_eq!(news(&feed, 4).await, ["list", "page a", "page b", "end"]);
    let limits = script.requests().split_off(1);
    assert_eq!(
        limits,
        [500, 100, 20].map(|limit| format!("{PATH}?&limit={limit}&continue=more"))
    );
}

#[tokio::test(start_paused = true)]
async fn pages_of_large_objects_are_small() {
    let large = format!(
        r#"{{"metadata":{{"name":"a","resourceVersion":"1"}},"spec":"{}"}}"#,
        "x".repeat(1 << 20)
    );
    let script = Script::new([
        Answer::ok(page(&[&large, &large], 9, "more")),
        Answer::ok(page(&[], 9, "")),
    ]);
    let feed = feed(&script);
    news(&feed, 3).await;
    assert_eq!(
        script.requests()[1],
        format!("{PATH}?&limit=7&continue=more")
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_that_expires_or_stays_broken_begins_anew() {
    let script = Script::new([
        Answer::ok(page(&[&object("a", 1)], 9, "more")),
        Answer::status(410),
        Answer::status(500),
        Answer::status(500),
        Answer::status(500),
        Answer::status(500),
        Answer::ok(page(&[], 12, "")),
    ]);
    let feed = feed(&script);
    let news = news(&feed, 8).await;
    assert!(
        news[2].starts_with("error: ") && news[4].starts_with("error: "),
        "{news:?}"
    );
    assert_eq!(
        [&*news[3], &*news[5], &*news[6], &*news[7]],
        ["list", "list", "page ", "end"]
    );
}

#[tokio::test(start_paused = true)]
async fn expired_watches_list_again_and_throttled_ones_are_checked() {
    let gone = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"message\":\"too old\"}}\n";
    let whole = line("ADDED", "a", 10);
    let broken_off = whole.clone() + line("ADDED", "b", 11).split_at(20).0;
    let script = Script::new([
        Answer::ok(page(&[], 9, "")),
        Answer::ok(broken_off),
        Answer::ok(page(&[], 30, "")),
        Answer::status(429),
        Answer::status(429),
        Answer::ok(page(&[&object("a", 10)], 30, "more")),
        Answer::watch(line("ADDED", "c", 31)),
        Answer::ok(gone.to_owned()),
        Answer::ok(page(&[], 40, "")),
        Answer::status(503),
        Answer::ok(page(&[], 50, "")),
    ]);
    let feed = feed(&script);
    let news = news(&feed, 21).await;
    let words: Vec<_> = news
        .iter()
        .map(|word| word.split(':').next().unwrap())
        .collect();
    let expected = [
        ["list", "page ", "end"].as_slice(),
        &["watching", "changed a", "error"],
        &["list", "page ", "end"],
        &[
            "error",
            "error",
            "watching",
            "changed c",
            "watching",
            "error",
        ],
        &["list", "page ", "end"],
        &["error"],
        &["list", "page "],
    ];
    assert_eq!(words, expected.concat());
    let versions: Vec<_> = script
        .requests()
        .iter()
        .filter_map(|path| path.split_once("resourceVersion="))
        .map(|(_, at)| at.to_owned())
        .collect();
    assert_eq!(versions, ["9", "30", "30", "31", "40"]);
}

/// An API server that stops ends its watches early and then refuses calls. If it has the state of a backup afterwards, a watch from a
/// version that it does not have yet would be silent.
#[tokio::test(start_paused = true)]
async fn a_watch_that_ended_early_resumes_only_if_versions_are_as_high() {
    for (between, version, resumes) in [
        (Vec::new(), 10, true),
        (Vec::new(), 9, false),
        (vec![Answer::status(429)], 9, false),
    ] {
        let mut answers = vec![
            Answer::ok(page(&[&object("a", 1)], 9, "")),
            Answer::ok(line("MODIFIED", "a", 10)),
        ];
        let refused = between.len();
        answers.extend(between);
        answers.extend([Answer::ok(page(&[&object("a", 1)], version, "more"))]);
        answers.extend(match resumes {
            true => [Answer::watch(line("MODIFIED", "a", 11))].into_iter(),
            false => [Answer::ok(page(&[&object("a", 1)], version, ""))].into_iter(),
        });
        let script = Script::new(answers);
        let feed = feed(&script);
        let news = news(&feed, 7 + refused).await.split_off(5 + refused);
        let expected = match resumes {
            true => ["watching", "changed a"],
            false => ["list", "page a"],
        };
        assert_eq!(news, expected, "{version}");
        let checked = &script.requests()[2 + refused];
        assert_eq!(*checked, format!("{PATH}?&limit=1"));
    }
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_are_opened_ever_more_slowly() {
    let mut answers = vec![Answer::ok(page(&[], 9, ""))];
    let answer = || [Answer::ok(String::new()), Answer::ok(page(&[], 9, "more"))];
    answers.extend(std::iter::repeat_with(answer).take(8).flatten());
    let script = Script::new(answers);
    let feed = feed(&script);
    let (words, times): (Vec<_>, Vec<_>) = timed_news(&feed, 19).await.into_iter().unzip();
    assert_eq!(
        words[3..],
        [
            "watching",
            "error: the API server ended the watch as soon as it began"
        ]
        .repeat(8)
    );
    // 1 + 2 + 4 + 8 + 3 times 15, and jitter.
    let elapsed = times[18] - times[2];
    assert!(elapsed >= Duration::from_secs(60), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_hangs_lists_again() {
    let script = Script::new([
        Answer::ok(page(&[], 9, "")),
        Answer::hangs(line("ADDED", "a", 10)),
        Answer::ok(page(&[], 10, "")),
        Answer::watch(line("ADDED", "b", 11)),
    ]);
    let feed = feed(&script);
    let news = news(&feed, 11).await;
    assert_eq!(
        news[4..],
        [
            "changed a",
            "error: the API server did not end the watch in time",
            "list",
            "page ",
            "end",
            "watching",
            "changed b"
        ]
    );
}
