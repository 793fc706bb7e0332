package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"github.com/kubeflow/trainer/v2/pkg/runtime/core"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	"sigs.k8s.io/kueue/pkg/controller/jobs/trainjob"
	"sigs.k8s.io/kueue/pkg/dra"
	"sigs.k8s.io/kueue/pkg/workload"
)

// starts is how often the reference's runtime is started for one TrainJob: each time, its plugins have another order.
const starts = 4

// pointers are addresses, which the reference prints in some errors in place of what stands there: another one each time.
var pointers = regexp.MustCompile(`0x[0-9a-f]{6,}`)

// answer computes the pod sets of a TrainJob. It is an error if they depend on the order of the reference's plugins.
func (c *cluster) answer(ctx context.Context, job *trainer.TrainJob) (answer, error) {
	var first answer
	for start := range starts {
		if _, err := core.New(ctx, c, unindexed{}, nil); err != nil {
			return first, err
		}
		found := c.once(ctx, job.DeepCopy())
		if start == 0 {
			first = found
		}
		if !reflect.DeepEqual(first, found) {
			return first, fmt.Errorf("%s: the pod sets depend on the order of plugins: %v, %v", found.TrainJob, first, found)
		}
	}
	return first, nil
}

func (c *cluster) once(ctx context.Context, job *trainer.TrainJob) (found answer) {
	found.TrainJob = job.Namespace + "/" + job.Name
	defer func() {
		// Its controller would recover, and try again forever.
		if reason := recover(); reason != nil {
			found = answer{TrainJob: found.TrainJob, Error: fmt.Sprintf("panic: %v", reason)}
		}
	}()
	before := job.Spec.Trainer.DeepCopy()
	podSets, err := (*trainjob.TrainJob)(job).PodSets(ctx, c)
	if err == nil {
		found.PodSets, err = c.requests(ctx, jobframework.NewWorkload(job.Name, job, podSets, nil))
	}
	// Its controller updates the same object when it starts the TrainJob.
	if err == nil && !reflect.DeepEqual(before, job.Spec.Trainer) {
		err = errors.New("it changes spec.trainer, which is immutable")
	}
	if err != nil {
		found.Error = pointers.ReplaceAllString(err.Error(), "0x...")
	}
	return found
}

// requests does what Kueue does with a new workload before it looks for quota.
func (c *cluster) requests(ctx context.Context, work *kueue.Workload) ([]podSet, error) {
	workload.AdjustResources(ctx, c, work)
	info := workload.NewInfo(work)
	var found []podSet
	for i := range info.TotalRequests {
		of := &work.Spec.PodSets[i]
		one := podSet{Name: string(of.Name), Count: of.Count, Requests: map[string]int64{}, Claims: claims(&of.Template.Spec)}
		for name, amount := range info.TotalRequests[i].SinglePodRequests() {
			one.Requests[string(name)] = amount
		}
		found = append(found, one)
	}
	mapper, err := c.mapper(ctx)
	if err != nil {
		return nil, err
	}
	_, errs := dra.GetResourceRequestsForResourceClaimTemplates(ctx, c, mapper, work)
	// An input may lack the templates, of which only the names matter here.
	return found, errs.Filter(isInternal).ToAggregate()
}

func isInternal(err error) bool {
	var of *field.Error
	return errors.As(err, &of) && of.Type == field.ErrorTypeInternal
}

func claims(pod *corev1.PodSpec) map[string]string {
	found := map[string]string{}
	for _, claim := range pod.ResourceClaims {
		switch {
		case claim.ResourceClaimTemplateName != nil:
			found[claim.Name] = "template " + *claim.ResourceClaimTemplateName
		case claim.ResourceClaimName != nil:
			found[claim.Name] = "claim " + *claim.ResourceClaimName
		}
	}
	return found
}

// mapper is a configuration of Kueue by which each class of devices is a resource of its own.
func (c *cluster) mapper(ctx context.Context) (*dra.ResourceMapper, error) {
	var templates resourcev1.ResourceClaimTemplateList
	if err := c.List(ctx, &templates); err != nil {
		return nil, err
	}
	classes := map[corev1.ResourceName]bool{}
	for _, template := range templates.Items {
		for _, request := range template.Spec.Spec.Devices.Requests {
			if request.Exactly != nil {
				classes[corev1.ResourceName(request.Exactly.DeviceClassName)] = true
			}
		}
	}
	var mappings []config.DeviceClassMapping
	for class := range maps.Keys(classes) {
		mappings = append(mappings, config.DeviceClassMapping{Name: class, DeviceClassNames: []corev1.ResourceName{class}})
	}
	mapper := dra.NewResourceMapper()
	return mapper, mapper.PopulateFromConfiguration(mappings)
}
