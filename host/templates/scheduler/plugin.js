// Lets a batch scheduler start the pods of a TrainJob together or not at all. The scheduler reads a Group, which has the TrainJob's name,
// and the label of the pods that belong to it.

// The API of the scheduler's object.
const API = "scheduling.example.com/v1";
const KIND = "Group";
// The object has the TrainJob's name, without a suffix.
const SUFFIX = "";
// The label of the pods. Its value is the object's name.
const LABEL = "scheduling.example.com/group";
const REPLICATED_JOBS = "spec.template.spec.replicatedJobs";

export const transform = {
  transform(ctx) {
    const { members, followers } = gang(ctx.info());
    const group = ctx.objects().name(API, KIND, SUFFIX);
    // The schema in manifest.json has a default.
    const scheduler = ctx.job().config().text("/schedulerName");
    for (const podSet of [...members, ...followers]) {
      warnOfOtherGroup(ctx, podSet, group);
      ctx.because("the scheduler starts all pods of this group together");
      podSet.setPodLabel(LABEL, group);
      // An empty name means the cluster's default, like none.
      if (!podSet.schedulerName()) {
        ctx.because("`schedulerName` in the configuration of trainyard-template-scheduler");
        podSet.setSchedulerName(scheduler);
      }
    }
  },
};

export const build = {
  build(ctx) {
    const { members, followers } = gang(ctx.info());
    const requests = ctx.info().gangRequests(names([...members, ...followers]));
    const spec = {
      minMembers: ctx.info().gangMembers(names(members)),
      resources: Object.fromEntries(requests.map((one) => [one.resource, one.amount])),
      // It is left out if it is undefined.
      queue: ctx.job().config().text("/queue"),
    };
    const group = ctx.objects().emit(API, KIND, SUFFIX);
    // A scheduler that has counted the pods must not see another number.
    group.setApply("while-suspended");
    group.reportWhile("phase/Pending", "the group waits in its queue");
    group.setBody(JSON.stringify({ spec }));
  },
};

// Warns if the runtime or a patch sets the label: pods without the group's name would be missing in it, and it would never start.
function warnOfOtherGroup(ctx, podSet, group) {
  const found = podSet.podLabel(LABEL);
  if (found === undefined || found === group) return;
  const field = `${REPLICATED_JOBS}[${podSet.name()}].template.spec.template.metadata.labels[${LABEL}]`;
  ctx.warn(`is \`${found}\`, but the scheduler finds the pods of the group by \`${group}\`, which replaces it; remove it`, field);
}

// Returns the nodes that start together, and the pod sets that start once these are ready, such as an MPI launcher. The scheduler keeps
// resources for the latter, but must not wait for them.
function gang(info) {
  const nodes = info.nodes().filter((node) => node.addressCount() > 0);
  // The nodes, and the pod sets that wait for one of them, directly or not. A pod set waits only for those before it.
  const ofNodes = new Set(names(nodes));
  const waiting = new Set();
  for (const podSet of info.podSets()) {
    if (podSet.dependsOn().some((one) => ofNodes.has(one.podSet))) {
      waiting.add(podSet.name());
      ofNodes.add(podSet.name());
    }
  }
  const members = nodes.filter((node) => !waiting.has(node.name()));
  if (members.length === 0) {
    const message =
      "the group has no members, because no node with pods starts before the others; give a replicated job the label `trainer.kubeflow.org/trainjob-ancestor-step: trainer`, or correct `replicas` and `dependsOn`";
    throw { message, field: REPLICATED_JOBS };
  }
  const ready = names(members);
  const followers = info.podSets().filter((podSet) => waitsForReady(podSet).some((name) => ready.includes(name)));
  return { members, followers };
}

// Returns the names of the pod sets that have to be ready before this one starts.
function waitsForReady(podSet) {
  return podSet.dependsOn().filter((one) => one.status === "Ready").map((one) => one.podSet);
}

function names(podSets) {
  return podSets.map((podSet) => podSet.name());
}
