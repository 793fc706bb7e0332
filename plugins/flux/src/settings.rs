//! Settings by env vars of the node container, as in the Kubeflow Trainer.

use trainyard_sdk::{Container, Failure, PodSet};

/// The image that Flux is copied from.
const VIEW_IMAGE: &str = "FLUX_VIEW_IMAGE";
/// The network device on which brokers listen.
const NETWORK_DEVICE: &str = "FLUX_NETWORK_DEVICE";
/// The order in which Fluxion runs jobs.
const QUEUE_POLICY: &str = "FLUX_QUEUE_POLICY";
/// How long tasks may run after the first of them has ended.
const EXIT_TIMEOUT: &str = "FLUX_EXIT_TIMEOUT";

/// The settings of Flux.
pub(crate) struct Settings {
    /// The image, and whether the TrainJob sets it rather than the runtime.
    pub(crate) view_image: Option<(String, bool)>,
    /// The device on which brokers listen. `None` for all of them.
    pub(crate) network_device: Option<String>,
    pub(crate) queue_policy: String,
    pub(crate) exit_timeout: String,
}

impl Settings {
    /// Reads the env vars of the node container, and adds their errors.
    pub(crate) fn read(node: &Container, pod_set: &PodSet, problems: &mut Vec<Failure>) -> Self {
        let mut read = |name: &str, is_right: fn(&str) -> bool, what: &str| {
            let owner = node.env_owner(name)?;
            let is_train_jobs = owner == "trainjob";
            let problem = match node.env(name) {
                Some(value) if is_right(&value) => return Some((value, is_train_jobs)),
                Some(value) => format!("must be {what}; found `{value}`"),
                None => format!("must be {what}; `valueFrom` is not supported"),
            };
            let field = match is_train_jobs {
                true => format!("spec.trainer.env[{name}]"),
                false => pod_set.path_in(node, &format!("env[{name}]")),
            };
            problems.push(Failure::from(problem).at(field));
            None
        };
        let view_image = read(VIEW_IMAGE, is_image, "an image with a Flux view");
        let device = read(
            NETWORK_DEVICE,
            is_device,
            "the name of a network device, such as `eth0`",
        );
        let policy = read(
            QUEUE_POLICY,
            is_policy,
            "a queue policy of Fluxion, such as `fcfs` or `easy`",
        );
        let timeout = read(
            EXIT_TIMEOUT,
            is_duration,
            "a duration of Flux, such as `30s` or `10m`, or `none`",
        );
        Self {
            view_image,
            network_device: device.map(|(device, _)| device),
            queue_policy: policy.map_or_else(|| "fcfs".to_owned(), |(policy, _)| policy),
            exit_timeout: timeout.map_or_else(|| "30s".to_owned(), |(timeout, _)| timeout),
        }
    }
}

fn is_image(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic())
}

/// Names of network devices have at most 15 characters on Linux.
fn is_device(text: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=15).contains(&text.len()) && text.bytes().all(is_part)
}

fn is_policy(text: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    (1..=63).contains(&text.len()) && text.bytes().all(is_part)
}

/// Whether the text is a duration of Flux: a number with `ms`, `s`, `m`, `h` or `d`.
fn is_duration(text: &str) -> bool {
    let units = ["ms", "s", "m", "h", "d"];
    let number = units
        .iter()
        .find_map(|unit| text.strip_suffix(unit))
        .unwrap_or(text);
    let mut parts = number.splitn(2, '.');
    let is_whole = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text == "none" || text.len() <= 16 && parts.all(is_whole)
}
