//! Containers of pods with the fate `run` are processes of this machine that see what a kubelet provides: their env, files, names and user.
//! Their exit codes are reported, and no process outlives its pod.

mod running;

use std::{fs, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
};
use trainyard_cluster::{Cluster, Isolation, Resource, Test, eventually};

use running::{Running, images};

/// Has one server in each pod, and then asks those of both pods of the job by their names.
const GREET: &str = include_str!("containers_run_as_processes/greet.py");

async fn containers_see_their_env_and_files(cluster: &Cluster) -> Result<()> {
    let test = Running::new(cluster).await?;
    let core = |plural| Resource::namespaced("/api/v1", plural);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
        "data": {"level": "info", "hosts": "a\nb\n"}});
    test.create(&core("configmaps"), &map).await?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"},
        "stringData": {"private": "key"}});
    test.create(&core("secrets"), &secret).await?;
    let field = |path: &str| json!({"fieldRef": {"fieldPath": path}});
    let key = json!({"configMapKeyRef": {"name": "settings", "key": "level"}});
    let item = json!({"key": "private", "path": "id", "mode": 0o400});
    let mounts = json!([
        {"name": "work", "mountPath": "/does/not/exist"},
        {"name": "settings", "mountPath": "/etc/settings"},
        {"name": "keys", "mountPath": "/root/.keys"},
    ]);
    let script = r#"
        trap 'echo "failed: $BASH_COMMAND"' ERR
        test "$OF_IMAGE-$POD-$LEVEL-$IP" = "yes-all-info-$(hostname -i)"
        test "$EXPANDED" = "pod all"
        test "$(cat /does/not/exist/from-init)" = "init of all"
        test "$(cat /etc/settings/hosts)" = "$(printf 'a\nb')"
        test "$(stat -Lc %a /root/.keys/id)-$(cat /root/.keys/id)" = 400-key
        ! touch /etc/settings/hosts 2>/dev/null
        test -s /var/run/secrets/kubernetes.io/serviceaccount/token
        echo written > /usr/bin/of-this-container
        test $BASHPID = 1
        echo all is there
    "#;
    let spec = json!({
        "initContainers": [{
            "name": "first", "image": "example.com/bash",
            "args": ["echo init of $HOSTNAME > /does/not/exist/from-init"],
            "volumeMounts": [{"name": "work", "mountPath": "/does/not/exist"}],
        }],
        "containers": [{
            "env": [
                {"name": "POD", "valueFrom": field("metadata.name")},
                {"name": "IP", "valueFrom": field("status.podIP")},
                {"name": "LEVEL", "valueFrom": key},
                {"name": "EXPANDED", "value": "pod $(POD)"},
            ],
            "volumeMounts": mounts,
        }],
        "volumes": [
            {"name": "work", "emptyDir": {}},
            {"name": "settings", "configMap": {"name": "settings"}},
            {"name": "keys", "secret": {"secretName": "keys", "items": [item]}},
        ],
    });
    test.start("all", script, spec).await?;
    let ended = |pod: &Value| {
        matches!(
            pod["status"]["phase"].as_str(),
            Some("Succeeded" | "Failed")
        )
    };
    let pod = test.until("all", "it has ended", ended).await?;
    let log = test.log("all", "node");
    ensure!(
        pod["status"]["phase"] == "Succeeded" && log == "all is there\n",
        "{log}\n{pod:#}"
    );
    let init = &pod["status"]["initContainerStatuses"][0]["state"]["terminated"];
    ensure!(init["exitCode"] == 0, "{pod:#}");
    ensure!(
        !fs::exists("/usr/bin/of-this-container")?,
        "a container changed this machine"
    );
    Ok(())
}

async fn pods_of_a_job_set_find_each_other_by_name(
    cluster: &Cluster,
    isolation: Isolation,
) -> Result<()> {
    let test = Running::new(cluster).await?;
    cluster
        .kubelet()
        .run_with(&test.namespace, images(), isolation);
    let others = format!(
        "greet-node-0-0.greet greet-node-0-1.greet.{}.svc.cluster.local",
        test.namespace
    );
    let container = json!({"name": "node", "image": "example.com/python", "args": [GREET],
    "env": [
        {"name": "OTHERS", "value": others},
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]});
    let job = json!({"parallelism": 2, "completions": 2, "backoffLimit": 0,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}});
    let job_set = json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"name": "greet"},
        "spec": {"replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": job}}]}});
    test.create(&Resource::jobsets(), &job_set).await?;
    let job_sets = Resource::jobsets();
    let ended = |job_set: &Value| job_set["status"]["terminalState"].is_string();
    let job_set = test
        .api(&job_sets)
        .until("greet", "it has ended", ended)
        .await?;
    let logs: Vec<_> = test
        .api(&test.pods)
        .items()
        .await?
        .iter()
        .map(|pod| test.log(pod["metadata"]["name"].as_str().unwrap_or_default(), "node"))
        .collect();
    ensure!(
        job_set["status"]["terminalState"] == "Completed",
        "{logs:?}\n{job_set:#}"
    );
    let greeted = "greeted by greet-node-0-0\ngreeted by greet-node-0-1\n";
    ensure!(logs == [greeted, greeted], "{logs:?}");
    Ok(())
}

