"""Greets each node of a TrainJob by an env var. The names are those of the contract (wit/) in snake case."""

from wit_world import exports


class Transform(exports.Transform):
    def transform(self, context):
        context.because("each node is greeted")
        for pod_set in context.info().nodes():
            node = pod_set.container("node")
            if node is not None:
                node.default_env("GREETING", "hello")
