// Tells the processes of a framework how many nodes there are, which one they run on, and where the first one listens.

// The field of a pod that contains its index in its Job.
const POD_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
const HOST_NAMES = "spec.template.spec.network.enableDNSHostnames";
const REPLICATED_JOBS = "spec.template.spec.replicatedJobs";

export const transform = {
  transform(ctx) {
    // The schema in manifest.json has a default.
    const port = ctx.job().config().integer("/port");
    const { podSet, node } = trainer(ctx);
    if (!ctx.info().hasHostNames()) {
      ctx.warn("is false, so trainyard-template-framework cannot find the first node by its DNS name; remove it, or set it to true", HOST_NAMES);
    }
    if (!podSet.isIndexed()) {
      const field = `${REPLICATED_JOBS}[${podSet.name()}].template.spec.completionMode`;
      ctx.warn("is `NonIndexed`, so trainyard-template-framework cannot tell the nodes apart by their index; remove it, or set it to `Indexed`", field);
    }
    ctx.because("one process for each node");
    node.putEnv("FRAMEWORK_NODES", `${podSet.addressCount()}`);
    ctx.because("the pod's index in its Job");
    node.putEnvField("FRAMEWORK_NODE", POD_INDEX);
    ctx.because("the first node listens there");
    node.putEnv("FRAMEWORK_ADDRESS", `${podSet.address(0, 0)}:${port}`);
  },
};

// Returns the container that trains, with its pod set.
function trainer(ctx) {
  const [podSet] = ctx.info().withAncestor("trainer");
  const node = podSet?.container("node");
  if (!node) {
    const message =
      "trainyard-template-framework needs a container `node` in a replicated job with the label `trainer.kubeflow.org/trainjob-ancestor-step: trainer`";
    throw { message, field: REPLICATED_JOBS };
  }
  return { podSet, node };
}
