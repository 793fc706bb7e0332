package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// policies and groups are unions: an object has one member of each.
var (
	policies = []string{"Torch", "MPI", "Flux", "JAX", "XGBoost"}
	groups   = []string{"Coscheduling", "Volcano"}
)

// texts are the values of strings that may not be any string, by struct and field.
var texts = map[string]string{
	"AppArmorProfile.Type":                                  "Unconfined",
	"AzureDiskVolumeSource.CachingMode":                     "ReadWrite",
	"AzureDiskVolumeSource.Kind":                            "Shared",
	"Condition.Reason":                                      "Done",
	"Condition.Status":                                      "True",
	"Container.ImagePullPolicy":                             "Never",
	"Container.TerminationMessagePolicy":                    "File",
	"ContainerPort.Protocol":                                "UDP",
	"DatasetInitializer.StorageUri":                         "s3://bucket/data",
	"DependsOn.Status":                                      "Ready",
	"EphemeralContainerCommon.ImagePullPolicy":              "Never",
	"EphemeralContainerCommon.TerminationMessagePolicy":     "File",
	"FailurePolicy.RestartStrategy":                         "BlockingRecreate",
	"FailurePolicyRule.Action":                              "RestartJobSet",
	"HTTPGetAction.Scheme":                                  "HTTPS",
	"HostPathVolumeSource.Type":                             "Socket",
	"ImageVolumeSource.PullPolicy":                          "Never",
	"JobSpec.CompletionMode":                                "NonIndexed",
	"JobSpec.PodReplacementPolicy":                          "TerminatingOrFailed",
	"Lifecycle.StopSignal":                                  "SIGUSR1",
	"MPIMLPolicySource.MPIImplementation":                   "OpenMPI",
	"ModelInitializer.StorageUri":                           "s3://bucket/model",
	"ModifyVolumeStatus.Status":                             "Pending",
	"NetworkTopologySpec.Mode":                              "soft",
	"NodeSelectorRequirement.Operator":                      "NotIn",
	"PersistentVolumeClaimCondition.Status":                 "True",
	"PersistentVolumeClaimSpec.AccessModes":                 "ReadWriteOncePod",
	"PersistentVolumeClaimSpec.VolumeMode":                  "Filesystem",
	"PersistentVolumeClaimStatus.AccessModes":               "ReadWriteOnce",
	"PersistentVolumeClaimStatus.AllocatedResourceStatuses": "NodeResizePending",
	"PersistentVolumeClaimStatus.Phase":                     "Bound",
	"PodFailurePolicyOnExitCodesRequirement.Operator":       "NotIn",
	"PodFailurePolicyRule.Action":                           "Ignore",
	"PodOS.Name":                                            "linux",
	"PodSecurityContext.FSGroupChangePolicy":                "OnRootMismatch",
	"PodSecurityContext.SELinuxChangePolicy":                "Recursive",
	"PodSecurityContext.SupplementalGroupsPolicy":           "Strict",
	"PodSpec.DNSPolicy":                                     "None",
	"PodSpec.PreemptionPolicy":                              "PreemptLowerPriority",
	"PodSpec.RestartPolicy":                                 "OnFailure",
	"SeccompProfile.Type":                                   "Unconfined",
	"SecurityContext.ProcMount":                             "Unmasked",
	"StartupPolicy.StartupPolicyOrder":                      "AnyOrder",
	"SuccessPolicy.Operator":                                "Any",
	"Toleration.Effect":                                     "PreferNoSchedule",
	"Toleration.Operator":                                   "Equal",
	"TopologySpreadConstraint.NodeAffinityPolicy":           "Ignore",
	"TopologySpreadConstraint.NodeTaintsPolicy":             "Ignore",
	"TopologySpreadConstraint.WhenUnsatisfiable":            "ScheduleAnyway",
	"TrainJobSpec.ManagedBy":                                "kueue.x-k8s.io/multikueue",
	"VolumeMount.MountPropagation":                          "None",
	"VolumeRetentionPolicy.WhenDeleted":                     "Retain",
}

func fill(out *json.Encoder) error {
	job := &trainer.TrainJob{}
	filler{}.set(reflect.ValueOf(job).Elem(), "", "")
	objects := []any{job}
	for i, policy := range policies {
		runtime := &trainer.TrainingRuntime{}
		filler{policy: policy, group: groups[i%len(groups)]}.set(reflect.ValueOf(runtime).Elem(), "", "")
		runtime.Name = "filled-" + strings.ToLower(policy)
		objects = append(objects, runtime)
	}
	cluster := &trainer.ClusterTrainingRuntime{}
	filler{policy: "MPI", group: "Volcano"}.set(reflect.ValueOf(cluster).Elem(), "", "")
	objects = append(objects, cluster)
	for _, object := range objects {
		if err := out.Encode(object); err != nil {
			return err
		}
	}
	return nil
}

// filler sets every field, but for the other members of unions.
type filler struct {
	policy, group string
}

// set fills a value that stands at a path of Go names; field is the struct and field that it is the value of.
func (f filler) set(value reflect.Value, path, field string) {
	switch special := value.Addr().Interface().(type) {
	case *metav1.TypeMeta:
		kind, _, _ := strings.Cut(strings.TrimPrefix(path, "."), ".")
		*special = metav1.TypeMeta{APIVersion: trainer.SchemeGroupVersion.String(), Kind: kind}
	case *metav1.ObjectMeta:
		*special = metadata(path)
	case *metav1.Time:
		*special = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	case *resource.Quantity:
		*special = resource.MustParse("1500m")
	case *intstr.IntOrString:
		*special = intstr.FromString("http")
	default:
		f.plain(value, path, field)
	}
}

func (f filler) plain(value reflect.Value, path, field string) {
	switch value.Kind() {
	case reflect.Struct:
		f.fields(value, path)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		f.set(value.Elem(), path, field)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		f.set(value.Index(0), path, field)
	case reflect.Map:
		key, item := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		f.set(key, path, "")
		f.set(item, path, field)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, item)
	case reflect.String:
		value.SetString(text(field))
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Uint8:
		value.SetUint('a')
	default:
		value.SetInt(2)
	}
}

func (f filler) fields(value reflect.Value, path string) {
	if path == "" {
		path = "." + value.Type().Name()
	}
	for i := range value.NumField() {
		member := value.Type().Field(i)
		if f.isOtherMember(member.Name) {
			continue
		}
		f.set(value.Field(i), path+"."+member.Name, value.Type().Name()+"."+member.Name)
	}
}

func (f filler) isOtherMember(field string) bool {
	for _, member := range policies {
		if field == member {
			return field != f.policy
		}
	}
	for _, member := range groups {
		if field == member {
			return field != f.group
		}
	}
	return false
}

func text(field string) string {
	if text, ok := texts[field]; ok {
		return text
	}
	return "a"
}

// metadata is as much as the schemas of the reference know of it, and in a patch as much as it lets have an effect.
func metadata(path string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}}
	switch {
	case strings.Count(path, ".") == 2:
		meta.Name = "filled"
	case !strings.Contains(path, "RuntimePatches"):
		meta.Name, meta.Finalizers = "inner", []string{"example.com/keep"}
	}
	return meta
}
