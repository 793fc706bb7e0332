package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/yaml"
)

// resource is one kind of custom resource, as an API server serves it.
type resource struct {
	namespaced bool
	structural *structuralschema.Structural
	strategy   rest.RESTCreateStrategy
}

// readResources reads the CRDs of a folder.
func readResources(folder string) (map[schema.GroupVersionKind]*resource, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.kubeflow.org_*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: there are no CRDs", folder)
	}
	resources := map[schema.GroupVersionKind]*resource{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, version := range crd.Spec.Versions {
			kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
			resources[kind], err = newResource(kind, crd.Spec.Scope == apiextensionsv1.NamespaceScoped, version)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return resources, nil
}

func newResource(
	kind schema.GroupVersionKind, namespaced bool, version apiextensionsv1.CustomResourceDefinitionVersion,
) (*resource, error) {
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		version.Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		return nil, err
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, err
	}
	strategy := customresource.NewStrategy(nil, namespaced, kind, validator, nil, structural, nil, nil, nil)
	return &resource{namespaced, structural, strategy}, nil
}

// admit does to a new object what an API server does: it drops unknown fields, which it returns, sets defaults and validates.
func (r *resource) admit(object *unstructured.Unstructured) ([]string, field.ErrorList) {
	dropped, err := r.read(object)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(nil, "", err.Error())}
	}
	// A status is written by others.
	unstructured.RemoveNestedField(object.Object, "status")
	return dropped, r.strategy.Validate(context.Background(), object)
}

func (r *resource) read(object *unstructured.Unstructured) ([]string, error) {
	meta, found, dropped, err := objectmeta.GetObjectMetaWithOptions(
		object.Object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	dropped = append(dropped, pruning.PruneWithOptions(object.Object, r.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, r.structural)
	fieldErr, paths := objectmeta.CoerceWithOptions(
		nil, object.Object, r.structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if fieldErr != nil {
		return nil, fieldErr
	}
	if found {
		if err := objectmeta.SetObjectMeta(object.Object, meta); err != nil {
			return nil, err
		}
	}
	defaulting.Default(object.Object, r.structural)
	dropped = append(dropped, paths...)
	sort.Strings(dropped)
	return dropped, nil
}
