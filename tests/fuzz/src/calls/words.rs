//! Texts that mean something in the record of the fuzzers, or to a method.

/// The texts.
pub(super) const WORDS: &[&str] = &[
    "", "node", "side", "setup", "launcher", "trainer", "llama", "new", "x", "team", "app", "data", "cache", "shm", "MODE", "NODE_NAME",
    "PET_NNODES", "A", "B", "/data", "/cache", "/data/", "/dev/shm", "//data//x", "..", "a/../b", "cpu", "memory", "nvidia.com/gpu",
    "example.com/gpu", "1", "4", "100m", "1500m", "3Gi", "-1", "1e999", "9223372036854775807", "0.0000000001", "TCP", "UDP", "SCTP", "80/TCP", "Always",
    "Never", "IfNotPresent", "None", "HostToContainer", "Bidirectional", "Disabled", "Enabled", "v1", "apps/v1", "resource.k8s.io/v1",
    "scheduling.x-k8s.io/v1alpha1", "node.k8s.io/v1", "ConfigMap", "Secret", "PodGroup", "ResourceClaimTemplate", "RuntimeClass", "LimitRange",
    "Pod", "Role", "known", "absent", "optional", "shared", "kata", "-a", "-b", "-mpi-ssh-auth", "-", "a.b", "info", "error", "warn",
    "debug", "resource/nvidia.com/gpu", "resource-claim/gpu", "gpu", "example.com/gate", "example.com/team",
    "kueue.x-k8s.io/queue-name", "app.kubernetes.io/name", "scheduling.x-k8s.io/pod-group", "jobset.sigs.k8s.io/replicatedjob-name",
    "metadata.name", "status.podIP", "limits.cpu", "requests.memory", "spec.nodeName", "CAP_NET_ADMIN", "IPC_LOCK", "hostNetwork",
    "runtimeClassName", "dnsConfig", "securityContext", "livenessProbe", "volumes", "image", "nodeAffinity", "podAffinity", "ed25519", "rsa", "ecdsa-p521", "id_rsa",
    "create", "live", "once", "suspended", "with-job-set", "Opaque", "kubernetes.io/tls", "", "/trainer/args", "/trainer/args/0", "/trainer/numNodes", "/a~1b/~0", "/-",
    "null", "true", "0", "{}", "[]", "\"text\"", "{\"a\":{\"b\":[1,2.5,null,\"x\"]}}", "{\"operator\":\"Exists\"}",
    "{\"hostPath\":{\"path\":\"/\"}}", "{\"emptyDir\":{}}", "{\"configMap\":{\"name\":\"llama-a\"}}", "{\"secret\":{\"secretName\":\"other\"}}",
    "{\"name\":\"data\",\"persistentVolumeClaim\":{\"claimName\":\"x\"}}", "{\"valueFrom\":{\"secretKeyRef\":{\"name\":\"s\",\"key\":\"k\"}}}",
    "{\"secretKeyRef\":{\"name\":\"s\",\"key\":\"k\"}}", "{\"fieldRef\":{\"fieldPath\":\"metadata.name\"}}",
    "{\"spec\":{\"minMember\":4}}", "{\"metadata\":{\"name\":\"other\",\"ownerReferences\":[]}}", "{\"data\":{\"k\":\"v\"}}",
    "{\"requiredDuringSchedulingIgnoredDuringExecution\":[]}", "{\"topologyKey\":\"zone\"}", "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
    "$(NODE_NAME)", "$(A)-$(B)", "${x}", "\u{202e}evil", "\u{1b}[2J", "a\nb", "é", "\u{1f600}", "\0", "trainyard.dev/x", "trainyard.dev/started", "spec.trainer.command", "runtime.metadata.annotations[a]",
    "env-from", "scheduling-gates", "dns-search.example.com", "llama-a", "llama-node-0-0.llama", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
];
