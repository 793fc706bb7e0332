"""Gives the nodes with accelerators network devices, and tells NCCL to use them."""

from wit_world import exports

# The extended resource of a network device. The claim and the grant name it, too.
NIC = "example.com/nic"


class Transform(exports.Transform):
    def transform(self, ctx):
        # The schema in manifest.json has a default.
        devices = ctx.job().config().integer("/devices")
        for pod_set in ctx.info().nodes():
            node = pod_set.container("node")
            if node is None or pod_set.accelerators() == 0:
                continue
            if node.limit(NIC) is None:
                ctx.because("`devices` in the configuration of trainyard-template-fabric")
                node.set_limit(NIC, str(devices))
            ctx.because("a node with accelerators has network devices")
            node.default_env("NCCL_IB_DISABLE", "0")
            node.default_env("NCCL_IB_HCA", "nic")
