import assert from "node:assert/strict";
import { test } from "node:test";

import { transform } from "./plugin.js";

// Runs the plugin with plain objects in place of the host, and returns what it wrote, in this order.
function run(container, volumes = {}) {
  const written = [];
  const write =
    (...what) =>
    (...values) =>
      written.push([...what, ...values]);
  const podSet = {
    name: () => "node",
    volume: (name) => volumes[name],
    container: (name) => ({ [container]: { defaultMount: write("node mounts") } })[name],
    putEmptyDir: write("volume"),
    addInitContainer(...args) {
      write("init container")(...args);
      return { setRestartPolicy: write("sidecar restarts"), putMount: write("sidecar mounts") };
    },
  };
  const config = { text: (pointer) => ({ "/image": "registry.example.com/sidecar:1" })[pointer] };
  transform.transform({
    job: () => ({ config: () => config }),
    info: () => ({ nodes: () => [podSet] }),
    because() {},
  });
  return written;
}

test("both containers share a volume", () => {
  const mount = { volume: "sidecar", path: "/var/run/sidecar" };
  assert.deepEqual(run("node"), [
    ["volume", "sidecar"],
    ["node mounts", { ...mount, readOnly: false }],
    ["init container", "sidecar", "registry.example.com/sidecar:1"],
    ["sidecar restarts", "Always"],
    ["sidecar mounts", { ...mount, readOnly: true }],
  ]);
});

test("pods without the container stay", () => {
  assert.deepEqual(run("other"), []);
});

test("a volume of the runtime is refused", () => {
  const field = "spec.template.spec.replicatedJobs[node].template.spec.template.spec.volumes[sidecar].name";
  assert.throws(() => run("node", { sidecar: {} }), { field });
});
