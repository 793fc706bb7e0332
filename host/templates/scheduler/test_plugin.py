import json
import sys
import unittest
from pathlib import Path
from unittest.mock import create_autospec

# `build.sh` writes the types of the contract. The mocks have their methods, and refuse others.
sys.path.insert(0, str(Path(__file__).with_name("bindings")))

import plugin
from componentize_py_types import Err
from wit_world.imports.context import Context
from wit_world.imports.job import Job
from wit_world.imports.objects import Object, Objects
from wit_world.imports.pod_set_info import Info, PodSet
from wit_world.imports.types import Dependency, Document, Quantity


def mock_pod_set(name, depends_on=()):
    pod_set = create_autospec(PodSet, instance=True)
    pod_set.name.return_value = name
    pod_set.scheduler_name.return_value = None
    pod_set.pod_label.return_value = None
    pod_set.address_count.return_value = 2
    pod_set.depends_on.return_value = list(depends_on)
    return pod_set


def requests(names):
    return [Quantity(f"example.com/{name}", "2") for name in names]


class GroupTest(unittest.TestCase):
    def setUp(self):
        """Mocks a host with nodes, and a launcher that starts once these are ready."""
        self.node = mock_pod_set("node")
        self.launcher = mock_pod_set("launcher", depends_on=[Dependency("node", "Ready")])
        self.info = info = create_autospec(Info, instance=True)
        info.nodes.return_value = [self.node]
        info.pod_sets.return_value = [self.node, self.launcher]
        # Two pods in each pod set.
        info.gang_members.side_effect = lambda names: 2 * len(names)
        info.gang_requests.side_effect = requests
        config = create_autospec(Document, instance=True)
        config.text.side_effect = {"/schedulerName": "batch-scheduler", "/queue": "research"}.get
        self.group = create_autospec(Object, instance=True)
        objects = create_autospec(Objects, instance=True)
        objects.name.return_value = "bert"
        objects.emit.return_value = self.group
        job = create_autospec(Job, instance=True)
        job.config.return_value = config
        self.ctx = create_autospec(Context, instance=True)
        self.ctx.info.return_value = info
        self.ctx.objects.return_value = objects
        self.ctx.job.return_value = job

    def test_pods_have_the_label(self):
        plugin.Transform().transform(self.ctx)
        for pod_set in (self.node, self.launcher):
            pod_set.set_pod_label.assert_called_once_with("scheduling.example.com/group", "bert")
            pod_set.set_scheduler_name.assert_called_once_with("batch-scheduler")

    def test_scheduler_that_is_set_stays(self):
        self.node.scheduler_name.return_value = "own"
        plugin.Transform().transform(self.ctx)
        self.node.set_scheduler_name.assert_not_called()

    def test_group_counts_the_nodes(self):
        """The scheduler keeps resources for the launcher, but does not wait for it."""
        plugin.Build().build(self.ctx)
        (body,) = self.group.set_body.call_args.args
        resources = {"example.com/node": "2", "example.com/launcher": "2"}
        spec = {"minMembers": 2, "resources": resources, "queue": "research"}
        self.assertEqual(json.loads(body), {"spec": spec})

    def test_nodes_may_wait_for_other_pods(self):
        helper = mock_pod_set("helper")
        self.node.depends_on.return_value = [Dependency("helper", "Ready")]
        self.info.pod_sets.return_value = [helper, self.node, self.launcher]
        plugin.Build().build(self.ctx)
        self.info.gang_members.assert_called_once_with(["node"])
        self.info.gang_requests.assert_called_once_with(["node", "launcher"])

    def test_nodes_that_follow_others_are_not_members(self):
        second = mock_pod_set("second", depends_on=[Dependency("launcher", "Ready")])
        self.info.nodes.return_value = [self.node, second]
        self.info.pod_sets.return_value = [self.node, self.launcher, second]
        plugin.Build().build(self.ctx)
        self.info.gang_members.assert_called_once_with(["node"])

    def test_group_without_members_is_refused(self):
        self.node.address_count.return_value = 0
        for phase in (plugin.Transform().transform, plugin.Build().build):
            with self.assertRaises(Err) as raised:
                phase(self.ctx)
            self.assertEqual(raised.exception.value.field, "spec.template.spec.replicatedJobs")

    def test_label_of_another_group_is_replaced_with_a_warning(self):
        self.node.pod_label.return_value = "other"
        plugin.Transform().transform(self.ctx)
        self.node.set_pod_label.assert_called_once_with("scheduling.example.com/group", "bert")
        ((message, field),) = [call.args for call in self.ctx.warn.call_args_list]
        self.assertIn("`other`", message)
        self.assertTrue(field.endswith("[node].template.spec.template.metadata.labels[scheduling.example.com/group]"), field)
