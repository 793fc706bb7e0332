//! Labels and annotations that controllers obey.

use std::sync::Arc;

use super::Field;

/// The most domains of an operator's list.
pub const MAX_OBEYED: usize = 256;

/// The domains whose labels and annotations controllers obey: they put pods into gangs, queues and topologies, give them networks and
/// identities, or act as a security context. Writing such a key needs a claim and a grant that name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObeyedDomains(Arc<[Box<str>]>);

impl Default for ObeyedDomains {
    /// Kubernetes and its projects such as JobSet and Kueue, schedulers and queues, networks, injectors, and the identities of clouds.
    fn default() -> Self {
        Self::new([
            "kubernetes.io",
            "k8s.io",
            "x-k8s.io",
            "volcano.sh",
            "kai.scheduler",
            "koordinator.sh",
            "yunikorn.apache.org",
            "karpenter.sh",
            "cncf.io",
            "cilium.io",
            "projectcalico.org",
            "istio.io",
            "linkerd.io",
            "vault.hashicorp.com",
            "openshift.io",
            "amazonaws.com",
            "azure.workload.identity",
            "gke.io",
            "cloud.google.com",
            "run.ai",
        ])
    }
}

impl ObeyedDomains {
    /// Returns these domains, and those below them.
    pub fn new<S: Into<Box<str>>>(domains: impl IntoIterator<Item = S>) -> Self {
        Self(domains.into_iter().map(Into::into).collect())
    }

    /// Returns the list with some domains added, and without others.
    #[must_use]
    pub fn changed(&self, add: &[String], remove: &[String]) -> Self {
        let kept = self
            .domains()
            .filter(|of| !remove.iter().any(|it| it == of));
        let added = add.iter().map(String::as_str);
        let mut domains: Vec<&str> = kept.collect();
        domains.extend(added.filter(|domain| !self.0.iter().any(|it| **it == **domain)));
        Self::new(domains)
    }

    /// The domains, in their order.
    pub fn domains(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|domain| &**domain)
    }

    /// Whether writing the key of a field needs a claim and a grant that name it. Keys of `app.kubernetes.io` do not.
    #[must_use]
    pub fn contain(&self, field: Field, key: &str) -> bool {
        let domain = || key.split_once('/').map_or("", |(domain, _)| domain);
        field.is_metadata()
            && (key.starts_with("io.kubernetes.cri-o.")
                || domain() != "app.kubernetes.io" && self.are_above(domain()))
    }

    /// Whether the domain is in the list, or below a domain in it.
    fn are_above(&self, domain: &str) -> bool {
        self.domains()
            .filter_map(|of| domain.strip_suffix(of))
            .any(|before| before.is_empty() || before.ends_with('.'))
    }
}
