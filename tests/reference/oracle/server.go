package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"github.com/kubeflow/trainer/v2/pkg/runtime"
	"github.com/kubeflow/trainer/v2/pkg/util/trainjob"
	"github.com/kubeflow/trainer/v2/pkg/webhooks"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// unvalidated is the label by which the reference's webhook configuration leaves out a runtime.
const unvalidated = "trainer.kubeflow.org/webhook-validation"

// pointers are addresses, which the reference prints in some errors in place of what stands there: another one each time.
var pointers = regexp.MustCompile(`0x[0-9a-f]{6,}`)

// clusterScoped are the kinds of Kubernetes' own that inputs may hold and that have no namespace.
var clusterScoped = sets.New("DeviceClass", "Namespace", "Node", "PriorityClass", "ResourceSlice", "RuntimeClass", "StorageClass")

type server struct {
	scheme     *apiruntime.Scheme
	resources  map[schema.GroupVersionKind]*resource
	frameworks []*framework
}

func newServer(crds string) (*server, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	resources, err := readResources(crds)
	if err != nil {
		return nil, err
	}
	forward, err := newFramework(scheme, false)
	if err != nil {
		return nil, err
	}
	reverse, err := newFramework(scheme, true)
	if err != nil {
		return nil, err
	}
	return &server{scheme, resources, []*framework{forward, reverse}}, nil
}

// answers are the different answers to one input, in the order of their text. It is judged so many times, half of them with the
// plugins in either order.
func (s *server) answers(text string, runs int) ([]json.RawMessage, error) {
	objects, err := parse(text)
	if err != nil {
		return encode(answer{Refused: []refusal{{By: "yaml", Error: err.Error()}}})
	}
	admitted := s.admit(objects)
	if len(admitted.Refused) > 0 {
		return encode(admitted.answer)
	}
	var found []answer
	for i := range runs {
		found = append(found, s.frameworks[i%len(s.frameworks)].run(s.scheme, admitted))
	}
	return encode(found...)
}

func encode(answers ...answer) ([]json.RawMessage, error) {
	var texts []string
	for _, answer := range answers {
		text, err := json.Marshal(answer)
		if err != nil {
			return nil, err
		}
		texts = append(texts, pointers.ReplaceAllString(string(text), "0x..."))
	}
	sort.Strings(texts)
	var found []json.RawMessage
	for _, text := range slices.Compact(texts) {
		found = append(found, json.RawMessage(text))
	}
	return found, nil
}

// admitted are the objects of an input as they are stored, with what is known of the answer so far.
type admitted struct {
	answer
	objects []*unstructured.Unstructured
}

// admit lets in the objects of an input. Where one is given twice, the last one counts, as it would if they were applied.
func (s *server) admit(objects []*unstructured.Unstructured) admitted {
	var all admitted
	at := map[string]int{}
	for _, object := range objects {
		kind := s.resources[object.GroupVersionKind()]
		if kind == nil && !s.scheme.Recognizes(object.GroupVersionKind()) {
			all.refuse(name(object), "schema", field.ErrorList{
				field.Invalid(field.NewPath("apiVersion"), "", "there is no such kind: "+object.GroupVersionKind().String()),
			})
			continue
		}
		switch {
		case kind != nil && !kind.namespaced:
			// As a server does, which takes the namespace from the request.
			object.SetNamespace("")
		case object.GetNamespace() == "" && !clusterScoped.Has(object.GetKind()):
			object.SetNamespace("default")
		}
		if kind != nil {
			dropped, errs := kind.admit(object)
			for _, path := range dropped {
				all.Dropped = append(all.Dropped, name(object)+": "+path)
			}
			all.refuse(name(object), "schema", errs)
		}
		object.SetUID(types.UID("uid-of-" + object.GetName()))
		if place, twice := at[name(object)]; twice {
			all.objects[place] = object
			continue
		}
		at[name(object)] = len(all.objects)
		all.objects = append(all.objects, object)
	}
	return all
}

// refuse adds errors, in the order of their fields: that of the reference is now and then that of a map.
func (a *answer) refuse(object, by string, errs field.ErrorList) {
	sort.SliceStable(errs, func(i, j int) bool {
		return errs[i].Field+"\x00"+errs[i].Detail < errs[j].Field+"\x00"+errs[j].Detail
	})
	for _, err := range errs {
		path := err.Field
		if path == (*field.Path)(nil).String() {
			path = ""
		}
		// Some bodies hold the whole value, which says nothing of what is wrong with it.
		a.Refused = append(a.Refused, refusal{object, by, path, string(err.Type) + ": " + err.Detail})
	}
}

