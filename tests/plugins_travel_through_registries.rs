//! `trainyard plugin push`, `pull`, `copy` and `inspect` with folders and with the registry of CNCF's distribution, as users call them.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Output,
    thread,
};

use serde_json::Value;
use tempfile::TempDir;
use trainyard_cluster::{PluginRegistry, RegistryOptions};

use crate::common::{command, stderr, stdout, test_plugin};

/// The user `robot` with the password `hunter2`.
const HTPASSWD: &str = "robot:$2a$04$9fI.La2tdiUyniU/wP9KOOVBkXPyl9W9CGr.h/dNkG8f3aqa5FvfO\n";
/// The same in base64.
const AUTH: &str = "cm9ib3Q6aHVudGVyMg==";

/// A folder in which commands run, with a home of their own.
pub(crate) struct Site(TempDir);

impl Site {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let path = std::env::var("PATH").unwrap();
        command(args)
            .current_dir(self.path())
            .env("HOME", self.path())
            .env_remove("DOCKER_CONFIG")
            .env("PATH", format!("{}:{path}", self.path().display()))
            .env("TRAINYARD_CACHE_DIR", self.path().join("cache"))
            .output()
            .unwrap()
    }

    /// Runs a command that must fail, and returns its errors.
    pub(crate) fn error(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {error}");
        assert!(output.stdout.is_empty(), "{args:?}");
        for secret in ["hunter2", AUTH] {
            assert!(!error.contains(secret), "{error}");
        }
        error
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let file = self.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn log_in(&self, host: &str) {
        let config = serde_json::json!({"auths": {host: {"auth": AUTH}}});
        self.write(".docker/config.json", &config.to_string());
    }

    /// Writes a credential helper.
    fn helper(&self, name: &str, script: &str) {
        let file = self.path().join(format!("docker-credential-{name}"));
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Returns the digest at the end of a reference.
pub(crate) fn digest(reference: &str) -> &str {
    reference.trim().rsplit_once('@').unwrap().1
}

#[test]
fn folder_carries_a_plugin_as_it_was() {
    let (site, team) = (Site::new(), test_plugin("team"));
    let pushed = stdout(&site.run(&["plugin", "push", &team, "oci:folder:1.0"]));
    assert!(pushed.starts_with("oci:folder:1.0@sha256:"), "{pushed}");
    let again = stdout(&site.run(&["plugin", "push", &team, "oci:other:1.0"]));
    assert_eq!(digest(&again), digest(&pushed));
    let pulled = stdout(&site.run(&["plugin", "pull", "oci:folder"]));
    let lines: Vec<_> = pulled.lines().collect();
    assert!(lines[0].starts_with("team.wasm: plugin team "), "{pulled}");
    assert_eq!(digest(lines[1]), digest(&pushed));
    assert_eq!(
        fs::read(site.path().join("team.wasm")).unwrap(),
        fs::read(&team).unwrap()
    );
    stdout(&site.run(&["plugin", "pull", "oci:folder:1.0", "-o", "x.wasm"]));
    assert!(site.path().join("x.wasm").exists());
    let copied = stdout(&site.run(&[
        "plugin",
        "copy",
        "oci:folder:1.0",
        "oci:third:2.0",
        "-o",
        "json",
    ]));
    let copied: Value = serde_json::from_str(&copied).unwrap();
    assert_eq!(copied["digest"], digest(&pushed));
    assert_eq!(copied["referrers"], 0);
}

#[test]
fn pull_overwrites_no_file_whose_name_the_plugin_chose() {
    let (site, team) = (Site::new(), test_plugin("team"));
    stdout(&site.run(&["plugin", "push", &team, "oci:folder:1.0"]));
    site.write("team.wasm", "precious");
    let error = site.error(&["plugin", "pull", "oci:folder"]);
    assert!(
        error.contains("team.wasm: exists") && error.contains("choose the file with -o"),
        "{error}"
    );
    let file = site.path().join("team.wasm");
    assert_eq!(fs::read(&file).unwrap(), b"precious");
    stdout(&site.run(&["plugin", "pull", "oci:folder", "-o", "team.wasm"]));
    assert_eq!(fs::read(&file).unwrap(), fs::read(&team).unwrap());
    let error = site.error(&["plugin", "pull", "oci:folder", "-o", "missing/x.wasm"]);
    assert!(
        error.contains("missing/x.wasm: the directory missing does not exist"),
        "{error}"
    );
}

#[test]
fn inspect_says_whether_it_took_a_file_or_a_reference() {
    let (site, team) = (Site::new(), test_plugin("team"));
    let error = site.error(&["plugin", "inspect", "registry.invalid/team/x"]);
    assert!(
        error.contains("has neither a tag nor a digest; add `:TAG`"),
        "{error}"
    );
    let reference = "registry.invalid/team/x:1.0";
    fs::create_dir_all(site.path().join("registry.invalid/team")).unwrap();
    fs::copy(&team, site.path().join(reference)).unwrap();
    let output = site.run(&["plugin", "inspect", reference]);
    let warning = stderr(&output);
    assert!(output.status.success(), "{warning}");
    assert!(
        warning.contains("this is the file of that name, and not the plugin in the registry"),
        "{warning}"
    );
}

#[test]
fn credential_helper_that_hangs_does_not_delay_the_end() {
    const ASKS: &[u8] = b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let site = Site::new();
    let reference = format!("127.0.0.1:{}/team/x:1.0", server(ASKS));
    site.helper("hangs", "sleep 25 & wait");
    site.write(".docker/config.json", "{\"credsStore\": \"hangs\"}");
    let begun = std::time::Instant::now();
    let pull = ["plugin", "pull", reference.as_str(), "-o", "x.wasm"];
    let error = site.error(&[&pull[..], &["--registry-timeout", "1s"]].concat());
    assert!(error.contains("not done within 1s"), "{error}");
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn inspect_shows_a_reference_as_it_shows_a_file() {
    let (site, team) = (Site::new(), test_plugin("team"));
    let annotation = "org.opencontainers.image.source=https://git.example.com/team";
    site.run(&[
        "plugin",
        "push",
        &team,
        "oci:folder:1.0",
        "--annotation",
        annotation,
    ]);
    let of_file = stdout(&site.run(&["plugin", "inspect", &team]));
    let shown = stdout(&site.run(&["plugin", "inspect", "oci:folder:1.0"]));
    for line in of_file.lines() {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    for line in [
        "  org.opencontainers.image.title: team",
        "  org.opencontainers.image.source: https://git.example.com/team",
        "referrers:   none (no signature, SBOM or provenance)",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    let json = stdout(&site.run(&["plugin", "inspect", "oci:folder:1.0", "-o", "json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["file"], "oci:folder:1.0");
    assert_eq!(json["manifest"]["name"], "team");
    let reference = json["artifact"]["reference"].as_str().unwrap();
    assert_eq!(digest(reference), json["artifact"]["digest"]);
    let policy = |plugin: &str| stdout(&site.run(&["plugin", "inspect", "--policy", plugin]));
    assert_eq!(policy("oci:folder:1.0"), policy(&team));
}

#[test]
fn files_that_are_not_plugins_are_neither_pushed_nor_written() {
    let site = Site::new();
    site.write("x.wasm", "#!/bin/sh");
    let error = site.error(&["plugin", "push", "x.wasm", "oci:folder:1.0"]);
    assert!(error.contains("x.wasm: "), "{error}");
    assert!(!site.path().join("folder").exists());
    let error = site.error(&["plugin", "pull", "oci:folder", "-o", "y.wasm"]);
    assert!(
        error.contains("oci:folder: folder: is not a folder of the OCI image layout"),
        "{error}"
    );
    assert!(!site.path().join("y.wasm").exists());
}

/// Returns the port of a server that answers each connection with these bytes, and closes it.
fn server(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer);
        }
    });
    port
}

#[test]
fn servers_that_are_no_registries_write_nothing() {
    let site = Site::new();
    for (answer, expected) in [
        (
            &b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"[..],
            "broke off",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<!doctype html>",
            "its manifest is not valid: it is not JSON at line 1, column 1",
        ),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "cannot reach 127.0.0.1:"),
        (b"", "cannot reach 127.0.0.1:"),
        (
            b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            "redirects in a loop, or more than 5 times",
        ),
        (
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            "has no manifest `1.0` in `team/x`",
        ),
    ] {
        let reference = format!("127.0.0.1:{}/team/x:1.0", server(answer));
        let error = site.error(&["plugin", "pull", &reference, "-o", "x.wasm"]);
        assert!(
            error.contains(&format!("{reference}: ")) && error.contains(expected),
            "{expected}: {error}"
        );
        assert!(!site.path().join("x.wasm").exists());
    }
}

#[test]
fn credential_helpers_that_fail_are_named_and_their_output_is_not() {
    const ASKS: &[u8] = b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let site = Site::new();
    let reference = format!("127.0.0.1:{}/team/x:1.0", server(ASKS));
    let pull = ["plugin", "pull", reference.as_str()];
    site.helper("fails", "echo hunter2; exit 1");
    site.helper("chats", "echo 'the password is hunter2'");
    site.helper(
        "none",
        "echo 'credentials not found in native keychain'; exit 1",
    );
    for (helper, expected) in [
        (
            "fails",
            "the credential helper docker-credential-fails failed: exit status: 1",
        ),
        (
            "chats",
            "the credential helper docker-credential-chats printed something else than a credential",
        ),
        (
            "missing",
            "the credential helper docker-credential-missing is not installed where Trainyard runs",
        ),
        ("none", "refuses access to team/x without a credential"),
        ("../evil", "is not a name of letters, digits"),
    ] {
        site.write(
            ".docker/config.json",
            &serde_json::json!({"credsStore": helper}).to_string(),
        );
        let error = site.error(&pull);
        assert!(error.contains(expected), "{expected}: {error}");
    }
    site.write(
        ".docker/config.json",
        "{\"auths\": {\"x\": {\"auth\": [\"hunter2\"]}}}",
    );
    let error = site.error(&pull);
    assert!(
        error.contains("is not a config.json of Docker: wrong at line 1, column"),
        "{error}"
    );
    let error = site.error(&[&pull[..], &["--registry-config", "missing.json"]].concat());
    assert!(error.contains("missing.json: cannot be read"), "{error}");
    site.write(".docker/config.json", "{}");
    let error = site.error(&[&pull[..], &["--ca-file", ".docker/config.json"]].concat());
    assert!(
        error.contains(".docker/config.json: cannot be read as certificates in PEM: it has none"),
        "{error}"
    );
}

#[test]
#[ignore = "needs Go: `make test-registry`"]
fn real_registry_stores_plugins() {
    let (site, folder, team) = (
        Site::new(),
        tempfile::tempdir().unwrap(),
        test_plugin("team"),
    );
    let registry = PluginRegistry::start(folder.path(), RegistryOptions::default()).unwrap();
    let reference = format!("{}/plugins/team:1.0", registry.host());
    let pushed = stdout(&site.run(&["plugin", "push", &team, &reference]));
    assert!(
        pushed.starts_with(&format!("{reference}@sha256:")),
        "{pushed}"
    );
    let by_digest = format!("{}/plugins/team@{}", registry.host(), digest(&pushed));
    for source in [&reference, &by_digest, pushed.trim()] {
        stdout(&site.run(&["plugin", "pull", source, "-o", "pulled.wasm"]));
        assert_eq!(
            fs::read(site.path().join("pulled.wasm")).unwrap(),
            fs::read(&team).unwrap()
        );
    }
    let error = site.error(&[
        "plugin",
        "pull",
        &format!("{}/plugins/other:1.0", registry.host()),
    ]);
    assert!(
        error.contains("has no manifest `1.0` in `plugins/other`"),
        "{error}"
    );
    // Another file under the same tag.
    stdout(&site.run(&["plugin", "push", &team, &reference, "--annotation", "a=b"]));
    let error = site.error(&["plugin", "pull", pushed.trim()]);
    assert!(error.contains("the tag 1.0 now has the digest"), "{error}");
    stdout(&site.run(&["plugin", "pull", &by_digest]));
    registry.stop().unwrap();
    let error = site.error(&["plugin", "pull", &by_digest]);
    assert!(error.contains("cannot reach 127.0.0.1:"), "{error}");
}

#[test]
#[ignore = "needs Go: `make test-registry`"]
fn real_registry_checks_credentials() {
    let (site, folder, team) = (
        Site::new(),
        tempfile::tempdir().unwrap(),
        test_plugin("team"),
    );
    let options = RegistryOptions {
        htpasswd: Some(HTPASSWD),
        ..RegistryOptions::default()
    };
    let registry = PluginRegistry::start(folder.path(), options).unwrap();
    let host = registry.host();
    let reference = format!("{host}/plugins/team:1.0");
    let push = ["plugin", "push", team.as_str(), reference.as_str()];
    let error = site.error(&push);
    assert!(
        error.contains("refuses access to plugins/team without a credential; run `docker login"),
        "{error}"
    );
    site.write(
        "wrong.json",
        &serde_json::json!({"auths": {&host: {"auth": "cm9ib3Q6eA=="}}}).to_string(),
    );
    let error = site.error(&[&push[..], &["--registry-config", "wrong.json"]].concat());
    assert!(error.contains("with the configured credential"), "{error}");
    site.log_in(&host);
    stdout(&site.run(&push));
    stdout(&site.run(&["plugin", "inspect", &reference]));
    site.helper("test", "read -r host; echo \"{\\\"ServerURL\\\": \\\"$host\\\", \\\"Username\\\": \\\"robot\\\", \\\"Secret\\\": \\\"hunter2\\\"}\"");
    site.write(
        ".docker/config.json",
        &serde_json::json!({"credHelpers": {&host: "test"}}).to_string(),
    );
    stdout(&site.run(&["plugin", "pull", &reference]));
}

#[test]
#[ignore = "needs Go: `make test-registry`"]
fn plugins_reach_a_site_without_a_network() {
    let (site, team) = (Site::new(), test_plugin("team"));
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let start = |folder: &TempDir| {
        PluginRegistry::start(folder.path(), RegistryOptions::default()).unwrap()
    };
    let (vendor, own) = (start(&folders[0]), start(&folders[1]));
    let reference = format!("{}/plugins/team:1.0", vendor.host());
    let pushed = stdout(&site.run(&["plugin", "push", &team, &reference]));
    stdout(&site.run(&["plugin", "copy", &reference, "oci:bundle"]));
    vendor.stop().unwrap();
    let target = format!("{}/mirror/team:1.0", own.host());
    let copied = stdout(&site.run(&[
        "plugin",
        "copy",
        &format!("oci:bundle:{reference}"),
        &target,
    ]));
    assert_eq!(digest(copied.lines().next().unwrap()), digest(&pushed));
    stdout(&site.run(&["plugin", "pull", &format!("{target}@{}", digest(&pushed))]));
    assert_eq!(
        fs::read(site.path().join("team.wasm")).unwrap(),
        fs::read(&team).unwrap()
    );
}

#[test]
#[ignore = "needs Go: `make test-registry`"]
fn mirror_with_a_private_authority_is_used() {
    let (site, folder, team) = (
        Site::new(),
        tempfile::tempdir().unwrap(),
        test_plugin("team"),
    );
    let plain = PluginRegistry::start(folder.path(), RegistryOptions::default()).unwrap();
    stdout(&site.run(&[
        "plugin",
        "push",
        &team,
        &format!("{}/plugins/team:1.0", plain.host()),
    ]));
    plain.stop().unwrap();
    let tls = tempfile::tempdir().unwrap();
    fs::rename(folder.path().join("storage"), tls.path().join("storage")).unwrap();
    let options = RegistryOptions {
        tls: true,
        ..RegistryOptions::default()
    };
    let mirror = PluginRegistry::start(tls.path(), options).unwrap();
    let mirrors = format!(
        "mirrors:\n  plugins.invalid:\n    endpoint: [\"https://{}\"]\n",
        mirror.host()
    );
    site.write("registries.yaml", &mirrors);
    let authority = mirror.authority().to_str().unwrap();
    let pull = [
        "plugin",
        "pull",
        "plugins.invalid/plugins/team:1.0",
        "--registries",
        "registries.yaml",
    ];
    let error = site.error(&pull);
    assert!(
        error.contains("UnknownIssuer") && error.contains("--ca-file"),
        "{error}"
    );
    stdout(&site.run(&[&pull[..], &["--ca-file", authority]].concat()));
    let configs = format!(
        "{mirrors}configs:\n  \"{}\":\n    tls: {{ca_file: {authority}}}\n",
        mirror.host()
    );
    site.write("registries.yaml", &configs);
    stdout(&site.run(&[&pull[..], &["-o", "again.wasm"]].concat()));
}
