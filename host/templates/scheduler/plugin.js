// Lets a batch scheduler start the pods of a TrainJob together or not at all. The scheduler reads a Group, which has the TrainJob's name,
// and the label of the pods that belong to it.

// The API of the scheduler's object.
const API = "scheduling.example.com/v1";
const KIND = "Group";
// The object has the TrainJob's name, without a suffix.
const SUFFIX = "";
// The label of the pods. Its value is the object's name.
const LABEL = "scheduling.example.com/group";

export const transform = {
  transform(ctx) {
    const { members, followers } = gang(ctx.info());
    const group = ctx.objects().name(API, KIND, SUFFIX);
    // The schema in manifest.json has a default.
    const scheduler = ctx.job().config().text("/schedulerName");
    for (const podSet of [...members, ...followers]) {
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

// Returns the nodes that start together, and the pod sets that start once these are ready, such as an MPI launcher. The scheduler keeps
// resources for the latter, but must not wait for them.
function gang(info) {
  const members = info.nodes().filter((node) => waitsForReady(node).length === 0);
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
