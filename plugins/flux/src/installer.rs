//! The init container that copies Flux from its image to a volume.
//!
//! Where the node container is accepted, so is this one: it has the same restrictions, for namespaces that enforce the Pod Security
//! Standard `restricted`, and the same resources, for namespaces with a quota. A pod's request is the larger of the two, so these
//! resources add nothing to it.

use trainyard_sdk::{Container, Context, Mount, PodSet};

use crate::{
    CONFIG, CONFIG_PATH, INSTALL, INSTALL_PATH, INSTALLER, Runtimes, SCRIPTS, SPACK,
    settings::Settings,
};

/// The default image of each architecture; there are no multi-architecture images.
const VIEW_IMAGES: [(&str, &str); 2] = [
    (
        "amd64",
        "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy",
    ),
    (
        "arm64",
        "ghcr.io/converged-computing/flux-view-ubuntu:arm-jammy",
    ),
];
/// The label of Kubernetes nodes with their architecture.
const ARCHITECTURE: &str = "kubernetes.io/arch";

/// The resources that a quota or a LimitRange can require of every container.
const RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Members of a container's security context that restrict it.
const RESTRICTIONS: [&str; 8] = [
    "allowPrivilegeEscalation",
    "appArmorProfile",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "seLinuxOptions",
    "seccompProfile",
];
/// The member with the capabilities that are dropped, which is a restriction.
const DROPPED: &str = "capabilities/drop";

/// Adds the init container, or configures that of the runtime.
pub(crate) fn install(
    ctx: &Context,
    pod_set: &PodSet,
    node: &Container,
    runtimes: Option<&Runtimes>,
    settings: &Settings,
) {
    let asked = settings.view_image.as_ref();
    let installer = match pod_set.container(INSTALLER) {
        Some(installer) => {
            // The runtime's container takes precedence over the runtime's env var, but not over the TrainJob's.
            if let Some((image, _)) = asked.filter(|(_, is_train_jobs)| *is_train_jobs) {
                ctx.because("FLUX_VIEW_IMAGE of the TrainJob");
                installer.set_image(image);
            }
            installer
        }
        None => {
            let image = match asked {
                Some((image, _)) => image,
                None => view_image(ctx, pod_set),
            };
            ctx.because("Flux comes from an image of its own");
            pod_set.add_init_container(INSTALLER, image)
        }
    };
    ctx.because("Flux is copied to a volume that the node container shares");
    pod_set.put_empty_dir(INSTALL, None, None);
    pod_set.put_empty_dir(SPACK, None, None);
    ctx.because("holds the scripts that install and start Flux");
    pod_set.put_own_config_map(CONFIG, SCRIPTS, Some(0o755), &[]);
    ctx.because("Flux is copied to a volume that the node container shares");
    installer.set_command(&["/bin/bash".to_owned(), format!("{CONFIG_PATH}/init.sh")]);
    installer.clear_args();
    installer.put_mount(&Mount::new(INSTALL, INSTALL_PATH));
    installer.put_mount(&Mount::new(CONFIG, CONFIG_PATH).read_only());
    let own = runtimes.and_then(|runtimes| runtimes.installer.as_ref());
    let has_own_context = own.is_some_and(has_security_context);
    if let Some(runtimes) = runtimes.filter(|_| !has_own_context) {
        restrict(ctx, runtimes, &installer);
    }
    bound(ctx, own, node, &installer);
    if let Some(runtimes) = runtimes {
        warn_of_unknown_user(ctx, pod_set, runtimes, has_own_context);
    }
}

/// Returns the default image for the pods' architecture. If the runtime does not choose one, pods are placed on the nodes that can run
/// the image: on others, it could not start.
fn view_image(ctx: &Context, pod_set: &PodSet) -> &'static str {
    let [(architecture, default), ..] = VIEW_IMAGES;
    let Some(chosen) = pod_set.node_selector(ARCHITECTURE) else {
        ctx.because(
            "the default image of Flux is for this architecture; choose another one with `nodeSelector`, or set FLUX_VIEW_IMAGE",
        );
        pod_set.put_node_selector(ARCHITECTURE, architecture);
        return default;
    };
    let mut images = VIEW_IMAGES.iter();
    let image = images.find_map(|(known, image)| (*known == chosen).then_some(*image));
    if image.is_none() {
        let message = format!(
            "there is no default image of Flux for `{chosen}`, and {architecture}'s cannot start there; set the env var FLUX_VIEW_IMAGE to one that can"
        );
        let field = pod_set.path(&format!("nodeSelector[{ARCHITECTURE}]"));
        ctx.warn(&message, Some(&field));
    }
    image.unwrap_or(default)
}

/// Restricts the installer as the runtime restricts the node container.
fn restrict(ctx: &Context, runtimes: &Runtimes, installer: &Container) {
    let Some(node) = &runtimes.node else { return };
    ctx.because("the same restrictions as those of the node container");
    for name in RESTRICTIONS {
        let member = member(name);
        if let Some(value) = node.raw(&member).and_then(|value| value.json("")) {
            installer.set_raw(&member, &value);
        }
    }
    let member = member(DROPPED);
    if let Some(dropped) = node.raw(&member).and_then(|value| value.json("")) {
        installer.set_raw(&member, &dropped);
    }
}

fn member(name: &str) -> String {
    format!("securityContext/{name}")
}

/// Returns whether the runtime's installer has a security context.
fn has_security_context(installer: &Container) -> bool {
    let mut names = RESTRICTIONS.into_iter().chain([DROPPED, "privileged"]);
    names.any(|name| installer.raw(&member(name)).is_some()) || !installer.capabilities().is_empty()
}

/// Gives the installer the node container's resources, unless the runtime's has some.
fn bound(ctx: &Context, own: Option<&Container>, node: &Container, installer: &Container) {
    if own.is_some_and(|own| !own.requests().is_empty() || !own.limits().is_empty()) {
        return;
    }
    ctx.because("the same resources as those of the node container, which runs after it");
    for resource in RESOURCES {
        if let Some(amount) = node.request(resource) {
            installer.set_request(resource, &amount);
        }
        if let Some(amount) = node.limit(resource) {
            installer.set_limit(resource, &amount);
        }
    }
}

/// Warns if it depends on the installer's image whether its container can start. `has_own_context` is whether the runtime's installer has a security
/// context; otherwise it gets that of the node container.
fn warn_of_unknown_user(
    ctx: &Context,
    pod_set: &PodSet,
    runtimes: &Runtimes,
    has_own_context: bool,
) {
    let Runtimes {
        set,
        node,
        installer,
    } = runtimes;
    let container = if has_own_context { installer } else { node }.as_ref();
    let of_container = |name: &str| container?.raw(&member(name));
    let value = |name: &str| of_container(name).or_else(|| set.raw(&member(name)));
    let is_not_root = value("runAsNonRoot").and_then(|value| value.boolean(""));
    if is_not_root != Some(true) || value("runAsUser").is_some() {
        return;
    }
    let message = format!(
        "is true without `runAsUser`; if the image of `{INSTALLER}` runs as root, its container cannot start; set `runAsUser`"
    );
    let field = "securityContext.runAsNonRoot";
    let is_of_container = of_container("runAsNonRoot").is_some();
    let field = match container.filter(|_| is_of_container) {
        Some(container) => pod_set.path_in(container, field),
        None => pod_set.path(field),
    };
    ctx.warn(&message, Some(&field));
}
