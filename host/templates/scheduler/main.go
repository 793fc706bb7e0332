// Lets a batch scheduler start the pods of a TrainJob together or not at all. The scheduler reads a Group, which has the TrainJob's name,
// and the label of the pods that belong to it.
package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"example.com/plugin/policy"
	"example.com/plugin/policy/build"
	"example.com/plugin/policy/transform"
)

const (
	// api is the API of the scheduler's object.
	api  = "scheduling.example.com/v1"
	kind = "Group"
	// suffix is empty, so that the object has the TrainJob's name.
	suffix = ""
	// label is the label of the pods. Its value is the object's name.
	label          = "scheduling.example.com/group"
	replicatedJobs = "spec.template.spec.replicatedJobs"
)

func init() {
	transform.Register(labelPods)
	build.Register(emitGroup)
}

// labelPods labels the pods of the group, and sets their scheduler.
func labelPods(ctx policy.Context) error {
	members, followers, err := gang(ctx.Info())
	if err != nil {
		return err
	}
	name := ctx.Objects().Name(api, kind, suffix, nil)
	// The schema in manifest.json has a default.
	scheduler := ctx.Job().Config().Text("/schedulerName")
	for _, podSet := range append(members, followers...) {
		warnOfOtherGroup(ctx, podSet, name)
		ctx.Because("the scheduler starts all pods of this group together")
		podSet.SetPodLabel(label, name)
		// An empty name means the cluster's default, like none.
		if set := podSet.SchedulerName(); set == nil || *set == "" {
			ctx.Because("`schedulerName` in the configuration of trainyard-template-scheduler")
			podSet.SetSchedulerName(*scheduler)
		}
	}
	return nil
}

// emitGroup emits the object that the scheduler reads.
func emitGroup(ctx policy.Context) error {
	members, followers, err := gang(ctx.Info())
	if err != nil {
		return err
	}
	resources := map[string]string{}
	for _, one := range ctx.Info().GangRequests(names(append(members, followers...))) {
		resources[one.Resource] = one.Amount
	}
	var body struct {
		Spec struct {
			MinMembers uint32            `json:"minMembers"`
			Resources  map[string]string `json:"resources"`
			Queue      *string           `json:"queue,omitempty"`
		} `json:"spec"`
	}
	body.Spec.MinMembers = ctx.Info().GangMembers(names(members))
	body.Spec.Resources = resources
	body.Spec.Queue = ctx.Job().Config().Text("/queue")
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	group := ctx.Objects().Emit(api, kind, suffix, nil)
	// A scheduler that has counted the pods must not see another number.
	group.SetApply("while-suspended")
	group.ReportWhile("phase/Pending", "the group waits in its queue")
	group.SetBody(string(text))
	return nil
}

// warnOfOtherGroup warns if the runtime or a patch sets the label: pods without the group's name would be missing in it, and it would never
// start.
func warnOfOtherGroup(ctx policy.Context, podSet policy.PodSet, group string) {
	found := podSet.PodLabel(label)
	if found == nil || *found == group {
		return
	}
	field := fmt.Sprintf("%s[%s].template.spec.template.metadata.labels[%s]", replicatedJobs, podSet.Name(), label)
	message := fmt.Sprintf("is `%s`, but the scheduler finds the pods of the group by `%s`, which replaces it; remove it", *found, group)
	ctx.Warn(message, &field)
}

// gang returns the nodes that start together, and the pod sets that start once these are ready, such as an MPI launcher. The scheduler
// keeps resources for the latter, but must not wait for them.
func gang(info policy.Info) (members, followers []policy.PodSet, err error) {
	// The nodes, and the pod sets that wait for one of them, directly or not. A pod set waits only for those before it.
	ofNodes, waiting := map[string]bool{}, map[string]bool{}
	for _, node := range info.Nodes() {
		if node.AddressCount() > 0 {
			ofNodes[node.Name()] = true
			members = append(members, node)
		}
	}
	for _, podSet := range info.PodSets() {
		waits := func(one policy.Dependency) bool { return ofNodes[one.PodSet] }
		if slices.ContainsFunc(podSet.DependsOn(), waits) {
			waiting[podSet.Name()] = true
			ofNodes[podSet.Name()] = true
		}
	}
	members = slices.DeleteFunc(members, func(node policy.PodSet) bool { return waiting[node.Name()] })
	if len(members) == 0 {
		message := "the group has no members, because no node with pods starts before the others; give a replicated job the label `trainer.kubeflow.org/trainjob-ancestor-step: trainer`, or correct `replicas` and `dependsOn`"
		return nil, nil, policy.Failure{Message: message, Field: policy.Some(replicatedJobs)}
	}
	ready := names(members)
	for _, podSet := range info.PodSets() {
		waits := func(name string) bool { return slices.Contains(ready, name) }
		if slices.ContainsFunc(waitsForReady(podSet), waits) {
			followers = append(followers, podSet)
		}
	}
	return members, followers, nil
}

// waitsForReady returns the names of the pod sets that have to be ready before this one starts.
func waitsForReady(podSet policy.PodSet) (names []string) {
	for _, one := range podSet.DependsOn() {
		if one.Status == "Ready" {
			names = append(names, one.PodSet)
		}
	}
	return names
}

func names(podSets []policy.PodSet) (names []string) {
	for _, podSet := range podSets {
		names = append(names, podSet.Name())
	}
	return names
}

func main() {}
