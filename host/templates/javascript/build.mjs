import { readFile, writeFile } from "node:fs/promises";
import { componentize } from "@bytecodealliance/componentize-js";

const { component } = await componentize(await readFile("plugin.js", "utf8"), {
  witPath: "wit",
  worldName: "guest",
  // A plugin has no WASI.
  disableFeatures: ["random", "stdio", "clocks", "http", "fetch-event"],
});
await writeFile("component.wasm", component);
