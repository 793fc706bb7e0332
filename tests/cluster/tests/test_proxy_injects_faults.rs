//! A test can make any call fail as networks, busy API servers and killed clients do.

use std::{
    pin::Pin,
    process::Command,
    sync::{Arc, mpsc},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use futures_util::{Stream, StreamExt as _};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams},
    client::Body,
};
use serde_json::Value;
use trainyard_cluster::{Act, ControlPlane, Process, Proxy, Test, client_of, eventually};

/// How long a test waits to see that nothing happens. A busy machine can make such a test pass, but never fail.
const A_WHILE: Duration = Duration::from_millis(300);

/// A proxy, and the ConfigMaps of a namespace on both sides of it.
struct ProxiedNamespace {
    proxy: Proxy,
    namespace: String,
    client: Client,
    behind: Api<ConfigMap>,
}

type Events = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Send>>;

impl ProxiedNamespace {
    async fn new(plane: &ControlPlane) -> Result<Self> {
        let proxy = Proxy::start(plane).await?;
        let namespace = plane.new_namespace().await?;
        let client = client_of(&proxy.kubeconfig(plane.kubeconfig())?).await?;
        let behind = Api::namespaced(plane.client().clone(), &namespace);
        Ok(Self {
            proxy,
            namespace,
            client,
            behind,
        })
    }

    /// Returns the API of ConfigMaps through the proxy.
    fn before(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Returns the names of all ConfigMaps.
    async fn names(&self) -> Result<Vec<String>> {
        let maps = self.behind.list(&ListParams::default()).await?;
        Ok(maps.iter().map(ConfigMap::name_any).collect())
    }

    async fn watch(&self) -> Result<Events> {
        let events = self.before().watch(&WatchParams::default(), "0").await?;
        Ok(events.boxed())
    }
}

fn map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

async fn create(api: &Api<ConfigMap>, name: &str) -> kube::Result<ConfigMap> {
    api.create(&PostParams::default(), &map(name)).await
}

/// Returns the status code of a refusal; `None` if the API server did not answer.
fn code(answer: kube::Result<ConfigMap>) -> Result<u16> {
    match answer {
        Ok(map) => bail!("it was made: {}", map.name_any()),
        Err(kube::Error::Api(status)) => Ok(status.code),
        Err(error) => Err(error.into()),
    }
}

/// Checks that a call was not answered.
fn is_broken<T>(answer: &kube::Result<T>) -> bool {
    matches!(
        answer,
        Err(kube::Error::Service(_) | kube::Error::HyperError(_))
    )
}

async fn next_name(events: &mut Events) -> Result<String> {
    loop {
        match events.next().await.context("the watch ended")?? {
            WatchEvent::Added(map) => return Ok(map.name_any()),
            WatchEvent::Bookmark(_) => {}
            other => bail!("{other:?}"),
        }
    }
}

async fn calls_are_numbered_and_keep_their_credentials(plane: &ControlPlane) -> Result<()> {
    let proxied = ProxiedNamespace::new(plane).await?;
    create(&proxied.before(), "first").await?;
    proxied.before().get("first").await?;
    let mut stranger = kube::Config::new(proxied.proxy.url().parse()?);
    stranger.accept_invalid_certs = true;
    let stranger: Api<ConfigMap> = Api::namespaced(Client::try_from(stranger)?, &proxied.namespace);
    ensure!(code(stranger.get("first").await)? == 403);
    create(&proxied.before(), "second").await?;
    let calls = proxied.proxy.calls().await;
    let seen: Vec<(usize, Option<usize>, &Method, u16)> = calls
        .iter()
        .map(|call| {
            let answer = call.answer.map_or(0, |answer| answer.as_u16());
            (call.number, call.write, &call.method, answer)
        })
        .collect();
    let wanted = [
        (1, Some(1), &Method::POST, 201),
        (2, None, &Method::GET, 200),
        (3, None, &Method::GET, 403),
        (4, Some(2), &Method::POST, 201),
    ];
    ensure!(seen == wanted, "{calls:#?}");
    let path = format!("/api/v1/namespaces/{}/configmaps/first", proxied.namespace);
    let second = calls.get(1).map(|call| call.path.as_str());
    ensure!(second == Some(&path), "{calls:#?}");
    proxied.proxy.forget().await;
    proxied.before().get("first").await?;
    ensure!(proxied.proxy.calls().await.len() == 1);
    Ok(())
}

async fn watches_stream_and_are_counted(plane: &ControlPlane) -> Result<()> {
    let proxied = ProxiedNamespace::new(plane).await?;
    ensure!(proxied.proxy.watches() == 0);
    let mut events = proxied.watch().await?;
    ensure!(proxied.proxy.watches() == 1);
    for name in ["one", "two", "three"] {
        create(&proxied.behind, name).await?;
        while next_name(&mut events).await? != name {}
    }
    proxied.proxy.refuse().await;
    eventually("the watch has ended", async || {
        Ok((proxied.proxy.watches() == 0).then_some(()))
    })
    .await
}

async fn write_is_cut_before_it_arrives(plane: &ControlPlane) -> Result<()> {
    let proxied = ProxiedNamespace::new(plane).await?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "while :; do sleep 1; done"]);
    let victim = Arc::new(Process::start("victim", &command, plane.folder())?);
    let killed = Arc::clone(&victim);
    let kill = Act::cut_before(move || drop(killed.kill()));
    proxied.proxy.at_write(2, kill).await;
    create(&proxied.before(), "first").await?;
    ensure!(victim.ended()?.is_none());
    let cut = create(&proxied.before(), "second").await;
    ensure!(is_broken(&cut), "{cut:?}");
    ensure!(victim.ended()?.is_some());
    ensure!(!proxied.names().await?.contains(&"second".to_owned()));
    create(&proxied.before(), "second").await?;
    Ok(())
}

