//! How a pod ends.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use thiserror::Error;

/// The outcome of a running pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It runs until it gets another fate or is deleted.
    Hold,
    /// Its containers run as processes of this machine, with the [images](crate::Images) of the kubelet. A pod that has started keeps this
    /// fate.
    Run,
    /// Its containers succeed.
    Succeed,
    /// Its containers exit with this code. If the restart policy is OnFailure, they are restarted and fail again, as on a real node, until
    /// the pod's owner gives up.
    Fail(i32),
}

/// An annotation without a valid fate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the annotation {annotation} is {0:?}: it must be hold, run, succeed, fail, or fail: with an exit code from 1 to 255",
    annotation = Fate::ANNOTATION
)]
pub struct UnknownFate(String);

impl Fate {
    /// The annotation with a pod's fate: `hold`, `run`, `succeed`, `fail`, or `fail:7` for an exit code. It can be changed while the pod runs.
    pub const ANNOTATION: &'static str = "fake-kubelet.trainyard.dev/fate";

    /// Returns the fate in the pod's annotation, or `default` if it has none.
    ///
    /// # Errors
    /// The annotation is not a valid fate.
    pub fn of(pod: &Pod, default: Self) -> Result<Self, UnknownFate> {
        let Some(text) = pod.annotations().get(Self::ANNOTATION) else {
            return Ok(default);
        };
        let unknown = || UnknownFate(text.clone());
        match text.as_str() {
            "hold" => Ok(Self::Hold),
            "run" => Ok(Self::Run),
            "succeed" => Ok(Self::Succeed),
            "fail" => Ok(Self::Fail(1)),
            _ => {
                let code = text.strip_prefix("fail:").ok_or_else(unknown)?;
                let code: u8 = code.parse().map_err(|_| unknown())?;
                if code == 0 {
                    return Err(unknown());
                }
                Ok(Self::Fail(i32::from(code)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn annotation_decides_the_fate_of_a_pod() {
        let of = |text: &str| {
            let annotations = json!({Fate::ANNOTATION: text});
            let pod = json!({"metadata": {"annotations": annotations}});
            Fate::of(&serde_json::from_value(pod).unwrap(), Fate::Succeed)
        };
        for default in [Fate::Succeed, Fate::Hold] {
            assert_eq!(Fate::of(&Pod::default(), default), Ok(default));
        }
        assert_eq!(of("hold"), Ok(Fate::Hold));
        assert_eq!(of("run"), Ok(Fate::Run));
        assert_eq!(of("succeed"), Ok(Fate::Succeed));
        assert_eq!(of("fail"), Ok(Fate::Fail(1)));
        assert_eq!(of("fail:137"), Ok(Fate::Fail(137)));
        for text in ["", "Hold", "fail:", "fail:0", "fail:256", "fail:-1"] {
            assert_eq!(of(text), Err(UnknownFate(text.to_owned())));
        }
    }
}
