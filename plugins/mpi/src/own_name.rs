//! The name of the launcher's pod in its own hostfile, if it is a node.
//!
//! mpirun starts the processes of its own host directly, and those of other hosts by SSH. The launcher's pod has no SSH server, so mpirun
//! has to recognize its own line of the hostfile. Open MPI 5, MPICH before 5 and Intel MPI compare the line with the host name, which does
//! not include the subdomain.

use trainyard_sdk::{Context, PodSet};

/// The host name of the launcher's pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnName {
    /// The pod's name, as for every pod of an indexed Job.
    Short,
    /// The fully qualified name: `setHostnameAsFQDN`.
    Full,
    /// The machine's name, which is not known before the pod runs: `hostNetwork`. The hostfile has the pod's DNS name.
    Machine,
}

impl OwnName {
    pub(crate) fn of(ctx: &Context, launcher: &PodSet) -> Self {
        let base = ctx.base_of(launcher);
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

    /// Whether mpirun has to resolve the names in the hostfile to recognize its own.
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
