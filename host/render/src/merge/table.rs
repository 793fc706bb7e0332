//! Which lists of a JobSet's spec merge by a key: what Kubernetes' API declares as `patchMergeKey`, as far as a JobSet
//! reaches. A list that does not stand here is replaced as a whole.

/// What stands below an object of a JobSet's spec.
#[derive(Debug)]
pub(crate) struct Node {
    children: &'static [(&'static str, Child)],
}

/// What a field of a [`Node`] holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Child {
    /// An object.
    Object(&'static Node),
    /// An object whose keys are the user's.
    Map,
    /// A list whose items are told apart by a field of theirs.
    List(&'static str, &'static Node),
}

impl Node {
    /// What stands in a field; an object without keyed lists where the table says nothing.
    pub(crate) fn child(&self, field: &str) -> Child {
        self.children
            .iter()
            .find(|(name, _)| *name == field)
            .map_or(Child::Object(&PLAIN), |(_, child)| *child)
    }
}

/// An object without keyed lists.
pub(crate) static PLAIN: Node = Node { children: &[] };

/// `spec` of a JobSet.
pub(crate) static JOB_SET_SPEC: Node = Node {
    children: &[("replicatedJobs", Child::List("name", &REPLICATED_JOB))],
};

static REPLICATED_JOB: Node = Node {
    children: &[
        ("template", Child::Object(&JOB_TEMPLATE)),
        ("dependsOn", Child::List("name", &PLAIN)),
    ],
};

static JOB_TEMPLATE: Node = Node {
    children: &[
        ("metadata", Child::Object(&METADATA)),
        ("spec", Child::Object(&JOB_SPEC)),
    ],
};

static METADATA: Node = Node {
    children: &[("labels", Child::Map), ("annotations", Child::Map)],
};

static JOB_SPEC: Node = Node {
    children: &[("template", Child::Object(&POD_TEMPLATE))],
};

static POD_TEMPLATE: Node = Node {
    children: &[
        ("metadata", Child::Object(&METADATA)),
        ("spec", Child::Object(&POD_SPEC)),
    ],
};

static POD_SPEC: Node = Node {
    children: &[
        ("volumes", Child::List("name", &PLAIN)),
        ("initContainers", Child::List("name", &CONTAINER)),
        ("containers", Child::List("name", &CONTAINER)),
        ("ephemeralContainers", Child::List("name", &CONTAINER)),
        ("imagePullSecrets", Child::List("name", &PLAIN)),
        ("hostAliases", Child::List("ip", &PLAIN)),
        (
            "topologySpreadConstraints",
            Child::List("topologyKey", &PLAIN),
        ),
        ("schedulingGates", Child::List("name", &PLAIN)),
        ("resourceClaims", Child::List("name", &PLAIN)),
        ("nodeSelector", Child::Map),
    ],
};

static CONTAINER: Node = Node {
    children: &[
        ("env", Child::List("name", &PLAIN)),
        ("volumeMounts", Child::List("mountPath", &PLAIN)),
        ("volumeDevices", Child::List("devicePath", &PLAIN)),
        ("ports", Child::List("containerPort", &PLAIN)),
    ],
};
