//! Emits a Secret with a key of each kind that MPI and Flux need: one for SSH, and a text around two keys.

use trainyard_sdk::{Build, Context, Failure, KeyFile, Mount, Transform};

const SUFFIX: &str = "-keys";

/// The label of a TrainJob with which the plugin traps after it has placed every key.
const TRAPS: &str = "example.com/traps";

/// The plugin.
pub struct Keys;

trainyard_sdk::plugin!(Keys: transform, build);

impl Transform for Keys {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        for pod_set in ctx.info().with_ancestor("trainer") {
            let files = [KeyFile::new("ssh-privatekey", "id_rsa").mode(0o600)];
            pod_set.put_own_secret("keys", SUFFIX, Some(0o400), &files);
            for container in pod_set.containers() {
                container.put_mount(&Mount::new("keys", "/keys").read_only());
            }
        }
        Ok(())
    }
}

impl Build for Keys {
    #[expect(clippy::panic, reason = "a core dump of this call is looked through")]
    fn build(ctx: &Context) -> Result<(), Failure> {
        let objects = ctx.objects();
        let secret = objects.emit("v1", "Secret", SUFFIX, None);
        secret.set_type("kubernetes.io/ssh-auth");
        let ssh = objects.key_pair("ssh", "ecdsa-p521");
        secret.append_secret("ssh-privatekey", &ssh.private("sec1-pem"));
        secret.append_secret("ssh-publickey", &ssh.public("openssh"));
        let curve = objects.key_pair("curve", "curve25519");
        secret.append("curve.cert", "curve\n    public-key = \"");
        secret.append_secret("curve.cert", &curve.public("z85"));
        secret.append("curve.cert", "\"\n    secret-key = \"");
        secret.append_secret("curve.cert", &curve.private("z85"));
        secret.append("curve.cert", "\"\n");
        secret.append_secret("token", &objects.random("token", 32, "base64"));
        secret.append("plain", &ctx.job().name());
        if ctx.job().label(TRAPS).is_some() {
            panic!("on purpose, with every key in its place");
        }
        Ok(())
    }
}
