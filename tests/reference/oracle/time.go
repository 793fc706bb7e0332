package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cache answers as an informer's cache does, with a copy of the object that it holds: the fake client would convert each object to
// JSON and back, which no controller does.
type cache struct {
	client.Client
	objects []client.Object
}

func (c *cache) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	for _, object := range c.objects {
		if client.ObjectKeyFromObject(object) == key && reflect.TypeOf(object) == reflect.TypeOf(into) {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(object.DeepCopyObject()).Elem())
			return nil
		}
	}
	return c.Client.Get(ctx, key, into, options...)
}

// time says how long it takes to build, so many times, the objects of the one TrainJob of an input, from objects that were read. What it
// builds are apply configurations; to encode them is not part of it.
func (s *server) time(text string, times int) (time.Duration, error) {
	objects, err := parse(text)
	if err != nil {
		return 0, err
	}
	admitted := s.admit(objects)
	if len(admitted.Refused) > 0 {
		return 0, fmt.Errorf("refused: %v", admitted.Refused)
	}
	framework := s.frameworks[0]
	var stored []client.Object
	var job *trainer.TrainJob
	for _, object := range admitted.objects {
		typed, err := typedObject(s.scheme, object)
		if err != nil {
			return 0, err
		}
		if found, ok := typed.(*trainer.TrainJob); ok {
			job = found
		}
		stored = append(stored, typed)
	}
	if job == nil {
		return 0, errors.New("there is no TrainJob in the input")
	}
	framework.cluster.replace(stored)
	framework.cluster.Client = &cache{framework.cluster.Client, stored}
	found, errs := framework.runtime(job)
	if errs != nil {
		return 0, errs.ToAggregate()
	}
	start := time.Now()
	for range times {
		if _, err := found.NewObjects(context.Background(), job.DeepCopy()); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}