async fn answer_is_cut_before_it_is_forwarded(plane: &ControlPlane) -> Result<()> {
    let proxied = ProxiedNamespace::new(plane).await?;
    let (sender, receiver) = mpsc::channel();
    let tell = Act::cut_after(move || {
        let _ = sender.send(());
    });
    proxied.proxy.at_call(1, tell).await;
    let cut = create(&proxied.before(), "first").await;
    ensure!(is_broken(&cut), "{cut:?}");
    receiver.try_recv()?;
    ensure!(proxied.names().await?.contains(&"first".to_owned()));
    ensure!(code(create(&proxied.before(), "first").await)? == 409);
    Ok(())
}

async fn nothing_passes_while_a_client_is_killed(plane: &ControlPlane) -> Result<()> {
    let proxied = ProxiedNamespace::new(plane).await?;
    let mut events = proxied.watch().await?;
    let (killing, is_killing) = mpsc::channel();
    let (done, is_done) = mpsc::channel::<()>();
    let kill = Act::cut_before(move || {
        let _ = killing.send(());
        let _ = is_done.recv();
    });
    proxied.proxy.at_write(1, kill).await;
    let first = tokio::spawn({
        let api = proxied.before();
        async move { create(&api, "first").await }
    });
    eventually("it is killed", async || Ok(is_killing.try_recv().ok())).await?;
    let second = tokio::spawn({
        let api = proxied.before();
        async move { create(&api, "second").await }
    });
    tokio::time::sleep(A_WHILE).await;
    ensure!(!first.is_finished() && !second.is_finished());
    drop(done);
    let (first, second) = (first.await?, second.await?);
    ensure!(
        is_broken(&first) && is_broken(&second),
        "{first:?} {second:?}"
    );
    let names = proxied.names().await?;
    ensure!(!names.iter().any(|name| name == "first" || name == "second"));
    while let Some(event) = events.next().await {
        if event.is_err() {
            break;
        }
    }
    Ok(())
}

async fn refused_connections_are_accepted_again(plane: &ControlPlane) -> Result<()> {
    let proxied = ProxiedNamespace::new(plane).await?;
    let mut events = proxied.watch().await?;
    proxied.proxy.refuse().await;
    while let Some(Ok(_)) = events.next().await {}
    let refused = create(&proxied.before(), "first").await;
    ensure!(is_broken(&refused), "{refused:?}");
    let text = refused
        .err()
        .map(|error| format!("{:#}", anyhow::Error::from(error)));
    ensure!(
        text.as_ref().is_some_and(|text| text.contains("refused")),
        "{text:?}"
    );
    proxied.proxy.serve().await?;
    create(&proxied.before(), "first").await?;
    Ok(())
}

