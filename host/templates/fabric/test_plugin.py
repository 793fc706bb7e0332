import sys
import unittest
from pathlib import Path
from unittest.mock import call, create_autospec

# `build.sh` writes the types of the contract. The mocks have their methods, and refuse others.
sys.path.insert(0, str(Path(__file__).with_name("bindings")))

import plugin
from wit_world.imports.context import Context
from wit_world.imports.job import Job
from wit_world.imports.pod_set_info import Container, Info, PodSet
from wit_world.imports.types import Document

ENV = [call("NCCL_IB_DISABLE", "0"), call("NCCL_IB_HCA", "nic")]


class NodesTest(unittest.TestCase):
    def run_plugin(self, accelerators, limits):
        """Runs the plugin with mocks in place of the host, and returns that of the node."""
        node = create_autospec(Container, instance=True)
        node.limit.side_effect = limits.get
        pod_set = create_autospec(PodSet, instance=True)
        pod_set.container.side_effect = {"node": node}.get
        pod_set.accelerators.return_value = accelerators
        config = create_autospec(Document, instance=True)
        config.integer.side_effect = {"/devices": 4}.get
        job = create_autospec(Job, instance=True)
        job.config.return_value = config
        info = create_autospec(Info, instance=True)
        info.nodes.return_value = [pod_set]
        ctx = create_autospec(Context, instance=True)
        ctx.job.return_value = job
        ctx.info.return_value = info
        plugin.Transform().transform(ctx)
        return node

    def test_node_with_accelerators_has_devices(self):
        node = self.run_plugin(8, {})
        node.set_limit.assert_called_once_with("example.com/nic", "4")
        self.assertEqual(node.default_env.mock_calls, ENV)

    def test_node_without_accelerators_has_none(self):
        node = self.run_plugin(0, {})
        node.set_limit.assert_not_called()
        node.default_env.assert_not_called()

    def test_limit_that_is_set_stays(self):
        node = self.run_plugin(8, {"example.com/nic": "2"})
        node.set_limit.assert_not_called()
        self.assertEqual(node.default_env.mock_calls, ENV)
