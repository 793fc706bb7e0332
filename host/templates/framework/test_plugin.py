import sys
import unittest
from pathlib import Path
from unittest.mock import call, create_autospec

# `build.sh` writes the types of the contract. The mocks have their methods, and refuse others.
sys.path.insert(0, str(Path(__file__).with_name("bindings")))

import plugin
from componentize_py_types import Err
from wit_world.imports.context import Context
from wit_world.imports.job import Job
from wit_world.imports.pod_set_info import Container, Info, PodSet
from wit_world.imports.types import Document


class NodesTest(unittest.TestCase):
    def run_plugin(self, container):
        """Runs the plugin with mocks in place of the host, and returns that of the container."""
        node = create_autospec(Container, instance=True)
        pod_set = create_autospec(PodSet, instance=True)
        pod_set.container.side_effect = {container: node}.get
        pod_set.address_count.return_value = 4
        pod_set.address.return_value = "bert-node-0-0.bert"
        config = create_autospec(Document, instance=True)
        config.integer.side_effect = {"/port": 4000}.get
        job = create_autospec(Job, instance=True)
        job.config.return_value = config
        info = create_autospec(Info, instance=True)
        info.with_ancestor.side_effect = {"trainer": [pod_set]}.get
        ctx = create_autospec(Context, instance=True)
        ctx.job.return_value = job
        ctx.info.return_value = info
        plugin.Transform().transform(ctx)
        return node

    def test_nodes_know_the_first_one(self):
        node = self.run_plugin("node")
        self.assertEqual(
            node.put_env.mock_calls,
            [call("FRAMEWORK_NODES", "4"), call("FRAMEWORK_ADDRESS", "bert-node-0-0.bert:4000")],
        )
        index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
        node.put_env_field.assert_called_once_with("FRAMEWORK_NODE", index)

    def test_runtime_without_the_container_is_refused(self):
        with self.assertRaises(Err) as refused:
            self.run_plugin("other")
        self.assertEqual(refused.exception.value.field, "spec.template.spec.replicatedJobs")
