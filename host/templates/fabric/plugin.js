// Gives the nodes with accelerators network devices, and tells NCCL to use them.

// The extended resource of a network device. The claim and the grant name it, too.
const NIC = "example.com/nic";

export const transform = {
  transform(ctx) {
    // The schema in manifest.json has a default.
    const devices = ctx.job().config().integer("/devices");
    for (const podSet of ctx.info().nodes()) {
      const node = podSet.container("node");
      if (!node || podSet.accelerators() === 0) continue;
      if (node.limit(NIC) === undefined) {
        ctx.because("`devices` in the configuration of trainyard-template-fabric");
        node.setLimit(NIC, `${devices}`);
      }
      ctx.because("a node with accelerators has network devices");
      node.defaultEnv("NCCL_IB_DISABLE", "0");
      node.defaultEnv("NCCL_IB_HCA", "nic");
    }
  },
};
