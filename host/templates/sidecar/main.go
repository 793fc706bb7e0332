// Runs a sidecar in the pods of the nodes, which reads what training writes to a shared volume.
package main

import (
	"fmt"

	"example.com/plugin/policy"
	"example.com/plugin/policy/transform"
)

const (
	// name is that of the volume, and of the sidecar itself.
	name = "sidecar"
	// path is where both containers mount the volume.
	path = "/var/run/sidecar"
)

func init() { transform.Register(run) }

func run(ctx policy.Context) error {
	// The schema in manifest.json requires it.
	image := ctx.Job().Config().Text("/image")
	for _, podSet := range ctx.Info().Nodes() {
		node := podSet.Container("node")
		if node == nil {
			continue
		}
		// The host would not replace a volume of the runtime.
		if podSet.Volume(name) != nil {
			field := fmt.Sprintf("spec.template.spec.replicatedJobs[%s].template.spec.template.spec.volumes[%s].name", podSet.Name(), name)
			message := fmt.Sprintf("the plugin adds a volume with the name `%s`; rename the runtime's volume", name)
			return policy.Failure{Message: message, Field: &field}
		}
		ctx.Because("training shares this volume with the sidecar")
		podSet.PutEmptyDir(name, nil, nil)
		node.DefaultMount(policy.Mount{Volume: name, Path: path})
		ctx.Because("the image in the configuration of trainyard-template-sidecar")
		sidecar := podSet.AddInitContainer(name, *image)
		// An init container that is always restarted starts before the others, and ends after them.
		sidecar.SetRestartPolicy("Always")
		sidecar.PutMount(policy.Mount{Volume: name, Path: path, ReadOnly: true})
	}
	return nil
}

func main() {}
