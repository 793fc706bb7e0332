package main

import (
	"errors"
	"slices"
	"testing"

	"example.com/plugin/policy"
)

// The fakes stand for the host. Each one embeds its interface, so a method that the fake does not have panics.

type fakeContext struct {
	policy.Context
	podSet *fakePodSet
}

func (ctx fakeContext) Because(string)    {}
func (ctx fakeContext) Job() policy.Job   { return fakeJob{} }
func (ctx fakeContext) Info() policy.Info { return fakeInfo{podSet: ctx.podSet} }

type fakeJob struct{ policy.Job }

func (fakeJob) Config() policy.Document { return fakeConfig{} }

type fakeConfig struct{ policy.Document }

func (fakeConfig) Text(pointer string) *string {
	return map[string]*string{"/image": policy.Some("registry.example.com/sidecar:1")}[pointer]
}

type fakeInfo struct {
	policy.Info
	podSet *fakePodSet
}

func (info fakeInfo) Nodes() []policy.PodSet { return []policy.PodSet{info.podSet} }

type fakePodSet struct {
	policy.PodSet
	// node is the name of its container.
	node string
	// volume is the name of its volume.
	volume string
	// written has what the plugin wrote.
	written []string
}

func (podSet *fakePodSet) write(text string) { podSet.written = append(podSet.written, text) }
func (podSet *fakePodSet) Name() string      { return "node" }
func (podSet *fakePodSet) Volume(name string) policy.Document {
	if name != podSet.volume {
		return nil
	}
	return fakeConfig{}
}
func (podSet *fakePodSet) Container(name string) policy.Container {
	if name != podSet.node {
		return nil
	}
	return fakeContainer{name: name, podSet: podSet}
}
func (podSet *fakePodSet) PutEmptyDir(name string, medium, sizeLimit *string) {
	podSet.write("volume " + name)
}
func (podSet *fakePodSet) AddInitContainer(name, image string) policy.Container {
	podSet.write(name + " runs " + image)
	return fakeContainer{name: name, podSet: podSet}
}

type fakeContainer struct {
	policy.Container
	name   string
	podSet *fakePodSet
}

func (container fakeContainer) mount(mount policy.Mount) {
	access := " writes "
	if mount.ReadOnly {
		access = " reads "
	}
	container.podSet.write(container.name + access + mount.Volume + " at " + mount.Path)
}
func (container fakeContainer) DefaultMount(mount policy.Mount) { container.mount(mount) }
func (container fakeContainer) PutMount(mount policy.Mount)     { container.mount(mount) }
func (container fakeContainer) SetRestartPolicy(policy string) {
	container.podSet.write(container.name + " restarts " + policy)
}

func TestContainersShareVolume(t *testing.T) {
	podSet := &fakePodSet{node: "node"}
	if err := run(fakeContext{podSet: podSet}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"volume sidecar",
		"node writes sidecar at /var/run/sidecar",
		"sidecar runs registry.example.com/sidecar:1",
		"sidecar restarts Always",
		"sidecar reads sidecar at /var/run/sidecar",
	}
	if !slices.Equal(podSet.written, want) {
		t.Errorf("wrote %q, want %q", podSet.written, want)
	}
}

func TestPodsWithoutTrainingStay(t *testing.T) {
	podSet := &fakePodSet{node: "other"}
	if err := run(fakeContext{podSet: podSet}); err != nil {
		t.Fatal(err)
	}
	if podSet.written != nil {
		t.Errorf("wrote %q, want nothing", podSet.written)
	}
}

func TestVolumeOfTheRuntimeIsRefused(t *testing.T) {
	podSet := &fakePodSet{node: "node", volume: "sidecar"}
	var failure policy.Failure
	if err := run(fakeContext{podSet: podSet}); !errors.As(err, &failure) {
		t.Fatalf("returned %v, want a failure", err)
	}
	want := "spec.template.spec.replicatedJobs[node].template.spec.template.spec.volumes[sidecar].name"
	if failure.Field == nil || *failure.Field != want {
		t.Errorf("the failure names the field %v", failure.Field)
	}
}
