//! Each MPI implementation gets its hosts, processes and ssh arguments under its own names only.

use serde_json::{Value, json};
use trainyard_plugin_mpi::PLUGIN;
use trainyard_sdk::mock::{MockContainer, MockJob};

use crate::common::{LAUNCHER, NODE, as_node, env as env_of, gpus, hostfile, job};

const HOSTS: &str = "/etc/mpi/hostfile";
const SSH: &str = "-o ConnectionAttempts=10";

fn of(implementation: &str) -> MockJob {
    job(gpus).config(json!({"mpiImplementation": implementation}))
}

/// The env vars that are set, by container and name.
fn environment(job: MockJob) -> Vec<(String, Value)> {
    let writes = job.transform(&PLUGIN).unwrap().writes();
    let env = writes.into_iter().filter_map(|(path, value)| {
        let name = path.strip_prefix(LAUNCHER)?.strip_prefix(".env[")?;
        Some((name.trim_end_matches(']').to_owned(), value.unwrap()))
    });
    env.collect()
}

fn named(expected: &[(&str, &str)]) -> Vec<(String, Value)> {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), json!(value));
    expected.iter().map(pair).collect()
}

#[test]
fn open_mpi_gets_orte_and_prrte_variables() {
    let expected = named(&[
        ("OMPI_MCA_orte_default_hostfile", HOSTS),
        ("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
        ("OMPI_MCA_orte_set_default_slots", "2"),
        ("OMPI_MCA_plm_rsh_args", SSH),
        ("PRTE_MCA_prte_default_hostfile", HOSTS),
        ("PRTE_MCA_prte_keep_fqdn_hostnames", "true"),
        ("PRTE_MCA_prte_set_default_slots", "2"),
        ("PRTE_MCA_plm_ssh_args", SSH),
    ]);
    assert_eq!(environment(of("OpenMPI")), expected);
    assert_eq!(environment(of("")), expected);
    assert_eq!(environment(job(gpus)), expected);
}

#[test]
fn variables_of_open_mpi_5_are_defaults() {
    let job = job(|c| {
        c.env("PRTE_MCA_plm_ssh_args", "-p 2222")
            .env("OMPI_MCA_plm_rsh_args", "-p 2222")
    });
    let outcome = job.transform(&PLUGIN).unwrap();
    assert_eq!(env_of(&outcome, "PRTE_MCA_plm_ssh_args"), None, "unchanged");
    assert_eq!(env_of(&outcome, "OMPI_MCA_plm_rsh_args"), Some(json!(SSH)));
}

#[test]
fn intel_mpi_gets_its_variables() {
    let expected = named(&[
        ("I_MPI_HYDRA_HOST_FILE", HOSTS),
        ("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", SSH),
        ("I_MPI_PERHOST", "2"),
    ]);
    assert_eq!(environment(of("Intel")), expected);
}

#[test]
fn mpich_gets_current_and_older_variables() {
    let expected = named(&[
        ("HYDRA_HOST_FILE", HOSTS),
        ("HYDRA_LAUNCHER_EXTRA_ARGS", SSH),
        ("HYDRA_LAUNCH_EXTRA_ARGS", SSH),
    ]);
    assert_eq!(environment(of("MPICH")), expected);
}

#[test]
fn hostfile_has_the_format_of_the_implementation() {
    let lines = |end: &str| -> String {
        let line = |at| format!("llm-node-0-{at}.llm{end}\n");
        (0..3).map(line).collect()
    };
    assert_eq!(hostfile(of("OpenMPI")), lines(" slots=2"));
    for implementation in ["Intel", "MPICH"] {
        assert_eq!(hostfile(of(implementation)), lines(":2"));
    }
}

#[test]
fn pods_whose_daemons_connect_by_name_search_the_subdomain() {
    let search = "dns-searches[mesh.ml.svc.cluster.local]";
    for (implementation, expected) in [("OpenMPI", false), ("Intel", true), ("MPICH", true)] {
        let job = as_node(gpus)
            .config(json!({"runLauncherAsNode": true, "mpiImplementation": implementation}))
            .namespace("ml")
            .subdomain("mesh");
        let writes = job.transform(&PLUGIN).unwrap().writes();
        for set in ["node", "launcher"] {
            let path = format!("pod-sets[{set}].{search}");
            let found = writes.iter().any(|(written, _)| *written == path);
            assert_eq!(found, expected, "{implementation}: {writes:?}");
        }
    }
}

#[test]
fn open_mpi_5_resolves_names_where_the_launcher_has_the_machines() {
    const RESOLVE: &str = "PRTE_MCA_prte_do_not_resolve";
    let with = |implementation: &str, is_node: bool, member: &str, env: Option<&str>| {
        let job = MockJob::new("llm")
            .all_granted()
            .nodes(2)
            .pod_set("node", |set| set.container("node", gpus))
            .pod_set("launcher", |set| {
                let mine = |c: MockContainer| match env {
                    Some(value) => c.env(RESOLVE, value),
                    None => c,
                };
                set.container("node", mine).raw(member, json!(true))
            })
            .config(json!({"runLauncherAsNode": is_node, "mpiImplementation": implementation}));
        env_of(&job.transform(&PLUGIN).unwrap(), RESOLVE)
    };
    let no = Some(json!("false"));
    assert_eq!(with("OpenMPI", true, "hostNetwork", None), no);
    assert_eq!(with("OpenMPI", true, "hostIPC", None), None);
    assert_eq!(with("OpenMPI", false, "hostNetwork", None), None);
    assert_eq!(with("MPICH", true, "hostNetwork", None), None);
    // What the runtime's author set is left.
    assert_eq!(with("OpenMPI", true, "hostNetwork", Some("true")), None);
}

#[test]
fn only_the_launcher_gets_the_environment() {
    let writes = of("OpenMPI").transform(&PLUGIN).unwrap().writes();
    let of_nodes = format!("{NODE}.env[");
    assert!(!writes.iter().any(|(path, _)| path.starts_with(&of_nodes)));
}

#[test]
fn runtime_values_are_replaced_only_for_variables_in_use() {
    let with = |name: &'static str, implementation: &str| {
        let outcome = job(|c| c.env(name, "mine"))
            .config(json!({"mpiImplementation": implementation}))
            .transform(&PLUGIN)
            .unwrap();
        outcome.value(&format!("{LAUNCHER}.env[{name}]"))
    };
    assert_eq!(with("HYDRA_HOST_FILE", "MPICH"), Some(json!(HOSTS)));
    assert_eq!(with("HYDRA_HOST_FILE", "OpenMPI"), None);
    assert_eq!(with("OMPI_MCA_plm_rsh_args", "OpenMPI"), Some(json!(SSH)));
    assert_eq!(with("OMPI_MCA_plm_rsh_args", ""), Some(json!(SSH)));
}
