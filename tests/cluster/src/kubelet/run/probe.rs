//! Startup and readiness probes.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use k8s_openapi::{
    api::core::v1::{Container, Probe},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::problem::Problem;

/// The interval between two probes, which is shorter than a kubelet's, so that tests are fast.
pub(super) const INTERVAL: Duration = Duration::from_millis(300);
/// The timeout of a probe in seconds.
const TIMEOUT: &str = "5";

/// Connects to a port of the pod.
const TCP: &str = r#"exec 3<>"/dev/tcp/127.0.0.1/$0""#;
/// Requests a path of a server, whose answer must be a success or a redirect.
const HTTP: &str = r#"
exec 3<>"/dev/tcp/127.0.0.1/$0"
printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$1" >&3
read -r _ status _ <&3
[ "$status" -ge 200 ] && [ "$status" -lt 400 ]
"#;

/// Returns the command that a probe runs in its container.
pub(super) fn command(probe: &Probe, container: &Container) -> Result<Vec<String>, Problem> {
    let bash = |script: &str, args: Vec<String>| {
        let mut command: Vec<_> = ["bash", "-c", script].map(str::to_owned).into();
        command.extend(args);
        command
    };
    let command = if let Some(tcp) = &probe.tcp_socket {
        bash(TCP, vec![port(&tcp.port, container)?])
    } else if let Some(http) = &probe.http_get {
        let path = http.path.clone().unwrap_or_else(|| "/".to_owned());
        bash(HTTP, vec![port(&http.port, container)?, path])
    } else if let Some(exec) = &probe.exec {
        exec.command.clone().unwrap_or_default()
    } else {
        return Err(Problem::Unsupported(format!(
            "the fake kubelet does not know this probe of the container {}; use tcpSocket, httpGet or exec",
            container.name
        )));
    };
    Ok(command)
}

fn port(of: &IntOrString, container: &Container) -> Result<String, Problem> {
    match of {
        IntOrString::Int(number) => Ok(number.to_string()),
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let port = ports.find(|port| port.name.as_ref() == Some(name));
            let port = port.map(|port| port.container_port.to_string());
            let unknown = || format!("the container {} has no port {name}", container.name);
            port.ok_or_else(|| Problem::Unsupported(unknown()))
        }
    }
}

/// Runs a probe. Returns whether it succeeded.
pub(super) fn succeeds(mut enter: Command, probe: &[String]) -> bool {
    let command = enter.args(["timeout", TIMEOUT]).args(probe);
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = quiet.stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::TcpListener;

    use serde_json::{Value, json};

    use super::*;

    fn of(probe: Value) -> Result<Vec<String>, Problem> {
        let ports = json!([{"name": "ssh", "containerPort": 2222}]);
        let container = json!({"name": "node", "ports": ports});
        let container = serde_json::from_value(container).unwrap();
        command(&serde_json::from_value(probe).unwrap(), &container)
    }

    #[test]
    fn ports_can_be_named() {
        for port in [json!(2222), json!("ssh")] {
            let command = of(json!({"tcpSocket": {"port": port}})).unwrap();
            assert_eq!(command.last().map(String::as_str), Some("2222"));
        }
        assert!(of(json!({"tcpSocket": {"port": "http"}})).is_err());
        assert!(of(json!({"grpc": {"port": 1}})).is_err());
    }

    #[test]
    fn socket_is_ready_when_it_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let probe = of(json!({"tcpSocket": {"port": port}})).unwrap();
        assert!(succeeds(Command::new("env"), &probe));
        drop(listener);
        assert!(!succeeds(Command::new("env"), &probe));
    }
}
