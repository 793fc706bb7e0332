//! `trainyard plugin verify`, `pull`, `copy` and `inspect` with `--key` or `--signers` accept only what cosign signed with a key that may.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;
use trainyard_cluster::{PluginRegistry, RegistryOptions, cosign};

use crate::{
    common::{root, signing::Key, stderr, stdout, test_plugin},
    plugins_travel_through_registries::{Site, digest},
};

/// Returns the file of a key of cosign.
fn fixture(name: &str) -> String {
    let file = root().join("host/oci/tests/cosign").join(name);
    file.to_str().unwrap().to_owned()
}

/// Writes a configuration of the controller with a signer `acme`, whose key is in a file.
fn write_signers(site: &Site, key: &str, rest: &str) {
    let pem = fs::read_to_string(site.path().join(key)).unwrap();
    let pem = pem.trim().replace('\n', "\n      ");
    site.write(
        "signers.yaml",
        &format!(
            "apiVersion: trainyard.dev/v1alpha1
kind: ControllerConfiguration
plugins:
  signers:
  - name: acme
    publicKey: |
      {pem}
    {rest}
"
        ),
    );
}

#[test]
fn unsigned_plugin_is_neither_written_nor_copied() {
    let (site, team, key) = (Site::new(), test_plugin("team"), fixture("acme.pub"));
    stdout(&site.run(&["plugin", "push", &team, "oci:folder:1.0"]));
    let source = "oci:folder:1.0";
    for args in [
        &["plugin", "verify", source][..],
        &["plugin", "pull", source, "-o", "x.wasm"],
        &["plugin", "copy", source, "oci:copy:1.0"],
    ] {
        let error = site.error(&[args, &["--key", &key]].concat());
        assert!(
            error.contains("oci:folder:1.0: sha256:")
                && error.contains("is not signed; sign it with `cosign sign"),
            "{error}"
        );
        // Whoever may sign has no plugin of this name yet.
        write_signers(
            &site,
            &key,
            "plugins: [\"*\"]\n    repositories: [registry.example.com/*]",
        );
        let error = site.error(&[args, &["--signers", "signers.yaml"]].concat());
        assert!(error.contains("is not signed"), "{error}");
    }
    assert!(!site.path().join("x.wasm").exists());
    assert!(!site.path().join("copy").exists());
    let shown = stdout(&site.run(&["plugin", "inspect", source, "--key", &key]));
    assert!(
        shown.contains("\nsignature:   none that counts: sha256:"),
        "{shown}"
    );
    assert!(shown.contains("\nreferrers:   none"), "{shown}");
}