/// Answers each connection with the request's first line.
async fn echo(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        // A client that went away gets no answer.
        let _ = stream.read_line(&mut line).await;
        let _ = stream.write_all(line.as_bytes()).await;
    }
}

async fn pods_reach_published_ports_of_this_machine(
    cluster: &Cluster,
    isolation: Isolation,
) -> Result<()> {
    let test = Running::new(cluster).await?;
    let kubelet = cluster.kubelet();
    kubelet.run_with(&test.namespace, images(), isolation);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let server = tokio::spawn(echo(listener));
    let service = (test.namespace.as_str(), "echo");
    cluster.publish(service, port, isolation).await?;
    // The name may be known a moment after the pod has started.
    let script = format!(
        "until exec 3<>/dev/tcp/echo.{}.svc/{port}; do sleep 0.1; done; echo hello >&3; cat <&3",
        test.namespace
    );
    test.start("client", &script, json!({})).await?;
    let pod = test.until_phase("client", "Succeeded").await?;
    let log = test.log("client", "node");
    ensure!(log.ends_with("hello\n"), "{log}\n{pod:#}");
    server.abort();
    Ok(())
}

async fn sidecar_runs_from_before_the_containers_until_after_them(cluster: &Cluster) -> Result<()> {
    let test = Running::new(cluster).await?;
    let server = "python3 -m http.server 8000 & trap 'echo stopped; exit 0' TERM; wait";
    let spec = json!({
        "initContainers": [{
            "name": "server", "image": "example.com/bash", "args": [server], "restartPolicy": "Always",
            "startupProbe": {"httpGet": {"path": "/", "port": 8000}},
        }],
    });
    let script = "exec 3<>/dev/tcp/localhost/8000; echo connected";
    test.start("beside", script, spec).await?;
    let pod = test.until_phase("beside", "Succeeded").await?;
    ensure!(test.log("beside", "node") == "connected\n", "{pod:#}");
    let log = test.log("beside", "server");
    ensure!(log.ends_with("stopped\n"), "{log}");
    Ok(())
}

async fn exit_code_of_a_container_is_reported(cluster: &Cluster) -> Result<()> {
    let test = Running::new(cluster).await?;
    for (name, script, code) in [
        ("fails", "echo oh; exit 7", 7),
        ("killed", "kill -9 $BASHPID", 137),
    ] {
        // The first process of a container can't kill itself.
        let script = format!("({script}); exit $?");
        test.start(name, &script, json!({})).await?;
        let pod = test.until_phase(name, "Failed").await?;
        let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
        ensure!(
            ended["exitCode"] == code && ended["reason"] == "Error",
            "{pod:#}"
        );
    }
    let words = cluster.kubelet().last_words();
    ensure!(
        words.contains("exit code 7") && words.contains("oh"),
        "{words}"
    );
    Ok(())
}

async fn failed_container_is_restarted_with_its_volumes(cluster: &Cluster) -> Result<()> {
    let test = Running::new(cluster).await?;
    let script = "echo x >> /work/tries; test $(wc -l < /work/tries) = 3";
    let spec = json!({
        "restartPolicy": "OnFailure",
        "containers": [{"volumeMounts": [{"name": "work", "mountPath": "/work"}]}],
        "volumes": [{"name": "work", "emptyDir": {}}],
    });
    test.start("tries", script, spec).await?;
    let pod = test.until_phase("tries", "Succeeded").await?;
    let container = &pod["status"]["containerStatuses"][0];
    ensure!(container["restartCount"] == 2, "{pod:#}");
    ensure!(
        container["lastState"]["terminated"]["exitCode"] == 1,
        "{pod:#}"
    );
    Ok(())
}

async fn deleted_pod_gets_sigterm_and_then_sigkill(cluster: &Cluster) -> Result<()> {
    let test = Running::new(cluster).await?;
    let polite = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    // The sleeping process is in a session of its own, so no signal to a group reaches it.
    let marker = "98765.4321";
    let stubborn = format!("trap '' TERM; setsid sleep {marker} & echo ready; wait");
    test.start("polite", polite, json!({})).await?;
    test.start("stubborn", &stubborn, json!({})).await?;
    for name in ["polite", "stubborn"] {
        let is_ready = async || Ok((test.log(name, "node") == "ready\n").then_some(()));
        eventually("the script is ready", is_ready).await?;
    }
    ensure!(runs(marker)?, "the process is not found");
    let path = |name| {
        format!(
            "/api/v1/namespaces/{}/pods/{name}?gracePeriodSeconds=2",
            test.namespace
        )
    };
    for name in ["polite", "stubborn"] {
        let request = http::Request::delete(path(name)).body(Vec::new())?;
        cluster.client().request::<Value>(request).await?;
    }
    let none = |pods: &[Value]| pods.is_empty();
    test.api(&test.pods).until_all("no pod", none).await?;
    ensure!(test.log("polite", "node") == "ready\nbye\n", "no SIGTERM");
    ensure!(!runs(marker)?, "a process outlives its pod");
    Ok(())
}

