// Lets a batch scheduler start the pods of a TrainJob together or not at all. The scheduler reads a Group, which has the TrainJob's name,
// and the label of the pods that belong to it.
package main

import (
	"encoding/json"

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
	label = "scheduling.example.com/group"
)

func init() {
	transform.Register(labelPods)
	build.Register(emitGroup)
}

// labelPods labels the pods of the group, and sets their scheduler.
func labelPods(ctx policy.Context) error {
	members, followers := gang(ctx.Info())
	name := ctx.Objects().Name(api, kind, suffix, nil)
	// The schema in manifest.json has a default.
	scheduler := ctx.Job().Config().Text("/schedulerName")
	for _, podSet := range append(members, followers...) {
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
	members, followers := gang(ctx.Info())
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

// gang returns the nodes that start together, and the pod sets that start once these are ready, such as an MPI launcher. The scheduler
// keeps resources for the latter, but must not wait for them.
func gang(info policy.Info) (members, followers []policy.PodSet) {
	isMember := map[string]bool{}
	for _, node := range info.Nodes() {
		if len(waitsForReady(node)) == 0 {
			members = append(members, node)
			isMember[node.Name()] = true
		}
	}
	for _, podSet := range info.PodSets() {
		for _, name := range waitsForReady(podSet) {
			if isMember[name] {
				followers = append(followers, podSet)
				break
			}
		}
	}
	return members, followers
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
