//! Applies objects to the cluster, as the Jobs of the chart do.

use anyhow::anyhow;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::Value;
use trainyard_controller::client::message_of;

/// Applies an object that is in no namespace, as `kubectl apply --server-side --force-conflicts` does.
pub(crate) async fn apply(
    client: Client,
    kind: &GroupVersionKind,
    name: &str,
    object: &Value,
) -> Result<(), anyhow::Error> {
    let objects: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(kind));
    let params = PatchParams::apply("trainyard").force().validation_strict();
    let applied = objects.patch(name, &params, &Patch::Apply(object)).await;
    let kind = &kind.kind;
    applied.map(drop).map_err(|error| match error {
        kube::Error::Api(answer) if answer.is_not_found() => {
            anyhow!("{kind} is not served; apply the CRDs, which `trainyard crds` prints")
        }
        error => anyhow!("{kind} {name} cannot be applied: {}", message_of(&error)),
    })
}
