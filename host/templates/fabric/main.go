// Gives the nodes with accelerators network devices, and tells NCCL to use them.
package main

import (
	"fmt"

	"example.com/plugin/policy"
	"example.com/plugin/policy/transform"
)

// nic is the extended resource of a network device. The claim and the grant name it, too.
const nic = "example.com/nic"

func init() { transform.Register(run) }

func run(ctx policy.Context) error {
	// The schema in manifest.json has a default.
	devices := ctx.Job().Config().Integer("/devices")
	for _, podSet := range ctx.Info().Nodes() {
		node := podSet.Container("node")
		if node == nil {
			continue
		}
		if accelerators := podSet.Accelerators(); accelerators != nil && *accelerators == 0 {
			continue
		}
		if node.Limit(nic) == nil {
			ctx.Because("`devices` in the configuration of trainyard-template-fabric")
			node.SetLimit(nic, fmt.Sprint(*devices))
		}
		ctx.Because("a node with accelerators has network devices")
		node.DefaultEnv("NCCL_IB_DISABLE", "0")
		node.DefaultEnv("NCCL_IB_HCA", "nic")
	}
	return nil
}

func main() {}
