"""Runs a sidecar in the pods of the nodes, which reads what training writes to a shared volume."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports.types import Failure, Mount

# The volume, and the sidecar itself.
NAME = "sidecar"
# Where both containers mount the volume.
PATH = "/var/run/sidecar"


class Transform(exports.Transform):
    def transform(self, ctx):
        # The schema in manifest.json requires it.
        image = ctx.job().config().text("/image")
        for pod_set in ctx.info().nodes():
            node = pod_set.container("node")
            if node is None:
                continue
            reserve_volume(pod_set)
            ctx.because("training shares this volume with the sidecar")
            pod_set.put_empty_dir(NAME, None, None)
            node.default_mount(mount(read_only=False))
            ctx.because("the image in the configuration of trainyard-template-sidecar")
            sidecar = pod_set.add_init_container(NAME, image)
            # An init container that is always restarted starts before the others, and ends after them.
            sidecar.set_restart_policy("Always")
            sidecar.put_mount(mount(read_only=True))


def reserve_volume(pod_set):
    """Refuses a volume of the runtime with the name of the plugin's, which the host would not replace."""
    if pod_set.volume(NAME) is not None:
        field = f"spec.template.spec.replicatedJobs[{pod_set.name()}].template.spec.template.spec.volumes[{NAME}].name"
        raise Err(Failure(message=f"the plugin adds a volume with the name `{NAME}`; rename the runtime's volume", field=field))


def mount(read_only):
    return Mount(
        volume=NAME,
        path=PATH,
        sub_path=None,
        sub_path_expr=None,
        read_only=read_only,
        mount_propagation=None,
        recursive_read_only=None,
    )
