import assert from "node:assert/strict";
import { test } from "node:test";

import { build, transform } from "./plugin.js";

// A pod set in place of the host's, which keeps what the plugin writes.
function podSet(name, { dependsOn = [], scheduler, label, pods = 2 } = {}) {
  const written = {};
  return {
    written,
    name: () => name,
    addressCount: () => pods,
    dependsOn: () => dependsOn,
    podLabel: () => label,
    schedulerName: () => scheduler,
    setPodLabel: (key, value) => (written[key] = value),
    setSchedulerName: (value) => (written.scheduler = value),
  };
}

function ready(podSet) {
  return [{ podSet, status: "Ready" }];
}

// A context with nodes, a launcher that starts once these are ready, and other pod sets.
function context({ node: ofNode, before = [], after = [] } = {}) {
  const node = podSet("node", ofNode);
  const launcher = podSet("launcher", { dependsOn: ready("node") });
  const warnings = [];
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
    warnings,
    because() {},
    warn: (message, field) => warnings.push({ message, field }),
    job: () => ({ config: () => ({ text: (pointer) => config[pointer] }) }),
    info: () => ({
      nodes: () => [node, ...after],
      podSets: () => [...before, node, launcher, ...after],
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
  const ctx = context({ node: { scheduler: "own" } });
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

test("nodes may wait for other pods", () => {
  const ctx = context({ node: { dependsOn: ready("helper") }, before: [podSet("helper")] });
  build.build(ctx);
  assert.equal(ctx.group.body.spec.minMembers, 2);
});

test("nodes that follow others are not members", () => {
  const ctx = context({ after: [podSet("second", { dependsOn: ready("launcher") })] });
  build.build(ctx);
  assert.equal(ctx.group.body.spec.minMembers, 2);
});

test("a group without members is refused", () => {
  for (const phase of [transform.transform, build.build]) {
    assert.throws(() => phase(context({ node: { pods: 0 } })), { field: "spec.template.spec.replicatedJobs" });
  }
});

test("the label of another group is replaced with a warning", () => {
  const ctx = context({ node: { label: "other" } });
  transform.transform(ctx);
  assert.equal(ctx.node.written["scheduling.example.com/group"], "bert");
  const [{ message, field }, ...others] = ctx.warnings;
  assert.deepEqual(others, []);
  assert.match(message, /`other`/);
  assert.match(field, /\[node\]\.template\.spec\.template\.metadata\.labels\[scheduling\.example\.com\/group\]$/);
});
