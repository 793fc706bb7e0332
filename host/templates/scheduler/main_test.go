package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/plugin/policy"
)

// The fakes stand for the host. Each one embeds its interface, so a method that the fake does not have panics.

type fakeContext struct {
	policy.Context
	podSets []policy.PodSet
	group   *fakeGroup
	// warnings has the messages and fields of warnings.
	warnings *[]string
}

func (ctx fakeContext) Warn(message string, field *string) {
	*ctx.warnings = append(*ctx.warnings, message, *field)
}

func (ctx fakeContext) Because(string)          {}
func (ctx fakeContext) Job() policy.Job         { return fakeJob{} }
func (ctx fakeContext) Info() policy.Info       { return fakeInfo{podSets: ctx.podSets} }
func (ctx fakeContext) Objects() policy.Objects { return fakeObjects{group: ctx.group} }

type fakeJob struct{ policy.Job }

func (fakeJob) Config() policy.Document { return fakeConfig{} }

type fakeConfig struct{ policy.Document }

func (fakeConfig) Text(pointer string) *string {
	values := map[string]*string{"/schedulerName": policy.Some("batch-scheduler"), "/queue": policy.Some("research")}
	return values[pointer]
}

type fakeInfo struct {
	policy.Info
	podSets []policy.PodSet
}

// Nodes returns the pod sets whose name begins with "node".
func (info fakeInfo) Nodes() (nodes []policy.PodSet) {
	for _, podSet := range info.podSets {
		if strings.HasPrefix(podSet.Name(), "node") {
			nodes = append(nodes, podSet)
		}
	}
	return nodes
}
func (info fakeInfo) PodSets() []policy.PodSet { return info.podSets }

// GangMembers counts two pods in each pod set.
func (fakeInfo) GangMembers(podSets []string) uint32 { return uint32(2 * len(podSets)) }

// GangRequests returns the pod sets that it was called with as an amount.
func (fakeInfo) GangRequests(podSets []string) []policy.Quantity {
	return []policy.Quantity{{Resource: "cpu", Amount: fmt.Sprint(podSets)}}
}

type fakePodSet struct {
	policy.PodSet
	name      string
	pods      uint32
	scheduler *string
	label     *string
	waitsFor  []policy.Dependency
	// written has what the plugin wrote.
	written []string
}

func (podSet *fakePodSet) Name() string                   { return podSet.name }
func (podSet *fakePodSet) AddressCount() uint32           { return podSet.pods }
func (podSet *fakePodSet) PodLabel(string) *string        { return podSet.label }
func (podSet *fakePodSet) DependsOn() []policy.Dependency { return podSet.waitsFor }
func (podSet *fakePodSet) SchedulerName() *string         { return podSet.scheduler }
func (podSet *fakePodSet) SetPodLabel(key, value string) {
	podSet.written = append(podSet.written, key+"="+value)
}
func (podSet *fakePodSet) SetSchedulerName(name string) {
	podSet.written = append(podSet.written, name)
}

type fakeObjects struct {
	policy.Objects
	group *fakeGroup
}

func (fakeObjects) Name(apiVersion, kind, suffix string, content *string) string { return "bert" }
func (objects fakeObjects) Emit(apiVersion, kind, suffix string, content *string) policy.Object {
	return objects.group
}

type fakeGroup struct {
	policy.Object
	body string
}

func (*fakeGroup) SetApply(string)                {}
func (*fakeGroup) ReportWhile(state, text string) {}
func (group *fakeGroup) SetBody(json string)      { group.body = json }

// newPodSet returns a pod set with two pods, which starts once the other one is ready.
func newPodSet(name, waitsFor string) *fakePodSet {
	podSet := &fakePodSet{name: name, pods: 2}
	if waitsFor != "" {
		podSet.waitsFor = []policy.Dependency{{PodSet: waitsFor, Status: "Ready"}}
	}
	return podSet
}

// podSets returns nodes, and a launcher that starts once these are ready.
func podSets() (node, launcher *fakePodSet, all []policy.PodSet) {
	node, launcher = newPodSet("node", ""), newPodSet("launcher", "node")
	return node, launcher, []policy.PodSet{node, launcher}
}

func TestPodsHaveTheLabel(t *testing.T) {
	node, launcher, all := podSets()
	if err := labelPods(fakeContext{podSets: all}); err != nil {
		t.Fatal(err)
	}
	for _, podSet := range []*fakePodSet{node, launcher} {
		want := []string{"scheduling.example.com/group=bert", "batch-scheduler"}
		if !slices.Equal(podSet.written, want) {
			t.Errorf("%s: wrote %q, want %q", podSet.name, podSet.written, want)
		}
	}
}

func TestSchedulerThatIsSetStays(t *testing.T) {
	node, _, all := podSets()
	node.scheduler = policy.Some("own")
	if err := labelPods(fakeContext{podSets: all}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"scheduling.example.com/group=bert"}; !slices.Equal(node.written, want) {
		t.Errorf("wrote %q, want %q", node.written, want)
	}
}

// The scheduler keeps resources for the launcher, but does not wait for it.
func TestGroupCountsNodes(t *testing.T) {
	_, _, all := podSets()
	groupIs(t, all, `{"spec":{"minMembers":2,"resources":{"cpu":"[node launcher]"},"queue":"research"}}`)
}

func TestNodesMayWaitForOtherPods(t *testing.T) {
	all := []policy.PodSet{newPodSet("helper", ""), newPodSet("node", "helper"), newPodSet("launcher", "node")}
	groupIs(t, all, `{"spec":{"minMembers":2,"resources":{"cpu":"[node launcher]"},"queue":"research"}}`)
}

func TestNodesThatFollowOthersAreNotMembers(t *testing.T) {
	_, _, all := podSets()
	all = append(all, newPodSet("node-2", "launcher"))
	groupIs(t, all, `{"spec":{"minMembers":2,"resources":{"cpu":"[node launcher]"},"queue":"research"}}`)
}

func groupIs(t *testing.T, all []policy.PodSet, want string) {
	group := &fakeGroup{}
	if err := emitGroup(fakeContext{podSets: all, group: group}); err != nil {
		t.Fatal(err)
	}
	if group.body != want {
		t.Errorf("emitted %s, want %s", group.body, want)
	}
}

func TestGroupWithoutMembersIsRefused(t *testing.T) {
	node, _, all := podSets()
	node.pods = 0
	for _, phase := range []func(policy.Context) error{labelPods, emitGroup} {
		var failure policy.Failure
		if err := phase(fakeContext{podSets: all}); !errors.As(err, &failure) {
			t.Fatalf("returned %v, want a failure", err)
		}
		if failure.Field == nil || *failure.Field != "spec.template.spec.replicatedJobs" {
			t.Errorf("the failure names the field %v", failure.Field)
		}
	}
}

func TestLabelOfAnotherGroupIsReplacedWithAWarning(t *testing.T) {
	node, _, all := podSets()
	node.label = policy.Some("other")
	var warnings []string
	if err := labelPods(fakeContext{podSets: all, warnings: &warnings}); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(node.written, "scheduling.example.com/group=bert") {
		t.Errorf("wrote %q", node.written)
	}
	field := "spec.template.spec.replicatedJobs[node].template.spec.template.metadata.labels[scheduling.example.com/group]"
	if len(warnings) != 2 || !strings.Contains(warnings[0], "`other`") || warnings[1] != field {
		t.Errorf("warned %q", warnings)
	}
}
