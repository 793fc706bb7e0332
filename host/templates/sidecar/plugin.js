// Runs a sidecar in the pods of the nodes, which reads what training writes to a shared volume.

// The volume, and the sidecar itself.
const NAME = "sidecar";
// Where both containers mount the volume.
const PATH = "/var/run/sidecar";

export const transform = {
  transform(ctx) {
    // The schema in manifest.json requires it.
    const image = ctx.job().config().text("/image");
    for (const podSet of ctx.info().nodes()) {
      const node = podSet.container("node");
      if (!node) continue;
      reserveVolume(podSet);
      ctx.because("training shares this volume with the sidecar");
      podSet.putEmptyDir(NAME);
      node.defaultMount({ volume: NAME, path: PATH, readOnly: false });
      ctx.because("the image in the configuration of trainyard-template-sidecar");
      const sidecar = podSet.addInitContainer(NAME, image);
      // An init container that is always restarted starts before the others, and ends after them.
      sidecar.setRestartPolicy("Always");
      sidecar.putMount({ volume: NAME, path: PATH, readOnly: true });
    }
  },
};

// Refuses a volume of the runtime with the name of the plugin's, which the host would not replace.
function reserveVolume(podSet) {
  if (!podSet.volume(NAME)) return;
  const field = `spec.template.spec.replicatedJobs[${podSet.name()}].template.spec.template.spec.volumes[${NAME}].name`;
  throw { message: `the plugin adds a volume with the name \`${NAME}\`; rename the runtime's volume`, field };
}
