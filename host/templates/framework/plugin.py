"""Tells the processes of a framework how many nodes there are, which one they run on, and where the first one listens."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports.types import Failure

# The field of a pod that contains its index in its Job.
POD_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
HOST_NAMES = "spec.template.spec.network.enableDNSHostnames"
REPLICATED_JOBS = "spec.template.spec.replicatedJobs"


class Transform(exports.Transform):
    def transform(self, ctx):
        # The schema in manifest.json has a default.
        port = ctx.job().config().integer("/port")
        pod_set, node = trainer(ctx)
        if not ctx.info().has_host_names():
            ctx.warn("is false, so trainyard-template-framework cannot find the first node by its DNS name; remove it, or set it to true", HOST_NAMES)
        if not pod_set.is_indexed():
            field = f"{REPLICATED_JOBS}[{pod_set.name()}].template.spec.completionMode"
            ctx.warn("is `NonIndexed`, so trainyard-template-framework cannot tell the nodes apart by their index; remove it, or set it to `Indexed`", field)
        ctx.because("one process for each node")
        node.put_env("FRAMEWORK_NODES", str(pod_set.address_count()))
        ctx.because("the pod's index in its Job")
        node.put_env_field("FRAMEWORK_NODE", POD_INDEX)
        ctx.because("the first node listens there")
        node.put_env("FRAMEWORK_ADDRESS", f"{pod_set.address(0, 0)}:{port}")


def trainer(ctx):
    """Returns the container that trains, with its pod set."""
    for pod_set in ctx.info().with_ancestor("trainer")[:1]:
        node = pod_set.container("node")
        if node is not None:
            return pod_set, node
    message = "trainyard-template-framework needs a container `node` in a replicated job with the label `trainer.kubeflow.org/trainjob-ancestor-step: trainer`"
    raise Err(Failure(message=message, field=REPLICATED_JOBS))
