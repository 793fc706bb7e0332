//! The names that a pod resolves. A cluster's DNS makes them of EndpointSlices, and so does this.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use futures_util::{StreamExt as _, pin_mut};
use k8s_openapi::api::{core::v1::Pod, discovery::v1::EndpointSlice};
use kube::{
    Api, Client, ResourceExt as _,
    runtime::watcher::{self, Event},
};
use tokio::sync::watch;
use trainyard_pods::HostsFile;

use super::{isolation::Isolation, sandbox::on_loopback};

/// The domain of a cluster.
const CLUSTER: &str = "cluster.local";
/// The label with the name of an EndpointSlice's Service.
const SERVICE: &str = "kubernetes.io/service-name";

/// Addresses with their names, of each EndpointSlice.
type Records = BTreeMap<(String, String), Vec<(IpAddr, Vec<String>)>>;

/// The names of a cluster, and the files of the pods that resolve them.
#[derive(Debug, Default)]
pub(super) struct Names {
    state: Mutex<State>,
    are_listed: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    records: Records,
    files: BTreeMap<String, (Resolver, HostsFile)>,
}

/// What a pod knows of names by itself.
#[derive(Clone, Debug)]
pub(super) struct Resolver {
    isolation: Isolation,
    own: Vec<String>,
    searches: Vec<String>,
}

impl Resolver {
    pub(super) fn of(pod: &Pod, ip: IpAddr, host_name: &str, isolation: Isolation) -> Self {
        let spec = pod.spec.clone().unwrap_or_default();
        let namespace = pod.namespace().unwrap_or_default();
        let full = spec
            .subdomain
            .filter(|it| !it.is_empty())
            .map(|subdomain| format!("{host_name}.{subdomain}.{namespace}.svc.{CLUSTER}\t"));
        let mut own = vec![
            "127.0.0.1\tlocalhost".to_owned(),
            format!("{ip}\t{}{host_name}", full.unwrap_or_default()),
        ];
        for alias in spec.host_aliases.iter().flatten() {
            let names = alias.hostnames.clone().unwrap_or_default().join("\t");
            own.push(format!("{}\t{names}", alias.ip));
        }
        let mut searches = Vec::new();
        if spec.dns_policy.as_deref() != Some("None") {
            let domains = [
                format!("{namespace}.svc."),
                "svc.".to_owned(),
                String::new(),
            ];
            searches.extend(domains.map(|domain| format!("{domain}{CLUSTER}")));
        }
        let more = spec.dns_config.and_then(|config| config.searches);
        searches.extend(more.unwrap_or_default());
        Self {
            isolation,
            own,
            searches,
        }
    }

    /// Returns the contents of `/etc/hosts`, in which each name is also found by its part before a domain that is searched.
    fn hosts(&self, records: &Records) -> String {
        let mut hosts = self.own.join("\n") + "\n";
        for (ip, names) in records.values().flatten() {
            let ip = match self.isolation {
                Isolation::Loopback => on_loopback(*ip),
                _ => *ip,
            };
            hosts += &ip.to_string();
            for name in names {
                let short = self
                    .searches
                    .iter()
                    .filter_map(|domain| name.strip_suffix(domain.as_str())?.strip_suffix('.'));
                for name in [name.as_str()].into_iter().chain(short) {
                    hosts.push('\t');
                    hosts += name;
                }
            }
            hosts.push('\n');
        }
        hosts
    }
}

impl Names {
    /// Creates the file of a pod at this path, and keeps it up to date until the pod is [forgotten](Self::forget).
    pub(super) fn add(
        &self,
        uid: &str,
        resolver: Resolver,
        path: std::path::PathBuf,
    ) -> anyhow::Result<()> {
        let mut state = self.state();
        let file = HostsFile::create(path, resolver.hosts(&state.records))?;
        state.files.insert(uid.to_owned(), (resolver, file));
        Ok(())
    }

    pub(super) fn forget(&self, uid: &str) {
        self.state().files.remove(uid);
    }

