//! A hanging call times out, a watch does not, no call is retried implicitly, and every call is counted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes},
    response::{IntoResponse as _, Response},
};
use futures_util::{AsyncBufReadExt as _, StreamExt as _};
use http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, WatchParams},
    core::Request,
};
use trainyard_controller::client::{
    Access, ClientOptions, NoAnswer, NotSent, Rate, client, watching,
};

use crate::stub::{metrics, serve};

fn options(answer_ms: u64) -> ClientOptions {
    ClientOptions {
        answer: Duration::from_millis(answer_ms),
        list: Duration::from_millis(answer_ms),
        ..ClientOptions::default()
    }
}

fn maps() -> Request {
    Request::new("/api/v1/namespaces/a/configmaps")
}

fn no_answer(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Service(source) if source.downcast_ref::<NoAnswer>().is_some())
}

#[tokio::test]
async fn silent_server_times_out() {
    let config = serve(|_| Box::pin(std::future::pending())).await;
    let metrics = metrics();
    let client = client(config, options(200), Arc::clone(&metrics)).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "a");
    let start = Instant::now();
    let error = maps.get("b").await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(no_answer(&error), "{error:?}");
    let source = std::error::Error::source(&error).map(ToString::to_string);
    let text = format!("{error}: {source:?}");
    assert!(
        text.contains("get /api/v1/namespaces/a/configmaps/b"),
        "{text}"
    );
    let metrics = metrics.text().unwrap();
    let line = r#"trainyard_api_calls_total{verb="get",kind="configmaps",code="<error>"} 1"#;
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test]
async fn endless_body_times_out() {
    let config = serve(|_| {
        Box::pin(async {
            let start = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from("{"))]);
            Response::new(Body::from_stream(
                start.chain(futures_util::stream::pending()),
            ))
        })
    })
    .await;
    let client = client(config, options(200), metrics()).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "a");
    let all = ListParams::default();
    let got = tokio::time::timeout(Duration::from_secs(5), maps.list(&all));
    got.await.expect("the call ends").unwrap_err();
}

/// A name may hold what an address means otherwise, and the client library does not escape it.
#[tokio::test]
async fn only_explicit_watches_are_watches_whatever_the_url() {
    let config = serve(|_| {
        Box::pin(async {
            let line = Bytes::from(vec![b' '; 1 << 20]);
            let lines = futures_util::stream::repeat(line).map(Ok::<_, std::io::Error>);
            Response::new(Body::from_stream(lines))
        })
    })
    .await;
    let metrics = metrics();
    // Whichever of the two bounds comes first, there is one.
    let client = client(config, options(5_000), Arc::clone(&metrics)).unwrap();
    for request in [
        maps().watch(&WatchParams::default(), "0"),
        maps().get("b?watch=true&x=", &GetParams::default()),
    ] {
        let got = client.request_text(request.unwrap());
        let got = tokio::time::timeout(Duration::from_secs(60), got).await;
        got.expect("the call ends").unwrap_err();
    }
    let metrics = metrics.text().unwrap();
    assert!(!metrics.contains(r#"verb="watch""#), "{metrics}");
}

#[tokio::test]
async fn watches_outlive_the_call_deadline() {
    let config = serve(|_| {
        Box::pin(async {
            let events = futures_util::stream::iter(["1", "2"]).then(|version| async move {
                tokio::time::sleep(Duration::from_millis(400)).await;
                let object = serde_json::json!({
                    "type": "ADDED",
                    "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": version}}
                });
                Ok::<_, std::io::Error>(Bytes::from(format!("{object}\n")))
            });
            Response::new(Body::from_stream(events))
        })
    })
    .await;
    let metrics = metrics();
    let client = client(config, options(200), Arc::clone(&metrics)).unwrap();
    let watch = maps().watch(&WatchParams::default(), "0").unwrap();
    let watch = client.request_stream(watching(watch)).await.unwrap();
    let seen: Vec<_> = watch.lines().collect().await;
    assert_eq!(
        seen.iter().filter(|event| event.is_ok()).count(),
        2,
        "{seen:?}"
    );
    let metrics = metrics.text().unwrap();
    let line = r#"trainyard_api_calls_total{verb="watch",kind="configmaps",code="200"} 1"#;
    assert!(metrics.contains(line), "{metrics}");
}

/// A server that answers each call with this code, and the number of calls.
async fn refusing(code: StatusCode) -> (kube::Config, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let config = serve(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { code.into_response() })
    });
    (config.await, calls)
}