// run judges the admitted objects and builds what the TrainJobs become.
func (f *framework) run(scheme *apiruntime.Scheme, from admitted) answer {
	all := answer{Dropped: from.Dropped}
	var stored []client.Object
	for _, object := range from.objects {
		typed, err := typedObject(scheme, object)
		if err != nil {
			all.Refused = append(all.Refused, refusal{Object: name(object), By: "types", Error: err.Error()})
			continue
		}
		stored = append(stored, typed)
	}
	f.cluster.replace(stored)
	for i, object := range from.objects {
		if len(stored) == len(from.objects) {
			f.judge(&all, name(object), stored[i])
		}
	}
	for i, object := range from.objects {
		if job, ok := at(stored, i).(*trainer.TrainJob); ok && len(all.Refused) == 0 {
			f.build(&all, name(object), job.DeepCopy())
		}
	}
	if len(all.Refused) > 0 {
		all.Objects = nil
	}
	return all
}

func at(objects []client.Object, index int) client.Object {
	if index < len(objects) {
		return objects[index]
	}
	return nil
}

func typedObject(scheme *apiruntime.Scheme, object *unstructured.Unstructured) (client.Object, error) {
	typed, err := scheme.New(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := apiruntime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, err
	}
	typed.GetObjectKind().SetGroupVersionKind(object.GroupVersionKind())
	stored, ok := typed.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", typed)
	}
	return stored, nil
}

// judge calls the webhook of an object's kind.
func (f *framework) judge(all *answer, name string, object client.Object) {
	defer caught(all, name, "a webhook")
	ctx := context.Background()
	var warnings admission.Warnings
	var err error
	switch object := object.(type) {
	case *trainer.ClusterTrainingRuntime:
		if object.Labels[unvalidated] != "disabled" {
			warnings, err = (&webhooks.ClusterTrainingRuntimeValidator{}).ValidateCreate(ctx, object)
		}
	case *trainer.TrainingRuntime:
		if object.Labels[unvalidated] != "disabled" {
			warnings, err = (&webhooks.TrainingRuntimeValidator{}).ValidateCreate(ctx, object)
		}
	case *trainer.TrainJob:
		found, errs := f.runtime(object)
		if errs != nil {
			all.refuse(name, "webhook", errs)
			return
		}
		warnings, errs = found.ValidateObjects(ctx, nil, object.DeepCopy())
		err = errs.ToAggregate()
	}
	for _, warning := range warnings {
		all.Warnings = append(all.Warnings, name+": "+warning)
	}
	sort.Strings(all.Warnings)
	all.refuse(name, "webhook", fieldErrors(err))
}

func (f *framework) runtime(job *trainer.TrainJob) (runtime.Runtime, field.ErrorList) {
	key := runtime.RuntimeRefToRuntimeRegistryKey(job.Spec.RuntimeRef)
	if found, ok := f.runtimes[key]; ok {
		return found, nil
	}
	return nil, field.ErrorList{field.Invalid(field.NewPath("spec", "runtimeRef"), key, "unsupported runtime")}
}

// fieldErrors are the errors that a webhook adds up.
func fieldErrors(err error) field.ErrorList {
	if err == nil {
		return nil
	}
	all := []error{err}
	var several utilerrors.Aggregate
	if errors.As(err, &several) {
		all = several.Errors()
	}
	var fields field.ErrorList
	for _, err := range all {
		var of *field.Error
		if !errors.As(err, &of) {
			of = field.Invalid(nil, "", err.Error())
		}
		fields = append(fields, of)
	}
	return fields
}

// build does what the controller does when it reconciles a new TrainJob, without applying anything.
func (f *framework) build(all *answer, name string, job *trainer.TrainJob) {
	defer caught(all, name, "the build")
	if trainjob.IsManagedByExternalController(job) {
		return
	}
	found, errs := f.runtime(job)
	if errs != nil {
		all.refuse(name, "build", errs)
		return
	}
	objects, err := found.NewObjects(context.Background(), job)
	if err != nil {
		all.Refused = append(all.Refused, refusal{Object: name, By: "build", Error: err.Error()})
		return
	}
	for _, object := range objects {
		plain, err := plainObject(object)
		if err != nil {
			all.Refused = append(all.Refused, refusal{Object: name, By: "build", Error: err.Error()})
			return
		}
		all.Objects = append(all.Objects, plain)
	}
	sort.SliceStable(all.Objects, func(i, j int) bool { return sortKey(all.Objects[i]) < sortKey(all.Objects[j]) })
}

func sortKey(object any) string {
	plain := &unstructured.Unstructured{Object: object.(map[string]any)}
	return name(plain) + " " + plain.GetAPIVersion()
}

// plainObject is an object as JSON, without key material, which is another one each time.
func plainObject(object apiruntime.ApplyConfiguration) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var plain map[string]any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	if plain["kind"] == "Secret" {
		for _, field := range []string{"data", "stringData"} {
			values, _ := plain[field].(map[string]any)
			for key := range values {
				values[key] = ""
			}
		}
	}
	return plain, nil
}

// caught makes a panic of the reference a refusal: its controller would recover, and try again forever.
func caught(all *answer, name, in string) {
	if reason := recover(); reason != nil {
		all.Refused = append(all.Refused, refusal{Object: name, By: "panic", Error: fmt.Sprintf("%s: %v", in, reason)})
	}
}
