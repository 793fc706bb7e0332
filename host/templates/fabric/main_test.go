package main

import (
	"maps"
	"testing"

	"example.com/plugin/policy"
)

// The fakes stand for the host. Each one embeds its interface, so a method that the fake does not have panics.

type fakeContext struct {
	policy.Context
	node *fakeContainer
}

func (ctx fakeContext) Because(string)    {}
func (ctx fakeContext) Job() policy.Job   { return fakeJob{} }
func (ctx fakeContext) Info() policy.Info { return fakeInfo{node: ctx.node} }

type fakeJob struct{ policy.Job }

func (fakeJob) Config() policy.Document { return fakeConfig{} }

type fakeConfig struct{ policy.Document }

func (fakeConfig) Integer(pointer string) *int64 {
	return map[string]*int64{"/devices": policy.Some(int64(4))}[pointer]
}

type fakeInfo struct {
	policy.Info
	node *fakeContainer
}

func (info fakeInfo) Nodes() []policy.PodSet { return []policy.PodSet{fakePodSet{node: info.node}} }

type fakePodSet struct {
	policy.PodSet
	node *fakeContainer
}

func (podSet fakePodSet) Accelerators() *uint32 { return &podSet.node.accelerators }
func (podSet fakePodSet) Container(name string) policy.Container {
	return map[string]policy.Container{"node": podSet.node}[name]
}

type fakeContainer struct {
	policy.Container
	accelerators uint32
	limits       map[string]string
	// written has the limits and the env vars that the plugin wrote.
	written map[string]string
}

func (node *fakeContainer) Limit(resource string) *string {
	if limit, ok := node.limits[resource]; ok {
		return &limit
	}
	return nil
}
func (node *fakeContainer) SetLimit(resource, amount string) { node.written[resource] = amount }
func (node *fakeContainer) DefaultEnv(name, value string)    { node.written[name] = value }

func TestNodes(t *testing.T) {
	env := map[string]string{"NCCL_IB_DISABLE": "0", "NCCL_IB_HCA": "nic"}
	envAndLimit := maps.Clone(env)
	envAndLimit["example.com/nic"] = "4"
	for _, test := range []struct {
		name         string
		accelerators uint32
		limits       map[string]string
		want         map[string]string
	}{
		{"a node with accelerators has devices", 8, nil, envAndLimit},
		{"a node without accelerators has none", 0, nil, nil},
		{"a limit that is set stays", 8, map[string]string{"example.com/nic": "2"}, env},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := &fakeContainer{accelerators: test.accelerators, limits: test.limits, written: map[string]string{}}
			if err := run(fakeContext{node: node}); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(node.written, test.want) {
				t.Errorf("wrote %v, want %v", node.written, test.want)
			}
		})
	}
}