/// Returns whether a process has this argument.
fn runs(argument: &str) -> Result<bool> {
    let output = Command::new("ps").args(["-e", "-o", "args="]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).contains(&format!("sleep {argument}")))
}

async fn container_is_ready_when_its_probe_succeeds(cluster: &Cluster) -> Result<()> {
    let test = Running::new(cluster).await?;
    let script = "until [ -e /go/now ]; do sleep 0.05; done; exec python3 -m http.server 8000";
    let folder = tempfile::tempdir()?;
    let spec = json!({
        "containers": [{
            "readinessProbe": {"tcpSocket": {"port": 8000}},
            "volumeMounts": [{"name": "go", "mountPath": "/go"}],
        }],
        "volumes": [{"name": "go", "hostPath": {"path": folder.path()}}],
        "terminationGracePeriodSeconds": 0,
    });
    test.start("server", script, spec).await?;
    test.until_phase("server", "Running").await?;
    let is_ready = |pod: &Value| pod["status"]["containerStatuses"][0]["ready"] == true;
    // Several probes fail meanwhile.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let pod = test.api(&test.pods).get("server").await?.accepted()?;
    ensure!(!is_ready(&pod), "{pod:#}");
    fs::write(folder.path().join("now"), "")?;
    test.until("server", "it is ready", is_ready).await?;
    Ok(())
}

async fn pod_waits_for_a_missing_config_map(cluster: &Cluster) -> Result<()> {
    let test = Running::new(cluster).await?;
    let from = json!([{"configMapRef": {"name": "late"}}]);
    let spec = json!({"containers": [{"envFrom": from}]});
    test.start("waits", "test $LATE = yes", spec).await?;
    let waits = |pod: &Value| {
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["reason"] == "CreateContainerConfigError"
            && waiting["message"]
                .as_str()
                .is_some_and(|it| it.contains("late"))
    };
    test.until("waits", "it waits for the ConfigMap", waits)
        .await?;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}, "data": {"LATE": "yes"}});
    test.create(&Resource::namespaced("/api/v1", "configmaps"), &map)
        .await?;
    test.until_phase("waits", "Succeeded").await?;
    Ok(())
}

async fn pod_that_cannot_run_fails_with_a_message(cluster: &Cluster) -> Result<()> {
    let test = Running::new(cluster).await?;
    let spec = json!({"containers": [{"image": "example.com/unknown"}]});
    test.start("unknown", "true", spec).await?;
    let pod = test.until_phase("unknown", "Failed").await?;
    ensure!(
        pod["status"]["reason"] == "UnsupportedByFakeKubelet",
        "{pod:#}"
    );
    let message = pod["status"]["message"].as_str().context("no message")?;
    ensure!(message.contains("example.com/unknown"), "{message}");
    Ok(())
}

/// Only what this user has the rights for is tested.
pub(crate) fn tests() -> Vec<Test<Cluster>> {
    let mut tests = Vec::new();
    for (isolation, place) in [
        (Isolation::Root, "in_namespaces"),
        (Isolation::User, "in_a_user_namespace"),
        (Isolation::Loopback, "on_loopback"),
    ] {
        if isolation.is_possible() {
            tests.push(Test::new(
                format!("pods_of_a_job_set_find_each_other_by_name_{place}"),
                async move |cluster: &Cluster| {
                    pods_of_a_job_set_find_each_other_by_name(cluster, isolation).await
                },
            ));
            tests.push(Test::new(
                format!("pods_reach_published_ports_of_this_machine_{place}"),
                async move |cluster: &Cluster| {
                    pods_reach_published_ports_of_this_machine(cluster, isolation).await
                },
            ));
        }
    }
    if Isolation::detect() != Isolation::Loopback {
        tests.extend(in_namespaces());
    }
    tests
}

fn in_namespaces() -> Vec<Test<Cluster>> {
    tests![
        containers_see_their_env_and_files,
        sidecar_runs_from_before_the_containers_until_after_them,
        exit_code_of_a_container_is_reported,
        failed_container_is_restarted_with_its_volumes,
        deleted_pod_gets_sigterm_and_then_sigkill,
        container_is_ready_when_its_probe_succeeds,
        pod_waits_for_a_missing_config_map,
        pod_that_cannot_run_fails_with_a_message,
    ]
}
