//! Progress that pods report. The containers of the trainer get the URL of the TrainJob on the controller's status server, a token that is
//! good for this TrainJob only, and the certificate authority of the server.
//!
//! Whether there is a status server is a fact of the host: without it, the plugin does nothing.

use trainyard_sdk::{
    Build, Context, Failure, Mount, Transform,
    json::{object, quoted},
};

/// The fact with the server's URL, up to the path.
const URL_FACT: &str = "status/url";
/// The fact with its certificate authorities. Without it, pods trust those of their image.
const CA_FACT: &str = "host/status-ca";

const URL: &str = "KUBEFLOW_TRAINER_SERVER_URL";
const CA_CERT: &str = "KUBEFLOW_TRAINER_SERVER_CA_CERT";
const TOKEN: &str = "KUBEFLOW_TRAINER_SERVER_TOKEN";

/// The volume with the token and the certificate authority.
const VOLUME: &str = "kubeflow-trainer-token";
const PATH: &str = "/var/run/secrets/kubeflow/trainer";

/// The ConfigMap with the certificate authority, and the key in it, which is also the name of the file.
const SUFFIX: &str = "-tls-config";
const CA_KEY: &str = "ca.crt";

/// How long a token is valid. A kubelet renews it after 80% of that time.
const TOKEN_SECONDS: u32 = 3600;

/// The policy for progress that pods report.
pub struct TrainJobStatus;

trainyard_sdk::plugin!(TrainJobStatus: transform, build);

impl Transform for TrainJobStatus {
    fn transform(ctx: &Context) -> Result<(), Failure> {
        let Some(server) = ctx.fact(URL_FACT) else {
            return Ok(());
        };
        let job = ctx.job();
        let resource = format!(
            "trainer.kubeflow.org/v1alpha1/namespaces/{}/trainjobs/{}/status",
            job.namespace(),
            job.name()
        );
        let url = format!("{}/apis/{resource}", server.trim_end_matches('/'));
        let has_authority = ctx.fact(CA_FACT).is_some();
        ctx.because("pods of the trainer report progress to the controller");
        for set in ctx.info().with_ancestor("trainer") {
            set.reserve_volume(VOLUME)?;
            set.put_raw_volume(VOLUME, &volume(ctx, &resource, has_authority));
            for container in set.containers() {
                container.put_env(URL, &url);
                if has_authority {
                    container.put_env(CA_CERT, &format!("{PATH}/{CA_KEY}"));
                }
                container.put_env(TOKEN, &format!("{PATH}/token"));
                container.put_mount(&Mount::new(VOLUME, PATH).read_only());
            }
        }
        Ok(())
    }
}

/// Returns the source of the volume: a token for this TrainJob, and the certificate authority.
fn volume(ctx: &Context, resource: &str, has_authority: bool) -> String {
    let token = object([
        ("audience", quoted(resource)),
        ("expirationSeconds", TOKEN_SECONDS.to_string()),
        ("path", quoted("token")),
    ]);
    let mut sources = object([("serviceAccountToken", token)]);
    if has_authority {
        let name = ctx.objects().name("v1", "ConfigMap", SUFFIX, None);
        let item = object([("key", quoted(CA_KEY)), ("path", quoted(CA_KEY))]);
        let config_map = object([("name", quoted(&name)), ("items", format!("[{item}]"))]);
        sources = format!("{sources},{}", object([("configMap", config_map)]));
    }
    object([("projected", object([("sources", format!("[{sources}]"))]))])
}

impl Build for TrainJobStatus {
    fn build(ctx: &Context) -> Result<(), Failure> {
        let (Some(_), Some(authority)) = (ctx.fact(URL_FACT), ctx.fact(CA_FACT)) else {
            return Ok(());
        };
        if ctx.info().with_ancestor("trainer").is_empty() {
            return Ok(());
        }
        let config_map = ctx.objects().emit("v1", "ConfigMap", SUFFIX, None);
        // The controller keeps the certificate authority current.
        config_map.set_apply("once");
        config_map.append(CA_KEY, &authority);
        Ok(())
    }
}
