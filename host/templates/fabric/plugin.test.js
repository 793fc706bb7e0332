import assert from "node:assert/strict";
import { test } from "node:test";

import { transform } from "./plugin.js";

const ENV = { NCCL_IB_DISABLE: "0", NCCL_IB_HCA: "nic" };

// Runs the plugin with plain objects in place of the host, and returns the limits and the env vars that it wrote to the node.
function run({ accelerators, limits = {} }) {
  const written = {};
  const write = (name, value) => {
    written[name] = value;
  };
  const node = { limit: (resource) => limits[resource], setLimit: write, defaultEnv: write };
  const podSet = { accelerators: () => accelerators, container: (name) => ({ node })[name] };
  // Integers of the contract are BigInts.
  const config = { integer: (pointer) => ({ "/devices": 4n })[pointer] };
  transform.transform({
    job: () => ({ config: () => config }),
    info: () => ({ nodes: () => [podSet] }),
    because() {},
  });
  return written;
}

test("a node with accelerators has devices", () => {
  assert.deepEqual(run({ accelerators: 8 }), { ...ENV, "example.com/nic": "4" });
});

test("a node without accelerators has none", () => {
  assert.deepEqual(run({ accelerators: 0 }), {});
});

test("a limit that is set stays", () => {
  assert.deepEqual(run({ accelerators: 8, limits: { "example.com/nic": "2" } }), ENV);
});
