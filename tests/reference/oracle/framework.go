package main

import (
	"context"
	"fmt"
	"reflect"
	"sort"

	configapi "github.com/kubeflow/trainer/v2/pkg/apis/config/v1alpha1"
	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"github.com/kubeflow/trainer/v2/pkg/runtime"
	"github.com/kubeflow/trainer/v2/pkg/runtime/core"
	fwkcore "github.com/kubeflow/trainer/v2/pkg/runtime/framework/core"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	schedulerplugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// framework is the reference's runtimes, over a cluster that is another one for each input.
type framework struct {
	runtimes map[string]runtime.Runtime
	cluster  *cluster
}

// cluster is a client whose objects can be replaced.
type cluster struct {
	client.Client
	scheme *apiruntime.Scheme
}

func (c *cluster) replace(objects []client.Object) {
	c.Client = fake.NewClientBuilder().WithScheme(c.scheme).WithObjects(objects...).Build()
}

// unindexed ignores the indexes that only watches need.
type unindexed struct{}

func (unindexed) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

func newScheme() (*apiruntime.Scheme, error) {
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{
		clientgoscheme.AddToScheme, trainer.AddToScheme, jobset.AddToScheme, schedulerplugins.AddToScheme, volcano.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// newFramework starts the runtimes with their plugins in the order of their names, or in the reverse of it. The reference
// itself takes another order each time it starts.
func newFramework(scheme *apiruntime.Scheme, reverse bool) (*framework, error) {
	cluster := &cluster{scheme: scheme}
	cluster.replace(nil)
	config := &configapi.Configuration{}
	configapi.SetDefaults_Configuration(config)
	runtimes, err := core.New(context.Background(), cluster, unindexed{}, config)
	if err != nil {
		return nil, err
	}
	for name, of := range runtimes {
		if err := orderPlugins(of, reverse); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return &framework{runtimes, cluster}, nil
}

// orderPlugins sorts each list of plugins of a runtime. The lists are private, and their order is that of a Go map, which is
// random: nothing that the module exports makes it the same twice.
func orderPlugins(of runtime.Runtime, reverse bool) error {
	framework, err := frameworkOf(of)
	if err != nil {
		return err
	}
	fields := reflect.ValueOf(framework).Elem()
	sorted := 0
	for i := range fields.NumField() {
		list := fields.Field(i)
		if list.Kind() == reflect.Slice {
			sortByName(reflect.NewAt(list.Type(), list.Addr().UnsafePointer()).Elem(), reverse)
			sorted++
		}
	}
	if sorted == 0 {
		return fmt.Errorf("%s has no lists of plugins", fields.Type())
	}
	return nil
}

// frameworkOf returns the framework of a runtime, which is private.
func frameworkOf(of runtime.Runtime) (*fwkcore.Framework, error) {
	value := reflect.ValueOf(of).Elem()
	if cluster, ok := of.(*core.ClusterTrainingRuntime); ok {
		value = reflect.ValueOf(cluster.TrainingRuntime).Elem()
	}
	field := value.FieldByName("framework")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*fwkcore.Framework]() {
		return nil, fmt.Errorf("%s has no framework", value.Type())
	}
	return *(**fwkcore.Framework)(field.Addr().UnsafePointer()), nil
}

func sortByName(plugins reflect.Value, reverse bool) {
	name := func(i int) string {
		return plugins.Index(i).Interface().(interface{ Name() string }).Name()
	}
	sort.Slice(plugins.Interface(), func(i, j int) bool { return (name(i) < name(j)) != reverse })
}
