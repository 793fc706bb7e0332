//! With a cache, a plugin that was pulled once is there when its registry is down, and nothing in the cache is used without its digest.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::{fs, sync::Arc};

use trainyard_oci::{Cache, Origin, Progress, Pulled};

use crate::common::{HOST, Net, WASM, at, client, push};

const TAG: &str = "r.example.com/team/x:1.0";

async fn pull(net: &Arc<Net>, source: &str, cache: &Cache) -> Result<Pulled, String> {
    let pulled = client(net)
        .pull(&at(source), Some(cache), &Progress::NONE)
        .await;
    pulled.map_err(|error| error.to_string())
}

fn from_registry() -> Origin {
    Origin::Source(HOST.to_owned())
}

#[tokio::test]
async fn digest_comes_from_the_cache_without_a_request() {
    let (net, folder) = (Net::of(&[HOST]), tempfile::tempdir().unwrap());
    let cache = Cache::new(folder.path(), 1 << 20);
    let pinned = format!("r.example.com/team/x@{}", push(&net, TAG, "one").await);
    assert_eq!(
        pull(&net, &pinned, &cache).await.unwrap().origin,
        from_registry()
    );
    net.forget();
    net.take_down(HOST);
    let pulled = pull(&net, &pinned, &cache).await.unwrap();
    assert_eq!(pulled.origin, Origin::Cache { outage: None });
    assert_eq!(pulled.file, [WASM, b"one"].concat());
    assert!(net.seen().is_empty());
}

#[tokio::test]
async fn tag_is_what_it_was_while_the_registry_is_down() {
    let (net, folder) = (Net::of(&[HOST]), tempfile::tempdir().unwrap());
    let cache = Cache::new(folder.path(), 1 << 20);
    push(&net, TAG, "one").await;
    pull(&net, TAG, &cache).await.unwrap();
    push(&net, TAG, "two").await;
    let two = pull(&net, TAG, &cache).await.unwrap();
    assert_eq!(
        (two.file, two.origin),
        ([WASM, b"two"].concat(), from_registry())
    );
    net.take_down(HOST);
    let kept = pull(&net, TAG, &cache).await.unwrap();
    assert_eq!(kept.file, [WASM, b"two"].concat());
    let Origin::Cache {
        outage: Some(outage),
    } = kept.origin
    else {
        panic!("{:?}", kept.origin);
    };
    assert!(outage.contains("cannot reach r.example.com"), "{outage}");
    let error = pull(&net, "r.example.com/team/x:2.0", &cache)
        .await
        .unwrap_err();
    assert!(error.contains("cannot reach r.example.com"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn registry_that_does_not_end_is_down() {
    let (net, folder) = (Net::of(&[HOST]), tempfile::tempdir().unwrap());
    let cache = Cache::new(folder.path(), 1 << 20);
    push(&net, TAG, "one").await;
    pull(&net, TAG, &cache).await.unwrap();
    net.answer(|_| Some(crate::common::Reply::new(0, "")));
    let kept = pull(&net, TAG, &cache).await.unwrap();
    assert_eq!(kept.file, [WASM, b"one"].concat());
}

#[tokio::test]
async fn registry_that_answers_decides() {
    let (net, folder) = (Net::of(&[HOST]), tempfile::tempdir().unwrap());
    let cache = Cache::new(folder.path(), 1 << 20);
    push(&net, TAG, "one").await;
    pull(&net, TAG, &cache).await.unwrap();
    net.answer(|_| Some(crate::common::Reply::new(404, "")));
    let error = pull(&net, TAG, &cache).await.unwrap_err();
    assert!(error.contains("has no manifest"), "{error}");
}

#[tokio::test]
async fn file_with_a_known_manifest_is_not_pulled_again() {
    let (net, folder) = (Net::of(&[HOST]), tempfile::tempdir().unwrap());
    let cache = Cache::new(folder.path(), 1 << 20);
    push(&net, TAG, "one").await;
    pull(&net, TAG, &cache).await.unwrap();
    net.forget();
    pull(&net, TAG, &cache).await.unwrap();
    let urls: Vec<_> = net.seen().into_iter().map(|seen| seen.url).collect();
    assert_eq!(urls, ["https://r.example.com/v2/team/x/manifests/1.0"]);
}

#[tokio::test]
async fn changed_content_is_pulled_again_or_refused() {
    let (net, folder) = (Net::of(&[HOST]), tempfile::tempdir().unwrap());
    let cache = Cache::new(folder.path(), 1 << 20);
    let pinned = format!("r.example.com/team/x@{}", push(&net, TAG, "one").await);
    let expected = pull(&net, &pinned, &cache).await.unwrap().file;
    let damage = || {
        for file in fs::read_dir(folder.path().join("blobs/sha256")).unwrap() {
            fs::write(file.unwrap().path(), "\0asm evil").unwrap();
        }
    };
    damage();
    let again = pull(&net, &pinned, &cache).await.unwrap();
    assert_eq!((again.file, again.origin), (expected, from_registry()));
    damage();
    net.take_down(HOST);
    let error = pull(&net, &pinned, &cache).await.unwrap_err();
    assert!(error.contains("cannot reach r.example.com"), "{error}");
}

#[tokio::test]
async fn cache_has_a_size_and_keeps_what_was_pulled_last() {
    let (net, folder) = (Net::of(&[HOST]), tempfile::tempdir().unwrap());
    let cache = Cache::new(folder.path(), 8_000);
    let text = "x".repeat(3_000);
    let mut pinned = Vec::new();
    for number in 0..4 {
        let tag = format!("r.example.com/team/x:{number}");
        push(&net, &tag, &format!("{number}{text}")).await;
        pull(&net, &tag, &cache).await.unwrap();
        pinned.push(tag);
    }
    net.take_down(HOST);
    let mut kept = Vec::new();
    for tag in &pinned {
        kept.push(pull(&net, tag, &cache).await.is_ok());
    }
    assert_eq!(kept.iter().filter(|kept| **kept).count(), 2, "{kept:?}");
    assert_eq!(kept.last(), Some(&true));
    let files = fs::read_dir(folder.path().join("blobs/sha256")).unwrap();
    let bytes: u64 = files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes <= 8_000, "{bytes}");
}

#[tokio::test]
async fn cache_that_cannot_be_written_does_not_prevent_a_pull() {
    let (net, folder) = (Net::of(&[HOST]), tempfile::tempdir().unwrap());
    push(&net, TAG, "one").await;
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let pulled = pull(&net, TAG, &Cache::new(&file, 1 << 20)).await.unwrap();
    assert_eq!(pulled.origin, from_registry());
}

#[tokio::test]
async fn folder_of_a_copy_is_a_cache() {
    let (net, folder) = (Net::of(&[HOST]), tempfile::tempdir().unwrap());
    push(&net, TAG, "one").await;
    let to = at(&format!("oci:{}", folder.path().display()));
    client(&net)
        .copy(&at(TAG), &to, &Progress::NONE)
        .await
        .unwrap();
    net.take_down(HOST);
    let cache = Cache::new(folder.path(), 1 << 20);
    let pulled = pull(&net, TAG, &cache).await.unwrap();
    assert_eq!(pulled.file, [WASM, b"one"].concat());
}
