// Greets each node of a TrainJob by an env var. The names are those of the contract (wit/) in camel case.
export const transform = {
  transform(context) {
    context.because("each node is greeted");
    for (const podSet of context.info().nodes()) {
      podSet.container("node")?.defaultEnv("GREETING", "hello");
    }
  },
};