    /// Watches EndpointSlices.
    pub(super) async fn watch(&self, client: Client) {
        let slices: Api<EndpointSlice> = Api::all(client);
        let events = watcher::watcher(slices, watcher::Config::default());
        pin_mut!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Apply(slice) | Event::InitApply(slice)) => {
                    self.change(|all| all.insert(key(&slice), records(&slice)));
                }
                Ok(Event::Delete(slice)) => self.change(|all| all.remove(&key(&slice))),
                Ok(Event::Init) => {}
                Ok(Event::InitDone) => drop(self.are_listed.send_replace(true)),
                Err(_) => tokio::time::sleep(crate::kubelet::AGAIN_AFTER).await,
            }
        }
    }

    /// Waits until those of all Services that exist are known.
    pub(super) async fn until_listed(&self) {
        // The sender is in this value.
        let _ = self.are_listed.subscribe().wait_for(|are| *are).await;
    }

    fn change<T>(&self, change: impl FnOnce(&mut Records) -> T) {
        let mut state = self.state();
        let state = &mut *state;
        change(&mut state.records);
        for (resolver, file) in state.files.values_mut() {
            // The folder is gone if the kubelet is.
            let _ = file.set(resolver.hosts(&state.records));
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(slice: &EndpointSlice) -> (String, String) {
    (slice.namespace().unwrap_or_default(), slice.name_any())
}

/// Returns the addresses of an EndpointSlice with their names: that of the Service, and that of the pod in it.
fn records(slice: &EndpointSlice) -> Vec<(IpAddr, Vec<String>)> {
    let Some(service) = slice.labels().get(SERVICE) else {
        return Vec::new();
    };
    let namespace = slice.namespace().unwrap_or_default();
    let domain = format!("{service}.{namespace}.svc.{CLUSTER}");
    let endpoints = slice.endpoints.iter().flatten();
    // The controller says of a Service with publishNotReadyAddresses that all are ready.
    let ready = endpoints.filter(|endpoint| {
        let conditions = endpoint.conditions.as_ref();
        conditions.and_then(|conditions| conditions.ready) != Some(false)
    });
    ready
        .flat_map(|endpoint| {
            let host = endpoint.hostname.as_ref();
            let host = host.map(|host| format!("{host}.{domain}"));
            let names: Vec<String> = host.into_iter().chain([domain.clone()]).collect();
            let addresses = endpoint.addresses.iter();
            addresses.filter_map(move |address| Some((address.parse().ok()?, names.clone())))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::Ipv4Addr;

    use serde_json::json;

    use super::*;

    fn all() -> Records {
        let slice = json!({
            "metadata": {"name": "llm-x", "namespace": "team", "labels": {SERVICE: "llm"}},
            "addressType": "IPv4",
            "endpoints": [
                {"addresses": ["10.244.0.1"], "hostname": "llm-node-0-0", "conditions": {"ready": true}},
                {"addresses": ["10.244.0.2"], "hostname": "llm-node-0-1", "conditions": {"ready": false}},
                {"addresses": ["10.244.0.3"]},
            ],
        });
        let slice: EndpointSlice = serde_json::from_value(slice).unwrap();
        Records::from([(key(&slice), records(&slice))])
    }

    fn hosts(namespace: &str, spec: serde_json::Value) -> String {
        let pod = json!({"metadata": {"name": "me", "namespace": namespace}, "spec": spec});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let ip = IpAddr::V4(Ipv4Addr::new(10, 244, 0, 9));
        Resolver::of(&pod, ip, "me", Isolation::Root).hosts(&all())
    }

    #[test]
    fn ready_pods_are_found_by_full_and_short_names() {
        let found = hosts("team", json!({"containers": [], "subdomain": "llm"}));
        let full = "llm.team.svc.cluster.local\tllm\tllm.team\tllm.team.svc";
        let expected = format!(
            "127.0.0.1\tlocalhost\n10.244.0.9\tme.llm.team.svc.cluster.local\tme\n\
             10.244.0.1\tllm-node-0-0.llm.team.svc.cluster.local\tllm-node-0-0.llm\tllm-node-0-0.llm.team\t\
             llm-node-0-0.llm.team.svc\t{full}\n10.244.0.3\t{full}\n"
        );
        assert_eq!(found, expected);
    }

    #[test]
    fn pods_of_other_namespaces_have_no_short_name_unless_searched() {
        let other = hosts("other", json!({"containers": []}));
        assert!(
            other.contains("\tllm-node-0-0.llm.team\t") && !other.contains("\tllm-node-0-0.llm\t")
        );
        let config = json!({"searches": ["llm.team.svc.cluster.local"]});
        let spec = json!({"containers": [], "dnsPolicy": "None", "dnsConfig": config});
        let searched = hosts("other", spec);
        assert!(
            searched.contains("\tllm-node-0-0\t")
                && !searched.contains("\tllm-node-0-0.llm.team\t")
        );
    }

    #[test]
    fn aliases_of_the_pod_are_names() {
        let aliases = json!([{"ip": "10.1.2.3", "hostnames": ["a", "b"]}]);
        let found = hosts("team", json!({"containers": [], "hostAliases": aliases}));
        assert!(found.contains("\n10.1.2.3\ta\tb\n"), "{found}");
    }
}
