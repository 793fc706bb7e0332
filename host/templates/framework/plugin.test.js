import assert from "node:assert/strict";
import { test } from "node:test";

import { transform } from "./plugin.js";

// Runs the plugin with plain objects in place of the host, and returns the env vars that it wrote to the container.
function run(container) {
  const env = {};
  const write = (name, value) => {
    env[name] = value;
  };
  const node = { putEnv: write, putEnvField: write };
  const podSet = {
    isIndexed: () => true,
    addressCount: () => 4,
    address: () => "bert-node-0-0.bert",
    container: (name) => ({ [container]: node })[name],
  };
  // Integers of the contract are BigInts.
  const config = { integer: (pointer) => ({ "/port": 4000n })[pointer] };
  transform.transform({
    job: () => ({ config: () => config }),
    info: () => ({
      hasHostNames: () => true,
      withAncestor: (ancestor) => ({ trainer: [podSet] })[ancestor],
    }),
    because() {},
  });
  return env;
}

test("nodes know the first one", () => {
  assert.deepEqual(run("node"), {
    FRAMEWORK_NODES: "4",
    FRAMEWORK_NODE: "metadata.annotations['batch.kubernetes.io/job-completion-index']",
    FRAMEWORK_ADDRESS: "bert-node-0-0.bert:4000",
  });
});

test("a runtime without the container is refused", () => {
  assert.throws(() => run("other"), { field: "spec.template.spec.replicatedJobs" });
});
