"""Lets a batch scheduler start the pods of a TrainJob together or not at all. The scheduler reads a Group, which has the TrainJob's name,
and the label of the pods that belong to it."""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports.types import Failure

# The API of the scheduler's object.
API = "scheduling.example.com/v1"
KIND = "Group"
# The object has the TrainJob's name, without a suffix.
SUFFIX = ""
# The label of the pods. Its value is the object's name.
LABEL = "scheduling.example.com/group"
REPLICATED_JOBS = "spec.template.spec.replicatedJobs"


class Transform(exports.Transform):
    def transform(self, ctx):
        members, followers = gang(ctx.info())
        group = ctx.objects().name(API, KIND, SUFFIX, None)
        # The schema in manifest.json has a default.
        scheduler = ctx.job().config().text("/schedulerName")
        for pod_set in members + followers:
            warn_of_other_group(ctx, pod_set, group)
            ctx.because("the scheduler starts all pods of this group together")
            pod_set.set_pod_label(LABEL, group)
            # An empty name means the cluster's default, like none.
            if not pod_set.scheduler_name():
                ctx.because("`schedulerName` in the configuration of trainyard-template-scheduler")
                pod_set.set_scheduler_name(scheduler)


class Build(exports.Build):
    def build(self, ctx):
        members, followers = gang(ctx.info())
        requests = ctx.info().gang_requests(names(members + followers))
        spec = {
            "minMembers": ctx.info().gang_members(names(members)),
            "resources": {one.resource: one.amount for one in requests},
        }
        queue = ctx.job().config().text("/queue")
        if queue is not None:
            spec["queue"] = queue
        group = ctx.objects().emit(API, KIND, SUFFIX, None)
        # A scheduler that has counted the pods must not see another number.
        group.set_apply("while-suspended")
        group.report_while("phase/Pending", "the group waits in its queue")
        group.set_body(json.dumps({"spec": spec}))


def warn_of_other_group(ctx, pod_set, group):
    """Warns if the runtime or a patch sets the label: pods without the group's name would be missing in it, and it would never start."""
    found = pod_set.pod_label(LABEL)
    if found is not None and found != group:
        field = f"{REPLICATED_JOBS}[{pod_set.name()}].template.spec.template.metadata.labels[{LABEL}]"
        ctx.warn(f"is `{found}`, but the scheduler finds the pods of the group by `{group}`, which replaces it; remove it", field)


def gang(info):
    """Returns the nodes that start together, and the pod sets that start once these are ready, such as an MPI launcher. The scheduler keeps
    resources for the latter, but must not wait for them."""
    nodes = [node for node in info.nodes() if node.address_count() > 0]
    # The nodes, and the pod sets that wait for one of them, directly or not. A pod set waits only for those before it.
    of_nodes, waiting = set(names(nodes)), set()
    for pod_set in info.pod_sets():
        if any(one.pod_set in of_nodes for one in pod_set.depends_on()):
            waiting.add(pod_set.name())
            of_nodes.add(pod_set.name())
    members = [node for node in nodes if node.name() not in waiting]
    if not members:
        message = "the group has no members, because no node with pods starts before the others; give a replicated job the label `trainer.kubeflow.org/trainjob-ancestor-step: trainer`, or correct `replicas` and `dependsOn`"
        raise Err(Failure(message=message, field=REPLICATED_JOBS))
    ready = set(names(members))
    followers = [pod_set for pod_set in info.pod_sets() if waits_for_ready(pod_set) & ready]
    return members, followers


def waits_for_ready(pod_set):
    """Returns the names of the pod sets that have to be ready before this one starts."""
    return {one.pod_set for one in pod_set.depends_on() if one.status == "Ready"}


def names(pod_sets):
    return [pod_set.name() for pod_set in pod_sets]
