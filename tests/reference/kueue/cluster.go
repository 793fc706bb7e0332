package main

import (
	"context"
	"encoding/json"
	"fmt"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/util/resource"
	schedulerplugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// cluster is a client with the objects of one input.
type cluster struct {
	client.Client
	objects []client.Object
}

func newScheme() (*apiruntime.Scheme, error) {
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{
		clientgoscheme.AddToScheme, trainer.AddToScheme, jobset.AddToScheme, kueue.AddToScheme,
		schedulerplugins.AddToScheme, volcano.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

func newCluster(scheme *apiruntime.Scheme, texts []json.RawMessage) (*cluster, error) {
	var objects []client.Object
	for _, text := range texts {
		object, err := read(scheme, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		if object != nil {
			objects = append(objects, object)
		}
	}
	withObjects := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.LimitRange{}, indexer.LimitRangeHasContainerType, indexer.IndexLimitRangeHasContainerType)
	return &cluster{withObjects.Build(), objects}, nil
}

// read reads an object as Kueue's client does: without the fields that its types do not have. There is none of a kind that it never reads.
func read(scheme *apiruntime.Scheme, text []byte) (client.Object, error) {
	var plain unstructured.Unstructured
	if err := json.Unmarshal(text, &plain.Object); err != nil {
		return nil, err
	}
	if !scheme.Recognizes(plain.GroupVersionKind()) {
		return nil, nil
	}
	typed, err := scheme.New(plain.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, typed); err != nil {
		return nil, err
	}
	switch typed := typed.(type) {
	case *resourcev1.ResourceClaimTemplate:
		setDefaults(&typed.Spec.Spec)
	case *corev1.LimitRange:
		for i := range typed.Spec.Limits {
			setDefaultsOfRange(&typed.Spec.Limits[i])
		}
	}
	object, ok := typed.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", typed)
	}
	return object, nil
}

// setDefaults sets what an API server sets when it stores a claim, and what Kueue relies on.
func setDefaults(claim *resourcev1.ResourceClaimSpec) {
	for i := range claim.Devices.Requests {
		exactly := claim.Devices.Requests[i].Exactly
		if exactly != nil && exactly.AllocationMode == "" {
			exactly.AllocationMode = resourcev1.DeviceAllocationModeExactCount
		}
		if exactly != nil && exactly.AllocationMode == resourcev1.DeviceAllocationModeExactCount && exactly.Count == 0 {
			exactly.Count = 1
		}
	}
}

// setDefaultsOfRange sets what an API server sets when it stores a LimitRange.
func setDefaultsOfRange(item *corev1.LimitRangeItem) {
	if item.Type == corev1.LimitTypeContainer {
		item.Default = resource.MergeResourceListKeepFirst(item.Default, item.Max)
		item.DefaultRequest = resource.MergeResourceListKeepFirst(item.DefaultRequest, item.Default)
		item.DefaultRequest = resource.MergeResourceListKeepFirst(item.DefaultRequest, item.Min)
	}
}

// unindexed ignores the indexes that only watches need.
type unindexed struct{}

func (unindexed) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}
