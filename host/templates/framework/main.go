// Tells the processes of a framework how many nodes there are, which one they run on, and where the first one listens.
package main

import (
	"fmt"

	"example.com/plugin/policy"
	"example.com/plugin/policy/transform"
)

const (
	// podIndex is the field of a pod that contains its index in its Job.
	podIndex       = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
	hostNames      = "spec.template.spec.network.enableDNSHostnames"
	replicatedJobs = "spec.template.spec.replicatedJobs"
)

func init() { transform.Register(run) }

func run(ctx policy.Context) error {
	podSet, node := trainer(ctx)
	if node == nil {
		return policy.Failure{
			Message: "trainyard-template-framework needs a container `node` in a replicated job with the label `trainer.kubeflow.org/trainjob-ancestor-step: trainer`",
			Field:   policy.Some(replicatedJobs),
		}
	}
	if !ctx.Info().HasHostNames() {
		ctx.Warn("is false, so trainyard-template-framework cannot find the first node by its DNS name; remove it, or set it to true", policy.Some(hostNames))
	}
	if !podSet.IsIndexed() {
		field := fmt.Sprintf("%s[%s].template.spec.completionMode", replicatedJobs, podSet.Name())
		ctx.Warn("is `NonIndexed`, so trainyard-template-framework cannot tell the nodes apart by their index; remove it, or set it to `Indexed`", &field)
	}
	ctx.Because("one process for each node")
	node.PutEnv("FRAMEWORK_NODES", fmt.Sprint(podSet.AddressCount()))
	ctx.Because("the pod's index in its Job")
	node.PutEnvField("FRAMEWORK_NODE", podIndex)
	ctx.Because("the first node listens there")
	// The schema in manifest.json has a default.
	port := ctx.Job().Config().Integer("/port")
	node.PutEnv("FRAMEWORK_ADDRESS", fmt.Sprintf("%s:%d", podSet.Address(0, 0), *port))
	return nil
}

// trainer returns the container that trains, with its pod set, or nil.
func trainer(ctx policy.Context) (policy.PodSet, policy.Container) {
	podSets := ctx.Info().WithAncestor("trainer")
	if len(podSets) == 0 {
		return nil, nil
	}
	return podSets[0], podSets[0].Container("node")
}

func main() {}
