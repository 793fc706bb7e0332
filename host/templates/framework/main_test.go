package main

import (
	"errors"
	"maps"
	"testing"

	"example.com/plugin/policy"
)

// The fakes stand for the host. Each one embeds its interface, so a method that the fake does not have panics.

type fakeContext struct {
	policy.Context
	trainers []policy.PodSet
}

func (ctx fakeContext) Because(string)    {}
func (ctx fakeContext) Job() policy.Job   { return fakeJob{} }
func (ctx fakeContext) Info() policy.Info { return fakeInfo{trainers: ctx.trainers} }

type fakeJob struct{ policy.Job }

func (fakeJob) Config() policy.Document { return fakeConfig{} }

type fakeConfig struct{ policy.Document }

func (fakeConfig) Integer(pointer string) *int64 {
	return map[string]*int64{"/port": policy.Some(int64(4000))}[pointer]
}

type fakeInfo struct {
	policy.Info
	trainers []policy.PodSet
}

func (fakeInfo) HasHostNames() bool { return true }
func (info fakeInfo) WithAncestor(ancestor string) []policy.PodSet {
	return map[string][]policy.PodSet{"trainer": info.trainers}[ancestor]
}

type fakePodSet struct {
	policy.PodSet
	node policy.Container
}

func (fakePodSet) IsIndexed() bool               { return true }
func (fakePodSet) AddressCount() uint32          { return 4 }
func (fakePodSet) Address(uint32, uint32) string { return "bert-node-0-0.bert" }
func (podSet fakePodSet) Container(name string) policy.Container {
	return map[string]policy.Container{"node": podSet.node}[name]
}

type fakeContainer struct {
	policy.Container
	// env has the env vars that the plugin wrote.
	env map[string]string
}

func (node fakeContainer) PutEnv(name, value string)      { node.env[name] = value }
func (node fakeContainer) PutEnvField(name, field string) { node.env[name] = field }

func TestNodesKnowTheFirstOne(t *testing.T) {
	node := fakeContainer{env: map[string]string{}}
	if err := run(fakeContext{trainers: []policy.PodSet{fakePodSet{node: node}}}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"FRAMEWORK_NODES":   "4",
		"FRAMEWORK_NODE":    "metadata.annotations['batch.kubernetes.io/job-completion-index']",
		"FRAMEWORK_ADDRESS": "bert-node-0-0.bert:4000",
	}
	if !maps.Equal(node.env, want) {
		t.Errorf("wrote %v, want %v", node.env, want)
	}
}

func TestRuntimeWithoutTrainerIsRefused(t *testing.T) {
	for _, trainers := range [][]policy.PodSet{nil, {fakePodSet{}}} {
		var failure policy.Failure
		if err := run(fakeContext{trainers: trainers}); !errors.As(err, &failure) {
			t.Fatalf("%d pod sets: returned %v, want a failure", len(trainers), err)
		}
		if failure.Field == nil || *failure.Field != "spec.template.spec.replicatedJobs" {
			t.Errorf("%d pod sets: the failure names the field %v", len(trainers), failure.Field)
		}
	}
}
