//! How the launcher's pod is named in its own hostfile, if it is a node.
//!
//! mpirun starts the processes of its own host itself, and those of every other host by SSH. Nothing listens for SSH in the launcher's
//! pod, so mpirun has to find that one line of the hostfile is its own host. Open MPI 5, MPICH before 5 and Intel MPI find it by the
//! host name alone, which the name of a pod with its subdomain is not.

use trainyard_sdk::{Context, PodSet};

/// What the launcher's pod has for a host name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnName {
    /// The pod's name, as of every pod of a Job with indexes.
    Short,
    /// The same with its whole domain: `setHostnameAsFQDN`.
    Full,
    /// The machine's, which is not known before the pod runs: `hostNetwork`. The line is found by the pod's address.
    Machine,
}

impl OwnName {
    pub(crate) fn of(ctx: &Context, launcher: &PodSet) -> Self {
        let base = ctx.base().pod_set(&launcher.name());
        let is_set = |member: &str| {
            let value = base.as_ref().and_then(|set| set.raw(member)?.boolean(""));
            value == Some(true)
        };
        if is_set("hostNetwork") {
            Self::Machine
        } else if is_set("setHostnameAsFQDN") {
            Self::Full
        } else {
            Self::Short
        }
    }

    /// Whether mpirun has to resolve the hostfile's names to find its own.
    pub(crate) fn is_resolved(self) -> bool {
        self == Self::Machine
    }

    /// The name in the hostfile.
    pub(crate) fn text(self, ctx: &Context, launcher: &PodSet) -> String {
        let address = launcher.address(0, 0);
        match self {
            Self::Short => match address.split_once('.') {
                Some((name, _)) => name.to_owned(),
                None => address,
            },
            Self::Full => {
                let (namespace, domain) = (ctx.job().namespace(), ctx.info().cluster_domain());
                format!("{address}.{namespace}.svc.{domain}")
            }
            Self::Machine => address,
        }
    }
}