async fn hanging_call_continues_where_it_was(plane: &ControlPlane) -> Result<()> {
    let proxied = ProxiedNamespace::new(plane).await?;
    let mut events = proxied.watch().await?;
    create(&proxied.behind, "before").await?;
    while next_name(&mut events).await? != "before" {}
    proxied.proxy.hang();
    create(&proxied.behind, "behind").await?;
    let writing = tokio::spawn({
        let api = proxied.before();
        async move { create(&api, "written").await }
    });
    eventually("the write came", async || {
        let calls = proxied.proxy.calls().await;
        Ok(calls.iter().find_map(|call| call.write))
    })
    .await?;
    let hung = tokio::time::timeout(A_WHILE, events.next()).await;
    ensure!(hung.is_err(), "{hung:?}");
    ensure!(!writing.is_finished());
    ensure!(!proxied.names().await?.contains(&"written".to_owned()));
    proxied.proxy.serve().await?;
    writing.await??;
    ensure!(next_name(&mut events).await? == "behind");
    ensure!(next_name(&mut events).await? == "written");
    Ok(())
}

async fn one_call_hangs_and_others_pass(plane: &ControlPlane) -> Result<()> {
    let proxied = ProxiedNamespace::new(plane).await?;
    proxied.proxy.at_call(1, Act::Hang).await;
    let api = proxied.before();
    let hung = tokio::time::timeout(A_WHILE, create(&api, "first")).await;
    ensure!(hung.is_err(), "{hung:?}");
    create(&api, "second").await?;
    ensure!(!proxied.names().await?.contains(&"first".to_owned()));
    Ok(())
}

async fn next_writes_conflict(plane: &ControlPlane) -> Result<()> {
    let proxied = ProxiedNamespace::new(plane).await?;
    create(&proxied.before(), "first").await?;
    proxied.proxy.next_writes(2, Act::conflict).await;
    ensure!(code(create(&proxied.before(), "second").await)? == 409);
    proxied.before().get("first").await?;
    ensure!(code(create(&proxied.before(), "second").await)? == 409);
    create(&proxied.before(), "second").await?;
    Ok(())
}

async fn next_writes_get_too_many_requests(plane: &ControlPlane) -> Result<()> {
    let proxied = ProxiedNamespace::new(plane).await?;
    proxied
        .proxy
        .next_writes(1, || Act::too_many_requests(7))
        .await;
    let path = format!("/api/v1/namespaces/{}/configmaps", proxied.namespace);
    let body = Body::from(serde_json::to_vec(&map("first"))?);
    let request = Request::post(path).header("content-type", "application/json");
    let response = proxied.client.send(request.body(body)?).await?;
    ensure!(response.status() == StatusCode::TOO_MANY_REQUESTS);
    let seconds = response.headers().get("retry-after");
    ensure!(seconds.is_some_and(|seconds| seconds == "7"));
    let status = response.into_body().collect().await?.to_bytes();
    let status: Value = serde_json::from_slice(&status)?;
    let seconds = status.pointer("/details/retryAfterSeconds");
    ensure!(seconds == Some(&Value::from(7)), "{status}");
    ensure!(proxied.names().await?.iter().all(|name| name != "first"));
    create(&proxied.before(), "first").await?;
    Ok(())
}

pub(crate) fn tests() -> Vec<Test> {
    tests![
        calls_are_numbered_and_keep_their_credentials,
        watches_stream_and_are_counted,
        write_is_cut_before_it_arrives,
        answer_is_cut_before_it_is_forwarded,
        nothing_passes_while_a_client_is_killed,
        refused_connections_are_accepted_again,
        hanging_call_continues_where_it_was,
        one_call_hangs_and_others_pass,
        next_writes_conflict,
        next_writes_get_too_many_requests,
    ]
}