#[tokio::test]
async fn refused_call_is_not_retried() {
    for code in [429_u16, 500, 503, 504] {
        let (config, calls) = refusing(StatusCode::from_u16(code).unwrap()).await;
        let client = client(config, options(5_000), metrics()).unwrap();
        let maps: Api<ConfigMap> = Api::namespaced(client, "a");
        let map = ConfigMap {
            metadata: kube::api::ObjectMeta {
                name: Some("b".to_owned()),
                ..Default::default()
            },
            ..Default::default()
        };
        let error = maps.create(&PostParams::default(), &map).await;
        assert!(error.is_err());
        assert_eq!(calls.load(Ordering::SeqCst), 1, "{code}");
    }
}

#[tokio::test]
async fn rate_limit_delays_calls() {
    let (config, calls) = refusing(StatusCode::NOT_FOUND).await;
    let options = ClientOptions {
        rate: Rate::new(0.001, 3),
        ..options(5_000)
    };
    let client = client(config, options, metrics()).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "a");
    for _ in 0..3 {
        maps.get("b").await.unwrap_err();
    }
    let fourth = tokio::time::timeout(Duration::from_millis(300), maps.get("b")).await;
    assert!(fourth.is_err(), "{fourth:?}");
    assert_eq!(calls.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn managed_fields_are_removed_before_decoding() {
    let config = serve(|_| {
        Box::pin(async {
            let map = serde_json::json!({
                "kind": "ConfigMap",
                "metadata": {"name": "b", "managedFields": [{"manager": "m", "time": "9999-12-31T23:59:59Z"}]},
                "data": {"managedFields": "stay"},
            });
            crate::stub::answer(200, &map)
        })
    })
    .await;
    let client = client(config, options(5_000), metrics()).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "a");
    let map = maps.get("b").await.unwrap();
    assert_eq!(map.metadata.managed_fields, None);
    assert_eq!(map.data.unwrap()["managedFields"], "stay");
}

#[tokio::test]
async fn lists_have_their_own_limit() {
    let config = serve(|_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(400)).await;
            let list = serde_json::json!({"kind": "ConfigMapList", "metadata": {}, "items": []});
            crate::stub::answer(200, &list)
        })
    })
    .await;
    let limits = |answer_ms, list_ms| ClientOptions {
        list: Duration::from_millis(list_ms),
        ..options(answer_ms)
    };
    for (limits, goes_well) in [(limits(100, 20_000), true), (limits(20_000, 100), false)] {
        let client = client(config.clone(), limits, metrics()).unwrap();
        let maps: Api<ConfigMap> = Api::namespaced(client, "a");
        let listed = maps.list(&ListParams::default()).await;
        assert_eq!(listed.is_ok(), goes_well, "{listed:?}");
    }
}

/// A client that only reads sends no other call, whatever asks it to.
#[tokio::test]
async fn client_that_only_reads_sends_no_writes() {
    let (config, calls) = refusing(StatusCode::NOT_FOUND).await;
    let options = ClientOptions {
        access: Access::Read,
        ..options(5_000)
    };
    let client = client(config, options, metrics()).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "a");
    let map = ConfigMap::default();
    let apply = PatchParams::apply("trainyard");
    let merge = PatchParams::default();
    let post = PostParams::default();
    let all = ListParams::default();
    let delete = DeleteParams::default();
    let named = ConfigMap {
        metadata: kube::api::ObjectMeta {
            name: Some("b".to_owned()),
            ..Default::default()
        },
        ..Default::default()
    };
    let refused = [
        maps.create(&post, &named).await.unwrap_err(),
        maps.replace("b", &post, &named).await.unwrap_err(),
        maps.patch("b", &apply, &Patch::Apply(&map))
            .await
            .unwrap_err(),
        maps.patch("b", &merge, &Patch::Merge(&map))
            .await
            .unwrap_err(),
        maps.delete("b", &delete).await.unwrap_err(),
        maps.delete_collection(&delete, &all).await.unwrap_err(),
    ];
    let verbs = refused.map(|error| match error {
        kube::Error::Service(source) => source.downcast_ref::<NotSent>().unwrap().verb,
        other => panic!("{other:?}"),
    });
    let expected = [
        "create",
        "update",
        "apply",
        "patch",
        "delete",
        "deletecollection",
    ];
    assert_eq!(verbs, expected);
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    maps.get("b").await.unwrap_err();
    maps.list(&all).await.unwrap_err();
    let watch = self::maps().watch(&WatchParams::default(), "0").unwrap();
    assert!(client.request_stream(watching(watch)).await.is_err());
    assert_eq!(calls.load(Ordering::SeqCst), 3);
}
