package main

import (
	"context"
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"github.com/kubeflow/trainer/v2/pkg/constants"
	"github.com/kubeflow/trainer/v2/pkg/runtime"
	fwkcore "github.com/kubeflow/trainer/v2/pkg/runtime/framework/core"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cache answers like an informer's cache, with a copy of the object that it holds. The fake client would convert each object to JSON and
// back, which no controller does.
type cache struct {
	client.Client
	objects []client.Object
}

func (c *cache) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, object := range c.objects {
		if client.ObjectKeyFromObject(object) == key && reflect.TypeOf(object) == reflect.TypeOf(into) {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(object.DeepCopyObject()).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
}

// time measures how long it takes to build the objects of the one TrainJob of an input, the given number of times, and to encode them.
// It starts with the TrainJob and its runtime in memory, and ends with the JSON that would be applied.
//
// What is not measured: reading and writing the snapshot, copies of the two objects, which the reference changes while it builds, and key
// material. The Secret of MPI therefore exists already. The key of Flux is derived in each build, so deriving it is measured apart and
// subtracted.
func (s *server) time(text string, times int) (time.Duration, error) {
	objects, err := parse(text)
	if err != nil {
		return 0, err
	}
	admitted := s.admit(objects)
	if len(admitted.Refused) > 0 {
		return 0, fmt.Errorf("refused: %v", admitted.Refused)
	}
	var stored []client.Object
	for _, object := range admitted.objects {
		typed, err := typedObject(s.scheme, object)
		if err != nil {
			return 0, err
		}
		stored = append(stored, typed)
	}
	job, spec, err := jobAndRuntime(stored)
	if err != nil {
		return 0, err
	}
	framework := s.frameworks[0]
	framework.cluster.replace(nil)
	framework.cluster.Client = &cache{framework.cluster.Client, append(stored, secretOfMPI(job))}
	found, errs := framework.runtime(job)
	if errs != nil {
		return 0, errs.ToAggregate()
	}
	plugins, err := frameworkOf(found)
	if err != nil {
		return 0, err
	}
	var took time.Duration
	for range times {
		job, spec := job.DeepCopy(), spec.DeepCopy()
		start := time.Now()
		if err := buildAndEncode(found, plugins, job, spec); err != nil {
			return 0, err
		}
		took += time.Since(start)
	}
	if policy := spec.MLPolicy; policy != nil && policy.Flux != nil {
		keys, err := timeKeysOfFlux(job, times)
		if err != nil {
			return 0, err
		}
		took -= keys
	}
	return took, nil
}

// jobAndRuntime returns the TrainJob and the spec of its runtime.
func jobAndRuntime(stored []client.Object) (*trainer.TrainJob, *trainer.TrainingRuntimeSpec, error) {
	var job *trainer.TrainJob
	var spec *trainer.TrainingRuntimeSpec
	for _, object := range stored {
		switch object := object.(type) {
		case *trainer.TrainJob:
			job = object
		case *trainer.ClusterTrainingRuntime:
			spec = &object.Spec
		case *trainer.TrainingRuntime:
			spec = &object.Spec
		}
	}
	if job == nil || spec == nil {
		return nil, nil, errors.New("the input needs a TrainJob and its runtime")
	}
	return job, spec, nil
}

func secretOfMPI(job *trainer.TrainJob) *corev1.Secret {
	secret := &corev1.Secret{}
	secret.Namespace = job.Namespace
	secret.Name = job.Name + constants.MPISSHAuthSecretSuffix
	return secret
}

// buildAndEncode is NewObjects of the reference without its snapshot, followed by the encoding of a client that applies the objects.
func buildAndEncode(with runtime.Runtime, plugins *fwkcore.Framework, job *trainer.TrainJob, spec *trainer.TrainingRuntimeSpec) error {
	info, err := with.RuntimeInfo(job, spec.Template, spec.MLPolicy, spec.PodGroupPolicy)
	if err != nil {
		return err
	}
	objects, err := plugins.RunComponentBuilderPlugins(context.Background(), info, job)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if _, err := json.Marshal(object); err != nil {
			return err
		}
	}
	return nil
}

// timeKeysOfFlux measures how long the reference derives the key of a Flux instance, the given number of times.
func timeKeysOfFlux(job *trainer.TrainJob, times int) (time.Duration, error) {
	start := time.Now()
	for range times {
		seed := sha256.Sum256([]byte(job.UID))
		key, err := ecdh.X25519().NewPrivateKey(seed[:])
		if err != nil {
			return 0, err
		}
		key.PublicKey()
	}
	return time.Since(start), nil
}