#[test]
fn keys_and_signers_are_read_strictly() {
    let (site, team) = (Site::new(), test_plugin("team"));
    stdout(&site.run(&["plugin", "push", &team, "oci:folder:1.0"]));
    site.write(
        "secret.key",
        "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nhunter2\n",
    );
    site.write(
        "empty.yaml",
        "apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\n",
    );
    site.write("wrong.yaml", "apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\nplugins: {signer: []}\n");
    site.write("unsigned.yaml", "apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\nplugins: {unsigned: [oci/*, folder/*]}\n");
    let verify = ["plugin", "verify", "oci:folder:1.0"];
    for (flag, file, expected) in [
        (
            "--key",
            "secret.key",
            "secret.key: is a private key; replace it with the public key",
        ),
        (
            "--key",
            "empty.yaml",
            "empty.yaml: is not one `PUBLIC KEY` in PEM",
        ),
        ("--key", "missing.pub", "missing.pub: "),
        ("--signers", "missing.yaml", "missing.yaml: "),
        (
            "--signers",
            "empty.yaml",
            "empty.yaml: plugins.signers: is missing",
        ),
        (
            "--signers",
            "wrong.yaml",
            "wrong.yaml:3: plugins.signer: unknown field; did you mean `signers`?",
        ),
        // A directory is not a repository.
        ("--signers", "unsigned.yaml", "nobody may sign plugins"),
    ] {
        let error = site.error(&[&verify[..], &[flag, file]].concat());
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let error = site.error(&verify);
    assert!(
        error.contains("pass the public key of who signed the plugin with --key"),
        "{error}"
    );
    let error = site.error(&["plugin", "inspect", &team, "--key", &fixture("acme.pub")]);
    assert!(
        error.contains("is a file, which has no signature"),
        "{error}"
    );
    let error = site.error(&["plugin", "pull", "oci:folder:1.0", "--name", "other"]);
    assert!(
        error.contains(
            "oci:folder:1.0: is the plugin `team`, not `other`; correct --name or the reference"
        ),
        "{error}"
    );
    assert!(!site.path().join("team.wasm").exists());
}

/// Returns a configuration with these signers, each with the plugins that it may sign.
fn configuration(signers: &[(&str, &str, Key)]) -> String {
    let head =
        "apiVersion: trainyard.dev/v1alpha1\nkind: ControllerConfiguration\nplugins:\n  signers:\n";
    let signers = signers.iter().map(|(name, plugins, key)| {
        let key = key.pem().replace('\n', "\\n");
        format!(
            "  - {{name: {name}, publicKey: \"{key}\", plugins: [\"{plugins}\"], repositories: [registry.example.com/*]}}\n"
        )
    });
    std::iter::once(head.to_owned()).chain(signers).collect()
}

#[test]
fn signed_plugin_is_accepted_if_one_of_its_signers_may_sign_it() {
    let (site, team) = (Site::new(), test_plugin("team"));
    let pushed = stdout(&site.run(&["plugin", "push", &team, "oci:folder:1.0"]));
    // The signature that is found first is of a signer who may not sign this name.
    let keys = [("other", "acme-*"), ("acme", "team")].map(|(name, plugins)| {
        let key = Key::new();
        key.sign(&site.path().join("folder"), digest(&pushed));
        site.write(&format!("{name}.pub"), &key.pem());
        (name, plugins, key)
    });
    site.write("both.yaml", &configuration(&keys));
    site.write("other.yaml", &configuration(&keys[..1]));
    let source = "oci:folder:1.0";
    for (flags, by) in [
        (&["--key", "acme.pub"][..], "signed by acme.pub\n"),
        (
            &["--key", "other.pub", "--key", "acme.pub"],
            "signed by other.pub\n",
        ),
        (&["--signers", "both.yaml"], "signed by acme\n"),
    ] {
        let run = |args: &[&str]| stdout(&site.run(&[&["plugin"], args, flags].concat()));
        for name in [&[][..], &["--name", "team"]] {
            let verified = run(&[&["verify", source], name].concat());
            assert!(verified.ends_with(by), "{flags:?}: {verified}");
            run(&[&["pull", source, "-o", "team.wasm"], name].concat());
            let file = site.path().join("team.wasm");
            assert_eq!(fs::read(&file).unwrap(), fs::read(&team).unwrap());
            fs::remove_file(file).unwrap();
            let copied = run(&[&["copy", source, "oci:copy:1.0"], name].concat());
            assert!(copied.contains("2 referrers"), "{flags:?}: {copied}");
        }
        let shown = run(&["inspect", source]);
        let line = format!("\nsignature:   {by}");
        assert!(shown.contains(&line), "{flags:?}: {shown}");
    }
    let refused = "is signed by other, who may not sign the plugin `team`";
    let by = ["--signers", "other.yaml"];
    let error = site.error(&[&["plugin", "verify", source], &by[..]].concat());
    assert!(error.contains(refused), "{error}");
    let shown = stdout(&site.run(&[&["plugin", "inspect", source], &by[..]].concat()));
    let line = "\nsignature:   none that counts: ";
    assert!(shown.contains(line) && shown.contains(refused), "{shown}");
}

/// A site with a registry, a plugin in it, and a key of cosign.
struct Signing {
    site: Site,
    registry: PluginRegistry,
    _folder: TempDir,
    /// The reference by tag.
    tag: String,
    /// The reference by digest.
    pinned: String,
}

impl Signing {
    fn start() -> Self {
        let (site, folder) = (Site::new(), tempfile::tempdir().unwrap());
        let registry = PluginRegistry::start(folder.path(), RegistryOptions::default()).unwrap();
        let tag = format!("{}/plugins/team:1.0", registry.host());
        let pushed = stdout(&site.run(&["plugin", "push", &test_plugin("team"), &tag]));
        let signing = Self {
            pinned: format!("{}/plugins/team@{}", registry.host(), digest(&pushed)),
            site,
            registry,
            _folder: folder,
            tag,
        };
        // Neither a transparency log nor a timestamp authority.
        signing.cosign(&["signing-config", "create", "--out", "none.json"]);
        for name in ["cosign", "other"] {
            signing.cosign(&["generate-key-pair", "--output-key-prefix", name]);
        }
        signing
    }

    fn cosign(&self, args: &[&str]) -> Output {
        let output = Command::new(cosign().unwrap())
            .args(args)
            .current_dir(self.site.path())
            .env("HOME", self.site.path())
            .env("COSIGN_PASSWORD", "")
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        output
    }

    /// Runs a command of cosign that writes to the registry.
    fn sign(&self, command: &str, key: &str, rest: &[&str]) {
        let args = [command, "--yes", "--key", key, "--allow-http-registry"];
        self.cosign(&[&args[..], rest, &[&self.pinned]].concat());
    }
}

const NONE: [&str; 2] = ["--signing-config", "none.json"];

#[test]
#[ignore = "needs Go: `make test-registry`"]
fn plugin_that_cosign_signed_is_accepted_everywhere_it_is_carried_to() {
    let it = Signing::start();
    let (site, tag) = (&it.site, it.tag.as_str());
    let key = ["--key", "cosign.pub"];
    let run = |args: &[&str]| stdout(&site.run(&[&["plugin"], args, &key].concat()));
    it.sign("sign", "cosign.key", &NONE);
    site.write(
        "sbom.json",
        r#"{"spdxVersion": "SPDX-2.3", "SPDXID": "SPDXRef-DOCUMENT", "packages": []}"#,
    );
    it.sign(
        "attest",
        "cosign.key",
        &[
            &NONE[..],
            &["--type", "spdxjson", "--predicate", "sbom.json"],
        ]
        .concat(),
    );
    let verified = run(&["verify", tag]);
    assert!(
        verified.starts_with(&format!("{tag}@{}\nplugin team ", digest(&it.pinned))),
        "{verified}"
    );
    assert!(verified.ends_with(", signed by cosign.pub\n"), "{verified}");
    let json: Value =
        serde_json::from_str(&run(&["verify", tag, "-o", "json", "--name", "team"])).unwrap();
    assert_eq!(
        (&json["name"], &json["signers"][0]),
        (&"team".into(), &"cosign.pub".into())
    );
    let pulled = run(&["pull", tag]);
    assert!(pulled.ends_with("\nsigned by cosign.pub\n"), "{pulled}");
    assert_eq!(
        fs::read(site.path().join("team.wasm")).unwrap(),
        fs::read(test_plugin("team")).unwrap()
    );
    let copied = run(&["copy", tag, "oci:bundle:1.0"]);
    assert!(copied.contains("2 referrers"), "{copied}");
    // cosign's own verdict.
    it.cosign(&[
        "verify",
        "--key",
        "cosign.pub",
        "--insecure-ignore-tlog",
        "--private-infrastructure",
        "--allow-http-registry",
        tag,
    ]);
    // At a site without a network.
    it.registry.stop().unwrap();
    run(&["verify", "oci:bundle:1.0"]);
    let shown = run(&["inspect", "oci:bundle:1.0"]);
    for line in [
        "\nsignature:   signed by cosign.pub\n",
        ", a signature, by cosign.pub\n",
        ", an attestation of the type https://spdx.dev/Document, by cosign.pub\n",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let error = site.error(&["plugin", "verify", "oci:bundle:1.0", "--key", "other.pub"]);
    assert!(
        error.contains(
            "is signed with none of the keys (it claims the key with the fingerprint sha256:"
        ),
        "{error}"
    );
}

#[test]
#[ignore = "needs Go: `make test-registry`"]
fn signers_sign_only_their_names_in_their_repositories() {
    let it = Signing::start();
    let (site, tag) = (&it.site, it.tag.as_str());
    it.sign("sign", "cosign.key", &NONE);
    let host = it.registry.host();
    for (rest, name, expected) in [
        ("plugins: [team]", None, None),
        ("plugins: [te*]", Some("team"), None),
        ("plugins: [\"*\"]", None, None),
        (
            "plugins: [acme-*]",
            None,
            Some("is signed by acme, who may not sign the plugin `team`"),
        ),
        (
            "plugins: [acme-*]",
            Some("team"),
            Some("is signed by acme, who may not sign the plugin `team`"),
        ),
        // A `*` does not cover a built-in plugin, and the name has to be that of the file.
        (
            "plugins: [\"*\"]",
            Some("torch"),
            Some("who may not sign the plugin `torch`"),
        ),
        (
            "plugins: [torch]",
            Some("torch"),
            Some("is the plugin `team`, not `torch`"),
        ),
        (
            "plugins: [team]\n    repositories: [REGISTRY/plugins/*]",
            None,
            None,
        ),
        (
            "plugins: [team]\n    repositories: [REGISTRY/acme/*]",
            None,
            Some("whose plugins may not come from"),
        ),
    ] {
        let everywhere = "\n    repositories: [REGISTRY/*]";
        let is_limited = rest.contains("repositories");
        let rest = [rest, if is_limited { "" } else { everywhere }].concat();
        write_signers(site, "cosign.pub", &rest.replace("REGISTRY", &host));
        let args = ["plugin", "verify", tag, "--signers", "signers.yaml"];
        let args = [&args[..], &name.map_or(vec![], |name| vec!["--name", name])].concat();
        match expected {
            None => assert!(stdout(&site.run(&args)).ends_with("signed by acme\n")),
            Some(expected) => {
                let error = site.error(&args);
                assert!(error.contains(expected), "{expected}: {error}");
            }
        }
        let copy = [
            "plugin",
            "copy",
            tag,
            "oci:copy:1.0",
            "--signers",
            "signers.yaml",
        ];
        let copied = site.run(&[&copy[..], &args[5..]].concat());
        assert_eq!(copied.status.success(), expected.is_none(), "{rest}");
    }
}

#[test]
#[ignore = "needs Go: `make test-registry`"]
fn moved_tags_and_old_signatures_are_refused() {
    let it = Signing::start();
    let (site, tag) = (&it.site, it.tag.as_str());
    let verify = ["plugin", "verify", tag, "--key", "cosign.pub"];
    // As cosign 2 signs.
    it.sign(
        "sign",
        "cosign.key",
        &[
            "--new-bundle-format=false",
            "--use-signing-config=false",
            "--tlog-upload=false",
        ],
    );
    let error = site.error(&verify);
    assert!(error.contains(".sig, as cosign before version 3 makes them, which is not read; sign it again with cosign 3"), "{error}");
    it.sign("sign", "cosign.key", &NONE);
    stdout(&site.run(&verify));
    // Another file is pushed under the tag.
    let team = test_plugin("team");
    stdout(&site.run(&["plugin", "push", &team, tag, "--annotation", "a=b"]));
    let error = site.error(&verify);
    assert!(error.contains("is not signed"), "{error}");
    stdout(&site.run(&["plugin", "verify", &it.pinned, "--key", "cosign.pub"]));
    assert!(!Path::new(&site.path().join("team.wasm")).exists());
}
