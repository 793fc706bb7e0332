import assert from "node:assert/strict";
import { test } from "node:test";

import { build, transform } from "./plugin.js";

// A pod set in place of the host's, which keeps what the plugin writes.
function podSet(name, { dependsOn = [], scheduler } = {}) {
  const written = {};
  return {
    written,
    name: () => name,
    dependsOn: () => dependsOn,
    schedulerName: () => scheduler,
    setPodLabel: (key, value) => (written[key] = value),
    setSchedulerName: (value) => (written.scheduler = value),
  };
}

// A context with nodes, and a launcher that starts once these are ready.
function context({ scheduler } = {}) {
  const node = podSet("node", { scheduler });
  const launcher = podSet("launcher", { dependsOn: [{ podSet: "node", status: "Ready" }] });
  const group = {
    setApply() {},
    reportWhile() {},
    setBody: (json) => (group.body = JSON.parse(json)),
  };
  const config = { "/schedulerName": "batch-scheduler", "/queue": "research" };
  return {
    node,
    launcher,
    group,
    because() {},
    job: () => ({ config: () => ({ text: (pointer) => config[pointer] }) }),
    info: () => ({
      nodes: () => [node],
      podSets: () => [node, launcher],
      // Two pods in each pod set.
      gangMembers: (names) => 2 * names.length,
      gangRequests: (names) => names.map((name) => ({ resource: `example.com/${name}`, amount: "2" })),
    }),
    objects: () => ({ name: () => "bert", emit: () => group }),
  };
}

test("pods have the label", () => {
  const ctx = context();
  transform.transform(ctx);
  for (const { written } of [ctx.node, ctx.launcher]) {
    assert.deepEqual(written, { "scheduling.example.com/group": "bert", scheduler: "batch-scheduler" });
  }
});

test("a scheduler that is set stays", () => {
  const ctx = context({ scheduler: "own" });
  transform.transform(ctx);
  assert.deepEqual(ctx.node.written, { "scheduling.example.com/group": "bert" });
});

// The scheduler keeps resources for the launcher, but does not wait for it.
test("the group counts the nodes", () => {
  const ctx = context();
  build.build(ctx);
  assert.deepEqual(ctx.group.body.spec, {
    minMembers: 2,
    resources: { "example.com/node": "2", "example.com/launcher": "2" },
    queue: "research",
  });
});
