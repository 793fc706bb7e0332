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
from wit_world.imports.pod_set_info import Container, Info, PodSet
from wit_world.imports.types import Document

IMAGE = "registry.example.com/sidecar:1"


class SidecarTest(unittest.TestCase):
    def setUp(self):
        """Mocks a host with a pod set that has the container `node`."""
        self.node = create_autospec(Container, instance=True)
        self.sidecar = create_autospec(Container, instance=True)
        self.pod_set = create_autospec(PodSet, instance=True)
        self.pod_set.container.side_effect = {"node": self.node}.get
        self.pod_set.name.return_value = "node"
        self.pod_set.volume.return_value = None
        self.pod_set.add_init_container.return_value = self.sidecar
        config = create_autospec(Document, instance=True)
        config.text.side_effect = {"/image": IMAGE}.get
        job = create_autospec(Job, instance=True)
        job.config.return_value = config
        info = create_autospec(Info, instance=True)
        info.nodes.return_value = [self.pod_set]
        self.ctx = create_autospec(Context, instance=True)
        self.ctx.job.return_value = job
        self.ctx.info.return_value = info

    def test_both_containers_share_a_volume(self):
        plugin.Transform().transform(self.ctx)
        self.pod_set.put_empty_dir.assert_called_once_with("sidecar", None, None)
        self.pod_set.add_init_container.assert_called_once_with("sidecar", IMAGE)
        self.sidecar.set_restart_policy.assert_called_once_with("Always")
        for mounts, read_only in ((self.node.default_mount, False), (self.sidecar.put_mount, True)):
            (mount,) = mounts.call_args.args
            found = (mount.volume, mount.path, mount.read_only)
            self.assertEqual(found, ("sidecar", "/var/run/sidecar", read_only))

    def test_pods_without_the_container_stay(self):
        self.pod_set.container.side_effect = {}.get
        plugin.Transform().transform(self.ctx)
        self.pod_set.put_empty_dir.assert_not_called()
        self.pod_set.add_init_container.assert_not_called()

    def test_volume_of_the_runtime_is_refused(self):
        self.pod_set.volume.side_effect = {"sidecar": create_autospec(Document, instance=True)}.get
        with self.assertRaises(Err) as raised:
            plugin.Transform().transform(self.ctx)
        self.assertTrue(raised.exception.value.field.endswith(".volumes[sidecar].name"))
        self.pod_set.put_empty_dir.assert_not_called()
