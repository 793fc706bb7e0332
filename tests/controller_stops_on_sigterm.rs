//! A controller exits cleanly on SIGTERM, even while it loads plugins. As the first process of a container it would ignore a signal without
//! a handler, and a plugin may take a minute to compile.
#![cfg(unix)]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use crate::common::{api_server::write_kubeconfig, command};

#[test]
fn sigterm_is_handled_while_plugins_compile() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stops-when-reported");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    // No server listens there, so the steps after loading plugins fail.
    write_kubeconfig(&folder, &[("none", "http://127.0.0.1:9")]);
    let mut controller = command(&[
        "controller",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
    ])
    .arg("--kubeconfig")
    .arg(folder.join("kubeconfig"))
    // The cache is empty, so the plugins are compiled.
    .arg("--cache-dir")
    .arg(folder.join("cache"))
    .env_remove("TRAINYARD_LOG")
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut log = BufReader::new(controller.stderr.take().unwrap()).lines();
    let loading = log.any(|line| line.unwrap().contains("loading plugins"));
    assert!(loading, "the log does not report that plugins are loaded");
    let pid = controller.id().to_string();
    let reported = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(reported.success());
    let rest: Vec<_> = log.map_while(Result::ok).collect();
    let status = controller.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{status}: {rest:#?}");
    assert!(rest.iter().any(|line| line.contains("stopp")), "{rest:#?}");
}
