//! The hostfile format and the env vars of each MPI implementation.

use crate::config::Implementation;

/// The directory of the hostfile in the launcher.
pub(crate) const HOSTFILE_DIR: &str = "/etc/mpi";
/// The name of the hostfile, and its key in the ConfigMap.
pub(crate) const HOSTFILE: &str = "hostfile";
/// The arguments of ssh. It retries, because a pod's DNS name may not resolve at first.
const SSH_ARGS: &str = "-o ConnectionAttempts=10";

/// An env var of the launcher, with the reason for it.
pub(crate) struct Var {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) because: &'static str,
}

impl Var {
    /// Whether a value of the runtime or the TrainJob is kept. The Kubeflow Trainer does not configure Open MPI 5, so those who use it
    /// there set its variables themselves.
    pub(crate) fn is_default(&self) -> bool {
        self.name.starts_with("PRTE_MCA_")
    }
}

impl Implementation {
    /// The implementation's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI",
            Self::Intel => "Intel MPI",
            Self::Mpich => "MPICH",
        }
    }

    /// The end of a line of the hostfile, after the host.
    pub(crate) fn line_end(self, slots: u32) -> String {
        match self {
            Self::OpenMpi => format!(" slots={slots}\n"),
            Self::Intel | Self::Mpich => format!(":{slots}\n"),
        }
    }

    /// Whether its daemons on the nodes connect to the launcher by its host name, which is not a DNS name. Those of Open MPI use
    /// addresses.
    pub(crate) const fn calls_back_by_name(self) -> bool {
        matches!(self, Self::Intel | Self::Mpich)
    }

    /// Whether it starts the same number of processes on each host, regardless of the hostfile.
    pub(crate) const fn has_one_number_for_all_hosts(self) -> bool {
        matches!(self, Self::Intel)
    }

    /// The launcher's env vars.
    pub(crate) fn environment(self, slots: u32) -> Vec<Var> {
        let (hostfile, ssh) = (format!("{HOSTFILE_DIR}/{HOSTFILE}"), SSH_ARGS.to_owned());
        let (slots, yes) = (slots.to_string(), "true".to_owned());
        let vars: Vec<(&'static str, String, &'static str)> = match self {
            Self::OpenMpi => vec![
                ("OMPI_MCA_orte_default_hostfile", hostfile.clone(), HOSTS),
                ("OMPI_MCA_orte_keep_fqdn_hostnames", yes.clone(), NAMES),
                ("OMPI_MCA_orte_set_default_slots", slots.clone(), SLOTS),
                ("OMPI_MCA_plm_rsh_args", ssh.clone(), SSH),
                ("PRTE_MCA_prte_default_hostfile", hostfile, HOSTS_5),
                ("PRTE_MCA_prte_keep_fqdn_hostnames", yes, NAMES_5),
                ("PRTE_MCA_prte_set_default_slots", slots, SLOTS_5),
                ("PRTE_MCA_plm_ssh_args", ssh, SSH_5),
            ],
            Self::Intel => vec![
                ("I_MPI_HYDRA_HOST_FILE", hostfile, HOSTS),
                ("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", ssh, SSH),
                ("I_MPI_PERHOST", slots, PER_HOST),
            ],
            Self::Mpich => vec![
                ("HYDRA_HOST_FILE", hostfile, HOSTS),
                ("HYDRA_LAUNCHER_EXTRA_ARGS", ssh.clone(), SSH),
                ("HYDRA_LAUNCH_EXTRA_ARGS", ssh, SSH_3),
            ],
        };
        let var = |(name, value, because)| Var {
            name,
            value,
            because,
        };
        vars.into_iter().map(var).collect()
    }

    /// The env var with which it resolves the names in the hostfile to recognize its own host. Open MPI 4 always does so.
    pub(crate) fn resolving(self) -> Option<Var> {
        (self == Self::OpenMpi).then(|| Var {
            name: "PRTE_MCA_prte_do_not_resolve",
            value: "false".to_owned(),
            because: "the launcher has the machine's host name, so that mpirun finds its own line of the hostfile by its address (Open MPI 5)",
        })
    }

    /// The versions that recognize their own line of the hostfile only by the host name.
    pub(crate) const fn compares_names(self) -> Option<&'static str> {
        match self {
            Self::OpenMpi => None,
            Self::Intel => Some("Intel MPI"),
            Self::Mpich => Some("MPICH before 5"),
        }
    }
}

const HOSTS: &str = "where mpirun finds the hosts";
const HOSTS_5: &str = "where mpirun of Open MPI 5 finds the hosts";
const NAMES: &str = "the pods' names are known with their subdomain only";
const NAMES_5: &str = "the pods' names are known with their subdomain only (Open MPI 5)";
const SLOTS: &str = "processes on a host whose line gives no number";
const SLOTS_5: &str = "processes on a host whose line gives no number (Open MPI 5)";
const PER_HOST: &str = "processes on each host, which Intel MPI does not take from the hostfile";
const SSH: &str = "a pod's name may not be known at once";
const SSH_5: &str = "a pod's name may not be known at once (Open MPI 5)";
const SSH_3: &str = "a pod's name may not be known at once (MPICH before 4)";
